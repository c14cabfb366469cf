"""Views of an encoding and a text: tokens, streams, merges, comparisons, vocabularies.

Pure functions: text and encodings go in, typed results come out, and each result has `as_json`, a
plain value of dictionaries, lists, strings and numbers. Nothing here prints, reads files of the
user or colours anything: the terminal's commands are in `cli/`, HTML for notebooks in `markup.py`,
`as_json` in `result.py`. Every number is the library's own: ids come from `encode` and streams,
never from a separate computation.
"""
