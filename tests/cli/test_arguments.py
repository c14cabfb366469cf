"""The arguments of the command line: what they accept, what they refuse, and what they say."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import streamtok
from streamtok.cli.help import MOST_USED
from streamtok.cli.main import _COMMANDS, _parser, main
from streamtok.jobs import argument_types

from ..jobs.test_feeds import ids_of, rows_of
from .test_cli import fails, run

CL100K = streamtok.get_encoding("cl100k_base")
EOT = CL100K.eot_token


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (found,) = (x for x in parser._actions if isinstance(x, argparse._SubParsersAction))
    return found.choices


COMMANDS = subcommands(_parser())


def usage(*args: str) -> str:
    """The one line of a wrong usage, which is exit code 2 however it was found."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        code = main(args)
        assert code == 2
    (line,) = errors.getvalue().splitlines()
    assert line.startswith("streamtok: error: ")
    return line.removeprefix("streamtok: error: ")


# Values that look like options


def test_two_dashes_are_a_value():
    assert rows_of("--delimiter=--", stdin=b"one--two\nthree") == CL100K.encode_batch(
        ["one", "two\nthree"]
    )
    assert fails("encode", "--append=--").startswith(
        "'--' is neither a special token nor an id of cl100k_base"
    )


def test_two_dashes_are_a_file_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "--").write_text("one")
    assert run("encode", "-q", "--format", "u32", "-o=--out", "--", "--").returncode == 0
    assert (tmp_path / "--out").read_bytes() == CL100K.encode_to_numpy("one").tobytes()


# Sizes


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("32000", 32_000), ("32k", 32_000), ("100M", 10**8), ("1.5k", 1500), ("0.1K", 100),
        ("1G", 10**9), ("2b", 2 * 10**9), ("9007199254740993", 9007199254740993), (" 5 k ", 5000),
    ],
)  # fmt: skip
def test_counts(text, count):
    assert argument_types.parse_count(text) == count


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("10", 10), ("4k", 4096), ("64KiB", 65536), ("1.5M", 3 << 19), ("0.5 kb", 512)],
)
def test_sizes(text, size):
    assert argument_types.parse_size(text) == size


def test_numbers_of_tokens_have_units_everywhere():
    text = b"a b c d " * 2000
    small = ["split", "-n", "2k", "--overlap", "0.5k"]
    assert (
        run(*small, stdin=text).stdout
        == run("split", "-n", "2000", "--overlap", "500", stdin=text).stdout
    )
    assert run("truncate", "-q", "-n", "1k", stdin=text).stdout.count(b" ") == 999


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (argument_types.parse_positive, "0", "'0' must be a positive number"),
        (argument_types.parse_positive, "x", "'x' must be a positive number"),
        (argument_types.parse_positive, "9" * 5000, "must be a positive number"),
        (argument_types.parse_natural, "-1", "'-1' must be a number, 0 or more"),
        *(
            (argument_types.parse_count, text, "must be a positive number")
            for text in (
                "0",
                "",
                "k",
                "1.0005k",
                "0.5",
                "-1",
                "1e3",
                "many",
                "9" * 400,
                "1.5.2k",
                "٣",
            )
        ),
        (argument_types.parse_seconds, "nan", "'nan' must be a number of seconds"),
        (argument_types.parse_size, "1TB", "'1TB' must be a size such as 65536, 64KiB or 1MiB"),
        (argument_types.parse_size, "9" * 30, "must be a size"),
        (argument_types.parse_chunk_size, "0", "'0' must be a size from 1 byte to 1 GiB"),
        (argument_types.parse_size, "1.0001k", "must be a size"),
        (argument_types.parse_count_or_0, "-1", "'-1' must be a number such as 0, 64 or 4k"),
        (argument_types.parse_port, "70000", "'70000' must be a port, 0 to 65535"),
        (argument_types.parse_port, "http", "'http' must be a port, 0 to 65535"),
        (argument_types.parse_tcp_address, "nowhere", "'nowhere' must be HOST:PORT"),
    ],
)
def test_messages_say_what_is_expected(parse, text, message):
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        parse(text)
    assert message in str(refused.value)
    assert len(str(refused.value)) < 200


def test_a_vocabulary_size_with_a_unit(tmp_path):
    text, out = tmp_path / "a.txt", tmp_path / "v.tiktoken"
    text.write_text("one two three four five six seven " * 50)
    args = ["train", str(text), "-q", "-o", str(out), "--vocab-size"]
    assert run(*args, "0.27k").returncode == 0
    assert len(out.read_bytes().splitlines()) == 270
    assert "must be a positive number" in usage(*args, "lots")


