"""Random tokenizer.json files: encodings and decoded ids are those of tokenizers."""

from __future__ import annotations

import json
import random

import pytest
from tokenizers import Tokenizer

import streamtok.hf

from ..tokenizer_files import random_file, random_piece_file, random_text
from .shapes import said


def pair_of(seed: int) -> tuple[random.Random, dict, streamtok.hf.Tokenizer, Tokenizer] | None:
    """None where tokenizers does not read the file."""
    rng = random.Random(seed)
    file = (random_piece_file if seed % 2 else random_file)(rng)
    text = json.dumps(file)
    try:
        return rng, file, streamtok.hf.Tokenizer.from_str(text), Tokenizer.from_str(text)
    except Exception:
        return None


@pytest.mark.parametrize("block", range(4))
def test_random_files(block: int) -> None:
    n = 0
    for seed in range(40 * block, 40 * block + 40):
        made = pair_of(seed)
        if made is None:
            continue
        rng, file, ours, real = made
        n += ours.engine == "streamtok"
        for _ in range(3):
            text = random_text(rng, file)
            expected = said(lambda r=real, t=text: r.encode(t))
            if not isinstance(expected, dict):  # it panics, and so does what ours asks of it
                continue
            assert said(lambda o=ours, t=text: o.encode(t)) == expected, (seed, text)
            ids = expected["ids"]
            rng.shuffle(ids)
            for skip in (True, False):
                assert ours.decode(ids, skip) == real.decode(ids, skip), (seed, ids, skip)
    assert n > 20
