"""The encoding of prompts, slow and obvious: rename, then encode.

1. Find the control tokens in each maximal run of control parts separately, in the way that encoding
   finds tokens: the leftmost first; at one offset, the preferred one; `normalized` tokens between
   the others. Other added tokens can hide control tokens, as usual. `single_word` does not look
   beyond the run.
2. Give each control token a fresh name with its flags. Replace the tokens that were found by their
   names, and encode with the names in place of all control tokens.
3. Replace the ids of names by those of the tokens.

So text can neither make nor destroy a control token: a name occurs only where step 1 found a token,
and step 1 does not see text. If a plain search finds the same control tokens at the same offsets,
the ids are those of the plain text: an encoder does not depend on the name of a token, only on its
position, and on whether its first and its last character belong to a word.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..patterns.unicode_classes import UnicodeTable
from ..prompts import Prompt

__all__ = ["NamedToken", "encode_prompt", "find_control"]


class NamedToken(NamedTuple):
    """A special or added token, with the flags of Hugging Face's `AddedToken`."""

    text: str
    id: int
    is_control: bool
    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


Match = tuple[int, int, NamedToken]  # start, stop
Encode = Callable[[str], list[int]]


def encode_prompt(
    prompt: Prompt,
    tokens: Sequence[NamedToken],
    renamed: Callable[[dict[str, NamedToken]], Encode],
) -> list[int]:
    """The ids of a prompt.

    tokens: in order of preference. The normalizer must not change a character of a `normalized`
    token. renamed: returns an encoder with the given names in place of all control tokens.
    """
    control = [token for token in tokens if token.is_control]
    nonce = 0xF0000  # each name has a character that occurs nowhere else
    while not {*map(chr, range(nonce, nonce + len(control)))}.isdisjoint(str(prompt)):
        nonce += len(control)
    names: dict[NamedToken, str] = {}
    for number, token in enumerate(control, nonce):
        edges = ["\U00010900" * is_in_word(one) for one in (token.text[0], token.text[-1])]
        names[token] = chr(number).join(edges)
    parts = []
    for text, is_control in prompt.spans:
        last = 0
        for start, stop, token in find_control(text, tokens) if is_control else ():
            parts += [text[last:start], names[token]]
            last = stop
        parts.append(text[last:])
    return renamed({name: token for token, name in names.items()})("".join(parts))


def find_control(run: str, tokens: Sequence[NamedToken]) -> list[Match]:
    """The control tokens in a run of control parts, with their spans."""
    late = [token for token in tokens if token.normalized]
    found: list[Match] = []
    last = 0
    for start, stop, token in _search(run, [token for token in tokens if not token.normalized]):
        found += _search(run, late, last, start)
        found.append((start, stop, token))
        last = stop
    found += _search(run, late, last, len(run))
    return [match for match in found if match[2].is_control]


def _search(
    text: str, tokens: Sequence[NamedToken], begin: int = 0, end: int | None = None
) -> list[Match]:
    """The tokens in text[begin:end]; the text outside does not matter."""
    found = []
    text = text[:end]
    at = begin
    while at < len(text):
        for token in tokens:
            if not text.startswith(token.text, at):
                continue
            stop = at + len(token.text)
            touches = (at > begin and is_in_word(text[at - 1])) or is_in_word(text[stop : stop + 1])
            if not (token.single_word and touches):
                found.append((at, stop, token))
            at = stop - 1  # skip the whole token, even if it touches a word
            break
        at += 1
    return found


@functools.lru_cache(maxsize=1024)
def is_in_word(character: str) -> bool:
    """Whether Rust's regular expressions match the character with `\\w`."""
    import numpy as np

    points = np.array([ord(one) for one in character], np.int64)
    return bool(UnicodeTable.load().sets["word"].contains(points).any())
