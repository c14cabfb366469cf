"""Functions on the text of URLs, which do not access any store."""

from __future__ import annotations

import errno
import os
import re

from ...files import is_folder

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")

# Stores in which an object appears when it is complete, and which can refuse in the same request to
# replace an object. In others, such as SFTP, a reader could see an incomplete object.
_WRITABLE = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"})


def is_url(path: str) -> bool:
    """Whether `path` is a URL, such as s3://bucket/key."""
    return _URL.match(path) is not None


def join(folder: str, *names: str) -> str:
    """`os.path.join` for paths and URLs."""
    if is_url(folder):
        return "/".join([folder.rstrip("/"), *names])
    return os.path.join(folder, *names)


def check_writable(url: str) -> None:
    """Raise OSError for a folder, or for a store in which incomplete objects are visible."""
    scheme = url.partition("://")[0].lower()
    if scheme not in _WRITABLE:
        known = ", ".join(f"{one}://" for one in ("s3", "gs", "az", "memory"))
        reason = f"outputs can be paths, or URLs of {known}"
        raise OSError(errno.EROFS, reason, url)
    if not url.partition("://")[2].rpartition("/")[2]:
        raise is_folder(url)
