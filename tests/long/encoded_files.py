"""`streamtok encode` on random inputs, against `Encoding.encode` of each document.

Every round picks a model of any family, documents of hostile text, a way to store them (files,
lines, a delimiter, JSON lines, Parquet; compressed or not), options, a format of ids, shards, and a
way to run (threads, sizes of chunks, checkpoints). What is in the files, read without streamtok,
must be the ids of each document.
"""

from __future__ import annotations

import bz2
import collections
import contextlib
import gzip
import io
import json
import lzma
import random
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from streamtok.cli.main import main as streamtok_main
from streamtok.jobs.sources import unit_ends

from ..jobs.test_id_files import read_datatrove, read_megatron, read_table
from ..nasty import MALFORMED
from .calls.subjects import any_subject
from .calls.texts import random_size, random_text
from .states.encodings import Subject

FORMATS = ["u16", "u32", "npy", "text", "jsonl", "megatron", "datatrove", "parquet"]
SUFFIXES = {"text": ".txt", "megatron": ".bin", "datatrove": ".ds"}
KEEPS_DOCUMENTS = {"jsonl", "megatron", "datatrove", "parquet"}
PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@dataclass
class Job:
    """Documents in files, and what `streamtok encode` is told of them.

    documents: what is to be encoded. files: name and contents. skipped: records without a text.
    """

    args: list[str]
    documents: list[bytes]
    files: dict[str, bytes] = field(default_factory=dict)
    skipped: int = 0


def random_job(rng: random.Random, subject: Subject, errors: str) -> Job:
    """Documents of random text, stored in one of the ways that the command reads."""
    kind = rng.choice(["files", "lines", "delimiter", "jsonl", "jsonl", "parquet"])
    texts = [_document(rng, subject, errors) for _ in range(rng.choice([0, 1, 2, 5, 40]))]
    if kind == "files":
        return _files(rng, texts[:4])
    if kind == "parquet":
        texts = [text.decode("utf-8", "replace").encode() for text in texts]
        return _parquet(rng, texts)
    if kind == "jsonl":
        return _json_lines(rng, [text.decode("utf-8", "replace").encode() for text in texts])
    delimiter, args = rng.choice(
        [(b"\n", ["--lines"]), (b"\n\n", ["--delimiter", r"\n\n"]), (b"\0", ["--delimiter", r"\0"])]
    )
    documents = [re.sub(b"[\n\0]*%s[\n\0]*" % delimiter, b"", text).strip(b"\n") for text in texts]
    ends = b"" if rng.random() < 0.5 else delimiter
    job = Job(args, documents)
    for part in _parts(rng, documents):
        last = not ends and part and part[-1]  # an empty one at the end needs its delimiter
        job.files[f"{len(job.files)}.txt"] = delimiter.join(part) + (b"" if last else delimiter)
        if not part:
            job.files.popitem()
    return _packed(rng, job)


def _document(rng: random.Random, subject: Subject, errors: str) -> bytes:
    text = random_text(rng, subject, min(random_size(rng, 1 << 17), 1 << 17))
    data = text.encode("utf-8", "replace")
    if errors != "strict" and rng.random() < 0.4:
        at = rng.randint(0, len(data))
        data = data[:at] + rng.choice(MALFORMED) + data[at:]
    return data


def _parts(rng: random.Random, documents: list[bytes]) -> list[list[bytes]]:
    at = rng.randint(0, len(documents)) if rng.random() < 0.3 else len(documents)
    return [documents[:at], documents[at:]]


def _files(rng: random.Random, texts: list[bytes]) -> Job:
    job = Job([], texts)
    job.files = {f"{number}.txt": text for number, text in enumerate(texts)}
    return _packed(rng, job)


def _packed(rng: random.Random, job: Job) -> Job:
    suffixes = [rng.choice([*PACK, "", "", ""]) for _ in job.files]
    job.files = {
        name + suffix: PACK[suffix](data)
        for (name, data), suffix in zip(job.files.items(), suffixes, strict=True)
    }
    return job


def _json_lines(rng: random.Random, texts: list[bytes]) -> Job:
    job = Job(["--jsonl", "meta.text"], texts)
    is_plain = rng.random() < 0.5
    rows: list[list[bytes]] = []
    for part in _parts(rng, texts):
        rows.append([])
        for text in part:
            row = {"id": 1, "meta": {"text": text.decode(), "x": ["text", None]}}
            rows[-1].append(json.dumps(row, ensure_ascii=is_plain).encode())
            if rng.random() < 0.1:
                rows[-1].append(b"")
    if rng.random() < 0.4:
        job.args.append("--skip-bad-lines")
        for part in rows:
            for bad in (b"{broken", b'{"meta": {"text": 5}}', b"{}", b"[\xff"):
                if rng.random() < 0.3:
                    part.insert(rng.randint(0, len(part)), bad)
                    job.skipped += 1
    for part in rows:
        if part:
            end = rng.choice([b"\n", b"\r\n"])
            job.files[f"{len(job.files)}.jsonl"] = end.join(part) + rng.choice([b"", b"\n"])
    return _packed(rng, job)


def _parquet(rng: random.Random, texts: list[bytes]) -> Job:
    job = Job(["--parquet", "text"], texts)
    for part in _parts(rng, texts):
        kind = rng.choice([pa.string(), pa.large_string()])
        table = pa.table(
            {"id": list(range(len(part))), "text": pa.array(map(bytes.decode, part), kind)}
        )
        out = io.BytesIO()
        pq.write_table(table, out, row_group_size=rng.choice([1, 3, 1000]))
        job.files[f"{len(job.files)}.parquet"] = out.getvalue()
    return job


