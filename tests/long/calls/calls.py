"""Each call that gives ids, asked for those of a text: they must be the plainest one's."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import streamtok
from streamtok._core.encode import ARRAY
from streamtok.engines import texts as whole_texts
from streamtok.jobs import documents
from streamtok.jobs.documents import DocumentEncoder
from streamtok.jobs.sources.splitters import Documents

from ...doors import COUNTS, IDS
from ..states.encodings import Subject
from .texts import cut

Ids = Any  # list, tuple or array of ids, or their number
# Without settings of special tokens, or with a buffer of a fixed size
OTHERS = ("encode_ordinary", "ordinary_batch", "JSON lines", "stream into a buffer")
DOORS = {name: door for name, door in (IDS | COUNTS).items() if name not in OTHERS}


@dataclass
class Ask:
    """A text, with settings of special tokens and of bytes that are not UTF-8."""

    subject: Subject
    text: str | bytes
    options: dict[str, Any]
    threads: int
    rng: random.Random
    asked: int = 0
    known: dict[Any, Any] = field(default_factory=dict)

    def plain(self, text: str | bytes) -> Any:
        """The ids of a whole text, at once, on one thread: an array."""
        if text not in self.known:
            encoding = self.subject.encoding
            matcher = encoding.definition.specials.matcher(
                self.options["allowed_special"], self.options["disallowed_special"]
            )
            errors = self.options["errors"]
            self.known[text] = encoding.definition.engine.encode(text, matcher, errors, ARRAY)
        return self.known[text]

    def same(self, name: str, found: Ids, text: str | bytes | None = None) -> None:
        """AssertionError unless these are the ids of the text, or their number."""
        expected = self.plain(self.text if text is None else text)
        self.asked += 1
        if isinstance(found, int):
            if found != len(expected):
                raise AssertionError(f"{name}: {found} ids, not {len(expected)}")
            return
        found = np.asarray(found, np.int64)
        if len(found) != len(expected) or (found != expected).any():
            n = min(len(found), len(expected))
            at = next((i for i in range(n) if found[i] != expected[i]), n)
            raise AssertionError(
                f"{name}: {len(found)} ids, expected {len(expected)}; from {at} on "
                f"{found[at : at + 8].tolist()}, expected {expected[at : at + 8].tolist()}"
            )


def whole(ask: Ask) -> None:
    """Whole texts of every kind of object, on one thread and on several."""
    enc, text, n = ask.subject.encoding, ask.text, ask.threads
    data = text.encode() if isinstance(text, str) else text
    for other in (text, data, bytearray(data), memoryview(data)):
        kind = type(other).__name__
        for options in (ask.options, {**ask.options, "num_threads": n}):
            ask.same(f"to_numpy of {kind}, {n} threads", enc.encode_to_numpy(other, **options))
            ask.same(f"count of {kind}, {n} threads", enc.count(other, **options))
        ask.same(f"encode of {kind}", enc.encode(other, **ask.options))
    texts = [*cut(ask.rng, text), text]
    rows = enc.encode_batch(texts, num_threads=n, **ask.options)
    for part, row in zip(texts, rows, strict=True):
        ask.same(f"encode_batch, {n} threads", row, part)


def every_door(ask: Ask) -> None:
    """Some of all calls that take a text."""
    if isinstance(ask.text, bytes) or ask.options["errors"] != "strict":
        return
    for name in ask.rng.sample(sorted(DOORS), 4):
        try:
            found = DOORS[name](ask.subject.encoding, ask.text, ask.options)
        except (ValueError, streamtok.UnsupportedPatternError):  # text is left out, or no cuts
            assert "offsets" in name or name in ("show", "comparison"), name
            continue
        ask.same(name, found)


def cuts(ask: Ask) -> None:
    """Each cut that is found is one, in str and in bytes."""
    enc, rng, text = ask.subject.encoding, ask.rng, ask.text
    found = enc.definition.texts.cuts
    if found is None or not isinstance(text, str) or len(text) > 3000:
        return
    matcher = enc.definition.specials.matcher(
        ask.options["allowed_special"], ask.options["disallowed_special"]
    )
    data = text.encode()
    at = in_bytes = 0
    for _ in range(rng.choice([1, 20, 200])):
        at = found.find(text, matcher, at + 1, len(text))
        in_bytes = found.find(data, matcher, in_bytes + 1, len(data))
        expected = len(text[:at].encode()) if at >= 0 else -1
        assert in_bytes == expected, f"the cut {at} of the str is {in_bytes} of its bytes"
        if at < 0:
            break
        back = found.find(text, matcher, 0, at + 1, from_end=True)
        assert back == at, f"the last cut before {at + 1} is {back}"
        if rng.random() < 0.2:
            ask.same(f"cut at {at}", [*ask.plain(text[:at]), *ask.plain(text[at:])])


def in_documents(ask: Ask) -> None:
    """Texts one after the other, some of them in parts, with ids around them."""
    enc, n, rng = ask.subject.encoding, ask.threads, ask.rng
    texts = [ask.text, *cut(rng, ask.text, 12)]
    frame = {name: rng.choice([None, 7]) for name in ("prepend", "append")}
    skip = rng.random() < 0.3
    stream = enc.stream_encoder(**ask.options)
    encoder = DocumentEncoder(stream, **frame, skip_empty=skip, num_threads=n)
    parts: list[Any] = []
    for text in texts:
        *some, last = cut(rng, text, 3) if rng.random() < 0.3 else [text]
        parts += [*((part, False) for part in some), (last, True)]
    try:
        found = encoder.encode(parts)
    finally:
        encoder.release()
    kept = [text for text in texts if text or not skip]
    _same_documents(ask, f"documents, {n} threads", found, kept, frame)
    assert encoder.documents == len(kept), "documents"
    if rng.random() < 0.5:
        how = stream.matcher, ask.options["errors"], n
        flat = enc.definition.texts.encode_flat(texts, *how)
        _same_documents(ask, "texts in a row", flat, texts, dict.fromkeys(frame))


# Tokens and none; a part of a character; one that overlaps itself; one that no token can be.
DELIMITERS = [b"\n", b" ", b"a", b"ab", b"\n\n", b"--", "日".encode(), b"\xa9", b"\x1e" * 40]


def delimited(ask: Ask) -> None:
    """A block of documents with delimiters after them, which special tokens may reach over."""
    enc, n, rng = ask.subject.encoding, ask.threads, ask.rng
    data = ask.text.encode() if isinstance(ask.text, str) else ask.text
    others = [text.encode() for text in (*ask.subject.words, *ask.subject.special) if text]
    delimiter = rng.choice(DELIMITERS if rng.random() < 0.6 or not others else others)
    if rng.random() < 0.3:
        data = data.replace(b"\n", delimiter)
    if rng.random() < 0.5:
        data = delimiter.join(cut(rng, data))
    texts = (data + delimiter).split(delimiter)[:-1]
    block = b"".join(text + delimiter for text in texts)
    frame = {name: rng.choice([None, 7]) for name in ("prepend", "append")}
    skip = rng.random() < 0.3
    if ask.options["errors"] == "strict":
        try:
            [text.decode() for text in texts]
        except UnicodeDecodeError:
            return
    encoder = DocumentEncoder(
        enc.stream_encoder(**ask.options), **frame, skip_empty=skip, num_threads=n
    )
    try:
        found = encoder.encode([Documents(block, delimiter, len(texts))])
    finally:
        encoder.release()
    size = sum(map(len, texts))
    texts = [text for text in texts if text or not skip]
    _same_documents(ask, f"delimited by {delimiter!r}, {n} threads", found, texts, frame)
    assert (encoder.documents, encoder.bytes) == (len(texts), size), "documents and bytes"


def _same_documents(
    ask: Ask, name: str, found: Any, texts: list[Any], frame: dict[str, int | None]
) -> None:
    ids, ends = found
    if len(ends) != len(texts):
        raise AssertionError(f"{name}: {len(ends)} documents, not {len(texts)}")
    before, after = ([] if one is None else [one] for one in frame.values())
    start = 0
    for text, end in zip(texts, map(int, ends), strict=True):
        ask.asked += 1
        expected = [*before, *ask.plain(text), *after]
        assert ids[start:end].tolist() == expected, f"{name}: {text[:80]!r}"
        start = end


def streams(ask: Ask) -> None:
    enc, rng = ask.subject.encoding, ask.rng
    text = ask.text.encode() if isinstance(ask.text, str) and rng.random() < 0.5 else ask.text
    for name in rng.sample(["encode", "encode_to_numpy", "encode_into", "iterencode"], 2):
        chunks = cut(rng, text)
        if name == "iterencode":
            found = [ids for part in enc.iterencode(chunks, **ask.options) for ids in part]
            ask.same(name, found)
            continue
        stream = enc.stream_encoder(**ask.options)
        ids: list[int] = []
        out = np.empty(len(ask.plain(ask.text)), np.uint32)  # not one more than there will be
        n = 0
        for i, chunk in enumerate([*chunks, chunks[0][:0]]):
            final = i == len(chunks)
            if name == "encode_into":
                n += stream.encode_into(chunk, out, final, start=n)
            else:
                ids += list(getattr(stream, name)(chunk, final))
            if rng.random() < 0.1 and len(text) < 5000:
                stream = pickle.loads(pickle.dumps(stream)) if _is_small(enc) else stream.copy()
            elif rng.random() < 0.1:
                state = stream.getstate()
                stream = enc.stream_encoder(**ask.options)
                stream.setstate(state)
        ask.same(f"stream.{name}", out[:n] if name == "encode_into" else ids)


def offsets(ask: Ask) -> None:
    """Spans that a stream gives are those of the whole text."""
    enc, rng, unit = ask.subject.encoding, ask.rng, ask.rng.choice(["byte", "character", "utf16"])
    try:
        ids, spans = enc.encode_with_offsets(ask.text, unit, **ask.options)
        ask.same("encode_with_offsets", ids)
        stream = enc.stream_encoder(**ask.options)
        parts = [stream.encode_with_offsets(part, unit=unit) for part in cut(rng, ask.text)]
        parts.append(stream.encode_with_offsets(ask.text[:0], final=True, unit=unit))
    except (ValueError, streamtok.UnsupportedPatternError):  # text is left out
        return
    ask.same("stream.encode_with_offsets", np.concatenate([part[0] for part in parts]))
    if not np.array_equal(np.concatenate([part[1] for part in parts]), spans):
        raise AssertionError(f"the offsets of a stream in {unit}s")


def decoding(ask: Ask) -> None:
    enc, ids = ask.subject.encoding, ask.plain(ask.text)
    expected = enc.decode_bytes(ids)
    stream = enc.stream_decoder()
    parts = cut(ask.rng, ids.tolist())
    found = [enc.decode_bytes(ids.tolist()), enc.decode_bytes_batch([ids, ids], num_threads=1)[1]]
    found.append(b"".join([stream.decode_bytes(part) for part in parts]))
    stream.reset()
    text = "".join([stream.decode(part) for part in parts]) + stream.flush()
    if any(one != expected for one in found) or text != expected.decode("utf-8", "replace"):
        raise AssertionError("decoded text")
    ask.asked += 1


def in_tokenizers(ask: Ask) -> None:
    """Short texts: the ids of `tokenizers`."""
    from ..random_tokenizers.checks import expected_ids

    real = ask.subject.real
    if real is None or ask.options["allowed_special"] != "all" or not isinstance(ask.text, str):
        return
    if len(ask.text) <= 300:
        expected = expected_ids(real, ask.text)
        if expected is not None:
            ask.same("tokenizers (found) and whole (expected)", expected)


def in_hf(ask: Ask) -> None:
    """One text, lists and encodings with truncation and padding, by `streamtok.hf`."""
    if ask.options["allowed_special"] != "all" or not isinstance(ask.text, str):
        return
    hf, rng = ask.subject.hf, ask.rng
    if hf is None:
        return
    hf.no_truncation()
    hf.no_padding()
    ask.same("hf.encode", hf.encode(ask.text, add_special_tokens=False).ids)
    texts = [ask.text, *cut(rng, ask.text, 12)]
    if ask.known and rng.random() < 0.5:
        for name in ("encode_batch", "encode_batch_fast"):
            rows = getattr(hf, name)(texts, add_special_tokens=False)
            for text, row in zip(texts, rows, strict=True):
                ask.same(f"hf.{name}", row.ids, text)
    longest = max(len(ask.plain(text)) for text in texts)
    most = rng.choice([1, 3, 8, 100, longest + 1])
    hf.enable_truncation(most, direction=rng.choice(["left", "right"]))
    hf.enable_padding(
        direction=rng.choice(["left", "right"]), length=rng.choice([None, 5]), pad_id=3
    )
    side, pads = hf.truncation["direction"], hf.padding["direction"] == "left"
    for row, text in zip(hf.encode_batch(texts, add_special_tokens=False), texts, strict=True):
        mask = _same_row(ask, "hf.encode_batch", row.ids, row.attention_mask, text, most, side)
        assert mask.all() or not (mask[:1] if pads else mask[-1:]).any(), "padding"
    _through_transformers(ask, texts, most)


def _same_row(
    ask: Ask, name: str, ids: Any, mask: Any, text: str, most: int, side: str
) -> npt.NDArray[np.bool_]:
    """The mask of a padded row, which must have the first or last ids of the text."""
    is_kept = np.array(mask, bool)
    every = ask.plain(text)
    expected = every[max(0, len(every) - most) :] if side == "left" else every[:most]
    ask.asked += 1
    assert np.array(ids)[is_kept].tolist() == expected.tolist(), f"{name}, {most} ids, {side}"
    return is_kept


def _through_transformers(ask: Ask, texts: list[str], most: int) -> None:
    """Lists and matrices, if transformers is there."""
    tokenizer, rng = ask.subject.transformers, ask.rng
    if tokenizer is None:
        return
    tokenizer.padding_side, tokenizer.truncation_side = rng.choices(["left", "right"], k=2)
    tensors = rng.choice([None, "np"])
    found = tokenizer(
        texts, add_special_tokens=False, truncation=True, max_length=most, padding=True,
        return_tensors=tensors, return_attention_mask=True,
    )  # fmt: skip
    for text, row, mask in zip(texts, found["input_ids"], found["attention_mask"], strict=True):
        name = f"transformers, return_tensors={tensors!r}"
        _same_row(ask, name, row, mask, text, most, tokenizer.truncation_side)


CALLS: dict[str, Callable[[Ask], None]] = {
    "whole": whole, "doors": every_door, "cuts": cuts, "documents": in_documents,
    "delimited": delimited, "streams": streams, "offsets": offsets, "decoding": decoding,
    "tokenizers": in_tokenizers, "hf": in_hf,
}  # fmt: skip


@contextlib.contextmanager
def narrow_paths(rng: random.Random, threads: int) -> Iterator[None]:
    """Let texts of these sizes take the path of large ones, on as many threads as are asked for."""
    kept = [
        (whole_texts, "LARGE", [1, 20, 300, 5000, whole_texts.LARGE]),
        (whole_texts, "PART", [1, 7, 64, 1000, 20_000, whole_texts.PART]),
        (whole_texts, "PER_THREAD", [1, 100, whole_texts.PER_THREAD]),
        (documents, "TASK", [1, 50, 3000, documents.TASK]),
        (documents, "SPREAD_FROM", [1, 300, documents.SPREAD_FROM]),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in kept]
    before.append((whole_texts, "usable_cores", whole_texts.usable_cores))
    environment = os.environ.get("RAYON_NUM_THREADS")
    try:
        for owner, name, values in kept:
            setattr(owner, name, rng.choice(values))
        whole_texts.usable_cores = lambda: threads
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
        os.environ.pop("RAYON_NUM_THREADS")
        if environment is not None:
            os.environ["RAYON_NUM_THREADS"] = environment


def _is_small(encoding: streamtok.Encoding) -> bool:
    return len(encoding.definition.vocabulary) < 2000
