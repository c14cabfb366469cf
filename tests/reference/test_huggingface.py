"""The reference of Hugging Face's pipeline against `tokenizers`: random files, and examples."""

from __future__ import annotations

import json
import random

import pytest
from tokenizers import Tokenizer, models

from ..tokenizer_files import ODD, one_normalizer, one_pre_tokenizer
from . import tokenizer_json as reference


@pytest.mark.parametrize("seed", range(10))
def test_normalizers_and_pre_tokenizers_alone(seed: int) -> None:
    rng = random.Random(seed)
    empty = json.loads(Tokenizer(models.BPE()).to_str())
    for _ in range(30):
        empty |= {"normalizer": one_normalizer(rng), "pre_tokenizer": one_pre_tokenizer(rng)}
        tokenizer = Tokenizer.from_str(json.dumps(empty))
        for _ in range(5):
            text = "".join(rng.choices([*ODD, "a", "b", "ab", " ", "x", "."], k=rng.randint(1, 9)))
            if empty["normalizer"]["type"] != "Nmt":
                found = reference.normalize(empty["normalizer"], text)
                assert found == tokenizer.normalizer.normalize_str(text), empty["normalizer"]
            expected = [part for part, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
            found = reference.pre_tokenize(empty["pre_tokenizer"], text)
            assert found == expected, empty["pre_tokenizer"]


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(NotImplementedError, match="the normalizer Nmt"):
        reference.normalize({"type": "Nmt"}, "a")
    with pytest.raises(NotImplementedError, match="the pre-tokenizer FixedLength"):
        reference.pre_tokenize({"type": "FixedLength", "length": 2}, "a")
