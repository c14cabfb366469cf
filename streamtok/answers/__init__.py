"""Answers that need an exact stream: live counts, budgets, chunks, id drift."""
