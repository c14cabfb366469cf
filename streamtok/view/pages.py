"""The files of the page. They are read once, and nothing else can be asked for by name."""

from __future__ import annotations

import functools
from importlib import resources

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@functools.lru_cache
def page_files() -> dict[str, tuple[bytes, str]]:
    """Name -> its bytes and its media type, of all files of the page."""
    found = {}
    for file in resources.files("streamtok.view").joinpath("static").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in TYPES:
            found[file.name] = (file.read_bytes(), TYPES[suffix])
    return found
