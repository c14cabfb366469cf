"""benchmarks.limits: single steps of what is measured, by themselves."""

from __future__ import annotations

import numpy as np
import pytest
import regex

import streamtok
from benchmarks import chunk_limits, corpus, limits, steps


def test_each_step_is_a_share_of_a_whole() -> None:
    rows = list(limits.rows("r50k_base", 40_000, 200_000, 1))
    assert all(row.seconds >= 0 and row.whole > 0 and row.share >= 0 for row in rows)
    goals = {row.goal.partition(",")[0] for row in rows}
    assert {f"unseen {name}" for name in corpus.NAMES} < goals
    assert {
        "chunks of 256 bytes into one array",
        "chunks of 256 bytes",
        "unseen json",
        "two threads",
        "training",
        "the command line",
    } < goals
    assert {"long code", "long logs", "cold english", "cold logs"} < goals
    assert any(goal.endswith("calls on 11 letters") for goal in {row.goal for row in rows})
    assert {row.step for row in rows} >= {
        *("an empty list", "the same as one text", "arrays that are kept", "an empty chunk"),
        *("an empty call", "texts seen before", "empty lists", "new pre-tokens, cold"),
        *(
            "the same, those of a chunk at a time",
            "the first call of a workspace",
            "half of it on one thread, cold",
            "a look for surrogates, by halves",
            "adding up",
            "the start of the command",
        ),
        *("reading", "SHA-256 of the ids", "writing the ids"),
    }


def test_new_pretokens_are_those_that_must_be_merged() -> None:
    enc = streamtok.get_encoding("r50k_base")
    first, second = "known wordish things", "known things, newish wordish things, newish"
    found = steps.new_pretokens(enc, first, second)
    assert found == [b" newish"]
    assert all(x.decode() in regex.findall(enc._pat_str, second) for x in found)


def test_new_pretokens_are_merged_in_the_chunk_that_ends_them() -> None:
    enc = streamtok.get_encoding("r50k_base")
    second = "known newish wordish, unnewish newish"
    found = chunk_limits.new_in_chunks(enc, "known", second, 20)
    assert [bytes(data).lstrip(b"a") for data, _ in found] == [b" newish wordish", b" unnewish"]
    assert [np.diff(ends)[-2:].tolist() for _, ends in found] == [[7, 8], [1, 9]]


def test_shares_are_medians_of_turns() -> None:
    kernels, wholes = iter([1.0, 3.0, 2.0]), iter([4.0, 4.0, 4.0])
    row = steps.in_turns("goal", "step", lambda: next(kernels), lambda: next(wholes), 3)
    assert row == steps.Row("goal", "step", 2.0, 4.0, pytest.approx(0.5))
