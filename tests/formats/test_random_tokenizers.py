"""Some hundred random tokenizer.json files; `python -m tests.long random-merges` tries more."""

from __future__ import annotations

import collections
import json
import random
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from ..long.random_tokenizers import checks
from ..long.random_tokenizers.checks import Difference, Refused, check_text, ours, theirs
from ..long.random_tokenizers.finds import describe
from ..long.random_tokenizers.rounds import case, checked, one_round
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
    make: Callable[[random.Random], File], n_files: int, part: int
) -> None:
    """BPE; then WordPiece, WordLevel and Unigram."""
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


def test_a_difference_is_found_and_made_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's ids are made wrong for texts with an a."""
    expected = checks.expected_ids

    def wrong(tokenizer: Tokenizer, text: str) -> list[int] | None:
        return (expected(tokenizer, text) or []) + [0] * ("a" in text)

    monkeypatch.setattr(checks, "expected_ids", wrong)
    with pytest.raises(AssertionError, match=r"^encode: text 'a' cuts None"):
        checked(simple_file(), ["b", "b a1"], tmp_path, 1)
    spans = Difference("offsets of a stream", "a", [[0, 1]], [[1, 1]])
    assert "expected [[0, 1]]" in describe(simple_file(), spans)


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
