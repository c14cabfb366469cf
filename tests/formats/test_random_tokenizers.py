"""Some hundred random tokenizer.json files; `python -m tests.long random-merges` tries more."""

from __future__ import annotations

import collections
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from ..long.calls.subjects import staged_file
from ..long.random_tokenizers import checks
from ..long.random_tokenizers.checks import Difference, Refused, ours, theirs
from ..long.random_tokenizers.finds import describe
from ..long.random_tokenizers.rounds import case, checked, one_round
from ..tokenizer_files import File, random_file, random_piece_file
from .reading import of_bytes

PARTS = 2
MAKERS = [(random_file, 160), (random_piece_file, 80), (staged_file, 30)]
# What may be refused, and how often at most: of hundred files, in all.
MAY_BE_REFUSED = {
    "the regular expression": 7,  # of Replace
    "ignore_merges is not supported where": 8,
    "is made of other symbols, too": 6,
    "the scheme first is": 25,
    "could make a text grow by a factor": 1,
}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("make", "n_files"), MAKERS)
def test_ids_of_random_files(
    make: Callable[[random.Random], File], n_files: int, part: int
) -> None:
    """BPE; WordPiece, WordLevel and Unigram; and any of them after cuts of cuts."""
    size = n_files // PARTS
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(part * size, (part + 1) * size):
        counts += one_round(seed, make)
    assert counts["equal"] > size * 3 // 4
    refused = {message: n for message, n in counts.items() if message.startswith("refused: ")}
    for message in refused:
        assert any(re.search(part, message) for part in MAY_BE_REFUSED), message
    for part_of_message, percent in MAY_BE_REFUSED.items():
        times = sum(n for text, n in refused.items() if re.search(part_of_message, text))
        assert times * 100 <= percent * counts["files"], part_of_message


def test_offsets_of_random_files(tmp_path: Path) -> None:
    """As in tokenizers, where both mean the same by them; `check_seed` compares those of streams.

    They do not where a normalizer changes the text, and where an added token takes blanks.
    """
    compared = 0
    for seed in range(1000, 1160):
        file, texts = case(seed, random_piece_file)
        tokenizer = theirs(file)
        if tokenizer is None or file["normalizer"] is not None:
            continue
        if any(token["lstrip"] or token["rstrip"] for token in file["added_tokens"]):
            continue
        try:
            encoding = ours(file, tmp_path)
        except Refused:
            continue
        for text in texts:
            spans = encoding.encode_with_offsets(text, allowed_special="all")[1].tolist()
            expected = tokenizer.encode(text, add_special_tokens=False).offsets
            assert [*map(tuple, spans)] == expected, (seed, text)
            compared += 1
    assert compared > 30


def test_a_difference_is_found_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's ids are made wrong for texts with an a."""
    expected = checks.expected_ids

    def wrong(tokenizer: Tokenizer, text: str) -> list[int] | None:
        return (expected(tokenizer, text) or []) + [0] * ("a" in text)

    monkeypatch.setattr(checks, "expected_ids", wrong)
    with pytest.raises(AssertionError, match=r"^encode: text 'b a1' cuts None"):
        checked(simple_file(), ["b", "b a1"], tmp_path, 1)
    spans = Difference("offsets of a stream", "a", [[0, 1]], [[1, 1]])
    assert "expected [[0, 1]]" in describe(simple_file(), spans)


def simple_file() -> File:
    """Bytes, no merges, one added token."""
    file: File = json.loads(of_bytes("<s>").to_str())
    return file


@pytest.mark.parametrize("pattern", [{"String": "aa"}, {"Regex": r"\s+"}, {"Regex": " {2,}"}])
def test_the_scheme_first_behind_what_replaces_several_characters_is_refused(
    pattern: Any, tmp_path: Path
) -> None:
    """What replaces them has the offset of the last one: `tokenizers` puts nothing before it."""
    file = simple_file()
    file["normalizer"] = {"type": "Replace", "pattern": pattern, "content": "0"}
    first = {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": False}
    byte_level = file["pre_tokenizer"]
    file["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [first, byte_level]}
    with pytest.raises(Refused, match="the scheme first is not supported with a normalizer"):
        ours(file, tmp_path)
