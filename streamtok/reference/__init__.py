"""Slow, obvious versions of encoding and training. The tests compare the fast code with them."""
