"""Reads the start of the file or URL from the command line, which the page shows at first."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from ..jobs.sources.blocks import check_file, open_blocks
from ..jobs.sources.compression import unpack
from ..jobs.stores.urls import is_url

_WHOLE = 1 << 18  # bytes of the largest text that is shown whole
_START = 1 << 16  # bytes that are shown of a larger text


class Given(NamedTuple):
    """The text of a file, or its start. is_utf8: whether no byte was replaced with U+FFFD."""

    name: str
    text: str
    is_whole: bool
    is_utf8: bool


def read_given(path: str) -> Given:
    """Read the start of a file or URL, decompressed.

    Raises OSError if it cannot be read, and StreamtokError for damaged compressed data.
    """
    name = path if is_url(path) else os.path.basename(path)
    check_file(path)
    blocks = unpack(open_blocks(path, name), name)
    data = b""
    with contextlib.closing(blocks):  # type: ignore[type-var]  # a generator
        for block in blocks:
            data += block
            if len(data) > _WHOLE:
                break
    is_whole = len(data) <= _WHOLE
    text = data[: _WHOLE if is_whole else _START].decode("utf-8", "replace")
    if not is_whole:
        text = text.rstrip("\ufffd")
    return Given(name, text, is_whole, data.startswith(text.encode()))
