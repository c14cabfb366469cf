"""The command that runs other projects' tests: what passes with tokenizers must pass with ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from . import suites

PASSES = """
from tokenizers import Tokenizer, models


def test_encode():
    made = Tokenizer(models.WordLevel({"a": 0}, "a"))
    assert type(made) is Tokenizer
    assert made.encode("a").ids == [0]
"""
FAILS_ANYWAY = "\n\ndef test_network():\n    raise OSError('no network')\n"
FAILS_WITH_OURS = """

class TestParityBpeTrainer:
    def test_real(self):
        assert Tokenizer.__module__.partition(".")[0] == "tokenizers"
"""


def run(root: Path, text: str) -> int:
    folder = root / "tests"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "test_it.py").write_text(text)
    for file in root.glob("outcomes*"):
        file.unlink()
    return suites.run(root, ["tests"], "tokenizers", [])


def test_what_must_pass(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    excepted = FAILS_WITH_OURS.replace("test_real", "test_train_x")
    assert run(tmp_path, PASSES + FAILS_ANYWAY + excepted) == 0
    said = capfd.readouterr().out
    assert "3 tests: 2 pass with tokenizers, 1 with streamtok" in said
    assert "need not pass: TestParityBpeTrainer::test_train: " in said
    assert run(tmp_path, PASSES + FAILS_WITH_OURS) == 1
    assert "must pass: tests/test_it.py::TestParityBpeTrainer::test_real" in capfd.readouterr().out
    assert run(tmp_path, FAILS_ANYWAY) == 1
    assert "no test passes" in capfd.readouterr().out
