"""What a run may skip or accept may change when it goes on; all it skips has a place in a log.

The law for places: a message or a line of a log names the line of the file, whatever comes before
it (blank lines, bad ones, empty texts), however the text is packed, cut into parts or streamed.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from streamtok.cli.main import main
from streamtok.jobs.sources import unit_ends

from ..cli.test_cli import only_error, run
from ..system_calls import contents

ENC = ["-e", "gpt2"]
TOKEN = "<|endoftext|>"


@pytest.fixture(autouse=True)
def _small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_ends, "UNIT", 512)


def encode(*args: Any) -> int:
    return main(["encode", *ENC, "-q", *map(str, args)])


def instead(options: list[str], asked: list[str]) -> list[str]:
    """The options with what was asked for: an option that both have is given once."""
    if asked[0] not in options:
        return [*options, *asked]
    at = options.index(asked[0])
    return [*options[:at], *asked, *options[at + 2 :]]


def rows(*texts: Any) -> bytes:
    return b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts)


FINE = [f"text number {i}, and more words" for i in range(300)]
GOING_ON: dict[str, tuple[bytes, list[str], list[str], str]] = {
    # The input, the options, what the message asks for, and what it says.
    "a bad line": (
        rows(*FINE[:200]) + b"{broken\n" + rows(*FINE),
        ["--jsonl", "text"], ["--skip-bad-lines"], "line 201: invalid JSON",
    ),
    "a special token": (
        rows(*FINE[:200], f"a {TOKEN} b", *FINE),
        ["--jsonl", "text"], ["--special", "plain"], "line 201: .*disallowed special",
    ),
    "a special token that becomes an id": (
        rows(*FINE[:200], f"a {TOKEN} b", *FINE),
        ["--jsonl", "text"], ["--special", "allow"], "line 201: .*disallowed special",
    ),
    "bytes of another encoding": (
        b"".join(b"%s\n" % one.encode() for one in FINE) + b"caf\xe9\n" + b"more\n" * 50,
        ["--lines"], ["--errors", "replace"], "line 301: byte 3 is not UTF-8",
    ),
    "a special token inside a text": (
        " ".join(FINE).encode() + f" {TOKEN} ".encode() + " ".join(FINE).encode(),
        [], ["--special", "plain"], "disallowed special",
    ),
    "bytes of another encoding inside a text": (
        " ".join(FINE).encode() + b" caf\xe9 " + " ".join(FINE).encode(),
        [], ["--errors", "surrogateescape"], "is not UTF-8",
    ),
    "a long line": (
        rows(*FINE[:200], "x" * 5000, *FINE),
        ["--jsonl", "text", "--max-pending", "2k"], ["--max-pending", "1M"],
        "line 201: more than 2048 bytes",
    ),
}  # fmt: skip


RESUME = ["--resume", "--checkpoint-every", "0", "--chunk-size", "512"]
PARTS = ["--part-size", "4k", "--task", "0/1"]


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("kind", GOING_ON)
def test_what_the_message_asks_for_lets_the_run_go_on(kind, in_parts, tmp_path, capsys):
    """And the files are those of a run that had the option from the beginning."""
    data, options, asked, said = GOING_ON[kind]
    if in_parts:  # an error names the place in the part
        said = f"(line|bytes?) [0-9]+.*: .*{said.rpartition(': ')[2]}"
    path, one, other = tmp_path / "input", tmp_path / "one", tmp_path / "other"
    path.write_bytes(data)
    name = "" if in_parts else "out"
    for folder in (one, other):
        folder.mkdir()
    args = ["--format", "u16", *(PARTS if in_parts else RESUME)]
    for _ in range(2):  # the second time, nothing has changed
        assert encode(path, *options, *args, "-o", one / name) == 1
        assert re.search(said, capsys.readouterr().err)
    done = {each: each.stat().st_mtime_ns for each in one.glob("part-*")}
    assert (one / "out.checkpoint").exists() or done
    then = [path, *instead(options, asked), *args]
    assert main(["encode", *ENC, *map(str, [*then, "-o", one / name])]) == 0
    assert "continuing" in capsys.readouterr().err
    assert all(each.stat().st_mtime_ns == when for each, when in done.items()), "made again"
    assert encode(*then, "-o", other / name) == 0
    found, expected = contents(one), contents(other)
    for files in (found, expected):  # these have the digest of the plan, which has the folder
        for each in ("job.json", "manifest.jsonl"):
            files.pop(each, None)
    assert found == expected


@pytest.mark.parametrize(
    ("more", "name"),
    [
        (["--append", TOKEN], "append"), (["--prepend", "1"], "prepend"),
        (["--skip-empty"], "skip_empty"),
        (["--format", "u32"], "format"),
        (["-e", "p50k_base"], "encoding"),
    ],
)  # fmt: skip
def test_what_ids_depend_on_is_refused_by_name(more, name, tmp_path, capsys):
    data, args, asked, _ = GOING_ON["a bad line"]
    path = tmp_path / "input"
    path.write_bytes(data)
    args = [str(path), *args]
    args += [] if name == "format" else ["--format", "u16"]
    command = ["encode", "-q", *([] if name == "encoding" else ENC)]
    resume, parts = ["-o", tmp_path / "out", *RESUME], ["-o", tmp_path / "parts", *PARTS]
    assert encode(*args, *resume) == 1
    assert encode(*args, *parts) == 1
    args += asked
    capsys.readouterr()
    assert main([*command, *map(str, [*args, *resume, *more])]) == 1
    option = name.replace("_", "-")
    said = capsys.readouterr().err
    assert re.search(rf"comes from a run with(out)? --{option}\b.*, this one is with", said)
    assert "None" not in said
    assert main([*command, *map(str, [*args, *parts, *more])]) == 1
    said = capsys.readouterr().err
    assert re.search(rf"parts of another plan: that one is with(out)? --{option}\b", said)
    assert "None" not in said
    assert encode(*args, *resume) == 0
    assert encode(*args, *parts) == 0


def dirty(rng: random.Random, count: int) -> tuple[bytes, list[dict[str, Any]], int]:
    """JSON lines, the places of the bad ones, and how many are good; none of them is refused."""
    lines: list[bytes] = []
    bad, good = [], 0
    offset = 0
    for number in range(1, count + 1):
        kind = rng.choice(
            ["good"] * 12 + ["blank", "empty", "broken", "number", "missing", "bytes"]
        )
        line = {
            "good": json.dumps({"text": f"{number} " + "word " * rng.randrange(30)}).encode(),
            "blank": rng.choice([b"", b"  ", b"\t\r"]), "empty": b'{"text": ""}',
            "broken": b'{"text": ', "number": b'{"text": 5}', "missing": b'{"txt": "a"}',
            "bytes": b'{"text": "\xff"}',
        }[kind]  # fmt: skip
        good += kind in ("good", "empty")
        if kind in ("broken", "number", "missing", "bytes"):
            bad.append({"offset": offset})
        lines.append(line + b"\n")
        offset += len(lines[-1])
    return b"".join(lines), bad, good


def logged(path: Path, name: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(row.pop("file") == str(name) and row.pop("reason") for row in found)
    return found


@pytest.mark.parametrize("packed", ["plain", "gzip"])
def test_the_log_names_lines_of_the_file(packed, tmp_path):
    rng = random.Random(packed)
    data, bad, _ = dirty(rng, 600)
    path = tmp_path / "input"
    path.write_bytes(gzip.compress(data) if packed == "gzip" else data)
    args = [path, "--jsonl", "text", "--skip-bad-lines", "--format", "jsonl"]
    for chunk in ("64", "1000", "1M"):
        out = tmp_path / f"out{chunk}"
        assert encode(*args, "--chunk-size", chunk, "-o", out) == 0
        assert logged(out.with_name(f"{out.name}.skipped.jsonl"), path) == bad
    for size in ("700", "3000"):
        folder = tmp_path / f"parts{size}"
        assert encode(*args, "--part-size", size, "--task", "0/1", "-o", folder) == 0
        assert logged(folder / "skipped.jsonl", path) == bad
        manifest = json.loads((folder / "manifest.jsonl").read_text().splitlines()[0])
        assert manifest["skipped"] == sum(manifest["skipped_because"].values()) == len(bad)
        assert main(["verify", str(folder)]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_refused_document_names_its_line(seed, tmp_path, capsys):
    """In a file, a packed one, a part and standard input; with many threads and with few."""
    rng = random.Random(seed)
    before, _, _ = dirty(rng, rng.choice([0, 7, 500]))
    after, _, _ = dirty(rng, 100)
    line = before.count(b"\n") + 1
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    data = before + rows(f"a {TOKEN} b") + after
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    args = ["--jsonl", "text", "--skip-bad-lines", "--format", "u16"]
    for path in (plain, packed):
        for more in (["--threads", "3"], ["--chunk-size", "300"], ["--skip-empty"]):
            assert encode(path, *args, *more, "-o", tmp_path / "out") == 1
            assert f"{path} line {line}: " in capsys.readouterr().err
        folder = tmp_path / f"{path.name}-parts"
        assert encode(path, *args, "--part-size", "900", "--task", "0/1", "-o", folder) == 1
        assert re.search(f"{path} line [0-9]+( after byte [0-9]+)?, part ", capsys.readouterr().err)
        assert main(["count", *ENC, str(path), "--special", "refuse", *args[:3]]) == 1
        assert f"{path} line {line}: " in capsys.readouterr().err
    said = only_error(run("encode", *ENC, *args, "-o", str(tmp_path / "out"), stdin=data))
    assert said.startswith(f"standard input line {line}: ")


@pytest.mark.parametrize("end", [r"\n", r"\n\n", "--"])
def test_a_refused_document_between_delimiters(end, tmp_path, capsys):
    mark = end.replace(r"\n", "\n")
    texts = ["one", "", "two", "", "", *FINE, "", f"x {TOKEN}", "last"]
    path = tmp_path / "input"
    path.write_bytes(mark.join(texts).encode())
    number = len(texts) - 1
    unit = "line" if end == r"\n" else "document"
    for more in ([], ["--skip-empty"], ["--chunk-size", "100"], ["--threads", "2"]):
        args = [path, f"--delimiter={end}", "--format", "u16"]
        assert encode(*args, *more, "-o", tmp_path / "out") == 1
        assert f"{path} {unit} {number}: " in capsys.readouterr().err
    if end == r"\n":  # the others can overlap with themselves
        parts = ["--part-size", "800", "--task", "0/1", "-o", tmp_path / "parts"]
        assert encode(*args, *parts) == 1
        assert re.search(f"{path} line [0-9]+ after byte [0-9]+, part ", capsys.readouterr().err)


def test_a_row_is_named_by_its_group(tmp_path, capsys):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "input"
    texts = list(FINE)
    texts[7] = texts[120] = texts[121] = None
    texts[217] = f"a {TOKEN}"
    pq.write_table(pa.table({"text": texts}), path, row_group_size=100)
    args = [path, "--parquet", "text", "--format", "u16"]
    parts = ["--part-size", "1k", "--task", "0/1", "-o", tmp_path / "parts"]
    for more in (["-o", tmp_path / "out"], parts):
        assert encode(*args, *more) == 1
        assert f"{path} row group 0 row 7: no text" in capsys.readouterr().err
        assert encode(*args, "--skip-bad-lines", *more) == 1
        assert re.search(rf"{path} row group 2 row 17[:,]", capsys.readouterr().err)
        assert encode(*args, "--skip-bad-lines", "--special", "allow", *more) == 0
    places = [{"row_group": g, "row": r} for g, r in ((0, 7), (1, 20), (1, 21))]
    assert logged(tmp_path / "out.skipped.jsonl", path) == places
    assert logged(tmp_path / "parts" / "skipped.jsonl", path) == places


def test_a_run_that_skips_all_fails(tmp_path, capsys):
    path, out, folder = tmp_path / "input", tmp_path / "out.u16", tmp_path / "parts"
    path.write_bytes(rows(*FINE) + b"{broken\n")
    wrong = [path, "--jsonl", "txet", "--skip-bad-lines"]
    for more in ([], ["--resume", "--checkpoint-every", "0", "--chunk-size", "300"]):
        assert encode(*wrong, "-o", out, *more) == 1
        said = capsys.readouterr().err
        assert "no document is left: 301 lines or rows were skipped" in said
        assert "(no field 'txet': 300, invalid JSON: 1)" in said
        left = {one.name for one in tmp_path.iterdir()}
        assert left == {"input", "out.u16.skipped.jsonl"}
        assert len(logged(tmp_path / "out.u16.skipped.jsonl", path)) == 301
        right = ["text" if one == "txet" else one for one in wrong]
        assert encode(*right, "-o", out, *more) == 0  # nothing is in its way
        assert len(logged(tmp_path / "out.u16.skipped.jsonl", path)) == 1
        for one in tmp_path.glob("out*"):
            one.unlink()
    assert main(["count", *ENC, *map(str, wrong)]) == 1
    assert "no document is left" in capsys.readouterr().err
    assert encode(*wrong, "-o", folder, "--task", "0/1", "--part-size", "3k") == 1
    assert "no document is left: 301 lines" in capsys.readouterr().err
    assert not (folder / "manifest.jsonl").exists()


def test_a_log_of_an_earlier_run_goes(tmp_path):
    path, out = tmp_path / "input", tmp_path / "out.u16"
    path.write_bytes(rows("one"))
    log = tmp_path / "out.u16.skipped.jsonl"
    log.write_text("old")
    assert encode(path, "--jsonl", "text", "--skip-bad-lines", "-o", out) == 0
    assert not log.exists()  # this run has skipped nothing


def test_a_task_sums_up_its_share(tmp_path, capsys):
    path = tmp_path / "input"
    path.write_bytes(rows(*FINE))
    args = ["encode", *ENC, str(path), "--jsonl", "text", "-o", str(tmp_path / "out"), "--json"]
    found = []
    for task in ("0/3", "1/3", "2/3"):
        assert main([*args, "--part-size", "2k", "--task", task]) == 0
        lines = [json.loads(one) for one in capsys.readouterr().err.splitlines()]
        [summary] = [one for one in lines if "tokens" in one]
        found.append(summary["documents"])
        notes = [one["note"] for one in lines if "note" in one]
    assert sum(found) == len(FINE)
    assert all(found)
    assert "300 documents" in notes[-1]
