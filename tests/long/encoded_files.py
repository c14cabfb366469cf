"""`streamtok encode`, `count` and `train` on random inputs, against calls with each document.

Every round picks a model of any family, documents of hostile text, a way to store them (files,
lines, a delimiter, JSON lines, Parquet; compressed or not; in a folder or in memory by a URL),
options, a format of ids, shards, and ways to run (threads, workers, parts, sizes of chunks,
checkpoints). What is in the files, read without streamtok, must be the ids of each document;
`verify` must find no fault, and `decode` must give the text of the ids. `count` and `train` must
find the same documents.
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
from unittest import mock

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from streamtok import Encoding, Trainer, list_encoding_names, verify
from streamtok.cli.main import main as streamtok_main
from streamtok.jobs.sources import unit_ends
from streamtok.jobs.stores import objects
from streamtok.load import load_tiktoken_bpe

from ..jobs.test_id_files import read_datatrove, read_megatron, read_table
from ..nasty import MALFORMED
from .calls.hf_settings import template
from .calls.subjects import any_subject, of_file
from .calls.texts import random_size, random_text
from .states.encodings import Subject

FORMATS = ["u16", "u32", "npy", "text", "jsonl", "megatron", "datatrove", "parquet"]
SUFFIXES = {"text": ".txt", "megatron": ".bin", "datatrove": ".ds"}
STORE = "memory:///files"
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
    times: how often each file is given.
    """

    args: list[str]
    documents: list[bytes]
    files: dict[str, bytes] = field(default_factory=dict)
    skipped: int = 0
    times: int = 1

    def paths(self, folder: str) -> list[str]:
        return [f"{folder}/{file}" for file in self.files] * self.times


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


def outputs(folder: Path) -> list[Path]:
    """The first file of each output, shard or part, in order: those with a sidecar."""
    return sorted(path for path in folder.iterdir() if Path(f"{path}.json").exists())


