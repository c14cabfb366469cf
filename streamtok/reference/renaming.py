"""The law of prompts, slow and obvious: rename, then encode.

1. Find the control tokens in each maximal run of control by itself, as the encoding finds tokens
   there: leftmost; of those that begin at one place the one preferred; those that are `normalized`
   between the others; other added tokens hide them as ever. `single_word` looks no further than
   the run.
2. Give each control token a fresh name with its flags. Put the names in place of the tokens found,
   and encode with the names in place of all control tokens.
3. Put the ids back.

So text makes no control token and destroys none: a name stands only where step 1 put it, and step 1
has not seen the text. And where the plain search finds the same control tokens at the same places,
the ids are those of the plain text: no part of an encoder reads a token's name, only where it is,
and whether its first and its last character belong to a word.
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

    tokens: the one that is preferred first. The normalizer may change no character of those that
    are `normalized`. renamed: what encodes text with these names in place of all control tokens.
    """
    control = [token for token in tokens if token.is_control]
    nonce = 0xF0000  # each name has a character that no other text has
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
    """Where the control tokens of a run of control are."""
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
    """The tokens in text[begin:end], outside of which nothing matters."""
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
            at = stop - 1  # where it touches a word, too, it is passed over as a whole
            break
        at += 1
    return found


@functools.lru_cache(maxsize=1024)
def is_in_word(character: str) -> bool:
    """Whether Rust's regular expressions match the character with `\\w`."""
    import numpy as np

    points = np.array([ord(one) for one in character], np.int64)
    return bool(UnicodeTable.load().sets["word"].contains(points).any())
