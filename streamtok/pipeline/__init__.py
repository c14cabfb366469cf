"""Runs over files and feeds: sources, documents, checkpoints, sinks."""
