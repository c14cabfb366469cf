"""Models that are not merges: WordPiece, WordLevel and Unigram.

A model is one stage: a pre-token becomes ids. What each does is in `reference/wordpiece.py` and
`reference/unigram.py`, SentencePiece's in `reference/sentencepiece_models.py`, and at speed in
`_core/models`.
"""
