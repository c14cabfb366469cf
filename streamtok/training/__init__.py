"""Training: counting pre-tokens, merging their pairs, saving the counts."""
