"""`Pieces`: how pre-tokens become ids in models that do not just merge bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._core.encode import PieceModel, Scanner
from ..errors import VocabularyError
from ..normalizers.characters import ByteLetters
from ..normalizers.edges import MetaspaceText
from ..normalizers.growth import MOST_GROWTH, Growth, growth_of, n_bytes
from ..patterns.pattern import Pattern
from .arrays import frozen, offsets_of

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Pieces", "Stages", "symbol"]

NO_ID = 2**32 - 1  # for a byte or unknown text without an id
MOST_SYMBOLS = 0x10FFFD - 0xF0000

Stages: TypeAlias = "tuple[tuple[Any, ...], ...]"


class Pieces:
    """The pieces of a model, with their ids. Immutable, and can be pickled.

    kind: "WordPiece", "WordLevel", "Unigram", "SentencePiece unigram", or "Merges" for merges of
    symbols, whose pieces are the pre-tokens that are looked up whole instead of merged.
    blob, offsets, ids: the concatenated pieces, in order of their bytes; piece i is
    blob[offsets[i]:offsets[i + 1]]. unknown: the id of a pre-token without pieces (Unigram: of a
    run of characters), or 0xFFFFFFFF if such text is an error. WordPiece only: prefix, of pieces
    that are not the first of their pre-token; most_characters, above which a pre-token is unknown.
    Both kinds of unigram: scores, by id; byte_ids, for the bytes of unknown text.

    stages: applied first, to each pre-token as a text of its own (`_core/models/stages.pxi`):
    ("Split", pattern, behavior), ("ByteLetters",), ("MetaspaceText", replacement, scheme). For
    "Merges", the last stage is ("Symbols", names, prefix, suffix, unknown, fuses, has_fallback).
    names: the texts of symbols, by number. prefix: of all characters but the first of a pre-token;
    suffix: of the last one. unknown: the symbol for other characters, or ""; fuses: a run of them
    becomes one symbol. has_fallback: such a character becomes <0x00> … <0xFF> for its bytes, if all
    of these are symbols.
    """

    __slots__ = (
        "blob", "byte_ids", "core", "ids", "kind", "most_characters", "offsets", "prefix",
        "scores", "stages", "unknown",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        blob: bytes,
        offsets: npt.NDArray[np.uint32],
        ids: npt.NDArray[np.uint32],
        unknown: int,
        prefix: str = "",
        most_characters: int = 0,
        scores: npt.NDArray[np.float64] | None = None,
        byte_ids: npt.NDArray[np.uint32] | None = None,
        stages: Stages = (),
    ) -> None:
        """Raises ValueError for inconsistent arrays or too much growth of pre-tokens, PatternError
        for the pattern of a stage, and TypeError for wrong types.
        """
        self.kind, self.blob, self.unknown = kind, blob, unknown
        self.prefix, self.most_characters, self.stages = prefix, most_characters, stages
        self.offsets, self.ids = frozen(offsets), frozen(ids)
        self.scores = None if scores is None else frozen(scores, np.float64)
        self.byte_ids = None if byte_ids is None else frozen(byte_ids)
        self.core = PieceModel(
            kind, blob, self.offsets, self.ids, unknown, prefix.encode(), most_characters,
            self.scores, self.byte_ids, tuple(_core_stage(*stage) for stage in stages),
        )  # fmt: skip
        growth = growth_of([_growth(*stage) for stage in stages])
        if growth > MOST_GROWTH:
            raise ValueError(
                f"a pre-token could grow by a factor of {growth:.4g}, and at most {MOST_GROWTH} is "
                "allowed"
            )

    @classmethod
    def of_ids(cls, kind: str, ids: Mapping[str, int], unknown: int, **more: Any) -> Pieces:
        """Made from the id of each piece; more: further arguments of the class."""
        return cls(kind, *_in_order(ids), unknown, **more)

    @classmethod
    def of_scores(
        cls, pieces: Sequence[tuple[str, float]], unknown: int, has_fallback: bool
    ) -> Pieces:
        """Unigram, from pieces with their scores, in order of id.

        has_fallback: an unknown run becomes the ids of <0x00> … <0xFF> for its bytes, if possible.
        """
        ids = {text: id for id, (text, _) in enumerate(pieces)}
        byte_ids = None
        if has_fallback:
            known = [ids.get(f"<0x{byte:02X}>", NO_ID) for byte in range(256)]
            byte_ids = np.array(known, np.uint32)
        scores = np.array([score for _, score in pieces], np.float64)
        return cls("Unigram", *_in_order(ids), unknown, scores=scores, byte_ids=byte_ids)

    @classmethod
    def of_merges(cls, whole: Mapping[str, int], stages: Stages) -> Pieces:
        """For a vocabulary that merges symbols; whole: ids of pre-tokens that are not merged."""
        return cls("Merges", *_in_order(whole), 0, stages=stages)

    def with_stages(self, stages: Stages) -> Pieces:
        """The same pieces, with these stages."""
        return Pieces(*(*self.__reduce__()[1][:-1], stages))

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that affects ids, in hexadecimal."""
        about = self.kind, self.unknown, self.prefix, self.most_characters, self.stages
        sha = hashlib.sha256(repr(about).encode())
        for array in (self.offsets, self.ids, self.scores, self.byte_ids):
            if array is not None:
                sha.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
        sha.update(self.blob)
        return sha.hexdigest()

    def __reduce__(self) -> tuple[Any, ...]:
        return Pieces, (
            self.kind, self.blob, self.offsets, self.ids, self.unknown, self.prefix,
            self.most_characters, self.scores, self.byte_ids, self.stages,
        )  # fmt: skip


