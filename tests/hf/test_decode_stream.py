"""DecodeStream: what tokenizers gives for the same ids, step by step."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import tokenizers

from streamtok.hf import DecodeStream, Tokenizer

from .shapes import KINDS, TEXTS
from .test_matrix import written


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_steps(kind: str, skip: bool) -> None:
    ours = Tokenizer.from_str(written(kind))
    real = tokenizers.Tokenizer.from_str(written(kind))
    rng = random.Random(kind)
    rows = [real.encode(text).ids for text in TEXTS]
    rows += [[rng.randrange(real.get_vocab_size()) for _ in range(30)] for _ in range(60)]
    for ids in rows:
        place = rng.randrange(3)
        mine = DecodeStream(ids[:place], skip_special_tokens=skip)
        theirs = tokenizers.decoders.DecodeStream(ids[:place], skip_special_tokens=skip)
        for id in ids[place:]:
            expected = step(theirs, real, id)
            assert step(mine, ours, id) == expected
            if isinstance(expected, tuple):
                break
    mine, theirs = DecodeStream(), tokenizers.decoders.DecodeStream()
    assert mine.step(ours, rows[3]) == theirs.step(real, rows[3])


def step(stream: Any, tokenizer: Any, id: Any) -> Any:
    try:
        return stream.step(tokenizer, id)
    except Exception as error:
        return "raised", str(error).partition(" while")[0]


def test_text_that_becomes_another_one() -> None:
    """vLLM knows the error by how it begins."""

    class Scripted:
        texts = iter(["x", "yyy"])

        def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
            return next(self.texts)

    with pytest.raises(Exception, match=r"^Invalid prefix encountered while .* Token ID: 2"):
        DecodeStream([1]).step(Scripted(), 2)


def test_ids_that_there_are_not() -> None:
    ours = Tokenizer.from_str(written("gpt2"))
    stream = DecodeStream()
    ids = ours.encode("Hello there").ids
    found = []
    for id in ids:
        assert [stream.step(ours, wrong) for wrong in (-1, 1 << 40, 999_999)] == [None] * 3
        found.append(stream.step(ours, id) or "")
    assert "".join(found) == "Hello there"
    for wrong in ("5", None, 1.5, [1, "2"]):
        with pytest.raises(TypeError, match="either an integer or a list of integers"):
            stream.step(ours, wrong)


def test_copies() -> None:
    ours = Tokenizer.from_str(written("gpt2"))
    stream = DecodeStream()
    ids = ours.encode("日本語").ids
    for id in ids[:-1]:
        stream.step(ours, id)
    twins = copy.copy(stream), copy.deepcopy(stream)
    assert stream.step(ours, ids[-1]) is not None
    assert stream.step(ours, ids[0]) is None
    for twin in twins:
        assert twin.step(ours, ids[-1]) is not None