def expected(
    subject: Subject, job: Job, errors: str, is_allowed: bool, frame: list[Any], is_short: bool
) -> list[list[int]]:
    """The ids of each document. is_short: documents without text are left out."""
    allowed: Any = "all" if is_allowed else set()
    before, after, adds = frame
    found = []
    for text in job.documents:
        if is_short and not text:
            continue
        ids = subject.encoding.encode(
            text,
            allowed_special=allowed,
            disallowed_special=(),
            errors=errors,
            add_special_tokens=adds,
        )
        found.append([*before, *ids, *after])
    return found


# What is in the files, read without streamtok


def read_output(path: Path, format: str) -> tuple[list[int], list[list[int]] | None]:
    """(all ids, the ids of each document or None)."""
    if format in ("u16", "u32"):
        return np.fromfile(path, f"<{format[0]}{int(format[1:]) // 8}").tolist(), None
    if format == "npy":
        return np.load(path).tolist(), None
    if format == "text":
        return [int(line) for line in path.read_text().split()], None
    if format == "jsonl":
        documents = [json.loads(line)["input_ids"] for line in path.read_text().splitlines()]
    elif format == "megatron":
        documents = read_megatron(str(path.with_suffix("")))
    else:
        documents = (read_datatrove if format == "datatrove" else read_table)(str(path))
    return [one for ids in documents for one in ids], documents


def outputs(out: Path, is_sharded: bool) -> list[Path]:
    """The first file of each shard, in order."""
    if not is_sharded:
        return [out]
    return sorted(out.parent.glob(f"{out.stem}_??????{out.suffix}"))


def one_round(seed: int) -> collections.Counter[str]:
    """Run a job in several ways; count what was run. Raises AssertionError."""
    rng = random.Random(seed)
    subject = any_subject(rng)
    while subject.file is None and subject.encoding.name not in (
        "cl100k_base",
        "o200k_base",
        "gpt2",
    ):
        subject = any_subject(rng)
    encoding = subject.encoding
    errors = rng.choice(["strict", "replace", "surrogateescape"])
    job = random_job(rng, subject, errors)
    is_allowed, is_short = rng.random() < 0.4, rng.random() < 0.3
    frame: list[Any] = [[], [], False]
    args = [*job.args, "--errors", errors, "--special", "allow" if is_allowed else "plain"]
    args += ["--skip-empty"] if is_short else []
    if rng.random() < 0.2:
        frame[2] = True
        args.append("--add-special-tokens")
    else:
        some = sorted(encoding.special_tokens_set)
        for side, option in enumerate(["--prepend", "--append"]):
            if some and rng.random() < 0.3:
                token = rng.choice(some)
                args += [option, token]
                frame[side] = [encoding.encode_single_token(token)]
    wanted = expected(subject, job, errors, is_allowed, frame, is_short)
    flat = [one for ids in wanted for one in ids]
    format = rng.choice(FORMATS)
    if encoding.max_token_value > 65535 and format == "u16":
        format = "u32"
    args += ["--format", format]
    shard = None
    if rng.random() < 0.3:
        shard = rng.choice([1, 10, 1000, 50_000]) if len(flat) < 5000 else 10_000
        args += ["--shard-tokens", str(shard)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in job.files.items():
            (folder / file).write_bytes(data)
        vocabulary = encoding.name
        if subject.file is not None:
            (folder / "tokenizer.json").write_text(subject.json)
            vocabulary = str(folder / "tokenizer.json")
        files = [str(folder / file) for file in job.files]
        if not files:
            return collections.Counter()
        for number in range(3):
            out = folder / f"run{number}" / f"out{SUFFIXES.get(format, '.' + format)}"
            out.parent.mkdir()
            how = _way_to_run(rng, sum(map(len, job.documents)))
            command = ["encode", *files, "-e", vocabulary, *args, *how, "-o", str(out), "-q"]
            said = f"seed {seed}, {subject.kind}: {' '.join(map(repr, command))}"
            with contextlib.redirect_stderr(io.StringIO()) as noise:
                code = streamtok_main(command)
            if job.skipped and not job.documents:  # nothing but bad lines
                assert code == 1, said
                assert "no document is left" in noise.getvalue(), said
                continue
            assert code == 0, f"{said}: exit code {code}: {noise.getvalue()}"
            found: list[int] = []
            documents: list[list[int]] = []
            for one in outputs(out, shard is not None):
                ids, rows = read_output(one, format)
                found += ids
                documents += rows or []
            assert found == flat, f"{said}: other ids"
            if format in KEEPS_DOCUMENTS:
                kept = [ids for ids in wanted if ids] if format == "megatron" else wanted
                assert documents == kept, f"{said}: other documents"
            log = Path(f"{out}.skipped.jsonl")
            n_skipped = len(log.read_text().splitlines()) if log.exists() else 0
            assert n_skipped == job.skipped, f"{said}: {n_skipped} skipped, not {job.skipped}"
            assert not list(out.parent.glob(".*")), f"{said}: hidden files are left"
    return collections.Counter({f"runs to {format}": 3})


def _way_to_run(rng: random.Random, size: int) -> list[str]:
    """Options that decide about no ids, and a size of units. size: bytes of text; many checkpoints
    take long.
    """
    unit_ends.UNIT = rng.choice([1 << 25, max(size // 50, 40), max(size // 4, 1000)])
    how = rng.choice([[], ["--threads", "1"], ["--threads", "2"], ["--workers", rng.choice("23")]])
    if rng.random() < 0.6:
        how = [*how, "--chunk-size", rng.choice(["1", "7", "100", "4k", "64k", "300k"])]
        if size > 1 << 11 and how[-1] in ("1", "7", "100"):
            how[-1] = "1k"
    if rng.random() < 0.3:
        how = [*how, "--resume", "--checkpoint-every", rng.choice(["0", "0.01", "100"])]
    return how
