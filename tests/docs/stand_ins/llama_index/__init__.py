"""Stands for LlamaIndex in the tests of the guides."""
