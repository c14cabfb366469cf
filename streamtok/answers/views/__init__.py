"""Views of an encoding and a text: tokens, streams, merges, comparisons, vocabularies.

Pure functions: text and encodings go in, typed results come out, and each result has `as_json`, a
plain value of dictionaries, lists, strings and numbers. Nothing here prints, reads files or
colours anything, except that `markup.py` makes HTML for notebooks; the terminal's commands are in
`cli/`. `as_json` is in `result.py`. Every id comes from `encode` or a stream, never from a separate
computation.
"""
