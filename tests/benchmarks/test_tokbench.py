"""The adapter for tokbench, under a harness with the interface of tokbench's own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import streamtok

TOP = Path(__file__).resolve().parents[2]
ADAPTER = TOP / "benchmarks" / "tokbench" / "run.py"
# What the adapter calls of `python/harness.py`, without its clock: prints the ids.
HARNESS = """
import argparse, json, pathlib, sys

def args_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    return parser

def unsupported(version, lang, why):
    print(json.dumps({"version": version, "lang": lang, "unsupported": why}))
    sys.exit(0)

def run(name, version, lang, load, encode, args, also_computes="", internally_parallel=False):
    ids = encode(load(), args.corpus.read_text("utf-8"))
    print(json.dumps({"version": version, "lang": lang, "ids": ids}))
"""


@pytest.fixture
def tokbench(tmp_path: Path) -> Path:
    """A folder laid out as tokbench is."""
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "harness.py").write_text(HARNESS)
    (tmp_path / "engines" / "streamtok").mkdir(parents=True)
    shutil.copy(ADAPTER, tmp_path / "engines" / "streamtok")
    (tmp_path / "model").mkdir()
    (tmp_path / "text").write_text("naïve tea<|endoftext|>, 東京\n", "utf-8")
    return tmp_path


def answer(tokbench: Path) -> dict[str, object]:
    command = [sys.executable, "engines/streamtok/run.py", "--model", "model", "--corpus", "text"]
    done = subprocess.run(command, cwd=tokbench, check=True, capture_output=True, text=True)
    found: dict[str, object] = json.loads(done.stdout)
    assert found["version"] == f"streamtok {streamtok.__version__}"
    return found


def test_ids_are_those_of_the_reference(tokbench: Path) -> None:
    """tokbench's reference is tokenizers, without special tokens around the text."""
    tokenizers = pytest.importorskip("tokenizers")
    file = tokbench / "model" / "tokenizer.json"
    streamtok.formats.save_huggingface(streamtok.get_encoding("gpt2"), file)
    text = (tokbench / "text").read_text("utf-8")
    theirs = tokenizers.Tokenizer.from_file(str(file)).encode(text, add_special_tokens=False)
    assert answer(tokbench)["ids"] == theirs.ids
    assert 50256 in theirs.ids


def test_models_that_cannot_run_say_why(tokbench: Path) -> None:
    assert "no tokenizer.json" in str(answer(tokbench)["unsupported"])
    file = tokbench / "model" / "tokenizer.json"
    file.write_text('{"model": {"type": "BPE"}}')
    assert "tokenizer.json" in str(answer(tokbench)["unsupported"])
