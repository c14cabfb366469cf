"""Training: counts pre-tokens, merges their pairs, and saves counts."""