def one_round(seed: int) -> collections.Counter[str]:
    """Run a job in several ways; count what was run. Raises AssertionError."""
    rng = random.Random(seed)
    subject = any_subject(rng)
    while subject.file is None and subject.encoding.name not in list_encoding_names():
        subject = any_subject(rng)
    if subject.file is not None and rng.random() < 0.3:
        file = {**subject.file, "post_processor": template(rng, subject.file)}
        subject = of_file(subject.kind, file) or subject
    encoding = subject.encoding
    errors = rng.choice(["strict", "replace", "surrogateescape"])
    job = random_job(rng, subject, errors)
    if not job.files:
        return collections.Counter()
    if rng.random() < 0.05:
        job.times, job.documents, job.skipped = 2, job.documents * 2, job.skipped * 2
    is_allowed, is_short = rng.random() < 0.4, rng.random() < 0.3
    frame: list[Any] = [[], [], False]
    read = [*job.args, "--errors", errors]
    special = ["--special", "allow" if is_allowed else "plain"]
    args = [*read, *special]
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
    size = rng.choice([1, 10, 1000, 50_000]) if len(flat) < 5000 else 10_000
    shards = ["--shard-tokens", str(size)] if rng.random() < 0.3 else []
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in job.files.items():
            (folder / file).write_bytes(data)
        vocabulary = encoding.name
        if subject.file is not None:
            (folder / "tokenizer.json").write_text(subject.json)
            vocabulary = str(folder / "tokenizer.json")
        for number in range(3):
            out = folder / f"run{number}" / f"out{SUFFIXES.get(format, '.' + format)}"
            out.parent.mkdir()
            in_parts, in_store = rng.random() < 0.25, rng.random() < 0.2
            n_bytes = sum(map(len, job.documents))
            how = _way_to_run(rng, n_bytes, in_parts, in_store)
            how = how if in_parts else [*how, *shards]
            unit = rng.choice([1 << 25, max(n_bytes // 50, 40), max(n_bytes // 4, 1000)])
            source, target = str(folder), str(out)
            if in_store:
                source, target = STORE, f"{STORE}/out" + (f"/{out.name}" if not in_parts else "")
                for file, data in job.files.items():
                    objects.write(f"{source}/{file}", data)
            files = job.paths(source)
            command = ["encode", *files, "-e", vocabulary, *args, *how, "-o", target, "-q"]
            said = f"seed {seed}, {subject.kind}: {' '.join(map(repr, command))}"
            noise = io.StringIO()
            with contextlib.redirect_stderr(noise), mock.patch.object(unit_ends, "UNIT", unit):
                code = streamtok_main(command)
            if in_store:
                copy = out if in_parts else out.parent
                copy.mkdir(exist_ok=True)
                for file in objects.names_in(f"{STORE}/out"):
                    (copy / file).write_bytes(objects.read_whole(f"{STORE}/out/{file}"))
                fsspec.filesystem("memory").store.clear()
            if job.skipped and not job.documents:  # nothing but bad lines
                assert code == 1, said
                assert "no document is left" in noise.getvalue(), said
                continue
            assert code == 0, f"{said}: exit code {code}: {noise.getvalue()}"
            shard_tokens = size if shards and not in_parts else None
            try:
                _check(job, encoding, wanted, out, format, in_parts, shard_tokens)
            except AssertionError as error:
                raise AssertionError(f"{said}: {error}") from error
            kinds = [name for name, is_so in (("parts", in_parts), ("URL", in_store)) if is_so]
            counts[" ".join([format, *kinds])] += 1
        if job.documents and not job.skipped:  # a file may have bad lines only
            plain = expected(subject, job, errors, is_allowed, [[], [], False], False)
            n_ids = sum(map(len, plain))
            _same_documents(job, folder, read, [*special, "-e", vocabulary], n_ids)
    return counts


def _check(
    job: Job,
    encoding: Encoding,
    wanted: list[list[int]],
    out: Path,
    format: str,
    in_parts: bool,
    shard_tokens: int | None,
) -> None:
    """What was written, what `verify` says of it, and what `decode` makes of it."""
    flat = [one for ids in wanted for one in ids]
    found: list[list[int]] = []
    documents: list[list[int]] = []
    firsts = outputs(out if in_parts else out.parent)
    for one in firsts:
        ids, rows = read_output(one, format)
        found.append(ids)
        documents += rows or []
    assert [one for ids in found for one in ids] == flat, "other ids"
    if shard_tokens is not None:
        assert found == in_shards(wanted, shard_tokens), "other shards"
    if format in KEEPS_DOCUMENTS:
        kept = [ids for ids in wanted if ids] if format == "megatron" else wanted
        assert documents == kept, "other documents"
    log = out / "skipped.jsonl" if in_parts else Path(f"{out}.skipped.jsonl")
    n_skipped = len(log.read_text().splitlines()) if log.exists() else 0
    assert n_skipped == job.skipped, f"{n_skipped} skipped, not {job.skipped}"
    assert not [*out.parent.glob(".*"), *out.glob(".*")], "hidden files are left"
    report = verify([out] if in_parts else [one for one in out.parent.iterdir() if one != log])
    assert not report.faults, report.faults
    assert (report.documents, report.tokens) == (len(wanted), len(flat)), report
    given = [out / "job.json"] if in_parts and len(flat) % 2 else [out] if in_parts else firsts
    back = out.parent / "back"
    assert streamtok_main(["decode", *map(str, given), "-o", str(back)]) == 0
    assert back.read_bytes() == encoding.decode_bytes(flat), "decoded to another text"


def in_shards(documents: list[list[int]], size: int) -> list[list[int]]:
    """The rule: a shard ends with the document that brings it to the size."""
    found: list[list[int]] = []
    for document in documents:
        if not found or len(found[-1]) >= size:
            found.append([])
        found[-1] += document
    return found or [[]]


def _same_documents(
    job: Job, folder: Path, read: list[str], options: list[str], n_ids: int
) -> None:
    """`count` and `train` read the documents of the job."""
    for file, data in job.files.items():
        objects.write(f"{STORE}/{file}", data)
    files = job.paths(STORE)
    noise = contextlib.redirect_stderr(io.StringIO())  # notes about texts
    with noise, contextlib.redirect_stdout(io.StringIO()) as out:
        assert streamtok_main(["count", *files, *read, *options]) == 0
    assert int(out.getvalue().split("\n")[-2].split()[0]) == n_ids, f"count {files} {read}"
    trainer = Trainer("gpt2", errors=read[-1])
    for text in job.documents:
        trainer.update(text, final=True)
    path = str(folder / "v.tiktoken")
    train = ["train", *files, *read, "-q", "-o", path, "--vocab-size", "270", "--tie", "first"]
    with noise:
        assert streamtok_main([*train, "--pattern", "gpt2"]) == 0
    ranks = trainer.train(270, tie="first")._mergeable_ranks
    assert load_tiktoken_bpe(path) == ranks, f"train {files} {read}"


def _way_to_run(rng: random.Random, size: int, in_parts: bool, in_store: bool) -> list[str]:
    """Options that decide about no ids. size: bytes of text, for not too many parts and steps."""
    if in_parts:
        part_size = rng.choice([size // 40, size // 9, size]) + 1
        return ["--task", "0/1", "--part-size", str(part_size)]
    how = rng.choice([[], ["--threads", "1"], ["--threads", "2"]])
    if not in_store and rng.random() < 0.25:  # memory is not that of other processes
        how = ["--workers", rng.choice("23")]
    if rng.random() < 0.6:
        how = [*how, "--chunk-size", rng.choice(["1", "7", "100", "4k", "64k", "300k"])]
        if size > 1 << 11 and how[-1] in ("1", "7", "100"):
            how[-1] = "1k"
    if not in_store and rng.random() < 0.3:
        how = [*how, "--resume", "--checkpoint-every", rng.choice(["0", "0.01", "100"])]
    return how
