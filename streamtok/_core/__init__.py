"""The Cython core: bytes in, ids out.

It does no I/O, knows no file formats and sets no policy on arguments.
"""
