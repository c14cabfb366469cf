"""Encodings by name: the same as tiktoken's, made once, and found without a network if possible."""

from __future__ import annotations

import hashlib
import http.client
import importlib
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamtok import registry
from streamtok.errors import VocabularyError
from streamtok.registry import (
    encoding_for_model,
    encoding_name_for_model,
    get_encoding,
    list_encoding_names,
)
from streamtok.vocabulary import published
from streamtok.vocabulary.bundled import load_bundled
from streamtok.vocabulary.ranks_file import dumps_tiktoken
from streamtok.vocabulary.table import Vocabulary

NAMES = [
    "gpt2",
    "r50k_base",
    "p50k_base",
    "p50k_edit",
    "cl100k_base",
    "o200k_base",
    "o200k_harmony",
]
BUNDLED = [name for name in NAMES if not name.startswith("p50k")]

URL = "https://openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken"
KEY = "ec7223a39ce59f226a68acc30dc1af2788490e15"  # SHA-1 of the URL, the name tiktoken gives it
P50K_SHA256 = "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
SMALL = Vocabulary.from_ranks({bytes([byte]): byte for byte in range(256)} | {b"ab": 256})
FILE = dumps_tiktoken(SMALL)


class StubEncoding:
    """Keeps what it is given, slowly enough for threads to meet."""

    made = 0

    def __init__(self, name: str, **arguments: Any) -> None:
        time.sleep(0.01)
        StubEncoding.made += 1
        self.name = name
        self.arguments = arguments


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"a test wants the network: {arguments}")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(registry, "ENCODINGS", {})


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> type[StubEncoding]:
    monkeypatch.setattr(registry, "Encoding", StubEncoding)
    monkeypatch.setattr(StubEncoding, "made", 0)
    return StubEncoding


def tiktoken_module(name: str) -> Any:
    """Import a module of the tiktoken whose facts we hold; later ones may know more models."""
    if not pytest.importorskip("tiktoken").__version__.startswith("0.14."):
        pytest.skip("the facts are those of tiktoken 0.14")
    return importlib.import_module(name)


# Names and what they stand for


def test_names() -> None:
    assert list_encoding_names() == NAMES
    list_encoding_names().clear()
    assert list_encoding_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_definitions_are_tiktoken_s(
    name: str, stub: type[StubEncoding], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiktoken_s = tiktoken_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(tiktoken_s, "load_tiktoken_bpe", lambda *_, **__: {})
    monkeypatch.setattr(tiktoken_s, "data_gym_to_mergeable_bpe_ranks", lambda *_, **__: {})
    monkeypatch.setattr(registry, "_vocabulary", lambda name: {})
    expected = tiktoken_s.ENCODING_CONSTRUCTORS[name]()
    made: Any = get_encoding(name)
    assert {"explicit_n_vocab": None, **expected} == {"name": made.name, **made.arguments}


def test_all_of_tiktoken_s_names_are_there() -> None:
    tiktoken_s = tiktoken_module("tiktoken_ext.openai_public")
    assert list(tiktoken_s.ENCODING_CONSTRUCTORS) == NAMES


def test_models_are_tiktoken_s() -> None:
    tiktoken_s = tiktoken_module("tiktoken.model")
    assert registry.MODEL_TO_ENCODING == tiktoken_s.MODEL_TO_ENCODING
    # in the same order, as the first beginning that fits counts
    expected = list(tiktoken_s.MODEL_PREFIX_TO_ENCODING.items())
    assert list(registry.MODEL_PREFIX_TO_ENCODING.items()) == expected


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt2", "gpt2"),
        ("gpt-2", "gpt2"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-0314", "cl100k_base"),
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-2024-05-13", "o200k_base"),
        ("ft:gpt-4o:mine", "o200k_base"),
        ("ft:gpt-4:mine", "cl100k_base"),
        ("gpt-5-nano", "o200k_base"),
        ("gpt-oss-120b", "o200k_harmony"),
        ("text-davinci-003", "p50k_base"),
        ("text-davinci-edit-001", "p50k_edit"),
        ("davinci", "r50k_base"),
    ],
)
def test_models(model: str, name: str) -> None:
    assert encoding_name_for_model(model) == name


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match=r"Unknown encoding cl100k: expected one of gpt2, "):
        get_encoding("cl100k")
    for wrong in (None, b"gpt2", 5, ["gpt2"]):
        with pytest.raises(ValueError, match=r"Expected a string in get_encoding, got <class"):
            get_encoding(wrong)  # type: ignore[arg-type]
    for model in ("gpt-9", "", "GPT-4"):
        with pytest.raises(KeyError, match=r"Could not automatically map .*streamtok.get_encoding"):
            encoding_name_for_model(model)
        with pytest.raises(KeyError):
            encoding_for_model(model)