# Special tokens


def test_an_id_can_be_appended():
    ids = CL100K.encode("one")
    assert ids_of("--append", str(EOT), stdin=b"one") == [*ids, EOT]
    assert ids_of("--prepend", "0", "--append", "00065", stdin=b"one") == [0, *ids, 65]
    for wrong in ("100256", "100277", "99999999999", "-1", "9" * 30):
        message = fails("encode", f"--append={wrong}")
        assert message.startswith(
            f"'{wrong}' is neither a special token nor an id of cl100k_base: its special"
        )


def test_an_encoding_without_special_tokens(tmp_path):
    path = tmp_path / "v.tiktoken"
    path.write_text("".join(f"{_base64(i)} {i}\n" for i in range(256)))
    message = fails("encode", "-e", f"{path}@gpt2", "--append", "<|end|>")
    assert message.endswith(", which has no special tokens")


def _base64(byte: int) -> str:
    import base64

    return base64.b64encode(bytes([byte])).decode()


# Wrong usage


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["list", "l.txt"], "unrecognized arguments: l.txt"),
        (["encode", "--appned", "x"], "unrecognized arguments: --appned"),
        (["encode", "--checkpoint", "9"], "unrecognized arguments: --checkpoint"),
        (["encode", "--output=x", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["list", "x"], "unrecognized arguments: x"),
        (["train", "x", "-o", "y", "--vocab", "5", "--vocab-size", "5"], "unrecognized argu"),
        (["encode", "--follow"], "--follow needs exactly one text file"),
        (["encode", "--follow", "--glob", "x"], "--follow needs exactly one text file"),
        (["encode", "--shard-tokens", "5"], "--shard-tokens needs a regular file"),
        (["encode", "--shard-tokens", "many"], "'many' must be a positive number"),
        (["encode", "--format", "megatron"], "megatron cannot be written to standard output"),
        (["encode", "--format", "parquet"], "parquet cannot be written to standard output"),
        (["encode", "--lines", "--jsonl", "text"], "not allowed with argument"),
        (["encode", "--delimiter", r"\q"], "unknown escape"),
        (["encode", "--delimiter", "x" * 1_025], "at most 1024 bytes, this one has 1025"),
        (["encode", "--checkpoint-every", "often"], "must be a number of seconds"),
        (["encode", "--resume"], "--resume needs a regular file: give one with -o"),
        (["encode", "--parquet", "text"], "--parquet needs a file"),
        (["count", "--parquet", "text"], "--parquet needs a file"),
        (["serve", "--unix-mode", "660"], "--unix-mode needs --unix"),
        (["encode", "-", "-"], "- is given twice, but standard input can be read only once"),
        (["count", "-", "a.txt", "-"], "- is given twice"),
        (["split", "-n", "5", "-", "-"], "- is given twice"),
        (["train", "-", "-", "--vocab-size", "300", "-o", "v"], "- is given twice"),
        (["encode", "-o", "a.foo"], "unknown suffix '.foo' of a.foo"),
        (["encode", "-o", "a.u16"], "u16 holds ids up to 65535"),
        (
            ["count", "-e", "gpt2", "--encoding", "r50k_base"],
            "argument -e/--encoding: is given twice",
        ),
        (["encode", "--append", "a", "--eos", "b"], "argument --append/--eos: is given twice"),
        (["train", "-o", "a", "-o", "b"], "argument -o/--output: is given twice"),
        (["serve", "--unix", "a", "--unix=b"], "argument --unix: is given twice"),
        (["view", "--port", "70000"], "'70000' must be a port"),
        (["encode", "-o", "x", "--task", "2/2"], "must be I/N with 0 <= I < N"),
        (["encode", "-o", "x", "--task", "1"], "must be I/N"),
        (["encode", "-o", "x", "--workers", "0"], "--workers"),
        (["encode", "-o", "x", "--task", "0/2", "--resume"], "--resume cannot be used with"),
        (["encode", "-o", "x", "--workers", "2", "--follow"], "--follow cannot be used with"),
        (["encode", "x", "--task", "0/2"], "need files as inputs and a folder as -o"),
        (["encode", "--workers", "2"], "--workers needs files as inputs"),
    ],
)
def test_wrong_usage_names_the_help_of_the_command(args, message):
    line = usage(*args)
    assert message in line
    assert line.endswith(f" (try: streamtok {args[0]} --help)")


