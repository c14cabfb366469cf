"""A find is a file and a text whose ids differ: it is told with all that matters of the file."""

from __future__ import annotations

import json
from typing import Any

from ...tokenizer_files import File, ids_of
from .checks import Difference


def describe(file: File, difference: Difference) -> str:
    names = {id: token for token, id in ids_of(file["model"]).items()}
    names |= {token["id"]: token["content"] for token in file["added_tokens"]}

    def spelled(value: Any) -> str:
        """Its ids as pieces; offsets and other rows as they are."""
        if not isinstance(value, list):
            return repr(value)
        return repr([names.get(item, item) if isinstance(item, int) else item for item in value])

    added = [
        " ".join([ascii(t["content"]), *(k for k, v in t.items() if v is True)])
        for t in file["added_tokens"]
    ]
    model = {k: v for k, v in file["model"].items() if k not in ("vocab", "merges", "type") and v}
    return (
        f"{difference.kind}: text {difference.text!a} cuts {difference.how}\n"
        f"  normalizer {json.dumps(file['normalizer'])}\n"
        f"  pre_tokenizer {json.dumps(file['pre_tokenizer'])}\n"
        f"  decoder {json.dumps(file['decoder'])}\n  added {'; '.join(added)}\n"
        f"  model {model} merges {file['model'].get('merges', [])[:12]}\n"
        f"  expected {spelled(difference.expected)}\n  found    {spelled(difference.found)}"
    )
