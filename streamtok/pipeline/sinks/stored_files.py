"""Output files in a store: made in a folder of this process, and uploaded when they are complete.

Some formats rewrite their headers or read their own files again, which no store can do. Nobody
sees an incomplete file.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING

from ...stores import objects
from .by_name import Family
from .ownership import left_shards
from .shards import Files
from .sidecar import has_sidecar, sidecar_path

if TYPE_CHECKING:
    from .flat import Ends, IdArray


class StoredFiles:
    """A sink as `Files`, which cannot be saved in a checkpoint."""

    def __init__(
        self, url: str, family: Family, *, shard_tokens: int | None = None, is_exact: bool = False
    ):
        """As for Files. Raises OSError."""
        self._url = url
        self._family = family
        self._is_sharded = shard_tokens is not None
        self._shards = 0  # uploaded
        self._is_finished = False
        self._folder = tempfile.TemporaryDirectory(prefix="streamtok-")
        self._path = os.path.join(self._folder.name, url.rpartition("/")[2])
        try:
            self._files = Files(self._path, family, shard_tokens=shard_tokens, is_exact=is_exact)
        except BaseException:
            self._folder.cleanup()
            raise

    @property
    def has_complete(self) -> bool:
        """Whether there are shards to publish."""
        return self._files.has_complete

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        """Take ids, and the positions in them at which documents end."""
        self._files.write(ids, ends)

    def finish(self) -> None:
        """Complete the open shard, so that everything can be published."""
        self._files.finish()
        self._is_finished = True

    def publish(self) -> None:
        """Upload the complete shards; after `finish`, remove leftover shards. Raises OSError."""
        self._files.publish()
        if not self._is_sharded:
            self._upload(None)
        else:
            for shard in self._family.shards_there(self._path):
                self._upload(shard)
                self._shards += 1
        if self._is_finished and self._is_sharded:
            self._remove_leftovers()

    def _upload(self, shard: int | None) -> None:
        names = self._family.kept_names(self._path, shard)
        urls = self._family.kept_names(self._url, shard)
        self._forget_sidecar(urls[0])
        for name, url in self._family.in_order(list(zip(names, urls, strict=True))):
            objects.upload(name, url)
        for name in names:
            os.remove(name)

    def _forget_sidecar(self, url: str) -> None:
        """Remove the sidecar of an older file, if this run writes no sidecars."""
        if not self._family.has_sidecar and has_sidecar(url):
            objects.remove(sidecar_path(url))

    def _remove_leftovers(self) -> None:
        """Remove the shards of an earlier run that come after our last one."""
        for shard in left_shards(self._family, self._url, self._shards):
            names = self._family.kept_names(self._url, shard)
            self._forget_sidecar(names[0])
            for name in names:
                objects.remove(name)

    def close(self) -> None:
        """As `discard`: no other process can continue."""
        self.discard()

    def discard(self) -> None:
        """Remove what is not published. Raises nothing."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._folder.cleanup)
            self._files.discard()
