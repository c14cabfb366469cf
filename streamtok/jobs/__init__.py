"""Encodes files and streams into files of ids: sources, documents, checkpoints and sinks."""

PART_SIZE = 1 << 28  # approximate bytes of input per part
