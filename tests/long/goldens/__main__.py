from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import io
import json
import lzma
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import streamtok

from ...conftest import stream_ids

HERE = Path(__file__).parent
VOCABULARIES, ANSWERS = HERE / "vocabularies.json.xz", HERE / "answers.txt"
PLAIN: dict[str, Any] = {"disallowed_special": ()}
FORMATS = ["u16", "u32", "npy", "text", "jsonl", "megatron", "datatrove", "parquet"]
IN_FILES = ["gpt2", "bert, trained", "llama2, trained"]


def loaded(entry: dict[str, Any], folder: Path) -> streamtok.Encoding:
    if entry["kind"] == "name":
        return streamtok.get_encoding(entry["data"])
    is_model = entry["kind"] == "model"
    path = folder / ("spiece.model" if is_model else "tokenizer.json")
    path.write_bytes(base64.b64decode(entry["data"]) if is_model else entry["data"].encode())
    return streamtok.load(path)


def digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:5]


def answers(enc: streamtok.Encoding, data: bytes) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(question, what answers it) for one text, which need not be UTF-8."""
    text = data.decode("utf-8", "replace")

    def cut() -> list[int]:
        rng = random.Random(len(data))
        places = sorted(rng.randint(0, len(data)) for _ in range(len(data) // 3))
        chunks = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
        return stream_ids(enc.stream_encoder(errors="replace", **PLAIN), chunks)

    def spans(unit: Any) -> Any:
        ids, found = enc.encode_with_offsets(text, unit=unit, **PLAIN)
        return list(ids), found.tolist()

    yield "ids", lambda: enc.encode(text, **PLAIN)
    yield "ids of bytes", lambda: enc.encode(data, errors="surrogateescape", **PLAIN)
    yield "special", lambda: enc.encode(text, allowed_special="all")
    yield "stream", cut
    yield "count", lambda: enc.count(text, **PLAIN)
    for unit in ("byte", "character", "utf16"):
        yield f"spans, {unit}", lambda unit=unit: spans(unit)
    yield "decoded", lambda: enc.decode(enc.encode(text, **PLAIN))
    yield "bytes", lambda: enc.decode_bytes(enc.encode(text, allowed_special="all"))
    yield "truncated", lambda: tuple(enc.truncate(text, 5, **PLAIN))
    yield "split", lambda: [tuple(part) for part in enc.split(text, 7, overlap=2)]


def rows(vocabularies: dict[str, Any]) -> dict[str, list[str]]:
    """{"vocabulary: question": digests of the answers, one a text}."""
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, entry in vocabularies.items():
            enc = loaded(entry, Path(folder))
            for text in entry["texts"]:
                for question, call in answers(enc, base64.b64decode(text)):
                    try:
                        answer = digest(call())
                    except Exception as error:
                        answer = type(error).__name__
                    found.setdefault(f"{name}: {question}", []).append(answer)
        for name in IN_FILES:
            for format in FORMATS:
                row = f"{name}: files, {format}"
                found[row] = files(vocabularies[name], format, Path(folder))
    return found


def files(entry: dict[str, Any], format: str, folder: Path) -> list[str]:
    """A digest of each file of ids that `encode` writes, with its name; sidecars are left out."""
    from streamtok.cli.main import main

    enc = loaded(entry, folder)
    texts = [base64.b64decode(text).decode("utf-8", "replace") for text in entry["texts"]]
    refused = enc.special_tokens_set
    texts = [text for text in texts if not any(token in text for token in refused)]
    source, out = folder / "texts.jsonl", folder / "out"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    if out.exists():
        for path in out.iterdir():
            path.unlink()
    out.mkdir(exist_ok=True)
    name = entry["data"] if entry["kind"] == "name" else str(folder / "tokenizer.json")
    suffix = {"megatron": "", "datatrove": ""}.get(format, f".{format}")
    command = ["encode", "-e", name, "--jsonl", "text", str(source), "--format", format]
    with contextlib.redirect_stderr(io.StringIO()):
        status = main([*command, "-o", str(out / f"ids{suffix}")])
    if status:
        return [f"exit-code-{status}"]
    return [
        f"{path.name}={digest(_contents(path))}"
        for path in sorted(out.iterdir())
        if path.suffix not in (".json", ".lock", ".metadata")
    ]


def _contents(path: Path) -> Any:
    if path.suffix != ".parquet":
        return path.read_bytes()
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()  # without the encoding's path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.long.goldens", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the answers of now")
    options = parser.parse_args()
    chosen = json.loads(lzma.decompress(VOCABULARIES.read_bytes()))
    found = rows(chosen)
    if options.write:
        lines = [f"{row}\t{' '.join(digests)}\n" for row, digests in found.items()]
        ANSWERS.write_text("".join(lines))
        print(f"{len(chosen)} vocabularies, {len(found)} rows written")
        return 0
    kept = dict(line.rstrip("\n").split("\t") for line in ANSWERS.read_text().splitlines())
    n_different = 0
    for row in sorted({*kept, *found}):
        before, now = kept.get(row, "").split(" "), found.get(row, [])
        texts = [i for i, pair in enumerate(zip(before, now, strict=False)) if len({*pair}) > 1]
        if not texts and len(before) == len(now):
            continue
        n_different += 1
        name, _, question = row.partition(": ")
        shown = f"{len(before)} answers before, {len(now)} now"
        if texts:
            shown = f"{len(texts)} of {len(before)} differ"
            if not question.startswith("files"):
                text = base64.b64decode(chosen[name]["texts"][texts[0]])
                shown += f", the first for {text[:80]!r}"
        print(f"{row}: {shown}")
    print(f"{len(chosen)} vocabularies, {len(kept)} rows: {n_different or 'no'} differences")
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main())
