"""Answers that only an exact stream can give: live counts, budgets, chunks, drift of ids."""
