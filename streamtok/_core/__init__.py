"""The Cython core: bytes in, ids out. No IO, no file formats, no policy on arguments."""
