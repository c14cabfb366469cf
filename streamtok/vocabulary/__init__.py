"""Vocabularies: the table of tokens, its file formats, the published tables, the byte alphabet."""
