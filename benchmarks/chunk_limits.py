"""What single steps of encoding in chunks take by themselves: for `limits.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import regex

import streamtok

from . import corpus
from .steps import Row, Timed, after, in_turns, new_pretokens, side_by_side, timed

_CHUNKS = (1 << 16, 4096, 256)
_COMPANY = [b"a"] * 16  # known pre-tokens beside a few new ones, which then wait for each other


def chunked(enc: streamtok.Encoding, name: str, limit: int | None, rounds: int) -> Iterator[Row]:
    data = corpus.load(name, limit)
    ids = enc.encode_to_numpy(data)
    out = np.empty(_CHUNKS[0] + 4096, np.uint32)
    for size in _CHUNKS:
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        some = ids[: -(-len(ids) // len(chunks))]
        stream = enc.stream_encoder()

        def whole(chunks: list[bytes] = chunks, stream: Any = stream) -> float:
            return timed(lambda: [stream.encode_to_numpy(chunk) for chunk in chunks])

        def kept(chunks: list[bytes] = chunks, some: Any = some) -> float:
            return timed(lambda: [some.copy() for _ in chunks])

        def empty(chunks: list[bytes] = chunks, stream: Any = stream) -> float:
            return timed(lambda: [stream.encode_to_numpy(b"") for _ in chunks])

        def at_once() -> float:
            return timed(lambda: enc.encode_to_numpy(data))

        def into(chunks: list[bytes] = chunks, stream: Any = stream) -> float:
            return timed(lambda: [stream.encode_into(chunk, out) for chunk in chunks])

        def empty_into(chunks: list[bytes] = chunks, stream: Any = stream) -> float:
            return timed(lambda: [stream.encode_into(b"", out) for _ in chunks])

        goal = f"chunks of {size} bytes, {name}"
        yield in_turns(goal, "the same as one text", at_once, whole, rounds)
        yield in_turns(goal, "arrays that are kept", kept, whole, rounds)
        yield in_turns(goal, "an empty chunk", empty, whole, rounds)
        goal = f"chunks of {size} bytes into one array, {name}"
        yield in_turns(goal, "the same as one text", at_once, into, rounds)
        yield in_turns(goal, "an empty chunk", empty_into, into, rounds)


def new_in_chunks(
    enc: streamtok.Encoding, first: str, second: str, size: int
) -> list[tuple[Any, Any]]:
    """The new pre-tokens of each chunk of `size` bytes that has some, side by side."""
    new = set(new_pretokens(enc, first, second))
    chunks: dict[int, list[bytes]] = {}
    at = 0
    for found in regex.finditer(enc._pat_str, second):
        pretoken = found[0].encode()
        at += len(pretoken)
        if pretoken in new:
            new.remove(pretoken)
            chunks.setdefault((at - 1) // size, []).append(pretoken)
    return [side_by_side(_COMPANY + pretokens) for pretokens in chunks.values()]


def chunked_unseen(
    enc: streamtok.Encoding, name: str, limit: int | None, rounds: int
) -> Iterator[Row]:
    """Of text not seen before, in chunks that go into one array."""
    first, second = (half.decode() for half in corpus.halves(corpus.load(name, limit)))
    data = second.encode()
    encoder = enc._encoder
    new = new_pretokens(enc, first, second)
    together, company = side_by_side(_COMPANY + new), side_by_side(_COMPANY)
    out = np.empty(_CHUNKS[0] + 4096, np.uint32)

    def split(pieces: list[tuple[Any, Any]]) -> None:
        for pretokens, ends in pieces:
            encoder.encode_split(pretokens, ends, "array")

    for size in _CHUNKS:
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        apart = new_in_chunks(enc, first, second, size)
        stream = enc.stream_encoder()

        def whole(chunks: list[bytes] = chunks, stream: Any = stream) -> None:
            for chunk in chunks:
                stream.encode_into(chunk, out)

        def merged(apart: list[tuple[Any, Any]]) -> float:
            """Beyond as many calls with known pre-tokens only."""
            encoder.release()
            enc.encode_ordinary(first)
            calls = [company] * len(apart)
            return max(0.0, timed(lambda: split(apart)) - timed(lambda: split(calls)))

        def empty(chunks: list[bytes] = chunks, stream: Any = stream) -> None:
            for _ in chunks:
                stream.encode_into(b"", out)

        steps: dict[str, Timed] = {
            "the same as one text": after(enc, first, lambda: enc.encode_to_numpy(data)),
            f"{len(new):,} new pre-tokens at once": partial(merged, [together]),
            "the same, those of a chunk at a time": partial(merged, apart),
            "an empty chunk": after(enc, first, empty),
        }
        goal = f"unseen {name}, chunks of {size} bytes into one array"
        for step, kernel in steps.items():
            yield in_turns(goal, step, kernel, after(enc, first, whole), rounds)
