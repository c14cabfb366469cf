"""Slow and obvious versions of encoding (`bpe.py`) and training (`bpe_training.py`)."""