def test_unknown_options_name_the_command():
    for command in COMMANDS:
        line = usage(command, "--bogus")
        assert line.endswith(f" (try: streamtok {command} --help)")


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["encod", "x"], "argument COMMAND: invalid choice: 'encod'; did you mean encode?"),
        (["encode", "--apend", "x"], "unrecognized arguments: --apend; did you mean --append?"),
        (["count", "--folow=x"], "unrecognized arguments: --folow=x; did you mean --follow?"),
        (["split", "--boundary", "lin"], "invalid choice: 'lin'; did you mean line?"),
        (["help", "vocabb"], "invalid choice: 'vocabb'; did you mean vocab?"),
        (
            ["Count"],
            "argument COMMAND: invalid choice: 'Count'; did you mean count? (try: streamtok -",
        ),
        (["enc"], "did you mean encode?"),
        (["a\x1bb"], r"invalid choice: 'a\x1bb' (choose from 'encode'"),
        (["count", "--qqq"], "unrecognized arguments: --qqq (try"),
    ],
)
def test_what_is_mistyped_gets_a_suggestion(args: list[str], hint: str) -> None:
    assert hint in usage(*args)


def test_examples_are_understood() -> None:
    for command in COMMANDS:
        parser = _parser()
        help_text = next(
            action.choices[command].format_help()
            for action in parser._actions
            if isinstance(action.choices, dict)
        )
        for line in help_text.partition("examples:\n")[2].splitlines():
            words = shlex.split(line)
            words = words[words.index("streamtok") + 1 :]
            ends = [i for i, word in enumerate(words) if word in ("|", ">", "<")]
            assert parser.parse_known_args(words[: min(ends, default=None)])[1] == []


# Files


def test_a_file_is_counted_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder.txt").mkdir()

    def names(*args):
        return [line.split()[1] for line in run("count", *args).stdout.decode().splitlines()]

    assert names("--glob", "*.txt", "a.txt") == ["a.txt", "b.txt", "total"]
    assert names("./b.txt", "--glob", "*.txt", "--glob", "a*") == ["./b.txt", "a.txt", "total"]
    assert names("a.txt", "a.txt") == ["a.txt", "a.txt", "total"]  # who says it twice means it
    assert rows_of("a.txt", "--glob", "*.txt") == CL100K.encode_batch(["a.txt", "b.txt"])
    assert names("a.txt", "--glob", "a*") == ["a.txt"]
    assert "no file matches" in fails("count", "--glob", "fold*")
    assert names("--glob", "**/*.txt", "--glob", "*") == ["a.txt", "b.txt", "total"]


# Line ends and byte order marks

BOM = b"\xef\xbb\xbf"


def test_crlf_is_said(tmp_path):
    path = tmp_path / "lines"
    for command in ("encode", "count"):
        path.write_bytes(b"one\r\ntwo\r\n")
        said = run(command, "--lines", str(path)).stderr.decode()
        assert rf"{path}: lines end with \r\n and keep their \r" in said
        assert r"--delimiter '\r\n'" in said
        for args, data in (
            (["--lines"], b"one\ntwo\r\n"),
            (["--delimiter", r"\r\n"], b"one\r\ntwo\r\n"),
            ([], b"one\r\ntwo"),
        ):
            path.write_bytes(data)
            assert "lines end with" not in run(command, *args, str(path)).stderr.decode()
    assert rows_of("--delimiter", r"\r\n", stdin=b"one\r\ntwo\r\n") == CL100K.encode_batch(
        ["one", "two"]
    )
    path.write_bytes(b"one\r\n")
    assert run("encode", "-q", "--lines", str(path)).stderr == b""


def test_a_byte_order_mark_is_said(tmp_path):
    names = [str(tmp_path / "a"), str(tmp_path / "b")]
    for name in names:
        Path(name).write_bytes(BOM + b"one")
    for args in ([], ["--lines"], ["--delimiter", ";"]):
        done = run("encode", *args, names[0])
        said = done.stderr.decode()
        assert f"{names[0]} begins with a byte order mark, which becomes a token" in said
        assert [int(one) for one in done.stdout.split()] == CL100K.encode("\ufeffone")
    assert run("count", *names).stderr.count(b"byte order mark") == 1
    row = json.loads(run("encode", "--json", names[0]).stderr.splitlines()[0])
    assert "byte order mark" in row["note"]
    Path(names[0]).write_bytes(BOM + b'{"t": "one"}\n')
    assert b"byte order" not in run("encode", "--jsonl", "t", names[0]).stderr
    for encoding in ("utf-16-le", "utf-16-be"):
        Path(names[0]).write_bytes("\ufeffone".encode(encoding))
        said = run("encode", names[0]).stderr.decode()
        assert "begins as UTF-16 does; iconv -f UTF-16 -t UTF-8 converts it" in said


