"""Vocabularies that OpenAI publishes and the package does not contain: downloaded, then cached.

The cache is tiktoken's, so that each library finds what the other one downloaded.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from ..errors import VocabularyError
from .ranks_file import loads_tiktoken
from .table import Vocabulary

__all__ = ["load_published"]


class Published(NamedTuple):
    """Where a file is, and its digest in hexadecimal."""

    url: str
    sha256: str


PUBLISHED = {
    "p50k_base": Published(
        "https://openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken",
        "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    ),
}
_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
_DOWNLOAD_TIMEOUT = 30.0  # seconds without a byte


def load_published(name: str) -> Vocabulary:
    """The vocabulary of that name, a key of `PUBLISHED`.

    Raises `VocabularyError` if it cannot be downloaded, and `OSError` if the cache folder that the
    user has chosen is not writable.
    """
    published = PUBLISHED[name]
    return loads_tiktoken(_read_cached(published), published.url)


def _read_cached(published: Published) -> bytes:
    """Read a published file from tiktoken's cache folder, downloading it first if necessary.

    This follows tiktoken. An environment variable names the folder (empty: no cache); the default
    is in the folder for temporary files. A file's name is the SHA-1 of its URL. A damaged file is
    downloaded again. Only a folder that the user has chosen must be writable.
    """
    import hashlib

    from ..files.part_file import write_whole  # not needed to encode

    key = hashlib.sha1(published.url.encode(), usedforsecurity=False).hexdigest()
    folder, is_chosen = _cache_folder()
    if not folder:
        return _download(
            published,
            "set TIKTOKEN_CACHE_DIR to a folder (an empty environment variable switches the cache "
            f"off), and put the file there under the name {key}",
        )
    path = os.path.join(folder, key)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        with open(path, "rb") as file:
            data = file.read()
        if _is_intact(data, published):
            return data
        with contextlib.suppress(OSError):
            os.remove(path)
    data = _download(published, f"put the file at {os.path.abspath(path)}")
    try:
        os.makedirs(folder, exist_ok=True)
        write_whole(path, data)
    except OSError:
        if is_chosen:
            raise
    return data


def _cache_folder() -> tuple[str, bool]:
    """The folder that tiktoken caches in, and whether the user has chosen it."""
    for variable in _CACHE_VARIABLES:
        if variable in os.environ:
            return os.environ[variable], True
    import tempfile

    return os.path.join(tempfile.gettempdir(), "data-gym-cache"), False


def _download(published: Published, advice: str) -> bytes:
    """Download a published file; `advice` says what to do without a network."""
    import http.client
    import urllib.request

    try:
        with urllib.request.urlopen(published.url, timeout=_DOWNLOAD_TIMEOUT) as response:
            data: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise VocabularyError(
            f"{published.url} cannot be downloaded: {error}\n"
            f"without a network, {advice}\n"
            f"The file's SHA-256 is {published.sha256}. Its name in the folder is the SHA-1 of the "
            "URL. The environment variable TIKTOKEN_CACHE_DIR chooses another folder."
        ) from error
    if not _is_intact(data, published):
        raise VocabularyError(
            f"the download of {published.url} is damaged: the SHA-256 of its {len(data)} bytes is "
            f"not {published.sha256}; nothing was kept, try again"
        )
    return data


def _is_intact(data: bytes, published: Published) -> bool:
    import hashlib

    return hashlib.sha256(data).hexdigest() == published.sha256
