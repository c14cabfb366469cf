"""What is checked of one random file: that streamtok and `tokenizers` agree; see `rounds.py`."""

from __future__ import annotations

import collections
import json
import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

import streamtok

from ...tokenizer_files import BYTE_SYMBOLS, File

MARK = "\u2581"
SYMBOLS = frozenset(BYTE_SYMBOLS.values())
SHORT = 16  # bytes: a text that is cut everywhere
SAMPLED_CUTS = 5  # of a longer one
OPTIONS: dict[str, Any] = {"allowed_special": "all"}


class Difference(NamedTuple):
    kind: str  # load, encode, count, stream, decode or written
    text: str
    expected: Any
    found: Any
    how: Any = None  # cuts


class Refused(Exception):
    """streamtok does not read this file; the argument is its message."""


def theirs(file: File) -> Tokenizer | None:
    """The tokenizer of `tokenizers`, or None if it does not take this file."""
    try:
        return Tokenizer.from_str(json.dumps(file))
    except Exception:
        return None


def expected_ids(tokenizer: Tokenizer, text: str) -> list[int] | None:
    """None: it panics."""
    try:
        return tokenizer.encode(text, add_special_tokens=False).ids
    except BaseException as error:
        if "Panic" not in type(error).__name__:  # of pyo3, which is no Exception
            raise
        return None


def ours(file: File, folder: Path) -> streamtok.Encoding:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    try:
        return streamtok.load(path, cache=False)
    except (streamtok.VocabularyError, streamtok.PatternError) as error:
        raise Refused(str(error).replace(str(path), "FILE")) from error


def check_text(
    enc: streamtok.Encoding,
    text: str,
    ids: list[int],
    rng: random.Random,
    counts: collections.Counter[str],
    options: dict[str, Any] = OPTIONS,
) -> Iterator[Difference]:
    """The differences for one text with these ids. Counts what is compared: whole texts, streams.

    Texts of up to `SHORT` bytes are cut everywhere, longer ones at some places only.
    """
    counts["whole texts"] += 1
    found = attempt(lambda: enc.encode(text, **options))
    if found != ids:
        yield Difference("encode", text, ids, found)
        return
    number = attempt(lambda: enc.count(text, **options))
    if number != len(ids):
        yield Difference("count", text, len(ids), number)
    data = text.encode()
    places = range(len(data) + 1)
    ways = [(at,) for at in (places if len(data) <= SHORT else rng.sample(places, SAMPLED_CUTS))]
    if len(data) <= SHORT or rng.random() < 0.5:
        ways += [tuple(range(1, len(data)))]
    ways += [tuple(sorted(rng.choices(places, k=rng.randint(2, 6)))) for _ in range(2)]
    in_str = tuple(sorted(rng.choices(range(len(text) + 1), k=3)))
    for whole, cuts in [*((data, cuts) for cuts in ways), (text, in_str)]:
        counts["streams"] += 1
        got = attempt(lambda whole=whole, cuts=cuts: stream(enc, whole, cuts, rng, options))
        if got != ids:
            yield Difference("stream", text, ids, got, cuts)
            return
    if (spans := spans_differ(enc, data, ways[-1], options)) is not None:
        yield Difference("offsets of a stream", text, *spans, ways[-1])


def check_file_text(
    enc: streamtok.Encoding,
    file: File,
    tokenizer: Tokenizer,
    text: str,
    rng: random.Random,
    counts: collections.Counter[str],
) -> Iterator[Difference]:
    """As `check_text`, and of the decoded text, with what `tokenizers` gives."""
    ids = expected_ids(tokenizer, text)
    if ids is None:
        return
    yield from check_text(enc, text, ids, rng, counts)
    if decodes_alike(file, tokenizer, ids):
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        if (
            ids and (file["decoder"] or {}).get("type") == "BPEDecoder"
        ):  # streamtok keeps what ends a word
            last, suffix = tokenizer.id_to_token(ids[-1]), file["decoder"]["suffix"]
            decoded = decoded.removesuffix(last.replace(suffix, "")) + last.replace(suffix, " ")
        back = attempt(lambda: enc.decode(ids))
        counts["decoded"] += 1
        if back != decoded:
            yield Difference("decode", text, decoded, back)


