"""GGUF files that tests make, with a vocabulary and no tensors."""

from __future__ import annotations

import struct
from typing import Any

_KINDS = {str: 8, bool: 7, int: 5, float: 6}  # types of values, as numbers in the file
_FORMS = {bool: "<?", int: "<i", float: "<f"}


def gguf_file(
    model: str, tokens: list[str], types: list[int], scores: list[float] | None = None, **keys: Any
) -> bytes:
    """The contents of a file. keys: others of `tokenizer.ggml`."""
    keys |= {"model": model, "tokens": tokens, "token_type": types}
    if scores is not None:
        keys["scores"] = scores
    named = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    named["general.architecture"] = "llama"
    parts = [b"GGUF", struct.pack("<IQQ", 3, 1, len(named))]
    for key, value in named.items():
        parts.append(_packed(key))
        if isinstance(value, list):
            parts.append(struct.pack("<IIQ", 9, _KINDS[type(value[0])], len(value)))
            parts += map(_packed, value)
        else:
            parts += [struct.pack("<I", _KINDS[type(value)]), _packed(value)]
    return b"".join([*parts, b"\xff" * 100])  # tensors, which are not read


def _packed(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<Q", len(value.encode())) + value.encode()
    return struct.pack(_FORMS[type(value)], value)