def symbol(number: int) -> str:
    """The character that represents the symbol with this number."""
    if number >= MOST_SYMBOLS:
        raise ValueError(f"more than {MOST_SYMBOLS} symbols are not supported")
    return chr(0xF0001 + number)


def _core_stage(kind: str, *settings: Any) -> tuple[Any, ...]:
    """A stage in the form that `PieceModel` takes."""
    if kind == "Split":
        pattern, behavior = settings
        return "cut", _scanner(pattern), behavior
    if kind == "ByteLetters":
        return ("letters",)
    if kind == "Symbols":
        names, prefix, suffix, unknown, fuses, has_fallback = settings
        numbers = {name: number for number, name in enumerate(names)}
        known = [numbers.get(f"<0x{byte:02X}>", NO_ID) for byte in range(256)]
        return (
            "symbols", *_in_order(numbers), prefix.encode(), suffix.encode(),
            numbers[unknown] if unknown else None, fuses,
            np.array(known, np.uint32) if has_fallback else None,
        )  # fmt: skip
    if kind == "MetaspaceText":
        mark, scheme = settings
        return "mark", mark.encode(), scheme == "always"
    raise VocabularyError(f"unknown stage {kind!r} of a model")


def _growth(kind: str, *settings: Any) -> Growth:
    """How much longer a stage can make a pre-token."""
    if kind == "Split":
        return Growth()
    if kind == "ByteLetters":
        return ByteLetters.growth
    if kind == "Symbols":
        _, prefix, suffix, _, _, has_fallback = settings
        # With fallback, each character adds a symbol for each byte of the affixes; a symbol has
        # four bytes.
        each = 1 + (n_bytes(prefix) + n_bytes(suffix)) * has_fallback
        return Growth(4.0 * each)
    return MetaspaceText(*settings).growth


@lru_cache(maxsize=64)
def _scanner(pattern: str) -> Scanner:
    return Scanner(Pattern.compile(pattern), None)


def _in_order(
    ids: Mapping[str, int],
) -> tuple[bytes, npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    texts = sorted(ids)  # code points sort like their UTF-8
    parts = [text.encode() for text in texts]
    offsets = offsets_of(np.array([*map(len, parts)], np.int64))
    return b"".join(parts), offsets, np.array([*map(ids.__getitem__, texts)], np.uint32)
