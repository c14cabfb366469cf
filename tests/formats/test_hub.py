"""Models of Hugging Face's hub by name, from a cache that the tests make: no network is used."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants

import streamtok
from streamtok.errors import VocabularyError
from tests.formats.test_formats_ranks import tekken
from tests.formats.test_load import tokenizer
from tests.sentencepiece_models import trained

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, while no network may be used."""
    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return folder


def cached(cache: Path, name: str = "org/model", revision: str = "main") -> Path:
    """The folder of a model's files in the cache."""
    model = cache / f"models--{name.replace('/', '--')}"
    (model / "refs").mkdir(parents=True, exist_ok=True)
    (model / "refs" / revision).write_text(COMMIT)
    folder = model / "snapshots" / COMMIT
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_cached_model(cache: Path) -> None:
    theirs = tokenizer()
    path = cached(cache) / "tokenizer.json"
    theirs.save(str(path))
    (path.parent / "tokenizer.model").write_bytes(b"not looked at")
    enc = streamtok.load("org/model")
    assert (enc.name, enc.digest) == ("model", streamtok.load(path).digest)
    assert enc.encode("he", add_special_tokens=True) == theirs.encode("he").ids
    assert streamtok.load("org/model", name="mine").name == "mine"


def test_other_kinds_of_files(cache: Path) -> None:
    (cached(cache, "org/tekken") / "tekken.json").write_text(tekken())
    assert streamtok.load("org/tekken").encode("ab") == [99, 100]
    folder = cached(cache, "org/spm-1.5")
    (folder / "tokenizer.model").write_bytes(trained())
    plain = streamtok.load("org/spm-1.5")
    (folder / "added_tokens.json").write_text('{"<new>": 5000}')
    assert plain.name == "spm-1.5"
    assert streamtok.load("org/spm-1.5").encode("<new>")[-1] == 5000


def test_revisions(cache: Path) -> None:
    tokenizer().save(str(cached(cache, revision="v2") / "tokenizer.json"))
    assert streamtok.load("org/model", revision="v2").name == "model"
    assert streamtok.load("org/model", revision=COMMIT).name == "model"
    with pytest.raises(VocabularyError, match=r"hub at v1 can be loaded: "):
        streamtok.load("org/model", revision="v1")


def test_a_path_wins(cache: Path, tmp_path: Path) -> None:
    tokenizer().save(str(cached(cache) / "tokenizer.json"))
    (tmp_path / "org" / "model").mkdir(parents=True)
    with pytest.raises(VocabularyError, match=r"org/model: no vocabulary in this folder"):
        streamtok.load("org/model")
    (tmp_path / "org" / "model").rmdir()
    with pytest.raises(FileNotFoundError):  # a file of this folder is missing
        streamtok.load("org/model")
    (tmp_path / "org").rmdir()
    assert streamtok.load("org/model").name == "model"


def test_what_is_not_cached(cache: Path) -> None:
    with pytest.raises(VocabularyError) as info:
        streamtok.load("org/model")
    message = str(info.value)
    assert message.startswith("'org/model' is neither a file nor a folder here, and no model of ")
    cached(cache)
    with pytest.raises(VocabularyError, match="no vocabulary in this folder"):
        streamtok.load("org/model")
    with pytest.raises(ValueError, match="its own pattern"):
        streamtok.load(object(), revision="v1")


@pytest.mark.parametrize(
    "error", [RuntimeError("first line\nsecond line"), ConnectionError("first line")]
)
def test_failures(error: Exception, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        assert (name, revision) == ("org/model", "v1")
        assert {"tokenizer.json", "merges.txt", "config.json"} <= {*allow_patterns}
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(VocabularyError, match=r"hub at v1 can be loaded: first line$"):
        streamtok.load("org/model", revision="v1")


def test_without_huggingface_hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("huggingface_hub"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        VocabularyError,
        match=r"'org/model' is neither a file nor a folder here\. .* install huggingface_hub",
    ):
        streamtok.load("org/model")
