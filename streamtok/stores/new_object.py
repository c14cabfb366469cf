"""An object that is written block by block, and appears in its store when it is complete.

It is made in a temporary folder of this machine. So the store is asked when all bytes are known to
be right, and nothing has to be taken back.
"""

from __future__ import annotations

import os
import tempfile

from ..files.part_file import PartFile
from .objects import upload
from .urls import check_writable


class NewObject(PartFile):
    """A file of this machine that `publish` uploads. Errors name it: its disk may be full."""

    def __init__(self, url: str, *, is_new: bool = False, hashed_from: int | None = None):
        """is_new: as for `upload`. Raises OSError where objects do not appear whole."""
        check_writable(url)
        self._url = url
        self._is_new = is_new
        self._folder = tempfile.TemporaryDirectory(prefix="streamtok-")
        try:
            super().__init__(os.path.join(self._folder.name, "object"), hashed_from=hashed_from)
        except BaseException:
            self._folder.cleanup()
            raise

    def publish(self) -> None:
        """Upload the closed file. Raises OSError."""
        super().publish()
        upload(self.name, self._url, is_new=self._is_new)
        self._folder.cleanup()

    def discard(self) -> None:
        super().discard()
        self._folder.cleanup()
