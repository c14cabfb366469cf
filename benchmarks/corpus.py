"""The texts for measurements: five given files, or else text that any machine can make.

STREAMTOK_CORPUS names a folder with english.txt, code.txt, multilingual.txt, logs.txt and json.txt.
Without it, the texts are made from Python's own standard library and from seeded generators, and
are the same on every machine with the same Python.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import pydoc
import random
import sysconfig
import unicodedata
from collections.abc import Iterator
from pathlib import Path

NAMES = ("english", "code", "multilingual", "logs", "json")
VARIABLE = "STREAMTOK_CORPUS"  # the environment variable with the folder of the five files
_BLOCK = 1 << 16
_SMALL_BLOCK = 1 << 13
_GENERATED_BYTES = 2_000_000


def folder() -> Path | None:
    """The folder of the five files, or None if texts are generated."""
    chosen = Path(os.environ.get(VARIABLE, os.devnull))
    return chosen if all((chosen / f"{name}.txt").is_file() for name in NAMES) else None


@functools.cache
def load(name: str, limit: int | None = None) -> bytes:
    """UTF-8 of one text, or about `limit` bytes of it: whole lines from all parts of the text,
    because the multilingual one may be sorted by language.
    """
    found = folder()
    data = (found / f"{name}.txt").read_bytes() if found else generated(name)
    return data if limit is None else shortened(data, limit)


def write(to: Path, limit: int | None = None) -> None:
    """Write the five texts into a folder, so that processes need not make them again."""
    for name in NAMES:
        (to / f"{name}.txt").write_bytes(load(name, limit))


def write_lines(path: Path, size: int) -> None:
    """Write at least `size` bytes of lines of all texts, shuffled again in each pass over them."""
    rng = random.Random(1)
    lines = [line for name in NAMES for line in load(name).splitlines(keepends=True)]
    lines = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
    with path.open("wb") as file:
        while file.tell() < size:
            rng.shuffle(lines)
            for line in lines:
                file.write(line)
                if file.tell() >= size:
                    break


def shortened(data: bytes, limit: int) -> bytes:
    """About `limit` bytes, in whole lines from all parts of `data`; all of it if it is shorter."""
    if len(data) <= limit:
        return data
    blocks = list(_blocks(data, _SMALL_BLOCK))
    count = max(1, limit * len(blocks) // len(data))
    return b"".join(blocks[i * len(blocks) // count] for i in range(count))


@functools.cache
def generated(name: str) -> bytes:
    """UTF-8 of one text of about 2 MB that needs no file and depends only on Python's version."""
    return _GENERATORS[name]()


