"""The programs in `examples/`: each is run as a user runs it, and what it makes is checked."""

from __future__ import annotations

import configparser
import gzip
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers

import streamtok

from ..cli.test_cli import POSIX
from ..doc_blocks import module_at
from ..jobs.test_id_files import read_megatron
from ..long.crash import make_text
from ..serve_clients import ENV, command, receive

pytestmark = POSIX
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GPT2 = streamtok.get_encoding("gpt2")
CL100K = streamtok.get_encoding("cl100k_base")
TEXT = make_text(random.Random(5), 40_000)


def start(folder: Path, name: str, *args: str, **settings: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error::ResourceWarning", str(EXAMPLES / f"{name}.py"), *args]
    env = ENV | settings.pop("env", {})
    return subprocess.Popen(command, cwd=folder, env=env, text=True, **settings)


def run(folder: Path, name: str, *args: str, **settings: Any) -> str:
    """What the program prints. Fails if the program does."""
    text = settings.pop("input", None)
    pipe = subprocess.PIPE
    with start(folder, name, *args, stdin=pipe, stdout=pipe, **settings) as process:
        printed, _ = process.communicate(text, timeout=120)
    assert process.returncode == 0
    return printed


def test_all_examples_are_tested_and_listed() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    assert len(names) == 8
    for name in names:
        assert any(f'"{name}{end}' in tests for end in ('"', ":", ".py"))
        assert f"`{name}.py`" in readme


def test_log_budget(tmp_path: Path) -> None:
    log, alarms = tmp_path / "app.log", tmp_path / "alarms"
    lines = [f"request {i} took {i % 7} ms, naïve 日本語 <|endoftext|>\n" for i in range(400)]
    log.write_text("".join(lines[:100]), "utf-8")
    args = ["app.log", "--every", "0.2", "--budget", "3k"]
    ring = ["--run", f"{sys.executable} -c \"open('alarms', 'a').write('x')\""]
    # What is there at the beginning is not counted. The last pre-token is open, there and later.
    there, whole = (
        CL100K.count("".join(some), disallowed_special=()) for some in (lines[:100], lines)
    )
    expected = whole - there
    with start(tmp_path, "log_budget", *args, *ring, stdout=subprocess.PIPE) as process:
        assert process.stdout
        rows = [json.loads(process.stdout.readline())]
        with log.open("a", encoding="utf-8") as file:
            file.writelines(lines[100:200])
        rows.append(json.loads(process.stdout.readline()))
        log.rename(tmp_path / "app.log.1")  # rotated: the rest is in a new file
        log.write_text("".join(lines[200:]), "utf-8")
        while sum(row["tokens"] for row in rows) < expected - 3 and len(rows) < 300:
            rows.append(json.loads(process.stdout.readline()))
        rows.append(json.loads(process.stdout.readline()))  # the alarm was run before it
        process.terminate()
    assert expected - 3 <= sum(row["tokens"] for row in rows) <= expected + 3
    assert rows[0]["tokens"] <= 3
    assert rows[-1]["hour"] == sum(row["tokens"] for row in rows)
    assert [row["alarm"] for row in rows] == [row["hour"] > 3000 for row in rows]
    assert rows[-1]["alarm"]
    assert alarms.read_text() == "x"


def test_budget_forgets_after_an_hour() -> None:
    budget = module_at(EXAMPLES / "log_budget.py").Budget(100)
    assert not budget.spend(90, 0)
    assert budget.spend(20, 60)
    assert not budget.spend(1, 61)  # said once
    assert budget.is_exceeded
    assert not budget.spend(1, 3601)
    assert (budget.spent, budget.is_exceeded) == (22, False)
    assert budget.spend(90, 3602)


def test_corpus_to_megatron(tmp_path: Path) -> None:
    (tmp_path / "crawl" / "deep").mkdir(parents=True)
    texts = [TEXT[at : at + 500] for at in range(0, len(TEXT), 500)]
    for i in range(2):
        rows = "".join(json.dumps({"text": text}) + "\n" for text in texts[i::2])
        path = tmp_path / "crawl" / ("deep" if i else "") / f"{i}.jsonl.gz"
        path.write_bytes(gzip.compress((rows + "not JSON\n").encode()))
    printed = run(tmp_path, "corpus_to_megatron", "crawl/**/*.jsonl.gz", "corpus")
    found = read_megatron(str(tmp_path / "corpus"))
    assert sorted(found) == sorted([*GPT2.encode(text), GPT2.eot_token] for text in texts)
    assert printed.startswith(f"{len(texts)} documents, {sum(map(len, found))} tokens\n")
    corpus = module_at(EXAMPLES / "corpus_to_megatron.py").Corpus(str(tmp_path / "corpus"))
    assert [corpus[i].tolist() for i in range(len(corpus))] == found
    assert corpus.tokens == sum(map(len, found))


def test_corpus_to_megatron_tries_again_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = module_at(EXAMPLES / "corpus_to_megatron.py")
    codes = [-signal.SIGKILL, -signal.SIGTERM, 0]
    commands = []

    def killed(command: list[str], check: bool) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, codes.pop(0))

    monkeypatch.setattr(module.subprocess, "run", killed)
    module.encode("*.gz", "corpus", "text", "gpt2", 5)
    assert len(commands) == 3
    assert commands[0] == commands[1] == commands[2]
    assert "--resume" in commands[0]
    codes[:] = [1]
    with pytest.raises(SystemExit, match="1"):
        module.encode("*.gz", "corpus", "text", "gpt2", 5)
    codes[:] = [-9, -9]
    with pytest.raises(SystemExit, match="gave up after 2 attempts"):
        module.encode("*.gz", "corpus", "text", "gpt2", 2)


