"""Encodes files and feeds into files of ids: sources, documents, checkpoints and sinks."""