def halves(data: bytes) -> tuple[bytes, bytes]:
    """Two halves of the same kind: blocks of 64 KiB, cut after a line, alternate between them."""
    blocks = list(_blocks(data, min(_BLOCK, len(data) // 4 + 1)))
    return b"".join(blocks[::2]), b"".join(blocks[1::2])


def _blocks(data: bytes, size: int) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + size) + 1 or len(data)
        yield data[start:end]
        start = end


def slices(data: bytes, size: int, count: int, seed: int = 0) -> list[str]:
    """`count` strings of `size` characters that do not overlap, in random order."""
    text = data.decode()
    starts = range(0, len(text) - size, max(size, len(text) // (count + 1)))
    chosen = random.Random(seed).sample(starts, min(count, len(starts)))
    return [text[start : start + size] for start in chosen]


# Without the files: five texts of about 2 MB.


def _standard_library() -> Iterator[Path]:
    top = Path(sysconfig.get_paths()["stdlib"])
    yield from sorted(top.glob("*.py"))
    for name in ("asyncio", "collections", "concurrent", "email", "http", "json", "xml"):
        yield from sorted((top / name).rglob("*.py"))


def _code() -> bytes:
    return _first(path.read_bytes() for path in _standard_library())


def _english() -> bytes:
    """Docstrings and comments of the standard library, and pydoc's help topics."""
    return _first(_prose(path) for path in _standard_library())


def _prose(path: Path) -> bytes:
    source = path.read_text("utf-8", "replace")
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return b""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds)]
    comments = [line.strip(" #") for line in source.splitlines() if line.lstrip()[:2] == "# "]
    return "\n\n".join([*filter(None, docs), *comments, ""]).encode()


def _multilingual() -> bytes:
    """Words in letters of thirty ranges of Unicode, distributed by Zipf's law, with punctuation."""
    rng = random.Random(40)
    starts = [0xC0, 0x100, 0x1E00, 0x370, 0x400, 0x531, 0x5D0, 0x620, 0x904, 0x985, 0xA05, 0xA85]
    starts += [0xB05, 0xB85, 0xC05, 0xC85, 0xD05, 0xE01, 0xE81, 0x10D0, 0x1780, 0x3041, 0x30A1]
    starts += [0x4E00, 0x5200, 0x6700, 0x7500, 0xAC00, 0xB098, 0xC774]
    lines = []
    for start in starts:
        letters = [
            chr(c)
            for c in range(start, start + 80)
            if unicodedata.category(chr(c)) in ("Lu", "Ll", "Lo", "Lm", "Mn", "Mc")
        ]
        words = ["".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(800)]
        weights = [1 / (rank + 1) for rank in range(len(words))]
        for _ in range(130):
            line = " ".join(rng.choices(words, weights, k=rng.randint(4, 20)))
            lines.append(line + rng.choice([".", "!", "。", "؟", ", 12", ": https://example.org"]))
    rng.shuffle(lines)
    return _joined(lines)


def _logs() -> bytes:
    rng = random.Random(16)
    kinds = [
        "{t} INFO dfs.DataNode$PacketResponder: Received blk_{n} of size {m} from /10.0.{a}.{b}",
        "{t} host-{a} sshd[{m}]: Failed password for user u{b} from 10.1.{a}.{b} port {p} ssh2",
        '10.2.{a}.{b} - - [{t}] "GET /static/img{m}.png HTTP/1.1" 200 {n} "-" "Mozilla/5.0"',
        "{t} nova-compute.{a} [req-{n:x}] Took {m}.{b} seconds to spawn the instance on {p}",
        "[{t}] [error] client 10.3.{a}.{b} Directory index forbidden by rule: /var/www/{m}/",
        "{t} E AndroidRuntime: java.lang.NullPointerException at Main.java:{a} pid={p}",
    ]
    lines = []
    for i in range(20_000):
        day, clock = f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}", f"{i % 24:02}:{i % 59:02}:{i % 60:02}"
        stamp = f"{day} {clock},{i % 997}"
        a, b, n = rng.randrange(256), rng.randrange(256), rng.randrange(1 << 40)
        line = rng.choice(kinds)
        lines.append(line.format(t=stamp, a=a, b=b, n=n, m=n % 9973, p=n % 65536))
    return _joined(lines)


def _json() -> bytes:
    """Seeded records about pydoc's topics, as JSON, partly indented."""
    rng = random.Random(5)
    topics = sorted(str(topic) for topic in pydoc.Helper.topics)
    parts = []
    for i in range(6000):
        shape = {"type": rng.choice(["string", "integer", "boolean", "structure"])}
        fields = {f"{rng.choice(topics).title()}{j}": shape for j in range(rng.randint(1, 6))}
        record = {"id": i, "name": rng.choice(topics), "score": rng.random(), "members": fields}
        parts.append(json.dumps(record, indent=rng.choice([None, 2, 4])))
    return _joined(parts)


def _first(texts: Iterator[bytes]) -> bytes:
    """The beginning of all texts, concatenated."""
    parts, size = [], 0
    for text in texts:
        parts.append(text.decode("utf-8", "replace").encode())
        size += len(parts[-1])
        if size >= _GENERATED_BYTES:
            break
    return b"".join(parts)


def _joined(lines: list[str]) -> bytes:
    return "\n".join([*lines, ""]).encode()[: 2 * _GENERATED_BYTES].rpartition(b"\n")[0] + b"\n"


_GENERATORS = {
    "english": _english,
    "code": _code,
    "multilingual": _multilingual,
    "logs": _logs,
    "json": _json,
}
