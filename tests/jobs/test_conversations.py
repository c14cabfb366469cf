"""`encode --jsonl messages --chat FOLDER`: ids of conversations, and masks of the assistant's."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok.formats.chat_template import ChatTemplate

from ..cli.test_cli import POSIX, fails, only_error, run, spawn, wrapped
from ..long import crash

TEMPLATE = """\
{%- for tool in tools or [] %}{{ tool | tojson }}{% endfor %}
{%- for m in messages %}
    {%- if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}
    {{- '<|im_start|>' + m.role + '\\n' + m.content | trim + '<|im_end|>\\n' }}
{%- endfor %}"""
WORDS = [
    "tea",
    " is",
    "hot\n",
    "<|im_end|>",
    "<|im_",
    "end|>",
    "naïve",
    "日本",
    "🎉",
    "\ud83c",
    "  ",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tokens = dict.fromkeys(["<|im_start|>", "<|im_end|>"])
    encoding = streamtok.get_encoding("gpt2").with_special_tokens(tokens)
    streamtok.formats.save_huggingface(encoding, str(folder / "tokenizer.json"))
    write_template(folder, TEMPLATE)
    return folder


def write_template(folder: Path, source: str) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": source}), "utf-8")


def copied(model: Path, folder: Path, source: str) -> Path:
    """The model with another template."""
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    write_template(folder, source)
    return folder


def make_rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        messages = [
            {"role": role, "content": "".join(rng.choices(WORDS, k=rng.randrange(9)))}
            for _ in range(rng.randrange(4))
            for role in ("user", "assistant")
        ]
        rows.append({"id": number, "chat": {"messages": messages}})
    return rows


def written(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def command(model: Path, *more: str) -> list[str]:
    return ["encode", "--jsonl", "chat.messages", "--chat", str(model), "-q", *more]


def expected(model: Path, rows: list[dict[str, Any]]) -> list[tuple[list[int], list[int]]]:
    """(ids, mask) of each conversation, by the template itself."""
    encoding = streamtok.load(str(model))
    template = ChatTemplate.from_folder(str(model), encoding)
    found = []
    for row in rows:
        text = json.dumps(row["chat"]["messages"], ensure_ascii=False)
        messages = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        conversation = template.conversation(messages, {})
        ids, mask = template.encode_with_mask(conversation)
        assert ids.tolist() == template.encode(conversation.prompt)
        found.append((ids.tolist(), mask.tolist()))
    return found


def arrays(path: Path) -> tuple[list[int], list[int]]:
    raw = {".u16": "<u2", ".u32": "<u4"}.get(path.suffix)
    ids = np.load(path) if raw is None else np.fromfile(path, raw)
    mask = np.load(f"{path}.mask.npy")
    assert mask.dtype == np.uint8
    return ids.tolist(), mask.tolist()


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_all_formats(model: Path, tmp_path: Path, workers: list[str]) -> None:
    rows = make_rows(60)
    wanted = expected(model, rows)
    ids = [id for one, _ in wanted for id in one]
    mask = [is_said for _, one in wanted for is_said in one]
    assert 0 < sum(mask) < len(mask)
    data = tmp_path / "rows.jsonl"
    data.write_bytes(written(rows))
    for suffix in (".npy", ".u32", ".u16", ".jsonl"):
        out = tmp_path / f"out{suffix}"
        done = run(*command(model, str(data), "-o", str(out), *workers))
        assert (done.returncode, done.stderr) == (0, b"")
        if suffix == ".jsonl":
            lines = [json.loads(line) for line in out.read_text().splitlines()]
            assert [(one["input_ids"], one["assistant_masks"]) for one in lines] == wanted
        else:
            assert arrays(out) == (ids, mask)
            path = tmp_path / f"{out.name}.mask.npy"
            assert streamtok.verify([path]).is_ok
            path.write_bytes(path.read_bytes()[:-1] + b"\2")
            assert "mask.npy: the SHA-256 of its bytes" in str(streamtok.verify(out).faults[0])
    decoded = run("decode", str(tmp_path / "out.jsonl")).stdout
    assert decoded.count(b"<|im_start|>") == sum(len(row["chat"]["messages"]) for row in rows)


def test_shards_and_ends_and_parts(model: Path, tmp_path: Path) -> None:
    """Each shard and each part has a mask of its own; ids that options add are nobody's."""
    rows = make_rows(60)
    wanted = expected(model, rows)
    end = streamtok.load(str(model)).encode_single_token("<|endoftext|>")
    data = tmp_path / "rows.jsonl"
    data.write_bytes(written(rows))
    more = ["--append", "<|endoftext|>", "--prepend", "7", str(data)]
    shards = ["--shard-tokens", "900", "-o", f"{tmp_path}/x.npy"]
    assert run(*command(model, *more, *shards)).returncode == 0
    parts = ["--task", "0/1", "--part-size", "3k", "--format", "npy", "-o", f"{tmp_path}/parts"]
    assert run(*command(model, *more, *parts)).returncode == 0
    for name in ("x_*[0-9].npy", "parts/*[0-9].npy"):
        found = [arrays(path) for path in sorted(tmp_path.glob(name))]
        assert len(found) > 2
        assert [id for one, _ in found for id in one] == [
            id for one, _ in wanted for id in (7, *one, end)
        ]
        assert [bit for _, one in found for bit in one] == [
            bit for _, one in wanted for bit in (0, *one, 0)
        ]
    assert streamtok.verify(f"{tmp_path}/parts").is_ok


