"""Training: counts of pre-tokens, merges of their pairs, and what is saved of them."""
