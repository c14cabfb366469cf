"""The digest of a file without its first bytes, which may still change."""

from __future__ import annotations

import hashlib


class RestHash:
    """SHA-256, fed with all bytes in order, of those from offset `start` on."""

    def __init__(self, start: int):
        self.start = start
        self._skip = start  # bytes still to skip
        self._sha256 = hashlib.sha256()

    def update(self, data: bytes | memoryview) -> None:
        if self._skip:
            view = memoryview(data).cast("B")
            skipped = min(self._skip, len(view))
            self._skip -= skipped
            data = view[skipped:]
        self._sha256.update(data)

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()
