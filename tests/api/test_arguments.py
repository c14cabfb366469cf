"""Arguments that mean nothing: each call says so at once, and names the argument."""

from __future__ import annotations

import array
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok import Trainer

from ..doors import COUNTS, IDS
from ..long.states.encodings import made

ENC = streamtok.get_encoding("gpt2")
LARGE = "a text of some words " * 60_000
NO_NUMBERS: list[Any] = [float("nan"), 1.5, 0, -1, None, "2", True, [], 2.0]

THREADS: dict[str, Callable[[Any], Any]] = {
    "encode_batch": lambda n: ENC.encode_batch(["a", "b"], num_threads=n),
    "encode_ordinary_batch": lambda n: ENC.encode_ordinary_batch(["a"], num_threads=n),
    "decode_batch": lambda n: ENC.decode_batch([[1], [2]], num_threads=n),
    "decode_bytes_batch": lambda n: ENC.decode_bytes_batch([[1], [2]], num_threads=n),
    "offsets": lambda n: ENC.encode_batch_with_offsets(["a", "b"], num_threads=n),
    "encode_to_numpy": lambda n: ENC.encode_to_numpy(LARGE, num_threads=n),
    "small": lambda n: ENC.encode_to_numpy("a", num_threads=n),
    "count": lambda n: ENC.count(LARGE, num_threads=n),
    "Trainer": lambda n: Trainer("gpt2", num_threads=n),
}


@pytest.mark.parametrize("door", THREADS)
def test_numbers_of_threads(door: str) -> None:
    THREADS[door](np.int64(2))
    for value in NO_NUMBERS:
        if value is None and door == "Trainer":
            continue  # its default
        if value is True and door not in ("Trainer", "encode_batch"):
            continue  # it is 1
        with pytest.raises(ValueError, match="num_threads must be a positive integer, not"):
            THREADS[door](value)


@pytest.mark.parametrize("value", [-1, True, None, "9", 1.5, float("nan"), 1 << 63], ids=repr)
def test_max_pending(value: Any) -> None:
    stream = ENC.stream_encoder()
    with pytest.raises(ValueError, match="max_pending must be a number of bytes, not"):
        stream.max_pending = value
    assert stream.max_pending == 1 << 26
    if value is not None:
        with pytest.raises(ValueError, match="max_pending"):
            ENC.stream_encoder(max_pending=value)


def test_descriptors_are_no_paths(tmp_path: Path) -> None:
    """A number would be taken for one, and the caller's file closed."""
    path = tmp_path / "counts"
    Trainer("gpt2").save_counts(path)
    with open(path, "rb") as file:
        for call in (Trainer.load_counts, Trainer("gpt2").update_file):
            with pytest.raises(TypeError, match="PathLike"):
                call(file.fileno())  # type: ignore[arg-type]
        assert os.fstat(file.fileno()).st_size


@pytest.mark.parametrize("call", ["fits", "truncate", "split"])
def test_unknown_settings(call: str) -> None:
    with pytest.raises(TypeError, match="'allowed'") as caught:
        list(getattr(ENC, call)("a", 9, allowed="all"))
    assert "_settings" not in str(caught.value)
    with pytest.raises(TypeError, match="'allowed'"):
        ENC.encode_with_offsets("a", allowed="all")


NO_TEXTS: list[Any] = [
    np.arange(4, dtype=np.uint32), np.zeros(2), np.zeros(2, bool), np.zeros((2, 2), np.uint8),
    array.array("I", [1, 2]), np.array([b"ab", b"cd"]), memoryview(b"abcd").cast("I"),
    None, 5, True, object(),
]  # fmt: skip
SPACES = made("spaces", 1).encoding
REWRITING = made("rewriting", 3).encoding


def _begun(text: Any) -> Any:
    counter = ENC.counter()
    counter.update("é".encode()[:1])
    return counter.update(text)


MORE: dict[str, Callable[[Any], Any]] = {
    "begun counter": _begun,
    "fits": lambda text: ENC.fits(text, 5),
    "trainer": lambda text: Trainer("gpt2").update(text),
    "trainer replace": lambda text: Trainer("gpt2", errors="replace").update(text),
    "documents": lambda text: Trainer("gpt2").update_documents([text]),
}
DOORS = {name: door for name, door in {**IDS, **COUNTS}.items() if name not in (
    "stream", "pipeline", "JSON lines"  # which look at the text first
)}  # fmt: skip


@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("enc", [ENC, SPACES, REWRITING], ids=["gpt2", "spaces", "rewriting"])
def test_arrays_of_numbers_are_no_text(enc: streamtok.Encoding, errors: str) -> None:
    for array_of_numbers in NO_TEXTS:
        for door in DOORS.values():
            with pytest.raises(TypeError):
                door(enc, array_of_numbers, {"errors": errors})
        for call in MORE.values():
            with pytest.raises(TypeError):
                call(array_of_numbers)


BYTES = [
    bytearray(b"hello"),
    memoryview(b"hello"),
    memoryview(b"hello").cast("c"),
    np.frombuffer(b"hello", np.uint8),
    array.array("b", b"hello"),
    (ctypes.c_char * 5)(*b"hello"),
]


@pytest.mark.parametrize("data", BYTES, ids=lambda data: type(data).__name__)
def test_buffers_of_bytes_are_text(data: Any) -> None:
    assert ENC.encode(data) == ENC.encode_batch([data])[0] == ENC.encode("hello")
    assert ENC.count(data) == len(ENC.encode("hello"))
