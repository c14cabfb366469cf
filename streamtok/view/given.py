"""The one file or URL that the page may read: the one on the command line."""

from __future__ import annotations

import contextlib
import os
import urllib.request
from collections.abc import Iterator

from ..errors import StreamtokError
from ..pipeline.sources import check_file, open_blocks, unpack
from ..pipeline.sources.blocks import BLOCK_SIZE
from ..stores.urls import is_url, scheme_of

_WHOLE = 1 << 18  # bytes: a text of up to this size is shown as a whole
_START = 1 << 16
_TIMEOUT = 60.0  # seconds that a server may say nothing


class Given:
    """A file or a URL. It can be read any number of times, from its beginning."""

    def __init__(self, name: str) -> None:
        """name: a path, or a URL. Raises OSError if there is no such file or object.

        http and https need no extra; other URLs need that of stores.
        """
        self.path = name
        self.is_web = is_url(name) and scheme_of(name) in ("http", "https")
        self.name = name if is_url(name) else os.path.basename(name)
        self.size = None if self.is_web else check_file(name)  # None: it is not known

    def open(self) -> Reading:
        """Reading: from the beginning."""
        return Reading(self)

    def start(self) -> tuple[str, bool, bool]:
        """(text, whether it is all, whether it is UTF-8): the start. Raises as `Reading`."""
        data = b""
        with contextlib.closing(self.open()) as reading:
            for block in reading:
                data += block
                if len(data) > _WHOLE:
                    break
        is_whole = len(data) <= _WHOLE
        data = data if is_whole else data[:_START]
        text = data.decode("utf-8", "replace")
        if not is_whole:
            text = text.rstrip("\ufffd")
        return text, is_whole, data.startswith(text.encode())


class Reading:
    """Yields blocks of bytes, unpacked. Raises OSError, StreamtokError for a damaged archive."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self.read = 0  # bytes of the file as it is, packed or not
        self.size = given.size
        self._blocks: Iterator[bytes] = unpack(self._counted(), given.name)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._blocks)

    def close(self) -> None:
        """Close the file."""
        close = getattr(self._blocks, "close", None)
        if close is not None:
            close()

    def _counted(self) -> Iterator[bytes]:
        given = self._given
        blocks = self._from_web() if given.is_web else open_blocks(given.path, given.name)
        with contextlib.closing(blocks):  # type: ignore[type-var]  # a generator
            for block in blocks:
                self.read += len(block)
                yield block

    def _from_web(self) -> Iterator[bytes]:
        try:
            with urllib.request.urlopen(self._given.path, timeout=_TIMEOUT) as answer:
                size = answer.headers.get("Content-Length", "")
                self.size = int(size) if size.isdecimal() else None
                while block := answer.read(BLOCK_SIZE):
                    yield block
        except OSError as error:
            raise StreamtokError(f"{self._given.name}: {error}") from None
