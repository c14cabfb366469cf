"""Runs each recipe of docs/recipes.md unchanged, and checks the files that it makes."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

import streamtok

from ..cli.test_cli import ENV, POSIX
from ..doc_blocks import Block, blocks_of
from ..jobs.test_id_files import read_datatrove, read_megatron
from ..long.crash import make_text

pytestmark = POSIX
RECIPES = Path(__file__).resolve().parents[2] / "docs" / "recipes.md"
BOOK = make_text(random.Random(3), 60_000) + "the end\n"
TEXTS = [f"text {i}, naïve 日本語" for i in range(200)]
LOG = [f"request {i} took {i % 7} ms" for i in range(60)]
GPT2 = streamtok.get_encoding("gpt2")
CL100K = streamtok.get_encoding("cl100k_base")
EOT = CL100K.eot_token


def recipes() -> dict[str, list[Block]]:
    """The blocks of each title."""
    sections = re.split(r"^## ", RECIPES.read_text("utf-8"), flags=re.M)[1:]
    return {section.partition("\n")[0]: blocks_of(section) for section in sections}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the recipes name, and in bin/ the commands."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "book.txt").write_text(BOOK, encoding="utf-8", newline="")
    (tmp_path / "books.zst").write_bytes(zstandard.compress(BOOK.encode()))
    (tmp_path / "logs").mkdir()
    for i in range(3):
        (tmp_path / "logs" / f"{i}.gz").write_bytes(gzip.compress(f"{LOG[i]}\n".encode()))
    rows = [json.dumps({"id": i, "meta": {"text": text}}) for i, text in enumerate(TEXTS)]
    (tmp_path / "docs.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "app.log").write_text("\n".join(LOG[:40]) + "\n")
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "texts.parquet")
    (tmp_path / "bin").mkdir()
    command(tmp_path, "streamtok", f'exec {sys.executable} -m streamtok "$@"')
    command(tmp_path, "python", f'exec {sys.executable} "$@"')
    journal = [json.dumps({"MESSAGE": line}) for line in LOG] + ['{"MESSAGE": [1, 2]}']
    (tmp_path / "bin" / "cat.txt").write_text("\n".join(LOG) + "\n")
    (tmp_path / "bin" / "json.txt").write_text("\n".join(journal) + "\n")
    command(tmp_path, "journalctl", f'exec cat {tmp_path}/bin/"$2".txt')
    if not shutil.which("zstd"):
        unpack = "import shutil, sys, zstandard as z; i = z.open(sys.argv[2], 'rb'); "
        unpack += "shutil.copyfileobj(i, sys.stdout.buffer)"
        command(tmp_path, "zstd", f'exec {sys.executable} -c "{unpack}" "$@"')
    if not shutil.which("logger"):
        send = "import socket, sys; s = socket.create_connection((sys.argv[3], sys.argv[5])); "
        send += "s.sendall(f'<13>Jan 1 00:00:00 host {sys.argv[7]}: {sys.argv[8]}'.encode())"
        command(tmp_path, "logger", f'exec {sys.executable} -c "{send}" "$@"')
    if not shutil.which("nc"):
        take = "import socket, sys; s = socket.create_server((sys.argv[2], int(sys.argv[3]))); "
        take += "f = s.accept()[0].makefile('rb'); sys.stdout.buffer.write(f.read())"
        command(tmp_path, "nc", f'exec {sys.executable} -c "{take}" "$@"')
    return tmp_path


def command(folder: Path, name: str, line: str) -> None:
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def spawn(folder: Path, language: str, text: str) -> subprocess.Popen[bytes]:
    env = {**ENV, "PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}"}
    run = ["bash", "-euc", text] if language == "sh" else [sys.executable, "-c", text]
    return subprocess.Popen(
        run, cwd=folder, env=env, stderr=subprocess.PIPE, start_new_session=True
    )


def run_block(folder: Path, language: str, text: str) -> None:
    with spawn(folder, language, text) as process:
        said = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 0, said
    assert "Traceback" not in said


def follow(folder: Path, text: str, while_it_runs: Callable[[], None], then: int) -> None:
    """Run a block until a signal to the command in it."""
    with spawn(folder, "sh", f"exec {text}") as process:
        try:
            while_it_runs()
        finally:
            process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == then, said


def wait_for(is_there: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_there():
        assert time.monotonic() < end
        time.sleep(0.05)


def documents(name: str, folder: Path) -> list[list[int]]:
    """Ids cut behind each end of text."""
    ids = np.fromfile(folder / name, "<u4").tolist()
    ends = [i + 1 for i, one in enumerate(ids) if one == EOT]
    assert ends[-1:] == [len(ids)]
    return [ids[a : b - 1] for a, b in zip([0, *ends], ends, strict=False)]


# What each recipe makes


def check_numpy(folder: Path) -> None:
    assert np.load(folder / "book.npy").tolist() == CL100K.encode(BOOK)


def check_raw(folder: Path) -> None:
    ids = np.fromfile(folder / "train.bin", "<u2").tolist()
    parts = BOOK.split("\n\n")
    assert ids == [one for part in parts for one in [*GPT2.encode(part), GPT2.eot_token]]


def check_compressed(folder: Path) -> None:
    ids = [one for i in range(3) for one in CL100K.encode(f"{LOG[i]}\n")]
    assert np.load(folder / "logs.npy").tolist() == ids
    assert np.load(folder / "books.npy").tolist() == CL100K.encode(BOOK)


def check_megatron(folder: Path) -> None:
    expected = [[*GPT2.encode(text), GPT2.eot_token] for text in TEXTS]
    assert read_megatron(str(folder / "corpus")) == expected


def check_shards(folder: Path) -> None:
    ids = [one for text in TEXTS for one in [GPT2.eot_token, *GPT2.encode(text)]]
    names = sorted(str(one) for one in folder.glob("fineweb_train_*.npy"))
    found = [np.load(name).tolist() for name in names]
    assert [one for shard in found for one in shard] == ids
    assert all(len(shard) >= 5000 and shard[0] == GPT2.eot_token for shard in found[:-1])


def check_datatrove(folder: Path) -> None:
    expected = [[*CL100K.encode(line), EOT] for line in BOOK.split("\n") if line]
    assert read_datatrove(str(folder / "book.ds")) == expected


def check_parquet(folder: Path) -> None:
    import pyarrow.parquet as pq

    found = pq.read_table(folder / "ids.parquet")["input_ids"].to_pylist()
    assert found == CL100K.encode_batch(TEXTS)


def check_pipe(folder: Path) -> None:
    ids = [one for line in LOG for one in [*CL100K.encode(line), EOT]]
    assert np.load(folder / "journal.npy").tolist() == ids
    rows = [json.loads(line) for line in (folder / "messages.jsonl").read_text().splitlines()]
    assert [row["input_ids"] for row in rows] == CL100K.encode_batch(LOG)


def check_syslog(folder: Path) -> None:
    text = CL100K.decode(np.load(folder / "syslog.npy").tolist())
    assert re.fullmatch(r"<\d+>.* backup.* finished in 12 s", text)


def check_resume(folder: Path) -> None:
    assert np.fromfile(folder / "book.bin", "<u4").tolist() == CL100K.encode(BOOK)
    assert not list(folder.glob("*.checkpoint*"))


def check_scripts(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "counts.jsonl").read_text().splitlines()]
    assert [row["tokens"] for row in rows] == [CL100K.count(BOOK)] * 2 + [2 * CL100K.count(BOOK)]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["documents"] == BOOK.count("\n")


def check_windows(folder: Path) -> None:
    lines = BOOK.replace("\n", "\r\n").split("\r\n")[:-1]
    ids = [one for line in lines for one in CL100K.encode(line)]
    assert np.load(folder / "windows.npy").tolist() == ids


CHECKS: dict[str, Callable[[Path], None]] = {
    "A file for numpy": check_numpy,
    "Raw ids for nanoGPT and the like": check_raw,
    "Many compressed files": check_compressed,
    "JSON lines for Megatron-LM": check_megatron,
    "Shards": check_shards,
    "Lines for datatrove and nanotron": check_datatrove,
    "Parquet to Parquet": check_parquet,
    "journald through a pipe": check_pipe,
    "syslog through a socket": check_syslog,
    "Going on after a crash": check_resume,
    "More cores": check_numpy,
    "Lines from Windows": check_windows,
    "For scripts: counts and a summary in JSON": check_scripts,
    "In Python": lambda folder: None,  # it asserts for itself
}
FOLLOWED = "A log that is rotated"


def test_every_recipe_is_tested() -> None:
    assert recipes().keys() == CHECKS.keys() | {FOLLOWED}


@pytest.mark.parametrize("title", CHECKS)
def test_recipe(title: str, folder: Path) -> None:
    blocks = recipes()[title]
    assert blocks
    for block in blocks:
        assert block.mark is None
        run_block(folder, block.language, block.code)
    CHECKS[title](folder)


def test_recipe_of_a_rotated_log(folder: Path) -> None:
    resumed, plain = (block.code for block in recipes()[FOLLOWED])
    resumed = resumed.replace("--resume", "--resume --checkpoint-every 0.2")  # not 5 seconds
    log = folder / "app.log"

    def rotate() -> None:
        wait_for((folder / "app_000000.bin").exists)
        log.rename(folder / "app.log.1")
        log.write_text("\n".join(LOG[40:50]) + "\n")
        time.sleep(0.5)

    follow(folder, resumed, rotate, 143)
    with log.open("a") as file:  # while nobody reads
        file.write("\n".join(LOG[50:]) + "\n")
    log.rename(folder / "app.log.2")
    log.write_text("".join(f"{line}\n" for line in LOG))
    follow(folder, resumed, lambda: wait_for((folder / "app_000003.bin").exists), 143)
    names = sorted(one.name for one in folder.glob("app_*.bin"))
    found = [one for name in names for one in documents(name, folder)]
    assert found == CL100K.encode_batch(LOG + LOG)[: len(found)]
    assert len(found) > len(LOG)
    follow(folder, plain, lambda: time.sleep(3), 0)
    assert np.load(folder / "app.npy").tolist() == [i for x in CL100K.encode_batch(LOG) for i in x]