# One object for each name


def test_one_object_and_one_vocabulary(stub: type[StubEncoding]) -> None:
    made: list[Any] = [get_encoding(name) for name in BUNDLED]
    assert [encoding.name for encoding in made] == BUNDLED
    assert all(get_encoding(name) is encoding for name, encoding in zip(BUNDLED, made, strict=True))
    assert encoding_for_model("gpt-4") is get_encoding("cl100k_base")
    assert stub.made == len(BUNDLED)
    tables = {encoding.name: encoding.arguments["mergeable_ranks"] for encoding in made}
    assert tables["gpt2"] is tables["r50k_base"]
    assert tables["o200k_base"] is tables["o200k_harmony"]
    assert tables["cl100k_base"] == load_bundled("cl100k_base")


def test_special_tokens_are_nobody_s_to_change(
    stub: type[StubEncoding], monkeypatch: pytest.MonkeyPatch
) -> None:
    first: Any = get_encoding("gpt2")
    first.arguments["special_tokens"]["<|mine|>"] = 5
    monkeypatch.setattr(registry, "ENCODINGS", {})
    again: Any = get_encoding("gpt2")
    assert again.arguments["special_tokens"] == {"<|endoftext|>": 50256}


def test_threads_get_the_same_object(stub: type[StubEncoding]) -> None:
    barrier = threading.Barrier(16)
    got: list[tuple[str, object]] = []

    def work(name: str) -> None:
        barrier.wait()
        got.append((name, get_encoding(name)))

    names = ["gpt2", "r50k_base", "cl100k_base", "o200k_base"] * 4
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 16
    assert all(encoding is get_encoding(name) for name, encoding in got)
    assert stub.made == 4


