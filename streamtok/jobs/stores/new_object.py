"""An object that is written block by block, and appears in its store when it is complete.

It is first written to a temporary folder on this machine. Nothing is uploaded before all bytes are
final, so nothing has to be undone in the store.
"""

from __future__ import annotations

import os
import tempfile

from ...files import PartFile
from ...threads import WriterThread
from .objects import upload
from .urls import check_writable


class NewObject(PartFile):
    """A temporary file that `publish` uploads.

    Errors in writing name this file, because its disk may be full.
    """

    def __init__(
        self,
        url: str,
        *,
        is_new: bool = False,
        hashed_from: int | None = None,
        writer: WriterThread | None = None,
        is_scratch: bool = False,
    ):
        """is_new: as for `upload`. The other arguments are as for PartFile.

        Raises the errors of `check_writable` and PartFile.
        """
        check_writable(url)
        self._is_new = is_new
        self._folder = tempfile.TemporaryDirectory(prefix="streamtok-")
        path = os.path.join(self._folder.name, "object")
        try:
            super().__init__(path, hashed_from=hashed_from, writer=writer, is_scratch=is_scratch)
        except BaseException:
            self._folder.cleanup()
            raise
        self.target = url

    def _rename(self) -> None:
        """Upload the closed file. Raises OSError."""
        super()._rename()
        upload(self.name, self.target, is_new=self._is_new)
        self._folder.cleanup()

    def discard(self) -> None:
        super().discard()
        self._folder.cleanup()
