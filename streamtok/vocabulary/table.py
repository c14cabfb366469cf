"""`Vocabulary`: the bytes and the id of each token, in three flat arrays that the core reads.

Its file formats are in `ranks_file.py` and `bundled.py`, the names of encodings in `registry.py`.
"""

from __future__ import annotations

import functools
import itertools
import operator
import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import VocabularyError
from .arrays import frozen, offsets_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .pieces import Pieces

NO_ID = 2**32 - 1  # of a token without an id, which becomes the ids of its bytes
MAX_ID = NO_ID - 1
MAX_TOKEN_BYTES = 2**16 - 1


class Vocabulary:
    """The tokens of an encoding, with their ids. Immutable.

    A rank table needs nothing else: two neighbours merge if together they are a token, and the
    token's id is its rank. Other vocabularies (`formats/merge_lists.py`) list their tokens in the
    order of the merges that make them, with ids in any order, and add some of these:

    - `lefts`: where each token divides into the two parts that merge into it;
    - `byte_ids`: the ids of single bytes, for tokens without an id of their own;
    - `ties`: groups of tokens with the same priority;
    - `decode_only`: ids that can be decoded, but that no text is encoded to.

    A vocabulary with a `model` merges symbols, or has no merges (WordPiece, WordLevel, Unigram).

    >>> vocabulary = Vocabulary.from_ranks({bytes([b]): b for b in range(256)} | {b"ab": 256})
    >>> len(vocabulary), vocabulary.to_ranks()[b"ab"]
    (257, 256)
    """

    __slots__ = (
        "__weakref__", "_digest", "byte_ids", "decode_only", "ids", "lefts", "model", "offsets",
        "parts", "ties", "tokens",
    )  # fmt: skip

    tokens: bytes  # all tokens, concatenated in order of rank
    offsets: NDArray[np.uint32]  # [n + 1]: token i is tokens[offsets[i]:offsets[i + 1]]
    ids: NDArray[np.uint32]  # [n]: the id of token i, strictly increasing in a rank table
    lefts: NDArray[np.uint32] | None  # [n]: size of the left part; 0 if no merge makes it
    parts: tuple[NDArray[np.uint32], NDArray[np.uint32]] | None  # [n] each: see `TokenTable`
    byte_ids: NDArray[np.uint32] | None  # [256]
    ties: NDArray[np.uint32] | None  # [n], non-decreasing; equal ones merge from left to right
    decode_only: Mapping[int, bytes]  # id -> its bytes
    model: Pieces | None  # how pre-tokens become ids; None: by merging bytes
    _digest: str

    def __init__(
        self,
        tokens: bytes,
        offsets: NDArray[np.uint32],
        ids: NDArray[np.uint32],
        *,
        lefts: NDArray[np.uint32] | None = None,
        byte_ids: NDArray[np.uint32] | None = None,
        ties: NDArray[np.uint32] | None = None,
        decode_only: Mapping[int, bytes] = MappingProxyType({}),
        parts: tuple[NDArray[np.uint32], NDArray[np.uint32]] | None = None,
        model: Pieces | None = None,
    ) -> None:
        """Check everything that memory safety depends on, then keep the arrays.

        parts: the two tokens that merge into each token, if the caller knows them. They save a
        `TokenTable` a search; it checks them against the bytes. Pickles do not include them.

        Duplicate tokens are not detected here: where there may be some, load with `from_ranks`,
        `loads_tiktoken` or `merge_lists.from_rows`. Raises `VocabularyError`, and `TypeError` for
        wrong types.
        """
        arrays = {
            "offsets": offsets,
            "ids": ids,
            "lefts": lefts,
            "byte_ids": byte_ids,
            "ties": ties,
        }
        fields: dict[str, Any] = {
            name: None if array is None else frozen(array) for name, array in arrays.items()
        }
        _check_arrays(tokens, fields["offsets"], fields["ids"], lefts is None and byte_ids is None)
        if lefts is not None and len(lefts) != len(ids):
            raise VocabularyError(f"lefts has {len(lefts)} entries for {len(ids)} tokens")
        if ties is not None and (len(ties) != len(ids) or (ties[1:] < ties[:-1]).any()):
            raise VocabularyError("ties must be non-decreasing, with one entry for each token")
        if byte_ids is not None and len(byte_ids) != 256:
            raise VocabularyError(f"byte_ids must have 256 entries, not {len(byte_ids)}")
        fields["tokens"] = tokens
        fields["parts"] = None if parts is None else tuple(map(frozen, parts))
        fields["decode_only"] = MappingProxyType(dict(decode_only))
        fields["model"] = model
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_model(cls, model: Pieces, decode_only: Mapping[int, bytes]) -> Vocabulary:
        """The vocabulary of a model of pieces: its ids are all in `decode_only`."""
        none = np.full(256, NO_ID, np.uint32)
        bounds = np.arange(257, dtype=np.uint32)
        lefts = np.zeros(256, np.uint32)
        return cls(
            bytes(range(256)), bounds, none, lefts=lefts, byte_ids=none, decode_only=decode_only,
            model=model,
        )  # fmt: skip

    @classmethod
    def from_ranks(cls, mergeable_ranks: Mapping[bytes, int]) -> Vocabulary:
        """Make a vocabulary from a rank table, as `tiktoken.Encoding` takes it. Costs O(n log n).

        Raises `TypeError` for a token that is not `bytes` or a rank that is not an integer. Raises
        `VocabularyError` for a rank that is out of range or given twice, for an empty or overlong
        token, and if some of the 256 single bytes are missing.
        """
        for token in mergeable_ranks:
            if not isinstance(token, bytes):
                raise TypeError(f"a token must be bytes, not {type(token).__name__}: {token!r}")
        ranks: list[int] = []
        for token, rank in mergeable_ranks.items():
            try:
                ranks.append(operator.index(rank))
            except TypeError:
                kind = type(rank).__name__
                raise TypeError(f"the rank of {token!r} must be an int, not {kind}") from None
        rows = sorted(zip(ranks, mergeable_ranks, strict=True))  # a rank, then its token
        check_numbers(rows, "rank")
        lengths = np.fromiter((len(token) for _, token in rows), np.int64, len(rows))
        return cls(
            b"".join([token for _, token in rows]),
            offsets_of(lengths),
            np.fromiter((rank for rank, _ in rows), np.uint32, len(rows)),
        )

    @property
    def is_rank_table(self) -> bool:
        """Whether it has only tokens and ids, so that `to_ranks` works."""
        more = self.lefts, self.byte_ids, self.ties
        return not self.decode_only and all(array is None for array in more)

    def to_list(self) -> list[bytes]:
        """The tokens, in order."""
        bounds = self.offsets.tolist()
        return [self.tokens[begin:end] for begin, end in itertools.pairwise(bounds)]

    def to_ranks(self) -> dict[bytes, int]:
        """A dictionary from token to rank, in order of rank.

        Raises `VocabularyError` if this is not a rank table.
        """
        if not self.is_rank_table:
            raise VocabularyError(f"ranks cannot express {self!r}: it has merges of its own")
        return dict(zip(self.to_list(), self.ids.tolist(), strict=True))

    @property
    def digest(self) -> str:
        """The SHA-256 of the table, in hexadecimal; the same on every machine."""
        try:
            return self._digest
        except AttributeError:
            import hashlib

            sha = hashlib.sha256(b"streamtok vocabulary 1\n")
            sha.update(struct.pack("<QQ", len(self), len(self.tokens)))
            sha.update(self.ids.astype("<u4").tobytes())
            sha.update(self.offsets.astype("<u4").tobytes())
            sha.update(self.tokens)
            if not self.is_rank_table:
                for name in ("lefts", "byte_ids", "ties"):
                    array = getattr(self, name)
                    if array is not None:
                        sha.update(f"{name.replace('_', ' ')} {len(array)}\n".encode())
                        sha.update(array.astype("<u4").tobytes())
                sha.update(repr(sorted(self.decode_only.items())).encode())
            if self.model is not None:
                sha.update(f"model {self.model.digest}\n".encode())
            object.__setattr__(self, "_digest", sha.hexdigest())
            return self._digest

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return len(self) == len(other) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self)} tokens, {len(self.tokens)} bytes>"

    def __reduce__(self) -> tuple[Any, ...]:
        names = "lefts", "byte_ids", "ties", "model"
        more = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.decode_only:
            more["decode_only"] = dict(self.decode_only)
        made = functools.partial(Vocabulary, **more) if more else Vocabulary
        return made, (self.tokens, self.offsets, self.ids)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Vocabulary is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Vocabulary is immutable: cannot delete {name!r}")


