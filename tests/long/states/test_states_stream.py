"""What the model of streams rests on, and work that must not grow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .model import completion, unfinished, utf8_of

IS_SLOW_BUILD = os.environ.get("HYPOTHESIS_PROFILE") == "sanitize"
ROOT = Path(__file__).resolve().parents[3]


def test_what_a_str_stands_for():
    assert utf8_of("a\ud83d\udc4d\ud83d", "replace") == "a\U0001f44d\ufffd".encode()
    escaped = "\udcff\ud83d\udc4d"
    assert utf8_of(escaped, "surrogateescape") == b"\xff" + "\U0001f44d".encode()
    for character in "é日👍\U0010ffff":
        data = character.encode()
        for size in range(1, len(data)):
            assert unfinished(b"x" + data[:size]) == data[:size]
            (data[:size] + completion(data[:size])).decode()
        assert unfinished(data) == b""
    assert unfinished(b"\xff") == unfinished(b"\xed\xa0") == unfinished(b"\x80") == b""


# Work that must not grow with what waits. Each takes a second or a few, and more than the limit
# where bytes are looked at again and again. It is processor time: other programs do not matter.
BOUNDED = {
    "repaired bytes": """
s = streamtok.get_encoding("cl100k_base").stream_encoder(errors="replace")
for _ in range(1000):
    s.encode_to_numpy(b"\\xff" * 65536)
""",
    "lines of blanks": """
s = streamtok.get_encoding("cl100k_base").stream_encoder()
data = ("\\n" + " " * 1150).encode() * 40
for _ in range(250):
    s.encode_to_numpy(data[:32768])
""",
    "blanks of other kinds": """
for blank in ["\\xa0", "\\u3000", "\\v"]:
    s = streamtok.get_encoding("cl100k_base").stream_encoder()
    for _ in range(80):
        s.encode_to_numpy((blank + " " * 1150) * 28)
""",
    "long tokens": """
texts = ["-" * 1000] * 200 + ["=" * 1000 + "\\n"] * 50
s = streamtok.Encoding.train_from_iterator(texts, 1500, "gpt2").stream_encoder()
for _ in range(50):
    s.encode_to_numpy(b"-" * 4096)
""",
    "a long look-ahead in small chunks": """
ranks = {bytes([i]): i for i in range(256)}
ranks[b"xa"] = 256
e = streamtok.Encoding("x", pat_str="xa*b|x|a+|[^xa]", mergeable_ranks=ranks, special_tokens={})
s = e.stream_encoder()
s.encode(b"x")
for _ in range(100_000):
    s.encode(b"aaaaaaaaaa")
assert s.pending == 1_000_001
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of processor time")
@pytest.mark.parametrize("what", BOUNDED)
def test_work_is_bounded(what):
    seconds = 600 if IS_SLOW_BUILD else 25
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + "import streamtok\n" + BOUNDED[what]],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr or f"more than {seconds} s of processor time"