def decodes_alike(file: File, tokenizer: Tokenizer, ids: list[int]) -> bool:
    """Whether decoding should be equal.

    It is not where added tokens have letters that stand for bytes in ByteLevel: tokenizers decodes
    them as these bytes, and streamtok decodes an added token to its content; and where they are
    normalized: tokenizers decodes them to the normalized content. Of BPE, it is not without a
    decoder; a decoder that makes spaces of the marks for them is compared where all spaces, and
    nothing else, become such marks. Of pieces, it is not where bytes are not UTF-8.
    """
    decoder = file["decoder"] or {"type": None}
    kind, is_bpe = decoder["type"], file["model"]["type"] == "BPE"
    names = [tokenizer.id_to_token(id) for id in ids]
    has_bytes = any(re.fullmatch("<0x..>", name) for name in names)
    if is_bpe and kind in (None, "BPEDecoder"):  # it puts spaces between tokens; leaves <0x41>
        return kind is not None and not has_bytes
    added = [token["content"] for token in file["added_tokens"] if token["id"] in ids]
    if any(tokenizer.id_to_token(tokenizer.token_to_id(content)) != content for content in added):
        return False
    is_utf8 = is_bpe or "\ufffd" not in tokenizer.decode(ids, skip_special_tokens=False)
    if kind == "ByteLevel":
        return is_utf8 and not any(c in SYMBOLS and c > "\x7f" for c in "".join(added))
    if not is_bpe:
        return kind != "Sequence" or is_utf8 or not has_bytes
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    prepend = {"type": "Prepend", "prepend": MARK}
    usual = (replace, {"type": "Sequence", "normalizers": [prepend, replace]})
    vocab = file["model"]["vocab"]
    is_folded = MARK in vocab and not any(" " in token for token in vocab)
    is_usual = file["normalizer"] in usual and file["pre_tokenizer"] is None
    return is_usual and is_folded and MARK not in "".join(added)


def attempt(action: Any) -> Any:
    """The result, or the exception as text: no text may be refused."""
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def stream(
    enc: streamtok.Encoding,
    data: Any,
    cuts: tuple[int, ...],
    rng: random.Random,
    options: dict[str, Any],
) -> list[int]:
    """The ids of a stream cut at `cuts`; now and then another stream goes on from its state."""
    encoder = enc.stream_encoder(**options)
    ids: list[int] = []
    bounds = [0, *cuts, len(data)]
    for start, end in pairwise(bounds):
        ids += encoder.encode(data[start:end])
        if rng.random() < 0.1:
            state = encoder.getstate()
            encoder = enc.stream_encoder(**options)
            encoder.setstate(state)
    return ids + encoder.flush()


def spans_differ(
    enc: streamtok.Encoding, data: bytes, cuts: tuple[int, ...], options: dict[str, Any]
) -> tuple[Any, Any] | None:
    """The spans of the whole text and those of a stream, if they are not the same."""
    try:
        whole = enc.encode_with_offsets(data, "byte", **options)[1].tolist()
        encoder = enc.stream_encoder(**options)
        spans = []
        for start, end in pairwise([0, *cuts, len(data)]):
            spans += encoder.encode_with_offsets(data[start:end], unit="byte")[1].tolist()
        spans += encoder.encode_with_offsets(b"", unit="byte", final=True)[1].tolist()
    except ValueError:  # text is left out, or an id is of two texts
        return None
    return None if spans == whole else (whole, spans)


def check_file(
    file: File,
    texts: list[str],
    folder: Path,
    seed: int,
    counts: collections.Counter[str],
) -> Difference | None:
    """The first difference for any of `texts`; the seed is that of the cuts. Raises Refused."""
    tokenizer = theirs(file)
    if tokenizer is None:
        counts["not taken by tokenizers"] += 1
        return None
    try:
        enc = ours(file, folder)
    except Refused:
        raise
    except Exception as error:
        return Difference("load", "", "an encoding or VocabularyError", repr(error))
    rng = random.Random(seed)
    for text in texts:
        counts["texts"] += 1
        for difference in check_file_text(enc, file, tokenizer, text, rng, counts):
            return difference
    for difference in check_written(enc, tokenizer, texts, folder, counts):
        return difference
    counts["equal"] += 1
    return None


def check_written(
    enc: streamtok.Encoding,
    tokenizer: Tokenizer,
    texts: list[str],
    folder: Path,
    counts: collections.Counter[str],
) -> Iterator[Difference]:
    """Where the file that is written of an encoding gives tokenizers other ids, or is read again as
    an encoding that decodes them otherwise.
    """
    path = folder / "written.json"
    try:
        streamtok.formats.save_huggingface(enc, path)
    except streamtok.VocabularyError:
        counts["not written"] += 1
        return
    counts["written"] += 1
    real, again = Tokenizer.from_file(str(path)), streamtok.load(path, cache=False)
    for text in texts:
        ids = expected_ids(tokenizer, text)
        if ids is None:
            continue
        if (found := expected_ids(real, text)) != ids:
            yield Difference("written", text, ids, found)
        if (back := attempt(lambda ids=ids: again.decode_bytes(ids))) != enc.decode_bytes(ids):
            yield Difference("written, decoded", text, enc.decode_bytes(ids), back)
