"""The same text in chunks, twice: naive chunking beside the exact stream.

Naive chunking decodes each chunk with "replace" and encodes it by itself, as is often done. A naive
id is right if the whole text has the same id at the same byte. For each chunk, the result shows the
ids of both lanes, which naive ids are wrong, how much text is pending, and why the exact ids are
final.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ...chunker import StreamEncoder
from .merges import pretokens
from .result import Result
from .tokens import Token, describe_ids
from .visible import visible

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...encoding import Encoding

Reason = Literal["closed", "certificate", "end"]


class NaiveToken(NamedTuple):
    """A token of a chunk encoded by itself."""

    token: Token
    start: int  # the byte offset in the text where it would begin
    is_wrong: bool  # the whole text does not have this id there

    def as_json(self) -> dict[str, Any]:
        """dict: the token's values, `start` and `is_wrong`."""
        return {**self.token.as_json(), "start": self.start, "is_wrong": self.is_wrong}


class ExactToken(NamedTuple):
    """A token that the stream emitted, and why no later text can change it.

    reason: "closed": its pre-token has ended. "certificate": the pre-token is still open, and the
    engine has proved that this id is final whatever follows. "end": the stream was flushed.
    """

    token: Token
    start: int
    stop: int
    reason: Reason

    def as_json(self) -> dict[str, Any]:
        """dict: the token's values, `byte_span` and `reason`."""
        span = [self.start, self.stop]
        return {**self.token.as_json(), "byte_span": span, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class LaneChunk(Result):
    """One chunk. The last of `Lanes.chunks` has no text: it is the flush."""

    start: int
    stop: int
    shown: str
    naive: list[NaiveToken]
    exact: list[ExactToken]
    pending: int  # bytes that the stream holds back after this chunk
    pending_shown: str
    is_broken: bool  # the naive ids do not decode to the chunk


@dataclass(frozen=True, slots=True)
class Lanes(Result):
    """Both lanes, and the same counts as in `streamtok bench`."""

    encoding: str
    chunks: list[LaneChunk]
    tokens: int  # ids of the whole text, and of the exact lane
    naive_tokens: int
    wrong_tokens: int  # naive ids that the whole text does not have at their position
    cuts: int
    cuts_inside_tokens: int
    broken_chunks: int

    _also = ("extra_tokens",)

    @property
    def extra_tokens(self) -> int:
        """How many more ids naive chunking makes than the whole text has."""
        return self.naive_tokens - self.tokens


def encode_naively(encoding: Encoding, chunk: bytes, begin: int = 0) -> npt.NDArray[np.int64]:
    """int64 [n, 2]: the ids of a chunk that begins at byte `begin`, and where each begins."""
    ids, spans = encoding.encode_with_offsets(
        chunk, "byte", disallowed_special=(), errors="replace"
    )
    return np.stack([ids.astype(np.int64), spans[:, 0] + begin], axis=1)


def are_right(naive: Any, whole: Any) -> npt.NDArray[np.bool_]:
    """bool: for each naive id, whether the whole text has it there. Both are pairs (id, start)."""
    return np.isin(_joined(naive), _joined(whole))


def _joined(pairs: Any) -> npt.NDArray[np.int64]:
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 1] << 32 | table[:, 0]


def make_lanes(encoding: Encoding, text: str | bytes, chunk_size: int) -> Lanes:
    """Lanes: a text in chunks of `chunk_size` bytes.

    The text of special tokens is plain text. Raises UnicodeDecodeError for bytes that are
    not UTF-8, ValueError for a size that is not positive, UnsupportedPatternError for an encoding
    without streams, and RuntimeError if the stream's ids differ from those of the whole text.
    """
    data = text.encode() if isinstance(text, str) else bytes(text)
    data.decode()
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be a positive number, not {chunk_size}")
    chunks = [data[start : start + chunk_size] for start in range(0, len(data), chunk_size)]
    ids, spans = encoding.encode_with_offsets(data, "byte", disallowed_special=())
    stream = StreamEncoder(encoding, disallowed_special=(), max_pending=len(data))
    whole = np.stack([ids, spans[:, 0]], axis=1)
    ends = _pretoken_ends(encoding, data, spans)
    made: list[LaneChunk] = []
    start = number = 0  # the chunk's offset in the text; the index of its first exact id
    for chunk in [*chunks, b""]:
        stop, is_flush = start + len(chunk), len(made) == len(chunks)
        pairs = encode_naively(encoding, chunk, start)
        naive = describe_ids(encoding, pairs[:, 0].tolist())
        wrong = ~are_right(pairs, whole)
        found = stream.encode_to_numpy(chunk, is_flush)
        first, number = number, number + len(found)
        if not np.array_equal(found, ids[first:number]):
            raise RuntimeError(f"the stream's ids after id {first} differ from the whole text's")
        reached = int(spans[number - 1, 1]) if number else 0
        exact = []
        for i, token in enumerate(describe_ids(encoding, found), first):
            is_open = ends is not None and ends[i] > reached
            reason: Reason = "end" if is_flush else "certificate" if is_open else "closed"
            exact.append(ExactToken(token, int(spans[i, 0]), int(spans[i, 1]), reason))
        made.append(
            LaneChunk(
                start,
                stop,
                visible(chunk),
                list(map(NaiveToken, naive, pairs[:, 1].tolist(), wrong.tolist())),
                exact,
                stream.pending,
                visible(data[stop - stream.pending : stop]),
                encoding.decode_bytes(pairs[:, 0]) != chunk,
            )
        )
        start = stop
    cuts = list(accumulate(map(len, chunks)))[:-1]
    every = [one for row in made for one in row.naive]
    return Lanes(
        encoding.name,
        made,
        tokens=len(ids),
        naive_tokens=len(every),
        wrong_tokens=sum(one.is_wrong for one in every),
        cuts=len(cuts),
        cuts_inside_tokens=int(np.count_nonzero(~np.isin(cuts, spans[:, 0]))),
        broken_chunks=sum(row.is_broken for row in made),
    )


def _pretoken_ends(encoding: Encoding, data: bytes, spans: Any) -> Any:
    """int64: for each id, where its pre-token ends; None if text may be changed or dropped."""
    if (
        not encoding.definition.texts.is_plain
        or encoding.pattern is None
        or not encoding.pattern.is_total
    ):
        return None
    sizes = [len(part.encode()) for part in pretokens(encoding, data.decode())]
    ends = np.cumsum(np.array(sizes, np.int64))
    return ends[np.searchsorted(ends, spans[:, 0], "right")]
