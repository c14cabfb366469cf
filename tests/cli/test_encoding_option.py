"""-e: the name of an encoding or a model, a file, a folder; and --add-special-tokens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import processors

import streamtok
from streamtok.cli.main import main
from streamtok.jobs.sources import unit_ends
from tests.formats.test_load import tokenizer


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "text"
    path.write_text("hello world")
    return path


def encoded(*options: str) -> list[int]:
    assert main(["encode", "text", "-q", "-o", "out.npy", "--force", *options]) == 0
    return np.load("out.npy").tolist()


def fails(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    try:
        code = main(["encode", "text", "-q", "-o", "out.npy", "--force", *options])
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def saved(path: Path, *steps: object) -> streamtok.Encoding:
    """A tokenizer.json with a post-processor of these steps, if there are any."""
    theirs = tokenizer()
    if steps:
        theirs.post_processor = processors.Sequence(list(steps))
    theirs.save(str(path))
    return streamtok.load(path)


def test_models(file, capsys):
    for model in ("gpt-4o", "gpt-5-mini", "text-davinci-003", "ft:gpt-4:mine"):
        expected = streamtok.encoding_for_model(model)
        assert encoded("-e", model) == expected.encode("hello world")
        assert json.loads(Path("out.npy.json").read_text())["encoding"] == expected.name
    error = fails(capsys, "-e", "gpt-9")
    for part in ("Unknown encoding gpt-9: expected one of gpt2, ", "gpt-4o", "org/model", "folder"):
        assert part in error
    assert fails(capsys, "-e", "mine.json").endswith("; there is no such file\n")
    assert r"Unknown encoding gpt\x1b2" in fails(capsys, "-e", "gpt\x1b2")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("cl100k", "cl100k_base"), ("o200k-base", "o200k_base"), ("clk100_base", "cl100k_base"),
        ("gpt4", "gpt-4, which uses cl100k_base"), ("GPT4o", "gpt-4o, which uses o200k_base"),
        ("gpt3", "gpt-3.5, which uses cl100k_base"), ("gtp2", "gpt2"),
        ("gpt4.1", "gpt-4.1, which uses o200k_base"), ("gpt-9", None), ("llama", None),
        ("text-embedding-3", "text-embedding-3-small, which uses cl100k_base"),
    ],
)  # fmt: skip
def test_mistyped_names(name, meant, file, capsys):
    error = fails(capsys, "-e", name)
    _, has_hint, hint = error.partition("; did you mean ")
    assert hint == (f"{meant}?\n" if has_hint else "")
    assert bool(has_hint) == (meant is not None)


def test_a_file_without_a_pattern(file, capsys):
    train = ["train", str(file), "--vocab-size", "258", "--force", "-o", "v.tiktoken", "--pattern"]
    assert main([*train, r"\S+|\s+"]) == 0
    assert 'takes it, and "tokenizer.json" as -o holds it' in capsys.readouterr().err
    assert main([*train, "gpt2"]) == 0
    assert "other commands take it as -e v.tiktoken@gpt2\n" in capsys.readouterr().err
    assert "give a pattern, such as FILE@cl100k on the command line" in fails(
        capsys, "-e", "v.tiktoken"
    )
    assert len(encoded("-e", "v.tiktoken@gpt2")) >= 9


def test_a_path_wins_over_a_model(file, capsys):
    enc = saved(file.parent / "gpt-4o")
    assert encoded("-e", "gpt-4o") == enc.encode("hello world")
    folder = file.parent / "gpt-4"
    folder.mkdir()
    saved(folder / "tokenizer.json")
    assert encoded("-e", "gpt-4") == encoded("-e", f"{folder}/") == enc.encode("hello world")
    # A path that is not there is not the name of a model that begins in the same way.
    assert "No such file" in fails(capsys, "-e", "gpt-4-x/tokenizer.json")
    assert "No such file" in fails(capsys, "-e", "gpt-4-x.tiktoken@llama3")


def test_add_special_tokens_says_what_is_wrong(file, capsys):
    for more in ("--prepend", "--append"):
        error = fails(capsys, "--add-special-tokens", more, "5")
        assert "give --add-special-tokens, or --prepend and --append, not both" in error
    # An encoding that asks for nothing gets nothing, as in tokenizers, and a warning.
    assert encoded("--add-special-tokens") == [15339, 1917]
    assert capsys.readouterr().err == ""
    assert main(["encode", "text", "-o", "out.npy", "--force", "--add-special-tokens"]) == 0
    assert "cl100k_base puts no special tokens around a text" in capsys.readouterr().err


def test_a_checkpoint_knows_the_template(file, capsys, monkeypatch):
    monkeypatch.setattr(unit_ends, "UNIT", 100)
    saved(file.parent / "tokenizer.json")
    file.write_bytes(b"hello world\n" * 50 + b"\xff\n")  # a run stops there
    command = ["encode", "text", "-e", "tokenizer.json", "-o", "out.npy", "-q", "--lines"]
    command += ["--resume", "--checkpoint-every", "0", "--chunk-size", "64"]
    assert main([*command, "--add-special-tokens"]) == 1
    assert "is not UTF-8" in capsys.readouterr().err
    assert main(command) == 1
    said = capsys.readouterr().err
    assert "out.npy.checkpoint comes from a run with --prepend 257, this one is without" in said
    assert main([*command, "--add-special-tokens"]) == 1
    assert "is not UTF-8" in capsys.readouterr().err


def test_what_a_plain_command_has_no_use_for_is_not_imported(tmp_path):
    """Readers of vocabularies, jobs in parts, sockets: a fifth of the time to start."""
    text = tmp_path / "text"
    text.write_text("hello world")
    code = (
        "import sys; from streamtok.cli.main import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "heavy = ('streamtok.formats.detection', 'streamtok.normalizers', 'socket',\n"
        "         'streamtok.cli.encode_parts', 'streamtok.jobs.parts.plan',\n"
        "         'streamtok.jobs.parts.part')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    where = ["-e", "cl100k_base", str(text)]
    for command in (["encode", *where, "-o", str(tmp_path / "ids.npy")], ["count", *where]):
        ran = subprocess.run(
            [sys.executable, "-c", code, *command], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "name", ["\x1b[31mred", "a\x07b\x9b2J", "\u202egpt", "x\ud800y", "no\rgpt2"]
)
@pytest.mark.parametrize("option", ["-e", "--no-such-option", "--errors", "--max-pending"])
def test_messages_have_no_character_that_a_terminal_obeys(capsys, file, name, option):
    found = fails(capsys, f"{option}={name}" if option[1] == "-" else option + name)
    assert found.removesuffix("\n").isprintable()
    assert ascii(name)[1:-1] in found.replace("\\\\", "\\")


def test_exceptions_have_none():
    for call in (streamtok.get_encoding, streamtok.encoding_for_model):
        with pytest.raises((ValueError, KeyError)) as error:
            call("\x1b[31mred\n")
        assert str(error.value.args[0]).isprintable()
