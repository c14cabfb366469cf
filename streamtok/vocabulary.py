"""A vocabulary: which bytes each token stands for, and the files a vocabulary is kept in.

`Vocabulary` holds the whole table in three flat arrays that the Cython core reads as they are.
Two formats, one load/save pair each: OpenAI's `.tiktoken` text (a line per token) and the packed
form of the package's own data (which two tokens make each token; nothing to unpack).

Not here: names of encodings and downloads (`registry.py`), special tokens and everything that
encodes (`encoding.py`).
"""

from __future__ import annotations

import binascii
import contextlib
import itertools
import operator
import os
import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core.encode import TokenTable, spell
from .errors import VocabularyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = [
    "PACKED_NAMES",
    "Vocabulary",
    "check_lines",
    "dumps_packed",
    "dumps_tiktoken",
    "from_base64",
    "load_packed",
    "load_tiktoken",
    "loads_packed",
    "loads_tiktoken",
    "packed_path",
    "save_packed",
    "save_tiktoken",
    "write_atomically",
]

MAX_ID = 2**32 - 2  # 2**32 - 1 means "no token" in the core
MAX_TOKEN_BYTES = 2**16 - 1
MAX_TOTAL_BYTES = 2**32 - 1  # offsets are 32 bits wide
MAX_DIGITS = 10  # of MAX_ID
MAX_LINES = 1 << 22  # of a file: twice as many as there are tokens in the largest table


NO_ID = 2**32 - 1  # of a token that leaves as the ids of its bytes


class Vocabulary:
    """The tokens of an encoding, immutable: their bytes and their ids (which are their ranks).

    That is all there is to a rank table, where any two neighbours merge that are a token together.
    A vocabulary of another kind (`merge_lists.py`) says more: tokens stand in the order of the
    merges that make them, whatever their ids; `lefts` says which two parts each is made of;
    `byte_ids` are for tokens that have no id themselves; `ties` put several in one place; `others`
    are ids that decode, but that no text is encoded to.

    >>> vocabulary = Vocabulary.from_ranks({bytes([b]): b for b in range(256)} | {b"ab": 256})
    >>> len(vocabulary), vocabulary.to_ranks()[b"ab"]
    (257, 256)
    """

    __slots__ = (
        "__weakref__", "_digest", "byte_ids", "ids", "known_parts", "lefts", "offsets", "others",
        "ties", "tokens",
    )  # fmt: skip

    tokens: bytes  # all tokens end to end, in order of rank
    offsets: NDArray[np.uint32]  # [n + 1]: token i is tokens[offsets[i]:offsets[i + 1]]
    ids: NDArray[np.uint32]  # [n]: the id of token i, strictly increasing in a rank table
    lefts: NDArray[np.uint32] | None  # [n]: bytes of the left of the two parts, 0: not merged
    known_parts: tuple[NDArray[np.uint32], NDArray[np.uint32]] | None  # see `TokenTable`
    byte_ids: NDArray[np.uint32] | None  # [256]
    ties: NDArray[np.uint32] | None  # [n]: rising; of equal ones the leftmost merges first
    others: Mapping[int, bytes]  # id -> its bytes
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
        others: Mapping[int, bytes] = MappingProxyType({}),
    ) -> None:
        """Take the arrays after checking all that memory safety depends on.

        That no two tokens are the same is not checked here; `from_ranks`, `load_tiktoken` and
        `merge_lists.from_merges` are the ways in for tables that are not known to be sound.
        """
        offsets, ids = _frozen(offsets), _frozen(ids)
        lefts = None if lefts is None else _frozen(lefts)
        byte_ids = None if byte_ids is None else _frozen(byte_ids)
        ties = None if ties is None else _frozen(ties)
        _check_arrays(tokens, offsets, ids, lefts is None and byte_ids is None)
        if lefts is not None and len(lefts) != len(ids):
            raise VocabularyError(f"{len(lefts)} left parts do not fit {len(ids)} tokens")
        if ties is not None and (len(ties) != len(ids) or (ties[1:] < ties[:-1]).any()):
            raise VocabularyError("ties must rise, one number for each token")
        if byte_ids is not None and len(byte_ids) != 256:
            raise VocabularyError(f"there are ids for {len(byte_ids)} bytes, not for 256")
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "lefts", lefts)
        object.__setattr__(self, "known_parts", None)
        object.__setattr__(self, "byte_ids", byte_ids)
        object.__setattr__(self, "ties", ties)
        object.__setattr__(self, "others", MappingProxyType(dict(others)))

    @classmethod
    def from_ranks(cls, mergeable_ranks: Mapping[bytes, int]) -> Vocabulary:
        """Make a vocabulary from a rank table as `tiktoken.Encoding` takes it.

        Raises `TypeError` for a token that is not `bytes` or a rank that is not an integer, and
        `VocabularyError` for a rank out of range or given twice, an empty or overlong token, or a
        table that lacks some of the 256 single bytes.
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
        _check_rows(rows)
        lengths = np.fromiter((len(token) for _, token in rows), np.int64, len(rows))
        return cls(
            b"".join([token for _, token in rows]),
            _offsets(lengths),
            np.fromiter((rank for rank, _ in rows), np.uint32, len(rows)),
        )

    @property
    def is_rank_table(self) -> bool:
        """Whether tokens and ids say it all, so that `to_ranks` can give it."""
        more = self.lefts, self.byte_ids, self.ties
        return not self.others and all(array is None for array in more)

    def to_list(self) -> list[bytes]:
        """Give the tokens, in order."""
        bounds = self.offsets.tolist()
        return [self.tokens[begin:end] for begin, end in itertools.pairwise(bounds)]

    def to_ranks(self) -> dict[bytes, int]:
        """Give the table as a dictionary from token to rank, in order of rank.

        Raises `VocabularyError` where ranks cannot say what this vocabulary does.
        """
        if not self.is_rank_table:
            raise VocabularyError(f"{self!r} has merges of its own: ranks cannot express it")
        return dict(zip(self.to_list(), self.ids.tolist(), strict=True))

    @property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the table: equal for equal tables, on every machine."""
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
                for name, array in (
                    ("lefts", self.lefts),
                    ("byte ids", self.byte_ids),
                    ("ties", self.ties),
                ):
                    if array is not None:
                        sha.update(f"{name} {len(array)}\n".encode())
                        sha.update(array.astype("<u4").tobytes())
                sha.update(repr(sorted(self.others.items())).encode())
            object.__setattr__(self, "_digest", sha.hexdigest())
            return self._digest

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        if self.is_rank_table and other.is_rank_table:
            return (
                self.tokens == other.tokens
                and np.array_equal(self.offsets, other.offsets)
                and np.array_equal(self.ids, other.ids)
            )
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash((len(self), self.tokens))

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self)} tokens, {len(self.tokens)} bytes>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_rank_table:
            return Vocabulary, (self.tokens, self.offsets, self.ids)
        return _rebuilt, (
            (self.tokens, self.offsets, self.ids),
            {
                "lefts": self.lefts,
                "byte_ids": self.byte_ids,
                "ties": self.ties,
                "others": dict(self.others),
            },
        )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Vocabulary is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Vocabulary is immutable: cannot delete {name!r}")


