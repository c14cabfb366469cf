"""Vocabularies: the table of tokens, its file forms, the published tables, the byte alphabet."""
