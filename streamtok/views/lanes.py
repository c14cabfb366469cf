"""The same text in chunks, twice: naive chunking beside the exact stream.

For each chunk: what each lane gives, which naive ids are wrong, how much of the text is pending,
and why the exact ids may go. The numbers are those of `streamtok bench`, from the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..chunker import StreamEncoder
from .merges import pretokens
from .naive import Offline, encode_naively
from .tokens import Token, describe_ids
from .visible import visible

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["ExactToken", "LaneChunk", "Lanes", "NaiveToken", "make_lanes"]

Reason = Literal["closed", "certificate", "end"]


class NaiveToken(NamedTuple):
    """A token of a chunk encoded by itself."""

    token: Token
    start: int  # the byte of the text where it would begin
    is_wrong: bool  # the whole text does not have this id there

    def as_json(self) -> dict[str, Any]:
        """dict: that of the token, `start` and `is_wrong`."""
        return {**self.token.as_json(), "start": self.start, "is_wrong": self.is_wrong}


class ExactToken(NamedTuple):
    """A token that the stream emitted, and why no later text can change it.

    reason: "closed": its pre-token has ended. "certificate": the pre-token is still open, and the
    engine has shown that this id is final whatever follows. "end": the stream was flushed.
    """

    token: Token
    start: int
    stop: int
    reason: Reason

    def as_json(self) -> dict[str, Any]:
        """dict: that of the token, `byte_span` and `reason`."""
        span = [self.start, self.stop]
        return {**self.token.as_json(), "byte_span": span, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class LaneChunk:
    """One chunk. The last of `Lanes.chunks` has no text: it is the flush."""

    start: int
    stop: int
    shown: str
    naive: list[NaiveToken]
    exact: list[ExactToken]
    pending: int  # bytes that the stream holds back after this chunk
    pending_shown: str
    is_broken: bool  # the naive ids do not decode to the chunk

    def as_json(self) -> dict[str, Any]:
        """dict: all of it; `naive` and `exact` are lists."""
        return {
            "byte_span": [self.start, self.stop],
            "shown": self.shown,
            "naive": [one.as_json() for one in self.naive],
            "exact": [one.as_json() for one in self.exact],
            "pending": self.pending,
            "pending_shown": self.pending_shown,
            "is_broken": self.is_broken,
        }


@dataclass(frozen=True, slots=True)
class Lanes:
    """Both lanes, and the numbers of `streamtok bench`."""

    encoding: str
    chunks: list[LaneChunk]
    tokens: int  # of the whole text, and of the exact lane
    naive_tokens: int
    wrong_tokens: int  # naive ids that the whole text does not have at their place
    cuts: int
    cuts_inside_tokens: int
    broken_chunks: int

    @property
    def extra_tokens(self) -> int:
        """Naive ids more than the whole text has."""
        return self.naive_tokens - self.tokens

    def as_json(self) -> dict[str, Any]:
        """dict: the numbers, and `chunks`."""
        return {
            "encoding": self.encoding,
            "tokens": self.tokens,
            "naive_tokens": self.naive_tokens,
            "extra_tokens": self.extra_tokens,
            "wrong_tokens": self.wrong_tokens,
            "cuts": self.cuts,
            "cuts_inside_tokens": self.cuts_inside_tokens,
            "broken_chunks": self.broken_chunks,
            "chunks": [chunk.as_json() for chunk in self.chunks],
        }


def make_lanes(
    encoding: Encoding,
    text: str | bytes,
    chunk_size: int | None = None,
    *,
    chunks: Sequence[bytes] | None = None,
) -> Lanes:
    """Lanes: a text in chunks of `chunk_size` bytes, or in the given `chunks` of it.

    The text of special tokens is plain text. Bytes must be UTF-8: others raise UnicodeDecodeError.
    Raises ValueError for chunks that are not the text, UnsupportedPatternError for an encoding that
    has no streams, RuntimeError should the stream's ids differ from those of the whole text.
    """
    data = text.encode() if isinstance(text, str) else bytes(text)
    data.decode()
    if chunks is None:
        if chunk_size is None or chunk_size < 1:
            raise ValueError(f"chunk_size must be a positive number, not {chunk_size}")
        chunks = [data[start : start + chunk_size] for start in range(0, len(data), chunk_size)]
    elif b"".join(chunks) != data:
        raise ValueError("the chunks are not those of the text")
    offline = Offline(data, encoding)
    naive = [encode_naively(encoding, chunk) for chunk in chunks]
    rows = _Rows(offline)
    stream = StreamEncoder(encoding, disallowed_special=(), max_pending=len(data))
    made = [rows.row(stream, chunk, ids) for chunk, ids in zip(chunks, naive, strict=True)]
    made.append(rows.row(stream, None, []))
    errors = offline.errors(chunks, naive)
    cuts = np.array(list(accumulate(map(len, chunks)))[:-1], np.int64)
    return Lanes(
        encoding.name,
        made,
        tokens=len(offline.ids),
        naive_tokens=sum(map(len, naive)),
        cuts=len(cuts),
        cuts_inside_tokens=int(np.count_nonzero(offline.is_inside_token(cuts))),
        **errors,
    )


class _Rows:
    """Where both lanes stand."""

    def __init__(self, offline: Offline) -> None:
        self._offline = offline
        self._place = 0  # of the next chunk
        self._given = 0  # ids that the stream emitted
        self._closes = _pretoken_ends(offline)

    def row(self, stream: StreamEncoder, chunk: bytes | None, naive: list[int]) -> LaneChunk:
        """What a chunk gives; None: the end."""
        offline, start = self._offline, self._place
        ids = stream.flush() if chunk is None else stream.encode(chunk)
        pending = 0 if chunk is None else stream.pending
        chunk = chunk or b""
        stop = self._place = start + len(chunk)
        first, self._given = self._given, self._given + len(ids)
        if offline.ids[first : self._given].tolist() != ids:
            raise RuntimeError(f"the stream's ids up to byte {stop} differ from the whole text's")
        reached = int(offline.spans[self._given - 1, 1]) if self._given else 0
        spans = offline.spans[first : self._given].tolist()
        is_end = chunk == b"" and stop == len(offline.data)
        tokens = describe_ids(offline.encoding, ids)
        reasons = self._reasons(first, reached, is_end)
        exact = [
            ExactToken(token, span[0], span[1], reason)
            for token, span, reason in zip(tokens, spans, reasons, strict=True)
        ]
        wrong = (~offline.right(start, chunk, naive)).tolist()
        starts = offline.naive_starts(start, chunk, naive).tolist()
        return LaneChunk(
            start,
            stop,
            visible(chunk),
            list(map(NaiveToken, describe_ids(offline.encoding, naive), starts, wrong)),
            exact,
            pending,
            visible(offline.data[stop - pending : stop]),
            offline.encoding.decode_bytes(naive) != chunk,
        )

    def _reasons(self, first: int, reached: int, is_end: bool) -> list[Reason]:
        """Why each id that a chunk gave could go; the ids reach so far."""
        count = self._given - first
        if is_end or self._closes is None:
            return ["end" if is_end else "closed"] * count
        is_closed = (self._closes[first : self._given] <= reached).tolist()
        return ["closed" if one else "certificate" for one in is_closed]


def _pretoken_ends(offline: Offline) -> Any:
    """int64: for each id, where its pre-token ends; None where text is changed or left out."""
    encoding = offline.encoding
    if not encoding._is_plain or encoding.pattern is None or not encoding.pattern.is_total:
        return None
    sizes = [len(part.encode()) for part in pretokens(encoding, offline.data.decode())]
    ends = np.cumsum(np.array(sizes, np.int64))
    return ends[np.searchsorted(ends, offline.spans[:, 0], "right")]
