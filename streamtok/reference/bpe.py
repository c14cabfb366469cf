"""Byte pair encoding, slow and obvious: read this first.

This is what streamtok computes for BPE, but without chunks and without speed. The tests compare the
fast code with it, and compare it with tiktoken. A text becomes ids in three steps:

1. Allowed special tokens are found. They cut the text into segments.
2. The pre-tokenization pattern cuts each segment into pre-tokens. No token crosses their ends.
3. A pre-token that is a token becomes its id. Any other starts as single bytes; then the pair of
   neighbours with the lowest rank is merged, until no pair has a rank.

A rank is both the priority of a merge and the id of its result: `{b"a": 0, b"b": 1, b"ab": 2}`.

Pre-tokens are found with the `regex` package, not with the tables of `patterns/pattern.py`, so any
pattern that `regex` supports works. Two constructs do not work as in tiktoken: `\\Z`, which here
matches only at the very end, and an i inside `(?i:...)`, which also matches the Turkish letters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import TypeVar

import regex

from ..errors import PatternError
from ..patterns.budget import shortened
from ..patterns.unicode_classes import as_in_reference

__all__ = [
    "bpe",
    "bpe_by_merges",
    "compile_pattern",
    "decode_bytes",
    "encode",
    "encode_ordinary",
    "encode_pretoken",
    "match_spans",
    "merge",
    "sentencepiece",
    "split",
    "split_in_turn",
    "stable_prefix",
    "to_text",
]

MATCH_SECONDS = 2.0  # for any text; patterns of real files take about 1e-6 for each character
SECONDS_PER_CHARACTER = 2e-5

Part = TypeVar("Part", bytes, str)
Ranks = Mapping[bytes, int]
Merges = Sequence[tuple[bytes, bytes]]


def split(pattern: str, text: str) -> list[str]:
    """The pre-tokens of `text`. Characters that the pattern does not match are dropped.

    >>> split(r" ?\\p{L}+|\\s", "to be\\n")
    ['to', ' be', '\\n']
    """
    return [text[start:end] for start, end in match_spans(pattern, text)]


def split_in_turn(patterns: Iterable[str], text: str) -> list[str]:
    """The pre-tokens of `text` if each pattern cuts the results of the pattern before it.

    The text between two matches is a pre-token, too, so nothing is dropped. Hugging Face's
    sequences of Split pre-tokenizers with the behavior "Isolated" do the same.
    """
    parts = [text] if text else []
    for pattern in patterns:
        cut: list[str] = []
        for part in parts:
            bounds = [0, *chain.from_iterable(match_spans(pattern, part)), len(part)]
            cut += [part[start:end] for start, end in pairwise(bounds) if start < end]
        parts = cut
    return parts


def match_spans(pattern: str, text: str) -> list[tuple[int, int]]:
    """The spans of the non-empty matches of a pattern.

    The `regex` package backtracks: `(?:.*?,){12}P` takes 20 seconds for 30 commas, and more for
    each further one. Raises PatternError if matching takes longer than any pattern in use needs.
    """
    seconds = MATCH_SECONDS + len(text) * SECONDS_PER_CHARACTER
    # Match a text of the same length without characters that are newer than tiktoken's Unicode.
    found = compile_pattern(pattern).finditer(as_in_reference(text), timeout=seconds)
    try:
        return [match.span() for match in found if match.end() > match.start()]
    except TimeoutError:
        raise PatternError(
            f"the pattern {shortened(pattern)!r} takes more than {seconds:.2f} seconds to match "
            "the text: it has no tables, and backtracks too often"
        ) from None


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """`pattern`, compiled by the `regex` package to match what it matches in tiktoken."""
    # In tiktoken, `$` and `\z` match at the very end. In Python, `\Z` does so, and `$` also matches
    # before a final newline. Neither is special in a set or after a backslash.
    tokens = r"(?P<end>\$|\\z)|\\x\{(?P<hex>[0-9A-Fa-f]+)\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?"

    def translated(match: regex.Match[str]) -> str:
        if match["end"]:
            return r"\Z"
        return f"\\U{int(match['hex'], 16):08x}" if match["hex"] else match[0]

    # V1 has set operations, as in tiktoken; V0 gives them another meaning, without an error.
    version = regex.V1 if any(one in pattern for one in ("&&", "--", "~~")) else regex.V0
    return regex.compile(regex.sub(tokens, translated, pattern, flags=regex.DOTALL), version)


def bpe(ranks: Ranks, pretoken: bytes) -> list[int]:
    """The ids of a pre-token, found by merging alone.

    >>> bpe({b"a": 0, b"b": 1, b"ab": 2}, b"abb")
    [2, 1]
    """
    parts = [bytes([byte]) for byte in pretoken]
    return [ranks[part] for part in merge(parts, lambda left, right: ranks.get(left + right))]


def merge(parts: list[Part], priority: Callable[[Part, Part], float | None]) -> list[Part]:
    """Merge neighbours until no two can merge, and return the remaining parts.

    The pair with the smallest priority merges first; of equal ones, the leftmost. None means never.
    """
    while True:
        found = [(priority(*pair), at) for at, pair in enumerate(pairwise(parts))]
        mergeable = [(rank, at) for rank, at in found if rank is not None]
        if not mergeable:
            return parts
        _, at = min(mergeable)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def encode_pretoken(ranks: Ranks, pretoken: bytes) -> list[int]:
    """The ids of a pre-token: its own id if it is a token, even if no merges make that token."""
    return [ranks[pretoken]] if pretoken in ranks else bpe(ranks, pretoken)


def bpe_by_merges(
    ids: Mapping[bytes, int], merges: Merges, pretoken: bytes, ignore_merges: bool = False
) -> list[int]:
    """The ids of a pre-token, found with a list of merges in order of priority.

    Here, priority does not depend on ids. Two tokens that form a third one merge only if the list
    has that pair; if it is listed twice, the later position counts. ignore_merges: whether a
    pre-token that is a token becomes its id without merging, as in Hugging Face's files.

    >>> ids = {b"a": 7, b"b": 3, b"c": 5, b"ab": 0, b"bc": 1, b"abc": 2}
    >>> bpe_by_merges(ids, [(b"b", b"c"), (b"a", b"b")], b"abc")
    [7, 1]
    """
    if ignore_merges and pretoken in ids:
        return [ids[pretoken]]
    order = {pair: index for index, pair in enumerate(merges)}
    parts = [bytes([byte]) for byte in pretoken]
    return [ids[part] for part in merge(parts, lambda left, right: order.get((left, right)))]


def sentencepiece(
    scores: Mapping[str, float], ids: Mapping[str, int], byte_ids: Sequence[int], text: str
) -> list[int]:
    """The ids of a text by SentencePiece's BPE. Spaces are U+2581; the text is one pre-token.

    SentencePiece merges characters, not bytes: first the two neighbours that form the token with
    the highest score. A remaining character that is not a token becomes the ids of its bytes.
    """

    def priority(left: str, right: str) -> float | None:
        return -scores[left + right] if left + right in scores else None

    result: list[int] = []
    for part in merge(list(text), priority):
        if part in ids:
            result.append(ids[part])
        else:
            result += [byte_ids[byte] for byte in part.encode("utf-8", "surrogateescape")]
    return result


def to_text(data: str | bytes, errors: str = "strict") -> str:
    """`data` as the pattern sees it.

    Bytes are decoded. With "surrogateescape", each byte that is not UTF-8 becomes a lone surrogate,
    which is encoded as that byte again; lone surrogates in a str are treated likewise. Otherwise, a
    str is repaired as in tiktoken: a surrogate pair becomes its character, and a lone surrogate
    U+FFFD.
    """
    if isinstance(data, bytes):
        return data.decode("utf-8", errors)
    try:
        data.encode("utf-8")
    except UnicodeEncodeError:
        if errors == "surrogateescape":
            return data.encode("utf-8", errors).decode("utf-8", errors)
        return data.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return data


def encode_ordinary(
    ranks: Ranks, pattern: str, data: str | bytes, errors: str = "strict"
) -> list[int]:
    """The ids of `data`. Special tokens in it are plain text."""
    ids: list[int] = []
    for pretoken in split(pattern, to_text(data, errors)):
        ids += encode_pretoken(ranks, pretoken.encode("utf-8", "surrogateescape"))
    return ids


def encode(
    ranks: Ranks,
    pattern: str,
    data: str | bytes,
    *,
    special_tokens: Mapping[str, int],
    allowed_special: Collection[str],
    errors: str = "strict",
) -> list[int]:
    """The ids of `data`, with the special tokens in `allowed_special` recognized.

    If several begin at the same offset, the longest is found (tiktoken's choice is arbitrary).
    """
    text = to_text(data, errors)
    allowed = sorted(set(special_tokens) & set(allowed_special), key=len, reverse=True)
    ids: list[int] = []
    start = 0
    if allowed:
        for match in regex.finditer("|".join(map(regex.escape, allowed)), text):
            ids += encode_ordinary(ranks, pattern, text[start : match.start()], "surrogateescape")
            ids.append(special_tokens[match[0]])
            start = match.end()
    return ids + encode_ordinary(ranks, pattern, text[start:], "surrogateescape")


def decode_bytes(
    ranks: Ranks, ids: Iterable[int], special_tokens: Mapping[str, int] | None = None
) -> bytes:
    """The bytes that `ids` represent. Raises `KeyError` for an unknown id."""
    tokens = {rank: token for token, rank in ranks.items()}
    specials = {rank: token.encode() for token, rank in (special_tokens or {}).items()}
    return b"".join(tokens[i] if i in tokens else specials[i] for i in ids)


def stable_prefix(
    encode: Callable[[bytes], list[int]], data: bytes, continuations: Iterable[bytes]
) -> list[int]:
    """The leading ids that are the same, whichever of `continuations` follows `data`.

    After `data`, a stream may only have emitted a prefix of these ids. Continuations that `encode`
    rejects because they are not UTF-8 are skipped.
    """
    common: list[int] | None = None
    for continuation in continuations:
        try:
            ids = encode(data + continuation)
        except UnicodeDecodeError:
            continue
        if common is None:
            common = ids
        same = [a == b for a, b in zip(common, ids, strict=False)]
        common = common[: [*same, False].index(False)]
    return common or []
