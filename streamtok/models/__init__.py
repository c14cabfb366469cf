"""Models beyond merging bytes: WordPiece, WordLevel, Unigram, and merges of symbols.

A model is one stage: a pre-token becomes ids. What each does is in `reference/wordpiece.py` and
`reference/unigram.py`, SentencePiece's in `reference/sentencepiece_models.py`, and at speed in
`_core/models`.
"""
