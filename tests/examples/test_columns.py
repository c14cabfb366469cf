"""`examples/columns.py` in the libraries that call it, where they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtok

from ..doc_blocks import module_at, need

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COLUMNS: Any = module_at(EXAMPLES / "columns.py")
TEXTS = ["tea for two", None, "", "日本語"]
IDS = [
    None if text is None else streamtok.get_encoding("cl100k_base").encode(text) for text in TEXTS
]

DATASETS = """
rows = datasets.Dataset.from_dict({"text": TEXTS})
found = rows.map(add_ids, batched=True, batch_size=3, num_proc=2)["ids"][:]
"""
PYSPARK = """
from pyspark.sql import SparkSession
local = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = local.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
frame = spark.createDataFrame([(text,) for text in TEXTS], "text string").coalesce(1)
made = frame.mapInArrow(add_ids_to_arrow, "text string, ids array<int>")
found = [row.ids for row in made.collect()]
"""


def lists(column: Any) -> list[Any]:
    return [None if ids is None else list(map(int, ids)) for ids in column]


def test_dictionaries() -> None:
    made = COLUMNS.add_ids({"text": TEXTS, "n": [1, 2, 3, 4]})
    assert list(made) == ["text", "n", "ids"]
    assert lists(made["ids"]) == IDS
    made = COLUMNS.add_ids({"text": np.array(["a", "b"], object)})["ids"]
    assert made.shape == (2,)  # not a table of two rows
    with pytest.raises(ValueError, match="row 1: the text has the disallowed special token"):
        COLUMNS.ids_of(["good", "bad <|endoftext|>"])


def test_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"text": pa.array(TEXTS, pa.string())})
    made = pa.Table.from_batches(COLUMNS.add_ids_to_arrow([batch, batch]))
    assert made.schema == pa.schema({"text": pa.string(), "ids": pa.list_(pa.int32())})
    assert made.column("ids").to_pylist() == IDS * 2


def test_series() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"text": TEXTS})
    frame["ids"] = COLUMNS.ids_of(frame["text"])
    assert lists(frame["ids"]) == IDS


@pytest.mark.parametrize(("library", "program"), [("datasets", DATASETS), ("pyspark", PYSPARK)])
def test_engines(tmp_path: Path, library: str, program: str) -> None:
    """In a process of its own: they warn, and leave threads."""
    pytest.importorskip(library)
    if library == "pyspark":
        need("java")
    path = tmp_path / "program.py"
    body = f"import {library}\nfrom columns import *\nTEXTS = {TEXTS!r}\n{program}\nprint(found)\n"
    indented = "".join(f"    {line}\n" for line in body.splitlines()[2:])
    head = "".join(f"{line}\n" for line in body.splitlines()[:2])
    path.write_text(f"{head}if __name__ == '__main__':\n{indented}", "utf-8")
    found = [str(EXAMPLES), str(Path(streamtok.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(found), "HF_HOME": str(tmp_path / "hf"),
             "HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == str(IDS)
