"""Random files with WordPiece, WordLevel and Unigram: `tokenizers` and streamtok.

`python -m tests.long.random_tokenizers --pieces` tries more.
"""

from __future__ import annotations

import functools
import random
from itertools import pairwise
from pathlib import Path

import pytest

from ..long.random_tokenizers.__main__ import Report
from ..long.random_tokenizers.checks import Refused, case, check_seed, ours, theirs
from ..long.random_tokenizers.finds import describe, shrink
from ..long.random_tokenizers.workers import outcomes_here
from ..tokenizer_files import random_piece_file

FILES, PARTS = 60, 2
MAY_BE_REFUSED = (
    "cut by Python, which is not supported with byte_fallback",
    "the scheme first is",
    "the regular expression",
    "could grow by a factor of",
)


@pytest.mark.parametrize("part", range(PARTS))
def test_ids_of_random_files(part: int, tmp_path: Path) -> None:
    check = functools.partial(check_seed, make=random_piece_file)
    report = Report()
    seeds = range(part * FILES // PARTS, (part + 1) * FILES // PARTS)
    for outcome in outcomes_here(seeds, check):
        report.add(outcome)
        if outcome.difference is not None:
            assert outcome.file is not None
            small = shrink(outcome.file, outcome.difference, tmp_path)
            pytest.fail(f"seed {outcome.seed}: {describe(*small)}")
    assert report.counts["equal"] > FILES // PARTS * 3 // 4
    for message in report.refusals:
        assert any(part in message for part in MAY_BE_REFUSED), message


def test_offsets_of_random_files(tmp_path: Path) -> None:
    """In streams as in whole texts; and as in tokenizers, where both mean the same by them.

    They do not where a normalizer changes the text, and where an added token takes blanks.
    """
    compared = 0
    for seed in range(1000, 1070):
        file, texts = case(seed, random_piece_file)
        tokenizer = theirs(file)
        try:
            encoding = ours(file, tmp_path)
        except Refused:
            continue
        assert tokenizer is not None
        rng = random.Random(seed)
        alike = file["normalizer"] is None and not any(
            token["lstrip"] or token["rstrip"] for token in file["added_tokens"]
        )
        for text in texts:
            ids, spans = encoding.encode_with_offsets(text, allowed_special="all")
            if alike:
                expected = tokenizer.encode(text, add_special_tokens=False)
                assert [tuple(span) for span in spans.tolist()] == expected.offsets, (seed, text)
                compared += 1
            stream = encoding.stream_encoder(allowed_special="all")
            cuts = sorted(rng.choices(range(len(text) + 1), k=rng.choice([1, 3, 9])))
            found = []
            for start, end in pairwise([0, *cuts, len(text)]):
                found += _rows(stream.encode_with_offsets(text[start:end]))
            found += _rows(stream.encode_with_offsets("", final=True))
            assert found == _rows((ids, spans)), (seed, text, cuts)
    assert compared > 12


def _rows(found: tuple[object, object]) -> list[tuple[int, int, int]]:
    ids, spans = found
    return [(id, start, end) for id, (start, end) in zip(ids, spans.tolist(), strict=True)]  # type: ignore[attr-defined,call-overload]