def scenario(model: Path, out: str) -> crash.Scenario:
    rows = {"rows.jsonl": written(make_rows(20))}
    args = ["--jsonl", "chat.messages", "--chat", str(model)]
    return crash.Scenario(f"conversations, {out}", args, out, rows)


@POSIX
@pytest.mark.parametrize("out", ["out.npy", "out.jsonl"])
def test_death_in_the_middle_of_a_system_call(model: Path, tmp_path: Path, out: str) -> None:
    one = scenario(model, out)
    good = crash.expected(one)
    for step in (9, 50):
        folder = tmp_path / str(step)
        folder.mkdir()
        one.prepare(folder)
        assert crash.die_at_step(one, folder, step) in (0, 137)
        if crash.contents(folder, one.files).keys() != good.keys():
            assert crash.die_at_step(one, folder, 1_000_000) == 0
        crash.compare(crash.contents(folder, one.files), good, one)


def test_lines_that_the_template_refuses(model: Path, tmp_path: Path) -> None:
    rows = make_rows(2)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"chat": {"messages": "Tea"}}, "the field does not hold a list of messages"),
        ({"chat": {"messages": ["Tea"]}}, "the field does not hold a list of messages"),
        ({"chat": 1}, "no field 'chat.messages'"),
        (
            {"chat": {"messages": [{"role": "tool"}]}},
            "the chat template refuses the messages: no tools",
        ),
        (
            {"chat": {"messages": [{"role": 1, "content": "Tea"}]}},
            'the chat template refuses the messages: can only concatenate str (not "int") to str',
        ),
    ]
    data = tmp_path / "rows.jsonl"
    for row, why in bad:
        data.write_bytes(written([rows[0], row]))
        message = fails(*command(model, str(data), "-o", str(tmp_path / "x.npy")))
        assert message == f"{data} line 2: {why}; --skip-bad-lines skips it"
    data.write_bytes(written([rows[0], *(row for row, _ in bad), rows[1]]))
    out = tmp_path / "out.jsonl"
    assert run(*command(model, str(data), "-o", str(out), "--skip-bad-lines")).returncode == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(one["input_ids"], one["assistant_masks"]) for one in lines] == expected(model, rows)
    log = (tmp_path / "out.jsonl.skipped.jsonl").read_text().splitlines()
    assert [json.loads(line)["reason"] for line in log] == [why for _, why in bad]


