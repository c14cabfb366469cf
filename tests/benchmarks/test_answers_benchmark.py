"""The benchmark of answers: all rows are there, and ours and theirs were compared."""

from __future__ import annotations

import pytest

from benchmarks import answers


def test_all_answers_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "EVENTS", 100)
    monkeypatch.setattr(answers, "ANSWER", 400)
    rows = answers.measure(answers.make_text(100_000), "r50k_base", 1)
    assert len(rows) >= 16  # more with other splitters installed
    assert all(row.ours > 0 and row.theirs > 0 for row in rows)
    wrong = {row.what.partition(" ")[0]: row.wrong for row in rows if row.wrong}
    assert {"chunks", "the"} <= set(wrong)


def test_another_answer_is_an_error() -> None:
    with pytest.raises(SystemExit, match="the answers are not the same"):
        answers.compared("it", lambda: 1, lambda: 2, 1)
