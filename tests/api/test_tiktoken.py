"""What programs written for tiktoken use beyond its public methods, and its own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamtok
from tests import tiktoken_suite
from tests.conftest import encoding_of, twin_of

PARTS = [
    b" \xec\x8b\xa4\xed",
    b"\xff",
    b"\x80",
    b"hello",
    b" ",
    b"\n",
    b" \n",
    "é".encode(),
    b"\xc3",
]
SOME_BYTES = st.lists(st.sampled_from(PARTS) | st.binary(max_size=3), max_size=8).map(b"".join)


def test_a_character_that_is_cut_off_belongs_to_the_pretoken_before() -> None:
    assert streamtok.get_encoding("cl100k_base")._encode_bytes(b" \xec\x8b\xa4\xed") == [62085]


@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
@given(data=SOME_BYTES)
def test_bytes_become_tiktoken_s_ids(name: str, data: bytes) -> None:
    ids = encoding_of(name)._encode_bytes(data)
    assert ids == twin_of(name)._encode_bytes(data)
    assert encoding_of(name).decode_bytes(ids) == data


def test_bytes_where_tiktoken_has_no_rules(tmp_path: Path) -> None:
    from streamtok.engines.rules import TextRules

    base = streamtok.get_encoding("r50k_base")
    enc = streamtok.Encoding(
        "mine",
        pat_str=base._pat_str,
        mergeable_ranks=base._vocabulary,
        special_tokens={},
        rules=TextRules((("<x>", 60000),)),
    )
    assert enc._encode_bytes(b"\xff<x>\xff") == [
        *base.encode_ordinary(b"\xff", errors="surrogateescape"),
        60000,
        187,
    ]


def test_tiktoken_s_tests_get_streamtok(tmp_path: Path) -> None:
    suite = tmp_path / "tests"
    suite.mkdir()
    (suite / "test_some.py").write_text(
        "import subprocess, sys, tiktoken\n"
        "def test_it():\n"
        "    assert tiktoken.__name__ == 'streamtok'\n"
        "    assert tiktoken.get_encoding('gpt2').encode('hello world') == [31373, 995]\n"
        "    code = 'import tiktoken; assert tiktoken.__name__ == \"streamtok\"'\n"
        "    subprocess.check_call([sys.executable, '-c', code])\n"
    )
    assert tiktoken_suite.run(suite, ["-q"]) == 0
    (suite / "test_more.py").write_text(
        "import socket\ndef test_it():\n    socket.create_connection(('localhost', 1))\n"
    )
    assert tiktoken_suite.run(suite, ["-q"]) == 1
    with pytest.raises(SystemExit, match=r"expected the folder `tests` of tiktoken"):
        tiktoken_suite.run(tmp_path, [])
