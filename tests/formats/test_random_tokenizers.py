"""Some hundred random tokenizer.json files with texts; `long/random_tokenizers` tries more."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from ..long.random_tokenizers import checks, finds
from ..long.random_tokenizers.__main__ import Report
from ..long.random_tokenizers.checks import (
    Refused,
    case,
    check_file,
    check_seed,
    check_text,
    ours,
    theirs,
)
from ..long.random_tokenizers.finds import describe, shrink
from ..long.random_tokenizers.workers import outcomes_here
from ..tokenizer_files import BYTE_SYMBOLS, File, random_file, random_piece_file

PARTS = 2
# What may be refused, and how often at most: of hundred files, in all.
MAY_BE_REFUSED = {
    "the regular expression": 7,  # of Replace
    "ignore_merges is not supported where": 8,
    "is made of other symbols, too": 6,
    "the scheme first is": 5,
    "could make a text grow by a factor": 1,
}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("make", "n_files"), [(random_file, 240), (random_piece_file, 120)])
def test_ids_of_random_files(
    make: Callable[[random.Random], File], n_files: int, part: int, tmp_path: Path
) -> None:
    """BPE; then WordPiece, WordLevel and Unigram."""
    report = Report()
    size = n_files // PARTS
    check = functools.partial(check_seed, make=make)
    for outcome in outcomes_here(range(part * size, (part + 1) * size), check):
        report.add(outcome)
        if outcome.difference is not None:
            assert outcome.file is not None
            small = shrink(outcome.file, outcome.difference, tmp_path)
            pytest.fail(f"seed {outcome.seed}: {describe(*small)}")
    print(report.text(0))
    assert report.counts["equal"] > size * 3 // 4
    for message, number in report.refusals.items():
        assert any(re.search(part, message) for part in MAY_BE_REFUSED), (
            f"{message!r} is refused ({number} files, such as seed {report.examples[message]})"
        )
    for part_of_message, percent in MAY_BE_REFUSED.items():
        refused = sum(n for text, n in report.refusals.items() if re.search(part_of_message, text))
        assert refused * 100 <= percent * report.counts["files"], part_of_message


def test_offsets_of_random_files(tmp_path: Path) -> None:
    """In streams as in whole texts; and as in tokenizers, where both mean the same by them.

    They do not where a normalizer changes the text, and where an added token takes blanks.
    """
    compared = 0
    for seed in range(1000, 1160):
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
    assert compared > 30


def _rows(found: tuple[object, object]) -> list[tuple[int, int, int]]:
    ids, spans = found
    return [(id, start, end) for id, (start, end) in zip(ids, spans.tolist(), strict=True)]  # type: ignore[attr-defined,call-overload]


def test_a_difference_is_found_made_small_and_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's ids are made wrong for texts with an a."""
    expected = checks.expected_ids

    def wrong(tokenizer: Tokenizer, text: str) -> list[int] | None:
        return (expected(tokenizer, text) or []) + [0] * ("a" in text)

    monkeypatch.setattr(checks, "expected_ids", wrong)
    file = simple_file()
    found = check_file(file, ["b", "b a1"], tmp_path, 1)
    assert found is not None
    assert found.kind == "encode"
    file, found = shrink(file, found, tmp_path)
    assert found.text == "a"
    spans = found._replace(kind="offsets of a stream", expected=[[0, 1]], found=[[1, 1]])
    assert "expected [[0, 1]]" in describe(file, spans)
    path = finds.save(tmp_path / "found", 1, file, found)
    assert finds.replay(path, tmp_path) == 1
    monkeypatch.setattr(checks, "expected_ids", expected)
    assert finds.replay(path, tmp_path) == 0


def test_what_streamtok_does_wrong_is_found(tmp_path: Path) -> None:
    class Wrong:
        """An encoding that loses the last id of a stream, of a count, or of everything."""

        def __init__(self, enc: Any, what: str):
            self.enc, self.what = enc, what

        def __getattr__(self, name: str) -> Any:
            method = getattr(self.enc, name)
            if name != self.what:
                return method
            if name == "stream_encoder":
                return lambda **options: Stream(method(**options))
            return lambda *args, **options: method(*args, **options)[:-1]

    class Stream:
        def __init__(self, stream: Any):
            self.stream = stream

        def __getattr__(self, name: str) -> Any:
            return (lambda: []) if name == "flush" else getattr(self.stream, name)

    file = simple_file()
    tokenizer = theirs(file)
    enc = ours(file, tmp_path)
    assert tokenizer is not None
    for what, kind in (("encode", "encode"), ("stream_encoder", "stream"), ("decode", "decode")):
        wrong: Any = Wrong(enc, what)
        found = check_text(wrong, file, tokenizer, "ab a1", random.Random(1))
        assert [difference.kind for difference in found] == [kind]
    right = check_text(enc, file, tokenizer, "ab a1", random.Random(1))
    assert not list(right)


def simple_file() -> File:
    """Bytes, no merges, one added token."""
    vocab = {symbol: id for id, symbol in enumerate(BYTE_SYMBOLS.values())}
    made = Tokenizer(models.BPE(vocab, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<s>"])
    file: File = json.loads(made.to_str())
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
    with pytest.raises(Refused, match="the scheme first is not supported with Replace"):
        ours(file, tmp_path)
