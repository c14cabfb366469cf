"""Whatever a vocabulary file is, told by what is in it.

Only what can be told for sure is loaded. A `.tiktoken` file and GPT-2's pair have no split pattern:
known tables are recognised, for others it must be given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import VocabularyError
from ..patterns.named import find_pattern
from ..registry import get_encoding
from ..vocabulary.ranks_file import loads_tiktoken
from .gpt2 import load_gpt2
from .huggingface import read_huggingface
from .loading import Reader, parse_json, read_bytes, shown, stem
from .minbpe import MAGIC, load_minbpe
from .nanochat import load_nanochat
from .sentencepiece import read_sentencepiece
from .tekken import read_tekken
from .tiktoken import load_tiktoken

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load", "recognise"]

# How a folder is searched: the first that is there.
_IN_FOLDERS = ("tokenizer.json", "tekken.json", "tokenizer.pkl", "tokenizer.model")
_PAIRS = (("vocab.bpe", "encoder.json"), ("merges.txt", "vocab.json"))


def recognise(data: bytes) -> str | None:
    """The format of a file's contents: "tiktoken", "huggingface", "tekken", …, or None.

    >>> recognise(b"minbpe v1\\n")
    'minbpe'
    """
    start = data[:4096]
    if start.split(b"\n", 1)[0].strip() == MAGIC:
        return "minbpe"
    if start[:1] == b"\x80" and start[1:2] <= b"\x05":
        return "nanochat"
    if start.lstrip()[:1] == b"{":
        return "json"
    if start[:1] == b"\x0a":  # a field of bytes with the number 1: the first piece
        return "sentencepiece"
    line = start.split(b"\n", 1)[0].split()
    if len(line) == 2 and line[1].isdigit() and len(line[0]) % 4 == 0:
        return "tiktoken"
    if start.startswith(b"#version"):
        return "gpt2"
    return None


def read_together(path: str) -> list[str]:
    """list[str]: the files that `load` may read for a path, which is a file or a folder."""
    folder, file = (path, "") if os.path.isdir(path) else os.path.split(path)
    for pair in _PAIRS:
        if file in pair:
            return [os.path.join(folder, one) for one in pair]
    names = [*_IN_FOLDERS, *(one for pair in _PAIRS for one in pair)] if not file else [file]
    return [os.path.join(folder, one) for one in names]


def load(
    path: Path,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    name: str | None = None,
) -> Encoding:
    """Encoding: of a vocabulary file, or of the one in a folder, whichever format it has.

    pattern, special_tokens: for `.tiktoken` files, which hold neither (GPT-2's pair: no pattern);
    for others they must not be given. Raises VocabularyError where the format is not known, naming
    what was seen.
    """
    if os.path.isdir(path):
        return _load_folder(path, pattern, special_tokens, name)
    source = os.fspath(path)
    data = read_bytes(path)
    format = recognise(data)
    if format == "tiktoken":
        if pattern is None:
            return _load_known(data, source, name)
        return load_tiktoken(path, pattern=pattern, special_tokens=special_tokens, name=name)
    if format == "gpt2":
        return _load_pair(path, pattern, name)
    if pattern is not None or special_tokens:
        raise VocabularyError(f"{source}: a file of this format ({format}) has its own pattern")
    if format == "minbpe":
        return load_minbpe(path, name=name)
    if format == "nanochat":
        return load_nanochat(path, name=name)
    if format == "sentencepiece":
        return read_sentencepiece(data, source, name or stem(path))
    if format == "json":
        file = Reader(parse_json(data, source), source)
        keys = file.as_dict().keys()
        if {"model", "added_tokens"} <= keys or "pre_tokenizer" in keys:
            return read_huggingface(file, name or stem(path))
        if {"config", "vocab"} <= keys:
            return read_tekken(file, name or stem(path))
        raise VocabularyError(
            f"{source}: JSON of no known format, with the keys {shown(sorted(keys)[:5])}"
        )
    raise VocabularyError(f"{source}: of no known format, it begins with {shown(data[:20])}")


def _load_folder(
    path: Path,
    pattern: str | None,
    special_tokens: Mapping[str, int] | None,
    name: str | None,
) -> Encoding:
    folder = os.fspath(path)
    for file in _IN_FOLDERS:
        if os.path.isfile(os.path.join(folder, file)):
            return load(
                os.path.join(folder, file),
                pattern=pattern,
                special_tokens=special_tokens,
                name=name,
            )
    for merges, _ in _PAIRS:
        if os.path.isfile(os.path.join(folder, merges)):
            return _load_pair(os.path.join(folder, merges), pattern, name)
    raise VocabularyError(f"{folder}: none of {', '.join(_IN_FOLDERS)} is in this folder")


def _load_pair(merges_path: Path, pattern: str | None, name: str | None) -> Encoding:
    folder, file = os.path.split(os.fspath(merges_path))
    for merges, ids in _PAIRS:
        if file == merges and os.path.isfile(os.path.join(folder, ids)):
            made = load_gpt2(
                merges_path,
                os.path.join(folder, ids),
                pattern=pattern or "gpt2",
                name=name or "gpt2",
            )
            if pattern is None and made._vocabulary != get_encoding("r50k_base")._vocabulary:
                raise VocabularyError(
                    f"{os.fspath(merges_path)}: merges do not say how text is split, and these are "
                    "not GPT-2's: give a pattern"
                )
            return made
    raise VocabularyError(
        f"{os.fspath(merges_path)}: merges without their ids: expected vocab.bpe beside "
        "encoder.json, or merges.txt beside vocab.json"
    )


def _load_known(data: bytes, source: str, name: str | None) -> Encoding:
    """The encoding whose table a `.tiktoken` file is, if it is one that comes with the package."""
    from ..encoding import Encoding

    vocabulary = loads_tiktoken(data, source)
    for known in ("r50k_base", "cl100k_base", "o200k_base"):
        encoding = get_encoding(known)
        if encoding._vocabulary == vocabulary:
            return Encoding(
                name or known,
                pat_str=find_pattern(known),
                mergeable_ranks=vocabulary,
                special_tokens=encoding._special_tokens,
            )
    raise VocabularyError(
        f"{source}: a .tiktoken file does not say how text is split, and this is no table that is "
        "known: give a pattern"
    )
