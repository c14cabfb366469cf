"""Answers of 30 vocabularies of all families, kept to be compared after a change.

    python -m tests.long.goldens                  # compare; exit code 1 and a list of what differs
    python -m tests.long.goldens --write          # after a decision: keep the answers of now

`vocabularies.json.xz` has the vocabularies and their texts, so that a change of the generators
changes nothing here: {name: {"kind": "name", "json" or "model", "data": …, "texts": […]}}, where
models and texts are in base64. `answers.txt` has a line for each vocabulary and question, with a
digest for each text, and a line for each format of files. A commit that changes it says why.
"""
