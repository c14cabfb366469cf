"""Every call that takes a text, by name: a law is written once, and goes through all doors.

A door is called with an encoding, a text and the settings of the call, or of the object that it
makes. `IDS` give the ids of the text, `COUNTS` their number. Threads share texts of more than some
size only; `tests/long` asks the same calls for random texts of any size.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

import streamtok
from streamtok.answers.views.comparison import compare_encodings
from streamtok.jobs.documents import DocumentEncoder
from streamtok.jobs.sources.json_lines import JsonLines

Encoding = streamtok.Encoding
Call = Callable[[Encoding, str, dict[str, Any]], Any]


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    """What a call gives, or the error that it raises, in full."""
    try:
        return call(*args)
    except Exception as error:
        place = (error.start, error.end) if isinstance(error, UnicodeDecodeError) else ()
        return type(error), str(error), vars(error), *place


def of_stream(enc: Encoding, text: str, more: dict[str, Any]) -> list[int]:
    stream = enc.stream_encoder(**more)
    middle = text.find(" ")  # between two characters of text that is not broken
    return [*stream.encode(text[:middle]), *stream.encode(text[middle:]), *stream.flush()]


def into_buffer(enc: Encoding, text: str, more: dict[str, Any]) -> list[int]:
    out = np.zeros(4 * len(text) + 16, np.uint32)
    return out[: enc.stream_encoder(**more).encode_into(text, out, True)].tolist()


def of_counter(enc: Encoding, text: str, more: dict[str, Any]) -> int:
    counter = enc.counter(**more)
    counter.update(text)
    return counter.finish()


def of_edits(enc: Encoding, text: str, more: dict[str, Any]) -> list[int]:
    document = enc.document("a b", **more)
    document.append(text)
    document.replace(0, 3, "")
    return list(document.ids)


def of_pipeline(enc: Encoding, text: str, more: dict[str, Any]) -> list[int]:
    encoder = DocumentEncoder(enc.stream_encoder(**more))
    try:
        return list(encoder.encode([(text, True)])[0].tolist())
    finally:
        encoder.release()


def of_json_lines(enc: Encoding, text: str, more: dict[str, Any]) -> list[int]:
    splitter = JsonLines("t", "a file", **more)
    line = json.dumps({"t": text}).encode() + b"\n"
    ((found, _),) = splitter.split(line)
    return list(enc.encode(found, **more))


IDS: dict[str, Call] = {
    "encode": lambda e, t, m: e.encode(t, **m),
    "encode_ordinary": lambda e, t, m: e.encode_ordinary(t, **m),
    "max_tokens": lambda e, t, m: e.encode(t, max_tokens=1 << 30, **m),
    "to_numpy": lambda e, t, m: e.encode_to_numpy(t, **m).tolist(),
    "to_numpy, threads": lambda e, t, m: e.encode_to_numpy(t, num_threads=2, **m).tolist(),
    "batch": lambda e, t, m: e.encode_batch(["x", t], **m)[1],
    "ordinary_batch": lambda e, t, m: e.encode_ordinary_batch([t, "x"], **m)[0],
    "with_offsets": lambda e, t, m: e.encode_with_offsets(t, **m)[0].tolist(),
    "batch_with_offsets": lambda e, t, m: e.encode_batch_with_offsets([t], **m)[0][0].tolist(),
    "stream": of_stream,
    "stream to numpy": lambda e, t, m: e.stream_encoder(**m).encode_to_numpy(t, True).tolist(),
    "stream offsets": lambda e, t, m: (
        e.stream_encoder(**m).encode_with_offsets(t, True)[0].tolist()
    ),
    "stream into a buffer": into_buffer,
    "iterencode": lambda e, t, m: [id for ids in e.iterencode([t], **m) for id in ids],
    "document": lambda e, t, m: list(e.document(t, **m).ids),
    "edits": of_edits,
    "show": lambda e, t, m: [one.token.id for one in e.show(t, **m).tokens],
    "comparison": lambda e, t, m: [
        one.token.id for one in compare_encodings([e], t, **m).columns[0].tokens
    ],
    "pipeline": of_pipeline,
    "JSON lines": of_json_lines,
}
COUNTS: dict[str, Call] = {
    "count": lambda e, t, m: e.count(t, **m),
    "count, threads": lambda e, t, m: e.count(t, num_threads=2, **m),
    "counter": of_counter,
    "truncate": lambda e, t, m: e.truncate(t, 1 << 30, **m).n_tokens,
    "truncate left": lambda e, t, m: e.truncate(t, 1 << 30, "left", **m).n_tokens,
    "split": lambda e, t, m: sum(part.n_tokens for part in e.split(t, 1 << 30, **m)),
}
