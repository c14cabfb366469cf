"""Reads documents from files and pipes, with positions from which another process can continue.

`blocks` reads the bytes of a path or URL, `follow` those of a growing file, and `compression`
unpacks them. `splitters`, `json_lines` and `parquet_texts` split the text into documents; `reading`
chooses among them. `inputs` combines these for each kind of input, `fingerprint` tells whether an
input has changed, and `unit_ends` finds where units end. This package does not depend on formats of
ids.
"""
