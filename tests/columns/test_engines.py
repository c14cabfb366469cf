"""ColumnEncoder in the engines that call it: Ray Data and Hugging Face's datasets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import streamtok

ROOT = Path(streamtok.__file__).resolve().parents[1]
EXPECTED = [streamtok.get_encoding("gpt2").encode(text) for text in ("a b c", "日本語", "")] * 3

DATASETS = """
import datasets
from streamtok import ColumnEncoder

rows = datasets.Dataset.from_dict({"text": ["a b c", "日本語", ""] * 3})
if form is not None:
    rows = rows.with_format(form)
made = rows.map(ColumnEncoder("gpt2"), batched=True, batch_size=4, num_proc=workers)
made = made.with_format(None)
print(made.features["input_ids"].feature.dtype, made.column_names)
print(made["input_ids"][:])
"""
RAY = """
import ray
from streamtok import ColumnEncoder

if __name__ == "__main__":
    # "local": another test has a cluster on this machine, which would be taken.
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    ray.data.DataContext.get_current().enable_progress_bars = False
    for form in ("numpy", "pyarrow"):
        rows = ray.data.from_items([{"text": text} for text in ["a b c", "日本語", ""] * 3])
        made = rows.map_batches(ColumnEncoder("gpt2"), batch_format=form, batch_size=4)
        found = made.take_all()
        print(made.schema().types[1], list(found[0]))
        print([list(map(int, row["input_ids"])) for row in found])
"""


def run(program: str, folder: Path, **names: object) -> list[str]:
    """What a program prints in a process of its own: these engines warn, and leave threads."""
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    path = folder / "program.py"
    path.write_text(head + program, "utf-8")
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(folder / "hf"),
             "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("form", [None, "arrow", "numpy"])
def test_datasets(tmp_path: Path, form: str | None) -> None:
    found = run(DATASETS, tmp_path, form=form, workers=2 if form is None else None)
    assert found[-2:] == ["uint32 ['text', 'input_ids']", str(EXPECTED)]


def test_ray_data(tmp_path: Path) -> None:
    """Batches of NumPy, then of Arrow, in one cluster."""
    found = run(RAY, tmp_path)
    assert len(found) == 4
    for kind, ids in zip(found[::2], found[1::2], strict=True):
        assert "uint32" in kind
        assert kind.endswith(" ['text', 'input_ids']")
        assert ids == str(EXPECTED)
