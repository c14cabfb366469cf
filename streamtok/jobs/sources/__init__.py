"""Reads documents from files and pipes, with positions from which another process can continue.

`blocks` reads the bytes of a path or URL; `follow` has its own; `compression` unpacks them.
`splitters`, `json_lines` and `parquet_texts` turn them into documents, and `reading` chooses.
`inputs` combines these for each kind of input, `fingerprint` tells whether one has changed, and
`unit_ends` where units of a text end. This package does not know files of ids.
"""
