"""The recipe for Spark of docs/howto/frameworks.md, on a Spark of this machine. Needs Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import streamtok

from ..doc_blocks import block_that_has, need

ROOT = Path(streamtok.__file__).resolve().parents[1]
RECIPE = block_that_has("howto/frameworks.md", "python", "mapInArrow")
ROWS = ["tea for two", "日本語", None, "", "don't 👍"] * 6
PARTITIONS, BATCH = 3, 4

# The page's block is run as it stands: it takes `frame`, and leaves another `frame`.
PROGRAM = """
import json
import pyarrow as pa
import streamtok
from pyspark.sql import SparkSession

rows, partitions, batch, recipe, target = json.load(open("given.json", encoding="utf-8"))
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch))
    .getOrCreate()
)
texts = spark.sparkContext.parallelize([(one,) for one in rows], partitions)
given = frame = spark.createDataFrame(texts, "text string")
exec(recipe)
found = {
    "schema": frame.schema.simpleString(),
    "rows": [(row.text, row.input_ids) for row in frame.collect()],
}

def sizes(batches):
    for one in batches:
        yield pa.record_batch({"n": pa.array([one.num_rows], pa.int32())})

found["batches"] = [row.n for row in given.mapInArrow(sizes, "n int").collect()]
frame = spark.createDataFrame([("good",), ("bad <|endoftext|>",)], "text string").coalesce(1)
exec(recipe)
try:
    frame.collect()
except Exception as error:
    found["error"] = str(error)
with open(target, "w", encoding="utf-8") as file:
    json.dump(found, file)
spark.stop()
"""


def expected() -> list[list[int] | None]:
    encoding = streamtok.get_encoding("cl100k_base")
    return [None if text is None else encoding.encode(text) for text in ROWS]


def test_the_recipe_on_spark(tmp_path: Path) -> None:
    need("java")
    target = tmp_path / "found.json"
    given = [ROWS, PARTITIONS, BATCH, RECIPE, str(target)]
    (tmp_path / "given.json").write_text(json.dumps(given), "utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=env, timeout=300, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    found = json.loads(target.read_text("utf-8"))
    assert found["schema"] == "struct<text:string,input_ids:array<int>>"
    assert found["rows"] == [list(row) for row in zip(ROWS, expected(), strict=True)]
    assert found["batches"] == [4, 4, 2] * PARTITIONS  # ten rows in each
    assert "DocumentError: row 1 of the column 'text': the text has the disal" in found["error"]
