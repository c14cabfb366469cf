"""Writes ids to files in eight formats, incrementally and in shards, and reads them back.

u16, u32: little-endian ids without a header. npy: a one-dimensional numpy array. text: decimal, one
id per line. jsonl: one line per document. parquet: one row per document, or several for a long one.
megatron, datatrove: the files that these programs read. The sidecar of each output records the
encoding of its ids. This package does not encode or decode.
"""