# list, bench


def test_list():
    rows = [json.loads(line) for line in run("list", "--json").stdout.splitlines()]
    assert [row["name"] for row in rows] == streamtok.list_encoding_names()
    for row in rows:
        enc = streamtok.get_encoding(row["name"])
        special = len(enc.special_tokens_set)
        assert row == {"name": enc.name, "n_vocab": enc.n_vocab, "n_special": special}
    lines = run("list").stdout.decode().splitlines()[1:]
    assert [line.split() for line in lines] == [[*map(str, row.values())] for row in rows]


def test_bench_of_nothing_and_of_little(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"")
    assert fails("bench", str(path)) == f"{path} is empty: expected a text file"
    assert fails("bench", "-") == "standard input is empty: expected a text file"
    path.write_bytes(b"hello world\n")
    for name, stdin in ((str(path), b""), ("-", path.read_bytes())):
        done = run("bench", name, "--chunk-sizes", "4,64k", stdin=stdin)
        assert done.returncode == 0
        assert b"too small for reliable figures: use a file of 1 MB or more" in done.stdout


@pytest.mark.parametrize("command", ["encode", "count", "list"])
def test_only_the_command_that_runs_is_imported(command):
    code = f"import sys; sys.argv[1:] = [{command!r}]; from streamtok.cli.main import _parser\n"
    code += "_parser(sys.argv[1:]); print(*(x for x in sys.modules if '.cmd_' in x))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"streamtok.cli.cmd_{command}"]


def test_every_command_is_there_in_help_and_by_itself():
    assert list(COMMANDS) == list(_COMMANDS)
    for name in _COMMANDS:
        alone = subcommands(_parser([name]))
        assert list(alone) == [name]
        assert alone[name].format_help() == COMMANDS[name].format_help()


def test_ctrl_c_during_imports_is_no_traceback():
    code = """
import sys
from pathlib import Path
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name.endswith(".cmd_count"):
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from streamtok.cli.main import main
sys.exit(main(["count", "x"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


# The commands that read text, with what they need, and what a special token is by default.
TEXT_COMMANDS = {
    "encode": ([], "refuse"),
    "count": ([], "plain"),
    "split": (["-n", "99"], "plain"),
    "truncate": (["-n", "99"], "plain"),
    "show": (["-q"], "plain"),
}


@pytest.mark.parametrize("command", TEXT_COMMANDS)
def test_all_commands_know_the_same_policies(command, capsys):
    needed, default = TEXT_COMMANDS[command]
    data = b"naive <|endoftext|>"
    answers = {}
    for policy in ("plain", "allow"):
        answers[policy] = run(command, *needed, "--special", policy, stdin=data).stdout
    said = fails(command, *needed, "--special", "refuse", stdin=data)
    assert said.endswith("; --special plain takes it as text, --special allow as one token")
    if default == "refuse":
        assert fails(command, *needed, stdin=data) == said
    else:
        assert run(command, *needed, stdin=data).stdout == answers[default]
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"(default: {default})" in " ".join(capsys.readouterr().out.split())
    for gone in ("--allowed-special", "--disallowed-special"):
        assert f"unrecognized arguments: {gone}" in usage(command, *needed, gone, "all")


# Help


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(args)
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_short_help_and_long(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short, long = printed(capsys, command, "-h"), printed(capsys, command, "--help")
    assert printed(capsys, "help", command) == long
    assert COMMANDS[command].description in short
    assert f"example: streamtok {command}" in short or "| streamtok" in short
    options = re.findall(r"^  (-.*?)(?:  |$)", short, re.M)
    assert 1 <= len(options) <= 5
    for names in options:
        assert re.search(rf"^  {re.escape(names)}", long, re.M)


def test_help_names_each_command_in_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed(capsys, "--help")
    assert said == printed(capsys, "-h") == printed(capsys, "help")
    listed = re.findall(r"^  ([a-z]+) +[a-z]", said, re.MULTILINE)
    assert sorted(listed) == sorted(_COMMANDS)
    assert set(MOST_USED) <= set(_COMMANDS)
    assert said.index("\nvocabularies:\n") < said.index("\n  train ")
