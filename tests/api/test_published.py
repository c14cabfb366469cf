"""Published vocabularies: downloaded once, kept in tiktoken's cache, and checked."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamtok import registry
from streamtok.errors import VocabularyError
from streamtok.vocabulary import published
from streamtok.vocabulary.bundled import load_bundled
from streamtok.vocabulary.ranks_file import dumps_tiktoken
from streamtok.vocabulary.table import Vocabulary

URL = "https://openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken"
KEY = "ec7223a39ce59f226a68acc30dc1af2788490e15"  # SHA-1 of the URL: tiktoken's file name
P50K_SHA256 = "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"
SMALL = Vocabulary.from_ranks({bytes([byte]): byte for byte in range(256)} | {b"ab": 256})
FILE = dumps_tiktoken(SMALL)


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
    network: Network, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # p50k_base is r50k_base and the runs of 2 to 25 spaces; its digest proves it.
    ranks = load_bundled("r50k_base").to_ranks()
    ranks |= {b" " * length: 50255 + length for length in range(2, 26)}
    data = dumps_tiktoken(Vocabulary.from_ranks(ranks))
    assert hashlib.sha256(data).hexdigest() == P50K_SHA256
    folder.mkdir(parents=True)
    (folder / KEY).write_bytes(data)
    monkeypatch.setitem(published.PUBLISHED, "p50k_base", published.Published(URL, P50K_SHA256))
    monkeypatch.setattr(registry, "ENCODINGS", {})
    registry._vocabulary.cache_clear()
    assert registry.get_encoding("p50k_base")._mergeable_ranks == ranks
    assert network.calls == []


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
    # and the advice helps
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
