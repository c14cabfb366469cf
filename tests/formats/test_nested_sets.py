"""Sets within sets in regular expressions, which are parts of them, as in BLOOM's pattern."""

from __future__ import annotations

import random

import pytest
from tokenizers import Regex, pre_tokenizers

from streamtok import Pattern, VocabularyError
from streamtok.formats.oniguruma import from_oniguruma

LETTERS = "abcdefgxy-[]|&()\\ .,!?…。，^1_é\n日"


@pytest.mark.parametrize(
    "regex",
    [
        r" ?[^(\s|[.,!?…。，、।۔،])]+", "[a[bc]d]+", "[^[a]]+", "[^a[b]]", r"[x[\]\-y]]",
        r"[\[a[b]]+", r"\[a[b[c]]", "[a-c[d-f]g-]+", "[a][b[c]d]+", r"[^\s\p{L}[\d_]]+",
    ],
)  # fmt: skip
def test_they_are_parts_of_the_set(regex: str) -> None:
    pattern = Pattern.compile(from_oniguruma(regex, "pattern"))
    theirs = pre_tokenizers.Split(Regex(regex), "removed", invert=True)
    rng = random.Random(regex)
    for _ in range(100):
        text = "".join(rng.choices(LETTERS, k=rng.randint(1, 10)))
        assert pattern.findall(text) == [part for part, _ in theirs.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    "regex", ["[a[^b]]", "[a-[b]]", "[a&&[b]]", "[a[b]-c]", "[[:alpha:]a]", "[]a[b]]"]
)
def test_others_are_refused(regex: str) -> None:
    with pytest.raises(VocabularyError, match="is a nested set"):
        from_oniguruma(regex, "pattern")