def _rebuilt(args: tuple[Any, ...], more: dict[str, Any]) -> Vocabulary:
    return Vocabulary(*args, **more)


def _frozen(array: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Copy a flat uint32 array into one that cannot be written to, unless it is one already."""
    if array.dtype != np.uint32 or array.ndim != 1:
        raise TypeError(f"expected a flat uint32 array, got {array.dtype} of shape {array.shape}")
    if array.flags.owndata and not array.flags.writeable:
        return array
    copy = np.array(array, np.uint32)
    copy.flags.writeable = False
    return copy


def _offsets(lengths: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
    """Turn the lengths of n tokens into the n + 1 positions between them."""
    total = int(lengths.sum(dtype=np.uint64))
    if total > MAX_TOTAL_BYTES:
        raise VocabularyError(f"the tokens have {total} bytes in all, more than {MAX_TOTAL_BYTES}")
    offsets = np.zeros(len(lengths) + 1, np.uint32)
    np.cumsum(lengths, dtype=np.uint32, out=offsets[1:])
    return offsets


def _check_rows(rows: list[tuple[int, bytes]]) -> None:
    """Refuse ranks that are out of range or given twice; `rows` are in order of rank."""
    for rank, token in rows[:1] + rows[-1:]:
        if not 0 <= rank <= MAX_ID:
            raise VocabularyError(f"the rank of {_show(token)} is {rank}: not in 0 … {MAX_ID}")
    for (rank, token), (next_rank, next_token) in itertools.pairwise(rows):
        if rank == next_rank:
            raise VocabularyError(
                f"rank {rank} is given twice: to {_show(token)} and to {_show(next_token)}"
            )


def _check_arrays(
    tokens: bytes, offsets: NDArray[np.uint32], ids: NDArray[np.uint32], is_plain: bool
) -> None:
    """Refuse arrays that do not fit together, impossible token lengths and missing bytes."""
    if not isinstance(tokens, bytes):
        raise TypeError(f"expected the tokens as bytes, got {type(tokens).__name__}")
    if len(offsets) != len(ids) + 1 or offsets[0] != 0 or offsets[-1] != len(tokens):
        raise VocabularyError("the offsets do not span the tokens")
    lengths = offsets[1:] - offsets[:-1]  # unsigned: a negative one is far too large
    if len(ids) and (lengths.min() < 1 or lengths.max() > MAX_TOKEN_BYTES):
        bad = int(np.flatnonzero((lengths < 1) | (lengths > MAX_TOKEN_BYTES))[0])
        size = int(offsets[bad + 1]) - int(offsets[bad])
        raise VocabularyError(
            f"the token of rank {ids[bad]} has {size} bytes: not in 1 … {MAX_TOKEN_BYTES}"
        )
    if not is_plain:
        real = ids[ids != NO_ID]
        if len(np.unique(real)) != len(real):
            raise VocabularyError("an id is given to two tokens")
        if len(real) and int(real.max()) >= 16 * len(ids) + (1 << 16):
            raise VocabularyError(f"ids up to {real.max()} are too sparse for {len(ids)} tokens")
    elif len(ids) and (int(ids[-1]) > MAX_ID or not (ids[1:] > ids[:-1]).all()):
        raise VocabularyError(f"the ids do not increase strictly up to at most {MAX_ID}")
    singles = np.frombuffer(tokens, np.uint8)[offsets[:-1][lengths == 1]]
    missing = np.flatnonzero(np.bincount(singles, minlength=256) == 0)
    if len(missing):
        some = ", ".join(f"0x{byte:02x}" for byte in missing[:8]) + ", …" * (len(missing) > 8)
        raise VocabularyError(
            f"{len(missing)} of the 256 single bytes are not in the vocabulary: {some}"
        )


def _show(token: bytes) -> str:
    return repr(token) if len(token) <= 40 else f"{token[:40]!r}… ({len(token)} bytes)"


# OpenAI's text format: on each line a token in base64, a blank and its rank.


def check_lines(data: bytes, source: str) -> None:
    """VocabularyError for a text of more lines than any vocabulary has tokens or merges."""
    if data.count(b"\n") + data.count(b"\r") > MAX_LINES:
        raise VocabularyError(f"{source}: more than {MAX_LINES} lines are no vocabulary")


def from_base64(field: bytes) -> bytes:
    """The token that `field` is in base64, the way it is written by all; else ValueError.

    Python's own strict mode is there from 3.11 on only.
    """
    token = binascii.a2b_base64(field)
    if binascii.b2a_base64(token, newline=False) != field:
        raise ValueError("not the base64 of any bytes")  # a2b_base64 skips what it does not know
    return token


def loads_tiktoken(data: bytes, source: str = "<bytes>") -> Vocabulary:
    """Read the contents of a `.tiktoken` file; errors name `source` and the line."""
    check_lines(data, source)
    ranks: dict[bytes, int] = {}
    lines_by_rank: dict[int, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            field, digits = line.split()
            token = from_base64(field)
            if not digits.isdigit() or len(digits) > MAX_DIGITS:
                raise ValueError  # int() lets some nonsense pass
            rank = int(digits)
        except ValueError:
            raise VocabularyError(
                f"{source}, line {number}: expected a token in base64, a blank and its rank, "
                f"got {_show(line)}"
            ) from None
        if token in ranks:
            raise VocabularyError(f"{source}, line {number}: {_show(token)} comes a second time")
        if rank in lines_by_rank:
            first = lines_by_rank[rank]
            raise VocabularyError(
                f"{source}, line {number}: rank {rank} is already on line {first}"
            )
        ranks[token] = rank
        lines_by_rank[rank] = number
    try:
        return Vocabulary.from_ranks(ranks)
    except VocabularyError as error:
        raise VocabularyError(f"{source}: {error}") from None


def dumps_tiktoken(vocabulary: Vocabulary) -> bytes:
    """Write a vocabulary as the contents of a `.tiktoken` file."""
    return b"".join(
        binascii.b2a_base64(token, newline=False) + b" %d\n" % rank
        for token, rank in vocabulary.to_ranks().items()
    )


def load_tiktoken(path: str | os.PathLike[str]) -> Vocabulary:
    """Read a `.tiktoken` file; a damaged one raises `VocabularyError` with file and line."""
    with open(path, "rb") as file:
        return loads_tiktoken(file.read(), os.fspath(path))


def save_tiktoken(vocabulary: Vocabulary, path: str | os.PathLike[str]) -> None:
    """Write a `.tiktoken` file, whole or not at all."""
    write_atomically(path, dumps_tiktoken(vocabulary))


# The packed form: a header, then, in order of rank, the number of the token that is the left part
# of each token, then those of the right parts, as little-endian uint32, then bytes. A token that is
# not made of two before it has 2**32 - 1 for its left part and its length for the right one, and
# its bytes are spelled out at the end. Ids are 0 … n - 1. The CRC is over all that follows it, so
# no flipped bit goes unseen.
#
# That is all that the core wants to know: nothing is unpacked, and no part is looked up. Version 2
# held the tokens themselves, in deflate streams, and the lengths of the left parts. All three
# files, and the time that making a `Vocabulary` and its `TokenTable` takes:
#
#                all three    cl100k_base
#   version 2     1.74 MB       17.7 ms
#   version 3     2.80 MB        5.2 ms

PACKED_NAMES = ("r50k_base", "cl100k_base", "o200k_base")

_MAGIC = b"stokvoc"
_VERSION = 3
_HEADER = struct.Struct("<7sB4I")  # magic, version, CRC, tokens, bytes spelled out, ALL_MERGE
_CRC_END = 12
_ALL_MERGE = 1  # flag: what is spelled out and longer than a byte is made by no merge


def loads_packed(data: bytes, source: str = "<bytes>") -> Vocabulary:
    """Unpack a vocabulary; anything but a sound file raises `VocabularyError` naming `source`."""
    if data[: len(_MAGIC)] != _MAGIC or len(data) < _HEADER.size:
        raise VocabularyError(f"{source} is not a packed vocabulary, or only the beginning of one")
    _, version, crc, count, n_spelled, flags = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise VocabularyError(f"{source} has version {version} of the packed form, not {_VERSION}")
    size = _HEADER.size + 8 * count + n_spelled
    if len(data) != size:
        raise VocabularyError(f"{source} is damaged: it has {len(data)} bytes instead of {size}")
    view = memoryview(data)
    if binascii.crc32(view[_CRC_END:]) != crc:
        raise VocabularyError(f"{source} is damaged: its checksum is wrong")
    try:
        parts = np.frombuffer(data, "<u4", 2 * count, _HEADER.size).astype(np.uint32, copy=False)
        lefts, rights = parts[:count], parts[count:]
        tokens, offsets = spell(lefts, rights, view[size - n_spelled :])
        ids = np.arange(count, dtype=np.uint32)
        offsets.flags.writeable = ids.flags.writeable = False
        vocabulary = Vocabulary(tokens, offsets, ids)
    except (ValueError, VocabularyError) as error:
        raise VocabularyError(f"{source} is damaged: {error}") from None
    if flags == _ALL_MERGE:
        object.__setattr__(vocabulary, "known_parts", (lefts, rights))
    return vocabulary


def dumps_packed(vocabulary: Vocabulary) -> bytes:
    """Pack a vocabulary, which must be a rank table with the ids 0 … n - 1."""
    if not vocabulary.is_rank_table or vocabulary.ids[-1] != len(vocabulary) - 1:
        raise VocabularyError("only rank tables whose ids have no gap can be packed")
    lefts = TokenTable(vocabulary.tokens, vocabulary.offsets, vocabulary.ids).lefts().tolist()
    numbers = vocabulary.to_ranks()
    parts, spelled, all_merge = [], [], True
    for i, (token, left) in enumerate(zip(numbers, lefts, strict=True)):
        pair = (numbers[token[:left]], numbers[token[left:]]) if left else (NO_ID, len(token))
        if left and max(pair) >= i:
            all_merge = False
            pair = (NO_ID, len(token))
        if pair[0] == NO_ID:
            spelled.append(token)
        parts.append(pair)
    body = np.array(parts, "<u4").T.tobytes() + b"".join(spelled)
    fields = len(parts), len(b"".join(spelled)), _ALL_MERGE if all_merge else 0
    crc = binascii.crc32(_HEADER.pack(_MAGIC, _VERSION, 0, *fields)[_CRC_END:] + body)
    return _HEADER.pack(_MAGIC, _VERSION, crc, *fields) + body


def packed_path(name: str) -> str:
    """Say where in the package the packed vocabulary `name` is kept."""
    if name not in PACKED_NAMES:
        raise VocabularyError(f"no packed vocabulary {name!r}: there are {', '.join(PACKED_NAMES)}")
    return os.path.join(os.path.dirname(__file__), "data", name + ".vocab")


def load_packed(name: str) -> Vocabulary:
    """Load one of `PACKED_NAMES` from the package's own data."""
    path = packed_path(name)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise VocabularyError(f"the packed vocabulary {name} cannot be read: {error}") from error
    return loads_packed(data, path)


def save_packed(vocabulary: Vocabulary, path: str | os.PathLike[str]) -> None:
    """Write a packed vocabulary, whole or not at all."""
    write_atomically(path, dumps_packed(vocabulary))


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that under its name there is always either the old or the whole new one."""
    temporary = f"{os.fspath(path)}.{os.urandom(8).hex()}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
