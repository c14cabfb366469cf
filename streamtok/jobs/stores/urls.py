"""URLs, as far as names go: nothing here asks a store."""

from __future__ import annotations

import errno
import os
import re

from ...files import is_folder

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")

# Stores in which an object appears when it is complete, and that can refuse to replace one in the
# same request. In others, such as SFTP, a reader would see the beginning of one that is being
# written.
_WRITABLE = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"})


def is_url(path: str) -> bool:
    """Whether `path` is a URL, such as s3://bucket/key."""
    return _URL.match(path) is not None


def join(folder: str, *names: str) -> str:
    """`os.path.join` for paths, and for URLs."""
    if is_url(folder):
        return "/".join([folder.rstrip("/"), *names])
    return os.path.join(folder, *names)


def check_writable(url: str) -> None:
    """Raise OSError unless objects in this kind of store appear only when they are complete."""
    scheme = url.partition("://")[0].lower()
    if scheme not in _WRITABLE:
        known = ", ".join(f"{one}://" for one in ("s3", "gs", "az", "memory"))
        reason = f"outputs can be paths, or URLs of {known}"
        raise OSError(errno.EROFS, reason, url)
    if not url.partition("://")[2].rpartition("/")[2]:
        raise is_folder(url)
