"""Decoding what a job in parts has made: as if one process had made it."""

from __future__ import annotations

from pathlib import Path

from streamtok.cli.main import main

LINES = [f"line {i} of größere words 日本語\n" for i in range(200)]
TEXT = "".join([*LINES[:60], "\n", "\n", *LINES[60:], "\n"])
SUFFIXES = {"megatron": ".bin", "datatrove": ".ds", "text": ".txt"}


def encode(folder: Path, chosen: str, *args: str) -> tuple[Path, Path]:
    """(the folder of a job of several parts, the output of one process)."""
    text = folder / "text"
    text.write_text(TEXT, "utf-8")
    one, job = folder / f"one{SUFFIXES.get(chosen, f'.{chosen}')}", folder / "job"
    command = ["encode", "-e", "gpt2", str(text), "--format", chosen, "-q", *args]
    assert main([*command, "-o", str(one)]) == 0
    command += ["--task", "0/1", "--part-size", "1500"]
    assert main([*command, "-o", str(job)]) == 0
    assert len(list(job.glob("part-*.json"))) > 3
    return job, one


def test_a_vocabulary_file_is_found_again(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    Path("text").write_text(TEXT, "utf-8")
    assert main(["convert", "gpt2", "models/tokenizer.json", "-q"]) == 0
    command = ["encode", "-q", "text", "-e", "models/tokenizer.json"]
    assert main([*command, "-o", "a.npy"]) == 0
    assert main([*command, "-o", "a.parquet"]) == 0
    assert main([*command, "-o", "job", "--task", "0/1"]) == 0
    capfdbinary.readouterr()
    for path in ("a.npy", "a.parquet", "job"):
        assert main(["decode", path]) == 0
        assert capfdbinary.readouterr().out == TEXT.encode()
    Path("models/tokenizer.json").rename("moved.json")
    assert main(["decode", "a.npy"]) == 1
    said = capfdbinary.readouterr().err.decode()
    assert "a.npy.json says that the ids are of models/tokenizer.json" in said
    assert said.endswith("which is not here: give that vocabulary with -e\n")
    assert main(["decode", "a.npy", "-e", "moved.json"]) == 0
    assert main(["convert", "r50k_base", "models/tokenizer.json", "-q"]) == 0
    Path("models/tokenizer.json").write_text(
        Path("models/tokenizer.json").read_text("utf-8").replace('"Ġthe"', '"Ġthex"', 1), "utf-8"
    )
    capfdbinary.readouterr()
    assert main(["decode", "a.npy"]) == 1
    assert b"give that vocabulary with -e" in capfdbinary.readouterr().err


def test_decode_names_what_it_cannot_take(tmp_path, capsys):
    job, one = encode(tmp_path, "npy", "--lines")
    assert main(["decode", str(tmp_path)]) == 1
    assert "is a folder; give a file in it" in capsys.readouterr().err
    other = tmp_path / "other.npy"
    command = ["encode", "-e", "cl100k_base", "-q", str(tmp_path / "text"), "-o", str(other)]
    assert main(command) == 0
    assert main(["decode", str(one), str(other)]) == 1
    assert "decode them one by one" in capsys.readouterr().err
    (job / "manifest.jsonl").unlink()
    next(job.glob("part-000002-*.json")).unlink()
    assert main(["decode", str(job), "-o", str(tmp_path / "back")]) == 1
    assert "part 2 is not done" in capsys.readouterr().err
    assert not (tmp_path / "back").exists()
