"""What programs written for tiktoken use beyond its public methods, and its own tests."""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamtok
from tests.conftest import encoding_of, twin_of
from tests.new_process import python

PARTS = [
    b" \xec\x8b\xa4\xed", b"\xff", b"\x80", b"hello", b" ", b"\n", b" \n", "é".encode(), b"\xc3",
]  # fmt: skip
SOME_BYTES = st.lists(st.sampled_from(PARTS) | st.binary(max_size=3), max_size=8).map(b"".join)


@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
@given(data=SOME_BYTES)
def test_bytes_become_tiktoken_s_ids(name: str, data: bytes) -> None:
    ids = encoding_of(name)._encode_bytes(data)
    assert ids == twin_of(name)._encode_bytes(data)
    assert encoding_of(name).decode_bytes(ids) == data


IN_ITS_PLACE = """
import streamtok, sys

load = streamtok.load
sys.modules["tiktoken"] = streamtok
import tiktoken.core, tiktoken.load, tiktoken.model, tiktoken.registry
from tiktoken.load import data_gym_to_mergeable_bpe_ranks, load_tiktoken_bpe

assert streamtok.load is tiktoken.load is load, "the function stays"
assert load_tiktoken_bpe is tiktoken.load.load_tiktoken_bpe
assert tiktoken.core.Encoding is streamtok.Encoding
assert tiktoken.model.encoding_name_for_model("gpt-4o") == "o200k_base"
assert tiktoken.model.MODEL_TO_ENCODING is streamtok.registry.MODEL_TO_ENCODING
assert tiktoken.registry is streamtok.registry
assert tiktoken.registry.get_encoding("gpt2") is streamtok.get_encoding("gpt2")
assert "gpt2" in tiktoken.registry.list_encoding_names()
"""


def test_submodules_in_tiktoken_s_place() -> None:
    python(IN_ITS_PLACE)


def test_submodules_have_tiktoken_s_names() -> None:
    for name in ("core", "load", "model", "registry"):
        theirs = importlib.import_module(f"tiktoken.{name}")
        own = [
            n
            for n, value in vars(theirs).items()
            if getattr(value, "__module__", 0) == theirs.__name__
        ]
        own += [n for n in vars(theirs) if n.isupper() and n != "ENCODING_CONSTRUCTORS"]
        public = {n for n in own if not n.startswith("_") and n != "TYPE_CHECKING"}
        assert public <= {*dir(getattr(streamtok, name))}
        assert public


def test_files_of_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken import load as theirs

    ours: Any = streamtok.load
    ranks = {b"b": 7, b"a": 2, b" \xff": 40}
    path = tmp_path / "some.tiktoken"
    ours.dump_tiktoken_bpe(ranks, str(path))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert list(ours.load_tiktoken_bpe(str(path), digest).items()) == [
        *theirs.load_tiktoken_bpe(str(path), digest).items()
    ]
    with pytest.raises(ValueError, match="SHA-256"):
        ours.load_tiktoken_bpe(str(path), "0" * 64)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    ours.load_tiktoken_bpe(str(path), digest)
    path.unlink()
    assert ours.load_tiktoken_bpe(str(path)) == theirs.load_tiktoken_bpe(str(path), digest) == ranks
    (damaged,) = (tmp_path / "cache").iterdir()
    damaged.write_bytes(b"YQ== 1\n")
    with pytest.raises(FileNotFoundError):
        ours.load_tiktoken_bpe(str(path), digest)
    path.write_bytes(b"YQ== one\n")
    with pytest.raises(ValueError, match="line 1"):
        ours.load_tiktoken_bpe(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize("clobber", [False, True])
def test_gpt_2_s_pair_of_files(tmp_path: Path, clobber: bool) -> None:
    from tiktoken import load as theirs

    from streamtok import formats

    gpt2 = streamtok.get_encoding("gpt2")
    pair = [str(tmp_path / "vocab.bpe"), str(tmp_path / "encoder.json")]
    formats.save_gpt2(gpt2, *pair)
    ours: Any = streamtok.load
    found = ours.data_gym_to_mergeable_bpe_ranks(*pair, clobber_one_byte_tokens=clobber)
    assert found == theirs.data_gym_to_mergeable_bpe_ranks(*pair, clobber_one_byte_tokens=clobber)
    assert found == gpt2._mergeable_ranks
    ids = json.loads(Path(pair[1]).read_text())
    Path(pair[1]).write_text(json.dumps({**ids, "hello": 7}))
    with pytest.raises(ValueError, match=r"encoder\.json"):
        ours.data_gym_to_mergeable_bpe_ranks(*pair)
