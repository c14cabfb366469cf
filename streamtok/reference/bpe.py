"""Byte pair encoding, slow and obvious: read this first.

All of streamtok in one page, without chunks and without speed. The tests hold the fast code to it,
and it is held to tiktoken. A text becomes ids in three steps:

1. special tokens that are allowed are found, and cut the text into segments;
2. the split pattern cuts each segment into pieces, which no token crosses;
3. each piece is its own token if it can be, or else a row of bytes in which the best ranked pair of
   neighbours is merged, again and again.

Ranks say both which merge comes first and what id the result has: `{b"a": 0, b"b": 1, b"ab": 2}`.

Pieces are found with the `regex` package here, not with the tables of `pattern.py`; whatever that
package understands will do. Two spellings mean something else to it than to tiktoken, and stay
so: `\\Z`, and an i inside `(?i:...)`, which it also takes for the Turkish ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import regex

from ..patterns.unicode_classes import as_in_reference

__all__ = [
    "bpe",
    "bpe_by_merges",
    "compile_pattern",
    "decode_bytes",
    "encode",
    "encode_ordinary",
    "encode_piece",
    "sentencepiece",
    "split",
    "split_in_turn",
    "stable_prefix",
    "to_text",
]

Ranks = Mapping[bytes, int]
Merges = Sequence[tuple[bytes, bytes]]


def split(pattern: str, text: str) -> list[str]:
    """The pieces of `text`. What no piece can hold is left out.

    >>> split(r" ?\\p{L}+|\\s", "to be\\n")
    ['to', ' be', '\\n']
    """
    # Looks at a text of the same length, in which no character is newer than tiktoken's Unicode.
    spans = [match.span() for match in compile_pattern(pattern).finditer(as_in_reference(text))]
    return [text[start:end] for start, end in spans if start < end]


def split_in_turn(patterns: Iterable[str], text: str) -> list[str]:
    """The pieces of `text` where one pattern after the other cuts the pieces of the one before.

    What no piece can hold is a piece, too: nothing is left out. So do Hugging Face's sequences of
    isolating splits.
    """
    pieces = [text] if text else []
    for pattern in patterns:
        cut: list[str] = []
        for piece in pieces:
            done = 0
            for match in compile_pattern(pattern).finditer(as_in_reference(piece)):
                if match.start() > done:
                    cut.append(piece[done : match.start()])
                if match.end() > match.start():
                    cut.append(piece[match.start() : match.end()])
                done = match.end()
            if done < len(piece):
                cut.append(piece[done:])
        pieces = cut
    return pieces


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """`pattern` for the `regex` package, spelled to mean there what it means to tiktoken."""
    # To tiktoken, `$` and `\z` are the very end. To Python that is `\Z`, and `$` may have a newline
    # after it. Neither is meant inside a set, or after a backslash.
    tokens = r"(?P<end>\$|\\z)|\\x\{(?P<hex>[0-9A-Fa-f]+)\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]?"

    def translated(match: regex.Match[str]) -> str:
        if match["end"]:
            return r"\Z"
        return f"\\U{int(match['hex'], 16):08x}" if match["hex"] else match[0]

    return regex.compile(regex.sub(tokens, translated, pattern, flags=regex.DOTALL))


def bpe(ranks: Ranks, piece: bytes) -> list[int]:
    """The ids of `piece` by merging alone.

    >>> bpe({b"a": 0, b"b": 1, b"ab": 2}, b"abb")
    [2, 1]
    """
    parts = [bytes([byte]) for byte in piece]
    while True:
        pairs = [left + right for left, right in pairwise(parts)]
        known = [pair for pair in pairs if pair in ranks]
        if not known:
            return [ranks[part] for part in parts]
        best = min(known, key=lambda pair: ranks[pair])
        at = pairs.index(best)  # the leftmost of equals
        parts[at : at + 2] = [best]


def encode_piece(ranks: Ranks, piece: bytes) -> list[int]:
    """The ids of `piece`: its own if it has one, even one that no merge leads to."""
    return [ranks[piece]] if piece in ranks else bpe(ranks, piece)


def bpe_by_merges(
    ids: Mapping[bytes, int], merges: Merges, piece: bytes, whole_pieces: bool = False
) -> list[int]:
    """The ids of `piece` where a list says which pairs merge, the first first.

    Ids say nothing about order here, and two tokens that are a third one together merge only if
    they are listed; of a pair that is listed twice the later place counts. whole_pieces: whether a
    piece that is a token is that token.

    >>> ids = {b"a": 7, b"b": 3, b"c": 5, b"ab": 0, b"bc": 1, b"abc": 2}
    >>> bpe_by_merges(ids, [(b"b", b"c"), (b"a", b"b")], b"abc")
    [7, 1]
    """
    if whole_pieces and piece in ids:
        return [ids[piece]]
    places = {pair: place for place, pair in enumerate(merges)}
    parts = [bytes([byte]) for byte in piece]
    while True:
        pairs = list(pairwise(parts))
        known = [pair for pair in pairs if pair in places]
        if not known:
            return [ids[part] for part in parts]
        at = pairs.index(min(known, key=places.__getitem__))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def sentencepiece(
    scores: Mapping[str, float], ids: Mapping[str, int], byte_ids: Sequence[int], text: str
) -> list[int]:
    """The ids of a text as SentencePiece's BPE gives them; spaces are U+2581, and all is one piece.

    Characters, not bytes, are merged: the two neighbours that are the piece of the highest score.
    What is left and is no piece is a character (or several bytes of one) that becomes its bytes.
    """
    parts = list(text)
    while True:
        pairs = [left + right for left, right in pairwise(parts)]
        known = [pair for pair in pairs if pair in scores]
        if not known:
            break
        at = pairs.index(max(known, key=scores.__getitem__))
        parts[at : at + 2] = [pairs[at]]
    result: list[int] = []
    for part in parts:
        if part in ids:
            result.append(ids[part])
        else:
            result += [byte_ids[byte] for byte in part.encode("utf-8", "surrogateescape")]
    return result


def to_text(data: str | bytes, errors: str = "strict") -> str:
    """`data` as the pattern sees it.

    Bytes are decoded; under "surrogateescape" each byte that is not UTF-8 becomes a lone surrogate,
    and leaves again as that byte. A string that holds lone surrogates is, under "surrogateescape",
    taken for one that was made so; else it is mended as tiktoken does it: two halves become the
    character they mean, and a lone one U+FFFD.
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
    """The ids of `data`; special tokens are text like any other."""
    ids: list[int] = []
    for piece in split(pattern, to_text(data, errors)):
        ids += encode_piece(ranks, piece.encode("utf-8", "surrogateescape"))
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
    """The ids of `data`, in which the special tokens of `allowed_special` are recognised.

    Where two of them begin at one place, the longer is meant (tiktoken leaves it to chance).
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
    """The bytes that `ids` stand for; `KeyError` for an id that stands for none."""
    tokens = {rank: token for token, rank in ranks.items()}
    specials = {rank: token.encode() for token, rank in (special_tokens or {}).items()}
    return b"".join(tokens[i] if i in tokens else specials[i] for i in ids)


def stable_prefix(
    encode: Callable[[bytes], list[int]], data: bytes, continuations: Iterable[bytes]
) -> list[int]:
    """The ids that `data` begins with, whichever of `continuations` follows it.

    A stream that was fed `data` may have emitted these ids or fewer of them, never others. A
    continuation that `encode` rejects as not UTF-8 does not count.
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