def test_a_failure_is_not_remembered(
    stub: type[StubEncoding], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> Vocabulary:
        raise VocabularyError("not now")

    with monkeypatch.context() as patch:
        patch.setattr(registry, "_vocabulary", fail)
        with pytest.raises(VocabularyError, match="not now"):
            get_encoding("gpt2")
    assert get_encoding("gpt2").name == "gpt2"


@pytest.mark.parametrize("name", BUNDLED)
def test_real_encodings(name: str) -> None:
    pytest.importorskip("streamtok.encoding")
    encoding = get_encoding(name)
    expected_size = {
        "gpt2": 50257,
        "r50k_base": 50257,
        "cl100k_base": 100277,
        "o200k_base": 200019,
        "o200k_harmony": 201088,
    }
    assert encoding.name == name
    assert encoding.n_vocab == expected_size[name]
    ids = {"gpt2": [31373, 995], "cl100k_base": [15339, 1917], "o200k_base": [24912, 2375]}
    ids |= {"r50k_base": ids["gpt2"], "o200k_harmony": ids["o200k_base"]}
    assert encoding.encode("hello world") == ids[name]


# The vocabulary that is not bundled


class Network:
    """Stands in for `urlopen`: answers with `content`, or raises it."""

    def __init__(self) -> None:
        self.content: bytes | Exception = FILE
        self.calls: list[tuple[object, object]] = []

    def open(self, url: object, timeout: object = None) -> io.BytesIO:
        self.calls.append((url, timeout))
        if isinstance(self.content, Exception):
            raise self.content
        return io.BytesIO(self.content)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    """A network with a small p50k_base, and no cache folder chosen."""
    small = published.Published(URL, hashlib.sha256(FILE).hexdigest())
    network = Network()
    monkeypatch.setattr(urllib.request, "urlopen", network.open)
    monkeypatch.setitem(published.PUBLISHED, "p50k_base", small)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    registry._vocabulary.cache_clear()
    yield network
    registry._vocabulary.cache_clear()


@pytest.fixture
def folder(tmp_path: Path, network: Network, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder chosen by the user, not made yet."""
    folder = tmp_path / "some" / "cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    return folder


def load() -> Vocabulary:
    registry._vocabulary.cache_clear()
    return registry._vocabulary("p50k_base")


def test_published_facts() -> None:
    url, sha256 = published.PUBLISHED["p50k_base"]
    assert (url, hashlib.sha1(url.encode()).hexdigest()) == (URL, KEY)
    assert sha256 == P50K_SHA256


def test_download_is_kept(network: Network, folder: Path) -> None:
    assert load() == SMALL
    ((url, timeout),) = network.calls
    assert url == URL
    assert isinstance(timeout, float)
    assert 0 < timeout < 120
    assert os.listdir(folder) == [KEY]
    assert (folder / KEY).read_bytes() == FILE
    network.content = OSError("no network")
    assert load() == SMALL
    assert len(network.calls) == 1


def test_the_published_file_is_taken_from_the_cache(
    folder: Path, stub: type[StubEncoding], monkeypatch: pytest.MonkeyPatch
) -> None:
    # p50k_base is r50k_base and the runs of 2 to 25 spaces; its digest proves it.
    ranks = load_bundled("r50k_base").to_ranks()
    ranks |= {b" " * length: 50255 + length for length in range(2, 26)}
    data = dumps_tiktoken(Vocabulary.from_ranks(ranks))
    assert hashlib.sha256(data).hexdigest() == P50K_SHA256
    folder.mkdir(parents=True)
    (folder / KEY).write_bytes(data)
    monkeypatch.setitem(published.PUBLISHED, "p50k_base", published.Published(URL, P50K_SHA256))
    made: Any = get_encoding("p50k_base")
    assert made.arguments["mergeable_ranks"].to_ranks() == ranks


def test_both_p50k_encodings_share_one_download(
    network: Network, folder: Path, stub: type[StubEncoding]
) -> None:
    base: Any = get_encoding("p50k_base")
    edit: Any = get_encoding("p50k_edit")
    assert base.arguments["mergeable_ranks"] is edit.arguments["mergeable_ranks"]
    assert base.arguments["mergeable_ranks"] == SMALL
    assert len(network.calls) == 1


@pytest.mark.parametrize("damaged", [b"", FILE[:-5], FILE + b"\n", b"<html>captive portal</html>"])
def test_damaged_cached_file_is_fetched_again(
    damaged: bytes, network: Network, folder: Path
) -> None:
    folder.mkdir(parents=True)
    (folder / KEY).write_bytes(damaged)
    assert load() == SMALL
    assert (folder / KEY).read_bytes() == FILE
    assert os.listdir(folder) == [KEY]
    (folder / KEY).write_bytes(damaged)
    network.content = OSError("no network")
    with pytest.raises(VocabularyError, match="no network"):
        load()
    assert os.listdir(folder) == []


def test_damaged_download_is_refused_and_not_kept(network: Network, folder: Path) -> None:
    network.content = FILE[:-5]
    with pytest.raises(
        VocabularyError, match=rf"{URL} is damaged: .* its {len(FILE) - 5} bytes"
    ) as info:
        load()
    assert isinstance(info.value, ValueError)  # which is what tiktoken raises
    assert not folder.exists()
    network.content = FILE
    assert load() == SMALL


@pytest.mark.parametrize(
    "failure",
    [
        urllib.error.URLError("Name or service not known"),
        urllib.error.HTTPError(URL, 404, "Not Found", http.client.HTTPMessage(), None),
        TimeoutError("timed out"),
        ConnectionResetError("reset"),
        http.client.IncompleteRead(b"abc", 100),
    ],
)
def test_without_a_network_the_error_says_what_to_do(
    failure: Exception, network: Network, folder: Path
) -> None:
    network.content = failure
    with pytest.raises(VocabularyError) as info:
        load()
    message = str(info.value)
    assert message.startswith(f"{URL} cannot be downloaded: {failure}\n")
    assert published.PUBLISHED["p50k_base"].sha256 in message
    assert f"put the file at {folder / KEY}\n" in message
    assert "TIKTOKEN_CACHE_DIR" in message
    assert info.value.__cause__ is failure
    # and doing what it says helps
    folder.mkdir(parents=True)
    (folder / KEY).write_bytes(FILE)
    assert load() == SMALL


def test_folders_in_order(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    default = tmp_path / "temporary" / "data-gym-cache"
    load()
    assert os.listdir(default) == [KEY]
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path / "gym"))
    load()
    assert os.listdir(tmp_path / "gym") == [KEY]
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    load()
    assert os.listdir(tmp_path / "tiktoken") == [KEY]
    assert len(network.calls) == 3
    load()
    assert len(network.calls) == 3


def test_an_empty_variable_switches_the_cache_off(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(tmp_path / "gym"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    for count in (1, 2):
        assert load() == SMALL
        assert len(network.calls) == count
    assert os.listdir(tmp_path) == []
    network.content = FILE[:-5]
    with pytest.raises(VocabularyError, match="is damaged"):
        load()
    network.content = OSError("no network")
    with pytest.raises(VocabularyError, match=rf"(?s)no network.*TIKTOKEN_CACHE_DIR.*{KEY}"):
        load()


def test_only_a_chosen_folder_must_be_writable(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"no folder")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    assert load() == SMALL
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(OSError, match=r"file|File"):
        load()
    assert (tmp_path / "file").read_bytes() == b"no folder"


def test_a_link_in_a_shared_folder_is_not_followed(network: Network, folder: Path) -> None:
    folder.mkdir(parents=True)
    precious = folder / "precious"
    precious.write_bytes(b"precious")
    (folder / KEY).symlink_to(precious)
    assert load() == SMALL
    assert precious.read_bytes() == b"precious"
    assert not (folder / KEY).is_symlink()


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", None])
def test_tiktoken_finds_what_we_cache_and_we_what_it_caches(
    variable: str | None, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiktoken_s = pytest.importorskip("tiktoken.load")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if variable is not None:
        monkeypatch.setenv(variable, str(tmp_path / "chosen"))
    answers: list[Callable[[], bytes]] = []
    monkeypatch.setattr(tiktoken_s, "read_file", lambda url: answers.pop()())
    sha256 = published.PUBLISHED["p50k_base"].sha256

    load()
    assert tiktoken_s.read_file_cached(URL, sha256) == FILE

    (path,) = tmp_path.glob(f"*/{KEY}")
    path.unlink()
    answers.append(lambda: FILE)
    assert tiktoken_s.read_file_cached(URL, sha256) == FILE
    network.content = OSError("no network")
    assert load() == SMALL


def test_heavy_modules_are_imported_only_when_needed() -> None:
    code = "import sys, numpy; before = set(sys.modules); import streamtok.registry"
    code += "; print(*set(sys.modules) - before)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    imported = set(run.stdout.split())
    assert "streamtok.registry" in imported
    assert not {"urllib.request", "http.client", "ssl", "tempfile"} & imported
