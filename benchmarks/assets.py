"""The files that other libraries load: streamtok's bundled tables in their formats."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from .peers import Snaptokens, Tokenizers

_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"  # names a cached file


def write_assets(folder: Path, encodings: tuple[str, ...] | list[str]) -> None:
    """Write the vocabularies as `.tiktoken` files, also under tiktoken's names for cached
    downloads, and as `tokenizer.json`; and the patterns."""
    import streamtok
    from streamtok.vocabulary.ranks_file import dumps_tiktoken

    patterns = {}
    for name in encodings:
        encoding = streamtok.get_encoding(name)
        data = dumps_tiktoken(encoding._vocabulary)
        (folder / f"{name}.tiktoken").write_bytes(data)
        cached = hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest()
        (folder / cached).write_bytes(data)
        patterns[name] = _plain_pattern(encoding._pat_str)
        if Tokenizers.is_installed() or Snaptokens.is_installed():
            text = _tokenizer_json(encoding, patterns[name])
            (folder / f"{name}.json").write_text(text, "utf-8")
    (folder / "patterns.json").write_text(json.dumps(patterns))


def copy_models(folder: Path, files: dict[str, Path]) -> None:
    """Put each model's `tokenizer.json` where peers look for it."""
    for name, file in files.items():
        (folder / name).mkdir()
        shutil.copyfile(file, folder / name / "tokenizer.json")


def models(given: list[Path]) -> dict[str, Path]:
    """Name → file, of files and of folders that have a `tokenizer.json`; a name is its folder's.

    FileNotFoundError if there is none.
    """
    found = {}
    for path in given:
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.is_file():
            raise FileNotFoundError(f"{file}: there is no such file; give a tokenizer.json")
        found[file.resolve().parent.name] = file
    return found


def _plain_pattern(pattern: str) -> str:
    """The pattern without what other engines read otherwise: `$` and possessive quantifiers.

    The latter only save a backtracking engine work: nothing they would give back could match on.
    """
    rewrites = (("++", "+"), ("?+", "?"), ("*+", "*"), ("{1,3}+", "{1,3}"), ("$", r"\z"))
    for possessive, plain in rewrites:
        pattern = pattern.replace(possessive, plain)
    return pattern


def _tokenizer_json(encoding: Any, pattern: str) -> str:
    """A Hugging Face `tokenizer.json`: every pair of tokens that makes a token is a merge."""
    from streamtok.vocabulary.byte_alphabet import to_text

    ranks = encoding._mergeable_ranks
    spelled = {token: to_text(token) for token in ranks}
    merges = []
    for token in ranks:  # in order of rank
        pairs = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
        found = [pair for pair in pairs if pair[0] in ranks and pair[1] in ranks]
        found.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [[spelled[left], spelled[right]] for left, right in found]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    specials = encoding._special_tokens.items()
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": i, "content": text, "special": True, **plain} for text, i in specials
            ],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [
                    {
                        "type": "Split",
                        "pattern": {"Regex": pattern},
                        "behavior": "Isolated",
                        "invert": False,
                    },
                    {
                        "type": "ByteLevel",
                        "add_prefix_space": False,
                        "trim_offsets": True,
                        "use_regex": False,
                    },
                ],
            },
            "post_processor": None,
            "decoder": {
                "type": "ByteLevel",
                "add_prefix_space": True,
                "trim_offsets": True,
                "use_regex": True,
            },
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": True,
                "vocab": {spelled[token]: rank for token, rank in ranks.items()},
                "merges": merges,
            },
        }
    )
