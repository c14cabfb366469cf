"""A job in parts of one text, and what its parts hold."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from streamtok import Plan, plan


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("Some words, and others; 日本語.\n" * 4000)
    return path


def make(text: Path, out: str = "out", **options: object) -> Plan:
    return plan(text, text.parent / out, encoding="gpt2", part_size=10_000, **options)


def contents(made: Plan) -> dict[str, str]:
    """SHA-256 of the parts."""
    paths = Path(made.output).glob("part-*")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
