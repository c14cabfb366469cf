"""Damaged and hostile vocabulary files: work and memory are bounded."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streamtok import formats
from streamtok.errors import VocabularyError

from ..new_process import python

ROOT = Path(__file__).resolve().parents[2]
# Bytes of memory; before there were bounds, each file here took more, or took minutes.
LIMIT = 2 << 30

# (file name, an expression for its contents, the expected error)
BOMBS = [
    ("lists.json", 'b\'{"model": [\' + b"[]," * 9_000_000 + b"[]]}"', "8388608 JSON values"),
    ("digits.json", 'b\'{"model": \' + b"9" * 20_000_000 + b"}"', "Integer value out of range"),
    ("large.json", 'b"{" + b" " * (1 << 27)', "more than 128 MiB"),
    ("lines.tiktoken", 'b"YQ== 0\\n" + b"\\n" * 20_000_000', "4194304 lines"),
    ("rank.tiktoken", 'b"YQ== " + b"9" * 50_000_000', "expected a token in base64"),
    ("lines.model", 'b"minbpe v1\\n" + b"\\n" * 20_000_000', "4194304 lines"),
    ("doubling.model", "doubling()", "the token has .* bytes .*, all tokens have"),
    ("large.pkl", 'b"\\x80\\x04}" + b"\\x94" * 20_000_000', "more than 8 MiB"),
    ("memo.pkl", 'b"\\x80\\x04}" + b"\\x94" * 8_000_000', "not a pickled tiktoken.Encoding"),
    ("marks.pkl", 'b"\\x80\\x04" + b"(" * 8_000_000', "not a pickled tiktoken.Encoding"),
    ("blanks/tokenizer.json", "huggingface(merges=[' ' * 100_000_000])", "expected two tokens"),
    ("names/tokenizer.json", "huggingface(merges=['\\u4e00' * 100_000 + ' a'])", "merge 0, of"),
    ("added/tokenizer.json", "huggingface(added=added())", "added tokens have more than 16 MiB"),
    ("splits/tokenizer.json", "huggingface(splits=['a{1,9}|[^x]'] * 1_000)", "more than 16"),
    ("states/tokenizer.json", "huggingface(splits=['((a{1,20}){1,20}){1,20}'])", "4096 states"),
]

SOURCE = """
import json, os, resource, sys
from streamtok import formats
from streamtok.errors import VocabularyError
from streamtok.vocabulary.byte_alphabet import CHARACTERS

resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))

def doubling():
    lines = ["97 97"] + [f"{i} {i}" for i in range(256, 270)]  # the last token has 32 768 bytes
    lines += [f"{i} 270" for i in range(256)]
    lines += [f"{first} {i}" for i in range(98, 256) for first in range(271, 400)]
    return "\\n".join(["minbpe v1", "", "0", *lines]).encode()

def added():
    return [("%07d" % i) * 144 for i in range(17_000)]

def huggingface(merges=(), added=(), splits=()):
    vocab = {CHARACTERS[i]: i for i in range(256)}
    split = [
        {"type": "Split", "pattern": {"Regex": s}, "behavior": "Isolated", "invert": False}
        for s in splits
    ]
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    return json.dumps({
        "added_tokens": [
            {"id": 256 + i, "content": s, "normalized": bool(i % 2)} for i, s in enumerate(added)
        ],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*split, level]},
        "model": {"type": "BPE", "vocab": vocab, "merges": list(merges)},
    }).encode()

messages = {}
for name, contents, _ in BOMBS:
    path = os.path.join(FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(eval(contents))
    try:
        formats.load(path, pattern="gpt2" if name.endswith(".tiktoken") else None)
        messages[name] = "loaded"
    except VocabularyError as error:
        messages[name] = str(error)
    os.unlink(path)
print(json.dumps(messages))
"""


def test_hostile_files_are_refused_within_bounds(tmp_path: Path) -> None:
    bombs = random.sample(BOMBS, len(BOMBS) // 2)  # other ones each time
    head = f"LIMIT, FOLDER, BOMBS = {LIMIT}, {str(tmp_path)!r}, {bombs!r}\n"
    messages = json.loads(python(head + SOURCE, timeout=600))
    for name, _, expected in bombs:
        with pytest.raises(VocabularyError, match=expected):
            raise VocabularyError(messages[name])
        assert name in messages[name]
        assert len(messages[name]) < 1_000


def test_damaged_files_of_every_format(tmp_path: Path) -> None:
    """A small run, in a process with little memory."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.long", "loaders", "--rounds", "240", "--seconds", "600"],
        check=False, capture_output=True, text=True, timeout=600, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.findall(r"^ +(\S+) (encoding|refused) +(\d+)$", done.stdout, re.MULTILINE)
    assert sum(int(count) for _, _, count in counts) == 240
    assert all(int(count) > 5 for _, outcome, count in counts if outcome == "refused")
    assert sum(int(count) for _, outcome, count in counts if outcome == "encoding") > 12


@pytest.mark.parametrize("key", ["normalizers", "processors", "pretokenizers"])
@pytest.mark.parametrize("depth", [40, 200])
def test_nested_sequences_have_a_limit(tmp_path: Path, key: str, depth: int) -> None:
    made: object = {"type": "ByteLevel", "add_prefix_space": False}
    for _ in range(depth):
        made = {"type": "Sequence", key: [made]}
    where = {"normalizers": "normalizer", "processors": "post_processor"}
    value = {
        "added_tokens": [],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "model": {"type": "BPE", "vocab": {}, "merges": []},
        where.get(key, "pre_tokenizer"): made,
    }
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(value))
    with pytest.raises(VocabularyError, match=r"nested (deeper than 64|too deep)"):
        formats.load(path)
