"""Models that are no merges: WordPiece, WordLevel and Unigram."""
