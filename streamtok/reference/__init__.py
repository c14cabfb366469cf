"""Slow and obvious versions of encoding and training; read `bpe.py` and `bpe_training.py` first."""
