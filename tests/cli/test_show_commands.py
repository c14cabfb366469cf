"""`show` and `vocab`: the views' numbers, and no raw text on a terminal."""

from __future__ import annotations

import gzip
import json
import re
import signal
import sys

import pytest

import streamtok
from streamtok import formats
from streamtok.answers.views import vocabulary_view
from streamtok.answers.views.visible import width
from streamtok.cli.paint import Paint, columns

from .test_arguments import usage
from .test_cli import COMMAND, POSIX, Live, fails, on_terminal, run, spawn

CL100K = streamtok.get_encoding("cl100k_base")
O200K = streamtok.get_encoding("o200k_base")
TEXT = "Hello 東京\n\tétat \x1b[31m\x9b🎉\u202e <|endoftext|> naïve\r\n\n" * 3
DATA = TEXT.encode()
N_TOKENS = len(CL100K.encode(TEXT, disallowed_special=()))
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202eabc\x00\x7f\r\n" * 20


def lines_of(done) -> list[str]:
    assert done.returncode == 0, done
    return done.stdout.decode().splitlines()


def rows_of(*args: str, stdin: bytes = b"") -> list:
    return [json.loads(line) for line in lines_of(run(*args, stdin=stdin))]


# show


def test_show_is_the_text_token_by_token():
    done = run("show", stdin=DATA)
    assert done.returncode == 0
    parts = []
    for one in CL100K.show(TEXT).tokens:
        parts.append(one.token.shown + ("\n" if one.token.bytes.endswith(b"\n") else "|"))
    assert done.stdout.decode() == "".join(parts)
    count = N_TOKENS
    assert done.stderr.decode() == f"streamtok: {count} tokens of cl100k_base\n"
    assert run("show", "-q", stdin=DATA).stderr == b""


def test_show_of_nothing():
    done = run("show", stdin=b"")
    assert (done.stdout, done.stderr) == (b"", b"streamtok: 0 tokens of cl100k_base\n")
    assert run("show", "-q", stdin=b"a").stdout == b"a\n"  # a whole line


@pytest.mark.parametrize("size", ["1", "7", "64KiB"])
@pytest.mark.parametrize("special", ["plain", "allow"])
def test_show_json_is_what_the_method_gives(tmp_path, size, special):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(DATA))
    args = ("--json", "--chunk-size", size, "--special", special, str(path))
    allowed = CL100K.special_tokens_set if special == "allow" else set()
    expected = CL100K.show(DATA, allowed_special=allowed).as_json()["tokens"]
    assert rows_of("show", *args) == expected


def test_show_table():
    head, *lines = lines_of(run("show", "--table", "--special", "allow", stdin=DATA))
    assert head.split() == ["byte", "id", "rank", "bytes", "text"]
    tokens = CL100K.show(DATA, allowed_special="all").tokens
    for line, one in zip(lines, tokens, strict=True):
        start, id, rank = line.split()[:3]
        assert (int(start), int(id)) == (one.start, one.token.id)
        assert rank == ("-" if one.token.is_special else str(one.token.rank))
        assert line.endswith(f"  {one.token.shown}")


def test_show_says_what_is_wrong():
    assert "byte 1 is not UTF-8" in fails("show", "-q", stdin=b"a\xff")
    assert "--special plain" in fails("show", "-q", "--special", "refuse", stdin=DATA)
    assert run("show", "-q", "--errors", "surrogateescape", stdin=b"a\xff").stdout == b"a|<FF>\n"
    assert "not allowed with argument" in usage("show", "--table", "--json")


@pytest.mark.parametrize("kind", [[], ["--table"], ["--json"]])
@pytest.mark.parametrize("color", ["never", "always"])
def test_nothing_of_the_text_reaches_the_terminal_raw(kind, color):
    done = run("show", *kind, "--color", color, stdin=EVIL.encode())
    text = COLOUR.sub("", done.stdout.decode())
    assert text
    assert all(line.isprintable() for line in text.split("\n"))
    is_coloured = color == "always" and not kind
    assert ("\x1b[" in done.stdout.decode()) == is_coloured


@POSIX
@pytest.mark.parametrize("kind", [[], ["--table"], ["--json"]])
def test_show_of_an_endless_pipe(kind):
    with Live([*COMMAND, "show", *kind]) as live:
        live.stdin.write("first 東京 line\n".encode())
        live.stdin.write(b"second line\n")
        [line] = live.lines(1, 60)
        if kind == ["--table"]:  # after the head
            [line] = live.lines(1, 60)
        assert b"first" in line
        if not kind:
            assert line.decode() == "first|·<E6><9D>|<B1>|京|·line|⏎"
        live.process.send_signal(signal.SIGINT)  # the pipe is open still
        rest, errors = live.process.communicate(timeout=60)
        assert live.process.returncode == 130
        assert b"second" in rest  # what was pending is shown
        if kind != ["--json"]:
            count = CL100K.count("first 東京 line\nsecond line\n")
            assert f"{count} tokens".encode() in errors


@POSIX
@pytest.mark.parametrize("args", ["show", "vocab --id 5", "truncate -n 9"])
def test_standard_output_is_closed(args):
    command = " ".join(["exec", sys.executable, "-m", "streamtok", args, ">&-"])
    done = spawn(["sh", "-c", command], input=b"to be")
    code = 2 if args.startswith("vocab") else 1  # as for grep
    assert (done.returncode, done.stderr) == (
        code,
        b"streamtok: error: standard output is closed\n",
    )


# colours


