"""Feeding a normalizer in chunks, with everything about it checked on the way."""

import json
from collections.abc import Sequence
from itertools import pairwise

from streamtok.normalizers import Blocks, Normalizer
from streamtok.normalizers.links import held_by


def in_chunks(normalizer: Normalizer, chunks: Sequence[str], is_first: bool = True) -> str:
    """The result for the stretch that `chunks` make, through saved states."""
    state = normalizer.begin(is_first)
    all_blocks: Blocks = []
    given = ""
    for number, chunk in enumerate(chunks, 1):
        before = json.dumps(state)
        following, blocks = normalizer.feed(state, chunk, number == len(chunks))
        assert json.dumps(state) == before, "a state was changed in place"
        state = normalizer.check_state(json.loads(json.dumps(following)))
        assert state == following
        all_blocks += blocks
        given += chunk
        waits = held_by(state)
        assert "".join(source for _, source in all_blocks) + waits == given
    assert waits == ""
    return "".join(text for text, _ in all_blocks)


def check(normalizer: Normalizer, text: str, cuts: Sequence[int], is_first: bool = True) -> None:
    """Cut at `cuts`, the text has the same result as uncut."""
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(places)]
    expected = normalizer.normalize(text, is_first)
    assert in_chunks(normalizer, chunks, is_first) == expected


def check_all_cuts(normalizer: Normalizer, text: str, is_first: bool = True) -> None:
    """`check` for one cut at each place, two at the same place, and one after each character."""
    for cut in range(len(text) + 1):
        check(normalizer, text, [cut], is_first)
    check(normalizer, text, [len(text) // 2] * 2, is_first)
    check(normalizer, text, range(1, len(text)), is_first)