def check_numbers(rows: list[tuple[int, bytes]], kind: str) -> None:
    """Raise VocabularyError for numbers that are out of range or given twice.

    rows: (number, token), sorted. kind: "rank" or "id", for the message.
    """
    for number, token in rows[:1] + rows[-1:]:
        if not 0 <= number <= MAX_ID:
            raise VocabularyError(
                f"the {kind} of {show_token(token)} is {number}: it must be in 0 … {MAX_ID}"
            )
    for (number, token), (next_number, next_token) in itertools.pairwise(rows):
        if number == next_number:
            raise VocabularyError(
                f"{kind} {number} is given twice: to {show_token(token)} "
                f"and to {show_token(next_token)}"
            )


def check_tokens(
    tokens: bytes,
    offsets: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    more: Mapping[int, bytes] = MappingProxyType({}),
) -> None:
    """Raise VocabularyError for tokens that are empty or too long, and for ids that are out of
    range or given twice. more: further ids, with their tokens.
    """
    lengths = np.diff(offsets)
    for i in np.flatnonzero((lengths < 1) | (lengths > MAX_TOKEN_BYTES))[:1].tolist():
        raise VocabularyError(
            f"the token of id {numbers[i]} has {int(offsets[i + 1]) - int(offsets[i])} bytes: it "
            f"must have 1 … {MAX_TOKEN_BYTES}"
        )
    ids = np.sort(np.concatenate([numbers, [*more]]).astype(np.int64))
    if len(ids) and not (ids[0] >= 0 and ids[-1] <= MAX_ID and (ids[1:] > ids[:-1]).all()):
        bounds = itertools.pairwise(offsets.tolist())
        rows = zip(numbers.tolist(), (tokens[start:stop] for start, stop in bounds), strict=True)
        check_numbers(sorted([*rows, *more.items()]), "id")


