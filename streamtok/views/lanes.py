"""The same text in chunks, twice: naive chunking beside the exact stream.

For each chunk: what each lane gives, which naive ids are wrong, how much of the text is pending,
and why the exact ids may go. Whether a naive id is wrong is known as soon as the exact stream has
given the ids of its place, so `LaneRun` takes a text that is still being written, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..chunker import StreamEncoder
from .merges import pretokens
from .naive import are_right, encode_naively
from .result import Result
from .tokens import Token, describe_ids
from .visible import visible

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["ExactToken", "LaneChunk", "LaneRun", "Lanes", "NaiveToken", "make_lanes"]

Reason = Literal["closed", "certificate", "end"]


@dataclass(slots=True)
class NaiveToken:
    """A token of a chunk encoded by itself."""

    token: Token
    start: int  # the byte of the text where it would begin
    is_wrong: bool | None = None  # the whole text does not have this id there; None: not known yet

    def as_json(self) -> dict[str, Any]:
        """dict: that of the token, `start` and `is_wrong`."""
        return {**self.token.as_json(), "start": self.start, "is_wrong": self.is_wrong}


class ExactToken(NamedTuple):
    """A token that the stream emitted, and why no later text can change it.

    reason: "closed": its pre-token has ended. "certificate": the pre-token is still open, and the
    engine has shown that this id is final whatever follows. "end": the stream was flushed. None:
    the text is still being written.
    """

    token: Token
    start: int
    stop: int
    reason: Reason | None = None

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
class Lanes(Result):
    """Both lanes, and the numbers of `streamtok bench`."""

    encoding: str
    chunks: list[LaneChunk]
    tokens: int  # of the whole text, and of the exact lane
    naive_tokens: int
    wrong_tokens: int  # naive ids that the whole text does not have at their place
    cuts: int
    cuts_inside_tokens: int
    broken_chunks: int

    _also = ("extra_tokens",)

    @property
    def extra_tokens(self) -> int:
        """Naive ids more than the whole text has."""
        return self.naive_tokens - self.tokens


class LaneRun:
    """Takes the chunks of a text, one after another; the text of special tokens is plain text.

    `totals` counts the ids of both lanes, the naive ones that are known to be wrong, and broken
    chunks.
    """

    def __init__(self, encoding: Encoding, max_pending: int, whole: Any = None) -> None:
        """whole: the ids and spans of the whole text, if it is known; then the pattern may leave
        text out. Raises UnsupportedPatternError for an encoding that has no streams.
        """
        self._encoding = encoding
        self._stream = StreamEncoder(
            encoding, disallowed_special=(), errors="replace", max_pending=max_pending
        )
        self._whole = whole
        self._open: list[NaiveToken] = []  # of which it is not known yet
        self._exact: list[tuple[int, int]] = []  # ids and starts, for those
        self._held = b""  # bytes that are pending
        self._reached = 0  # by the exact ids
        self.place = 0  # of the next chunk
        self.totals = dict.fromkeys(("naive", "wrong", "exact", "broken"), 0)

    def add(self, chunk: bytes, final: bool = False) -> LaneChunk:
        """Take a chunk; final: the last one. Raises PendingLimitExceeded, and RuntimeError should
        the stream's ids differ from those of the whole text.
        """
        start, stop = self.place, self.place + len(chunk)
        naive, starts = encode_naively(self._encoding, chunk, start).T
        exact, spans = self._emitted(chunk, final)
        self.place = stop
        pending = self._stream.pending
        self._held = (self._held + chunk)[-pending:] if pending else b""
        row = LaneChunk(
            start,
            stop,
            visible(chunk),
            list(map(NaiveToken, describe_ids(self._encoding, naive), starts.tolist())),
            [
                ExactToken(token, *span)
                for token, span in zip(
                    describe_ids(self._encoding, exact), spans.tolist(), strict=True
                )
            ],
            pending,
            visible(self._held),
            self._encoding.decode_bytes(naive) != chunk,
        )
        self._open += row.naive
        self._reached = stop if final else int(spans[-1, 1]) if len(spans) else self._reached
        self.totals["naive"] += len(naive)
        self.totals["exact"] += len(exact)
        self.totals["broken"] += row.is_broken
        self._exact += zip(exact.tolist(), spans[:, 0].tolist(), strict=True)
        self._settle()
        return row

    def _emitted(self, chunk: bytes, final: bool) -> Any:
        """The ids that the stream gives now, and their spans."""
        if self._whole is None:
            return self._stream.encode_with_offsets(chunk, final, unit="byte")
        first = self.totals["exact"]
        ids = self._stream.encode_to_numpy(chunk, final)
        expected, spans = (each[first : first + len(ids)] for each in self._whole)
        if not np.array_equal(ids, expected):
            raise RuntimeError(f"the stream's ids after id {first} differ from the whole text's")
        return ids, spans

    def _settle(self) -> None:
        """Say which naive ids are wrong, as far as the exact ones reach."""
        settled = [one for one in self._open if one.start < self._reached]
        self._open = self._open[len(settled) :]
        pairs = [(one.token.id, one.start) for one in settled]
        for one, is_right in zip(settled, are_right(pairs, self._exact).tolist(), strict=True):
            one.is_wrong = not is_right
            self.totals["wrong"] += one.is_wrong
        self._exact = [one for one in self._exact if one[1] >= self._reached]


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
    ids, spans = encoding.encode_with_offsets(data, "byte", disallowed_special=())
    run = LaneRun(encoding, len(data), (ids, spans))
    made = [*map(run.add, chunks), run.add(b"", final=True)]
    _give_reasons(made, _pretoken_ends(encoding, data, spans))
    cuts = list(accumulate(map(len, chunks)))[:-1]
    return Lanes(
        encoding.name,
        made,
        tokens=len(ids),
        naive_tokens=run.totals["naive"],
        wrong_tokens=run.totals["wrong"],
        cuts=len(cuts),
        cuts_inside_tokens=int(np.count_nonzero(~np.isin(cuts, spans[:, 0]))),
        broken_chunks=run.totals["broken"],
    )


def _give_reasons(made: list[LaneChunk], ends: Any) -> None:
    """Say why each exact id could go. ends: where the pre-token of each ends; None: not known."""
    number = 0
    for row in made:
        reached = row.exact[-1].stop if row.exact else 0
        for i, one in enumerate(row.exact):
            reason: Reason = "closed"
            if row is made[-1]:
                reason = "end"
            elif ends is not None and ends[number] > reached:
                reason = "certificate"
            row.exact[i] = one._replace(reason=reason)
            number += 1


def _pretoken_ends(encoding: Encoding, data: bytes, spans: Any) -> Any:
    """int64: for each id, where its pre-token ends; None where text is changed or left out."""
    if not encoding._is_plain or encoding.pattern is None or not encoding.pattern.is_total:
        return None
    sizes = [len(part.encode()) for part in pretokens(encoding, data.decode())]
    ends = np.cumsum(np.array(sizes, np.int64))
    return ends[np.searchsorted(ends, spans[:, 0], "right")]