@pytest.mark.parametrize(
    ("when", "env", "is_terminal", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_when_there_are_colours(monkeypatch, when, env, is_terminal, expected):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    class File:
        def isatty(self):
            return is_terminal

    monkeypatch.setattr(sys, "stdout", File())
    assert Paint(when).is_on == expected


def test_columns_of_wide_characters():
    rows = [["a", "東京", "x"], ["bb", "e\u0301", "y"], ["c", "🎉", "z"]]
    lines = columns(rows, (False, False, True))
    assert {width(line) for line in lines} == {2 + 2 + 4 + 2 + 1}
    assert lines[1] == "bb  e\u0301     y"


@pytest.mark.parametrize(
    ("rows", "right", "lines"),
    [
        ([["a", "東京東京東京", "x"]], (False, False, True), ["a  東京東京東京  x"]),
        ([["a", "東京" * 9, "12345"]], (False, False, True), ["a  東京東京…   12345"]),
        (
            [["a" * 9, "b" * 11], ["a", "b"]],
            (False, False),
            ["a" * 9 + "  bbbbbbbb…", "a          b"],
        ),
        ([["1" * 30, "2"]], (True, True), ["1" * 30 + "  2"]),
    ],
)
def test_columns_of_a_narrow_terminal(rows, right, lines, monkeypatch):
    monkeypatch.setattr("streamtok.cli.paint.terminal_width", lambda: 20)
    assert columns(rows, right) == lines


@POSIX
@pytest.mark.parametrize(
    "args",
    [
        ["vocab", "--longest", "--limit", "9"],
        ["vocab", "-e", "gpt2", "--duplicates", "--limit", "9"],
        ["show", "--table", "-q"],
        ["list"],
    ],
)
def test_tables_fit_80_columns(args):
    printed = on_terminal("stdout", *args, stdin=TEXT.encode())
    lines = COLOUR.sub("", printed.decode()).replace("\r", "").splitlines()
    assert len(lines) > 5
    assert max(map(width, lines)) <= 80


# vocab


def test_vocab_lists():
    gpt2 = streamtok.get_encoding("gpt2")
    for option, expected in [
        ("--unreachable", vocabulary_view.unreachable(gpt2)),
        ("--half-characters", vocabulary_view.half_characters(gpt2)),
        ("--longest", vocabulary_view.longest(gpt2)[:70]),
        ("--duplicates", vocabulary_view.duplicates(gpt2)[:70]),
    ]:
        command = ["vocab", "-e", "gpt2", option, "--limit"]
        command.append("70" if option in ("--longest", "--duplicates") else "0")
        rows = rows_of(*command, "--json")
        assert rows == [one.as_json() for one in expected]
        lines = lines_of(run(*command))
        assert len(lines) == len(rows) + 1
        assert all(line.isprintable() for line in lines)


def test_vocab_search():
    expected = [one.as_json() for one in vocabulary_view.find_text(CL100K, "token")[:5]]
    done = run("vocab", "--search", "token", "--limit", "5", "--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
    every = len(vocabulary_view.find_text(CL100K, "token"))
    assert done.stderr.decode() == f"streamtok: 5 of {every} are shown; --limit 0 shows all\n"
    rows = rows_of("vocab", "--bytes", "e6 9d", "--json")
    assert {row["bytes"].find("e69d") >= 0 for row in rows} == {True}
    for args in (["--search", "zqzqzqzq"], ["--bytes", "ff ff ff"]):
        for more in ([], ["--json"]):  # as grep
            done = run("vocab", *args, *more)
            assert (done.returncode, done.stdout) == (1, b"")
            assert done.stderr == b"streamtok: no token of cl100k_base contains that\n"


def test_vocab_page():
    page = vocabulary_view.token_page(O200K, 2375)
    [row] = rows_of("vocab", "-e", "o200k_base", "--id", "2375", "--json")
    assert row == page.as_json()
    lines = lines_of(run("vocab", "-e", "o200k_base", "--id", "2375"))
    assert lines[0] == f"text   {page.token.shown}"
    assert sum(" rank " in line and line.startswith("  ") for line in lines) == len(page.merge_tree)
    special = lines_of(run("vocab", "--id", str(CL100K.eot_token)))
    assert "rank   special" in special
    assert "merges" not in special


def test_vocab_says_what_is_wrong():
    assert "one of the arguments --search --bytes" in usage("vocab")
    for args in (["--longest", "--id", "5"], ["--unreachable", "--duplicates"]):
        assert "not allowed with argument" in usage("vocab", *args)
    for number in ("999999", str(1 << 50)):
        done = run("vocab", "--id", number)
        said = f"streamtok: cl100k_base has no id {number}\n"
        assert (done.returncode, done.stdout, done.stderr.decode()) == (1, b"", said)
    assert run("vocab", "-e", "missing.json", "--id", "1").returncode == 2  # as for grep
    assert "must be bytes in hexadecimal" in usage("vocab", "--bytes", "e")
    assert "needs a text" in usage("vocab", "--search", "")


def test_names_of_encodings_are_made_visible(tmp_path):
    path = tmp_path / "a\x1b[31mb"
    ranks = {bytes([byte]): byte for byte in range(256)}
    enc = streamtok.Encoding(path.name, pat_str=".", mergeable_ranks=ranks, special_tokens={})
    formats.save_packed(enc, path)
    assert formats.load(path).name == path.name
    for args in (
        ["show"],
        ["vocab", "--id", "65"],
        ["vocab", "--id", "9999"],
    ):
        done = run(*args, "-e", str(path), stdin=b"ab")
        assert done.returncode == ("9999" in args)
        assert b"\x1b" not in done.stdout + done.stderr, args
