"""Checkpoints that no run has saved: right digests, and nonsense in any field.

The run ends with an error, or goes on to where the first one ended: it never finishes an output.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamtok.cli.main import main
from streamtok.pipeline.sources import unit_ends

NONSENSE = [None, -1, 1 << 61, 1 << 70, 1.5, "", "x", [], {}, [None], {"x": 1}, "0" * 64]
GONE = object()  # the field is left out
TEXT = b"a few words of text\n" * 40 + b"\xff\n" + b"and a rest\n" * 5  # it stops in the middle
CASES = {
    "u16": [],
    "npy": ["--no-sidecar"],
    "jsonl": ["--shard-tokens", "60"],
    "megatron": ["--shard-tokens", "60"],
    "datatrove": [],
    "parquet": [],
}


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all fields, inner ones as well."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value or ())
    for key, inner in items if isinstance(value, (dict, list)) else ():
        if isinstance(inner, (dict, list)):
            yield from leaves(inner, (*at, key))
        else:
            yield (*at, key)


def forged(value: Any, at: tuple[Any, ...], new: object) -> Any:
    made = copy.deepcopy(value)
    inner = made
    for key in at[:-1]:
        inner = inner[key]
    if new is GONE:
        del inner[at[-1]]
    else:
        inner[at[-1]] = new
    return made


def written(path: Path, rows: list[Any]) -> None:
    lines = [json.dumps(row).encode() for row in rows]
    path.write_bytes(b"".join(b"%s\t%08x\n" % (line, zlib.crc32(line)) for line in lines))


@pytest.mark.parametrize("chosen", CASES)
def test_every_field(
    tmp_path: Path, chosen: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_ends, "UNIT", 64)
    text, begun = tmp_path / "text", tmp_path / "begun"
    text.write_bytes(TEXT)
    begun.mkdir()
    command = ["encode", "-e", "gpt2", "--lines", "-q", str(text), "--resume"]
    command += ["--chunk-size", "64", "--checkpoint-every", "0", "--format", chosen, *CASES[chosen]]
    assert main([*command, "-o", str(begun / "out.bin")]) == 1
    (name,) = [one.name for one in begun.iterdir() if one.name.endswith(".checkpoint")]
    lines = (begun / name).read_bytes().splitlines()
    body = [json.loads(line.rpartition(b"\t")[0]) for line in lines]
    last = max(row["shard"] for row in body[1:] if row["sizes"] is not None)
    body[1:] = [next(row for row in body[1:] if row["shard"] == last and row["sizes"] is not None)]
    assert body[-1]["position"]["at"] > 0
    written(begun / name, body)
    capsys.readouterr()
    assert main([*command, "-o", str(begun / "out.bin")]) == 1
    assert "is not UTF-8" in capsys.readouterr().err  # what is not forged goes on
    capsys.readouterr()
    dice = random.Random()
    fields = list(leaves(body))
    assert len(fields) > 30
    folder = tmp_path / "work"
    for at in fields:
        for new in dice.sample([GONE, *NONSENSE], 1):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(begun, folder)
            written(folder / name, forged(body, at, new))
            assert main([*command, "-o", str(folder / "out.bin")]) == 1, (at, new)