@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_errors_and_lone_surrogates(model: Path, tmp_path: Path, errors: str) -> None:
    """An escaped half of a pair is U+FFFD with each policy; bytes that are not UTF-8 only with
    "replace". The halves of a pair in two contents are two of them.
    """

    def row(first: str, second: str, last: str) -> dict[str, Any]:
        parts = [{"role": "user", "content": first}, {"role": "assistant", "content": second}]
        return {"chat": {"messages": [*parts, {"role": "user", "content": last}]}}

    sound = [row("a\ud83d", "\ude00b", "\udce9<|im_end|>"), row("x", "y", "z")]
    torn = written([row("a", "TORN <|im_end|>", "b")]).replace(b"TORN", b"\xe9\x80 \xf0\x9f")
    data, out = tmp_path / "rows.jsonl", tmp_path / "out.npy"
    data.write_bytes(written(sound) + torn)
    done = run(*command(model, str(data), "-o", str(out), "--errors", errors))
    rows = [row("a\ufffd", "\ufffdb", "\ufffd<|im_end|>"), *sound[1:]]
    if errors == "strict":
        assert done.returncode != 0
        assert b"rows.jsonl line 3: " in done.stderr
        data.write_bytes(written(sound))
        done = run(*command(model, str(data), "-o", str(out)))
    else:
        rows.append(row("a", "\ufffd \ufffd <|im_end|>", "b"))
    assert (done.returncode, done.stderr) == (0, b"")
    wanted = expected(model, rows)
    assert arrays(out) == tuple([x for one in wanted for x in one[i]] for i in (0, 1))


def test_tools_beside_the_messages(model: Path, tmp_path: Path) -> None:
    row = {"messages": [{"role": "user", "content": "Tea"}], "tools": [{"name": "<|im_end|>"}]}
    args = ["encode", "--jsonl", "messages", "--chat", str(model), "-q", "--format", "jsonl"]
    done = run(*args, stdin=json.dumps(row).encode())
    ids = json.loads(done.stdout)["input_ids"]
    encoding = streamtok.load(str(model))
    begin = '{"name": "<|im_end|>"}<|im_start|>user'
    assert encoding.decode(ids).startswith(begin)
    assert ids.count(encoding.encode_single_token("<|im_end|>")) == 1


def test_the_day_decides_nothing(model: Path, tmp_path: Path) -> None:
    row = json.dumps({"chat": {"messages": [{"role": "user", "content": "Tea"}]}}).encode()
    today = "{{ strftime_now('%Y') }}"
    careful = f"{{% if strftime_now is defined %}}{today}{{% endif %}}"
    done = run(*command(copied(model, tmp_path / "a", careful), "--format", "jsonl"), stdin=row)
    assert json.loads(done.stdout)["input_ids"] == []
    message = fails(*command(copied(model, tmp_path / "b", today), "--format", "jsonl"), stdin=row)
    assert "write a date into the template; --skip-bad-lines" in message


def test_another_template_is_another_run(model: Path, tmp_path: Path) -> None:
    folder = copied(model, tmp_path / "model", TEMPLATE)
    data = tmp_path / "rows.jsonl"
    data.write_bytes(written([make_rows(1)[0], {"chat": 1}]))
    parts = ["--task", "0/1", "--format", "npy", "-o", str(tmp_path / "parts")]
    again = command(folder, str(data), *parts)
    assert "no field" in only_error(spawn(wrapped("", *again)))
    write_template(folder, f"Tea{TEMPLATE}")
    assert "another plan: that one is with --encoding and --chat" in fails(*again)


def misuse(*args: str) -> str:
    done = run(*args)
    assert done.returncode == 2
    return done.stderr.decode()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--format", "text"], "--chat cannot write text: expected --format with one of npy, u16"),
        (["--format", "megatron"], "--chat cannot write megatron: expected --format with one of"),
        (["--format", "u16"], "--chat writes masks to a second file: give one with -o, or use"),
        (["--add-special-tokens"], "the template adds them itself"),
        (["--errors", "surrogateescape"], "give --errors strict or replace"),
    ],
)
def test_refusals(model: Path, more: list[str], message: str) -> None:
    assert message in misuse(*command(model, *more))


def test_what_is_missing(model: Path, tmp_path: Path) -> None:
    assert "--chat needs --jsonl FIELD" in misuse("encode", "--chat", str(model))
    assert str(tmp_path) in fails(*command(tmp_path, "-e", "gpt2", "--format", "npy"))
