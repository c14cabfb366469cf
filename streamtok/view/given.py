"""The one file or URL that the page shows at first: the one on the command line."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from ..pipeline.sources import open_blocks, unpack
from ..stores.urls import is_url
from .tab_answers import LONGEST_TEXT


class Given(NamedTuple):
    """The beginning of a file. is_whole: it is all of it. is_utf8: as the file has it."""

    name: str
    text: str
    is_whole: bool
    is_utf8: bool


def read_given(path: str) -> Given:
    """Read the beginning of a file or an object, unpacked. Raises OSError, ArchiveError."""
    name = path if is_url(path) else os.path.basename(path)
    data = b""
    with contextlib.closing(open_blocks(path)) as blocks:  # type: ignore[type-var]  # a generator
        for block in unpack(blocks, name):
            data += block
            if len(data) > LONGEST_TEXT:
                break
    is_whole = len(data) <= LONGEST_TEXT
    data = data[:LONGEST_TEXT]
    text = data.decode("utf-8", "replace")
    if not is_whole:
        text = text.rstrip("\ufffd")
    return Given(name, text, is_whole, data.startswith(text.encode()))
