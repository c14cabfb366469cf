"""Encodes files and feeds into files of ids: sources, documents, checkpoints and sinks."""

PART_SIZE = 1 << 28  # bytes of an input in a part, about
