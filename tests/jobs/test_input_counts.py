"""Counts of the pre-tokens of inputs: they are those of the texts, in blocks of any size."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from streamtok import StreamtokError, Trainer
from streamtok.cli.open_inputs import Notes, Opener
from streamtok.jobs.input_counts import count_inputs
from streamtok.jobs.sources.reading import Reading


def texts() -> list[bytes]:
    rng = random.Random(8)
    words = ["low", "lower", "newest", "widest", "", "日本語", "the", "don't", "2026", "\n\n", "."]
    found = [" ".join(rng.choices(words, k=size)).encode() for size in (900, 1, 0, 400)]
    return [*found, rng.randbytes(2000) + b"\xed\xa0x \xf0\x9f\n" * 100]


@pytest.mark.parametrize("errors", ["replace", "surrogateescape"])
@pytest.mark.parametrize("block", [101, 1 << 20])
def test_the_counts_are_those_of_one_trainer(tmp_path: Path, errors: str, block: int) -> None:
    whole = Trainer("cl100k", errors=errors)
    paths = []
    for number, text in enumerate(texts()):
        paths.append(str(tmp_path / f"in{number}"))
        Path(paths[-1]).write_bytes(text)
        whole.update_file(paths[-1])
    reading = Reading(errors=errors)
    opener = Opener(reading, Notes(), contextlib.nullcontext, block)
    made = Trainer("cl100k", errors=errors)
    sizes: list[int] = []
    inputs = opener.open_all(paths, print)
    documents = count_inputs(made, inputs, False, lambda size, _: sizes.append(size))
    assert documents == len(paths)
    assert list(made.piece_counts().items()) == list(whole.piece_counts().items())
    assert sizes == sorted(sizes)
    assert sizes[-1] == sum(map(len, texts()))


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"good " * 100 + b"\xff" + b" good" * 100)
    opener = Opener(Reading(), Notes(), contextlib.nullcontext, 64)
    inputs = opener.open_all([str(path)], print)
    with pytest.raises(StreamtokError, match="in: byte 500 is not UTF-8"):
        count_inputs(Trainer("gpt2"), inputs, False)