def _check_arrays(
    tokens: bytes, offsets: NDArray[np.uint32], ids: NDArray[np.uint32], is_plain: bool
) -> None:
    """Raise an exception for inconsistent arrays, impossible token lengths and missing bytes.

    is_plain: the ids are ranks, so they must increase.
    """
    if not isinstance(tokens, bytes):
        raise TypeError(f"tokens must be bytes, not {type(tokens).__name__}")
    if len(offsets) != len(ids) + 1 or offsets[0] != 0 or offsets[-1] != len(tokens):
        raise VocabularyError("the offsets do not fit the ids and the bytes of the tokens")
    lengths = offsets[1:] - offsets[:-1]  # unsigned: a negative length is far too large
    if len(ids) and (lengths.min() < 1 or lengths.max() > MAX_TOKEN_BYTES):
        check_tokens(tokens, offsets, ids.astype(np.int64))
    if not is_plain:
        # Ids come in increasing runs, which a stable sort uses. numpy.unique loads numpy.ma.
        real = np.sort(ids[ids != NO_ID], kind="stable")
        if (real[1:] == real[:-1]).any():
            raise VocabularyError("two tokens have the same id")
    elif len(ids) and (int(ids[-1]) > MAX_ID or not (ids[1:] > ids[:-1]).all()):
        raise VocabularyError(f"the ids must increase strictly and be at most {MAX_ID}")
    singles = np.frombuffer(tokens, np.uint8)[offsets[:-1][lengths == 1]]
    missing = sorted({*range(256)}.difference(singles.tolist()))
    if missing:
        some = ", ".join(f"0x{byte:02x}" for byte in missing[:8]) + ", …" * (len(missing) > 8)
        raise VocabularyError(
            f"{len(missing)} of the 256 single bytes are not in the vocabulary: {some}"
        )


def show_token(token: bytes | str) -> str:
    """`token` for a message, shortened to 40 bytes."""
    return repr(token) if len(token) <= 40 else f"{token[:40]!r}… ({len(token)} bytes)"