def test_chat_budget(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Be brief."}] + [
        {"role": ("user", "assistant")[i % 2], "content": f"{TEXT[i * 50 : i * 60]} <|end|>"}
        for i in range(40)
    ]
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    printed = run(tmp_path, "chat_budget", "--budget", "900", input=lines)
    kept = [json.loads(line) for line in printed.splitlines()]
    assert kept[0] == messages[0]
    assert kept[1:] == messages[-len(kept) + 1 :]
    assert 1 < len(kept) < len(messages)

    module = module_at(EXAMPLES / "chat_budget.py")
    chat = module.Conversation(900)
    for message in messages:
        chat.add(message)
        assert chat.tokens == len(chat.prompt()) <= 900
    assert chat.messages == kept
    # One more old message would not have fit.
    more = module.Conversation(10**6)
    for message in [messages[0], *messages[-len(kept) :]]:
        more.add(message)
    assert more.tokens > 900
    with pytest.raises(ValueError, match="there is room for"):
        chat.add({"role": "user", "content": "tea " * 1000})
    assert chat.messages == kept


def test_chat_prompt_is_that_of_the_text() -> None:
    """The sum of the parts is the whole, with special tokens as in the format."""
    chat = module_at(EXAMPLES / "chat_budget.py").Conversation(10**6)
    encoding = streamtok.get_encoding("o200k_harmony")
    contents = ["", "tea", " 日本語\n\n", TEXT[:300]]
    for content in contents:
        chat.add({"role": "user", "content": content})
    text = "".join(f"<|start|>user<|message|>{content}<|end|>" for content in contents)
    whole = encoding.encode(f"{text}<|start|>assistant", allowed_special="all")
    assert chat.prompt() == whole
    assert chat.tokens == len(whole)


def test_train_vocabulary(tmp_path: Path) -> None:
    words = random.Random(6).choices(range(10**6), k=100_000)
    text = " ".join(f"{word:x}" for word in words).encode()
    (tmp_path / "a.txt").write_bytes(text)
    printed = run(tmp_path, "train_vocabulary", "a.txt", "--size", "600", "-o", "t.json")
    first, second, third = printed.splitlines()
    assert first == "t.json: 600 ids, <|endoftext|> is 599"
    assert float(second.rpartition(" ")[2]) > 1
    assert third.startswith("GPT-2, with 50257 ids: ")
    mine = streamtok.load(str(tmp_path / "t.json"))
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    assert mine.encode(TEXT) == theirs.encode(TEXT, add_special_tokens=False).ids


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[Path, socket.socket]]:
    """The folder of a running service, and the socket on which systemd listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        env = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        process = start(tmp_path, "socket_service", "serve", "ids.sock", env=env)
        try:
            assert systemd.recv(100) == b"READY=1"
            yield tmp_path, systemd
            process.send_signal(signal.SIGTERM)
            assert systemd.recv(100) == b"STOPPING=1"
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            process.wait()


def test_socket_service(service: tuple[Path, socket.socket]) -> None:
    folder, _ = service
    assert os.stat(folder / "ids.sock").st_mode & 0o777 == 0o660
    printed = run(folder, "socket_service", "ask", "ids.sock", input=TEXT)
    assert [int(line) for line in printed.split()] == CL100K.encode(TEXT)
    assert run(folder, "socket_service", "ask", "ids.sock", input="") == ""


def test_unit_file(tmp_path: Path) -> None:
    """Its command is `streamtok serve`, which runs, and its limits are those that it needs."""
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(EXAMPLES / "streamtok.service")
    service = unit["Service"]
    assert service["Type"] == "exec"  # `streamtok serve` does not tell systemd that it is ready
    program, *args = service["ExecStart"].split()
    assert Path(program).name == "streamtok"
    path = args[args.index("--unix") + 1]
    assert path.startswith(f"/run/{service['RuntimeDirectory']}/")
    here = str(tmp_path / "socket")
    with command(*(here if arg == path else arg for arg in args[1:])):
        assert os.stat(here).st_mode & 0o777 == 0o660
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(here)
            client.sendall(b"hello world")
            client.shutdown(socket.SHUT_WR)
            assert receive(client) == b"15339\n1917\n"
    from streamtok.serve import DEFAULT_MAX_CONNECTIONS
    from streamtok.serve.server import DEFAULT_GRACE

    assert int(service["LimitNOFILE"]) == DEFAULT_MAX_CONNECTIONS + 192
    assert int(service["TimeoutStopSec"]) > DEFAULT_GRACE + 1


@pytest.mark.parametrize("suffix", [".u16", ".u32", ".npy"])
def test_torch_stream(tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / f"train{suffix}")
    args = ["streamtok", "encode", "-e", "gpt2", "-q", "-o", path]
    subprocess.run([sys.executable, "-m", *args], input=TEXT.encode(), env=ENV, check=True)
    ids = GPT2.encode(TEXT, disallowed_special=())
    blocks = module_at(EXAMPLES / "torch_stream.py").TokenBlocks(path, 64)
    assert len(blocks) == (len(ids) - 1) // 64
    for number, block in enumerate(blocks):
        assert block.tolist() == ids[64 * number : 64 * number + 65]
    opened, settings = blocks.__reduce__()  # as workers do
    assert opened(*settings)[3].tolist() == blocks[3].tolist()
