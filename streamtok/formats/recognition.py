"""Whether a file is a vocabulary of a given format: then another one may take its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import StreamtokError
from ..vocabulary.ranks_file import loads_tiktoken
from .loading import parse_json, read_bytes

__all__ = ["is_vocabulary"]


def is_vocabulary(path: str, format: str) -> bool:
    """bool: whether the file loads as a vocabulary of `format`, a key of `conversion.FORMATS`."""
    try:
        _loader(format)(path)
    except (StreamtokError, ValueError, OSError):
        return False
    return True


def _loader(format: str) -> Callable[[str], Any]:
    if format == "tiktoken":
        return lambda path: loads_tiktoken(read_bytes(path), path)
    if format == "gpt2":
        return _load_half_of_gpt2
    from . import load_huggingface, load_minbpe, load_nanochat, load_sentencepiece, load_tekken

    return {
        "huggingface": load_huggingface,
        "minbpe": load_minbpe,
        "nanochat": load_nanochat,
        "sentencepiece": load_sentencepiece,
        "tekken": load_tekken,
    }[format]


def _load_half_of_gpt2(path: str) -> None:
    """One of its two files: the merges, or the ids of all tokens."""
    data = read_bytes(path)
    if data.startswith(b"#version"):
        return
    ids = parse_json(data, path)
    if not isinstance(ids, dict) or not all(type(one) is int for one in ids.values()):
        raise ValueError(f"{path} has no ids")
