"""Mistral's `tekken.json`: a rank table with its pattern, and special tokens with lower ids.

The first `default_num_special_tokens` ids are special. The id of any other token is its rank plus
the number of special tokens. The file may have more tokens than fit into `default_vocab_size`; only
the first ones count. The file names the special tokens. Special tokens without a name are called
"<SPECIAL_n>"; files of versions before v8 that name none have Mistral's first twenty special
tokens. The settings for images, audio and models do not concern text and are ignored.
(github.com/mistralai/mistral-common, Apache-2.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..vocabulary.ranks_file import from_base64
from .json_value import JsonValue
from .loading import make_encoding, shown

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["read_tekken"]

_FIRST_SPECIALS = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] "
    "[/TOOL_RESULTS] [TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] "
    "[SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
)
_WITHOUT_SPECIALS = ("v1", "v2", "v3", "v7")
_MAX_SPECIALS = 1 << 16


def read_tekken(file: JsonValue, name: str) -> Encoding:
    """The encoding of a parsed `tekken.json`. Raises VocabularyError naming the position."""
    config = file["config"]
    specials = _specials(file)
    size = config["default_vocab_size"].as_int() - len(specials)
    entries = file["vocab"].elements()
    if not 0 <= size <= len(entries):
        config.fail(
            f"default_vocab_size leaves room for {size} tokens, but the file has {len(entries)}"
        )
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(entries[:size]):
        if entry["rank"].as_int() != rank:
            entry.fail(f"expected rank {rank}, found {entry['rank'].as_int()}")
        field = entry["token_bytes"]
        try:
            token = from_base64(field.as_str().encode())
        except ValueError:
            field.fail(f"expected a token in base64, found {shown(field.value)}")
        if token in ranks:
            entry.fail(f"the token {shown(token)} already has rank {ranks[token]}")
        ranks[token] = rank
    return make_encoding(
        file.position,
        name,
        pat_str=config["pattern"].as_str(),
        mergeable_ranks={token: rank + len(specials) for token, rank in ranks.items()},
        special_tokens=specials,
    )


def _specials(file: JsonValue) -> dict[str, int]:
    config = file["config"]
    count = config["default_num_special_tokens"].as_int()
    if not 0 <= count <= _MAX_SPECIALS:
        config.fail(f"default_num_special_tokens is {count}: it must be in 0 … {_MAX_SPECIALS}")
    listed = file["special_tokens"]
    specials: dict[str, int] = {}
    if listed.value is None:
        version = config["version"].as_str()
        if version not in _WITHOUT_SPECIALS:
            file.fail(f"a file of version {shown(version)} must have special_tokens")
        specials = {text: number for number, text in enumerate(_FIRST_SPECIALS.split())}
    else:
        for entry in listed.elements():
            text = entry["token_str"].as_str()
            if text in specials:
                entry.fail(f"the special token {shown(text)} is given twice")
            specials[text] = entry["rank"].as_int()
    if len(specials) > count or sorted(specials.values()) != list(range(len(specials))):
        file.fail(f"special_tokens must have ranks from 0 on, without a gap, and below {count}")
    for number in range(len(specials), count):
        text = f"<SPECIAL_{number}>"
        if text in specials:
            file.fail(f"id {number} has no name, and its default name {text} belongs to another id")
        specials[text] = number
    return specials
