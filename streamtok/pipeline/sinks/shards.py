"""The output files of one run: shards, published one by one, in step with a checkpoint.

Ids are appended to hidden files. `sync` puts them on the disk and `getstate` describes them. Once a
checkpoint holds that state, `publish` gives the complete shards their names. Another process
restores the object from the state: it publishes shards that were complete, checks that the open
files hold what was saved, truncates them to the saved sizes and continues. The process may die
between any two of these steps. At the end, shards left from an earlier, longer run are removed.

Files in a store are made on this machine, and uploaded instead of published: some formats rewrite
their headers or read their own files again, which no store can do. No other process can continue
them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ...files.part_file import PartFile, Saved, publish_left, publish_together, remove_left
from ...files.writer_thread import WriterThread
from ...stores import places
from .by_name import Family
from .flat import Sink
from .ownership import left_shards
from .sidecar import has_sidecar, sidecar_path

if TYPE_CHECKING:
    from .flat import Ends, IdArray


class Files(Sink):
    """A sink that writes one family of files, or shards of about `shard_tokens` ids each.

    A shard ends with the first document that brings it to `shard_tokens` ids. With `is_exact`,
    every shard but the last has exactly that many, and documents may be cut.
    """

    def __init__(
        self,
        path: str,
        family: Family,
        *,
        shard_tokens: int | None = None,
        is_exact: bool = False,
        is_resumable: bool = False,
        is_hashed: bool = False,
        state: dict[str, Any] | None = None,
    ):
        """path: a path or a URL. is_hashed: fill `complete_files`. state: what `getstate` returned.
        Raises OSError and, with a state, CheckpointError.
        """
        self._path = path
        self._family = family
        self._shard_tokens = shard_tokens
        self._is_exact = is_exact
        self._is_resumable = is_resumable
        self._is_hashed = is_hashed
        self.complete_files: list[tuple[str, int, str]] = []  # name, size, SHA-256
        self._shard = 0  # shards begun
        self._tokens = 0  # ids in the open shard
        self._documents = 0  # documents ended in all shards
        self._files: list[PartFile] = []
        self._sink: Sink | None = None
        self._writer = WriterThread()
        self._complete: list[list[PartFile]] = []
        self._is_finished = False
        try:
            self._open() if state is None else self._restore(state)
        except BaseException:
            self.discard() if state is None else self.close()
            raise

    def _names(self, shard: int) -> list[str]:
        return self._family.names(self._path, None if self._shard_tokens is None else shard)

    def _hashed_from(self, i: int) -> int | None:
        """The offset from which file number i is hashed, or None if no digest is needed.

        A checkpoint needs digests of all files, a sidecar those of the files that it describes.
        """
        if self._is_hashed or self._is_resumable or self._family.is_hashed(i):
            return 0 if i else self._family.format.header_size
        return None

    def _open(self, opened: dict[str, Any] | None = None) -> None:
        names = self._names(self._shard)
        saved: list[Saved | None] = opened["files"] if opened else [None] * len(names)
        kept = len(names) - self._family.scratch
        for i, name in enumerate(names):
            self._files.append(
                places.open_new(
                    name,
                    is_resumable=self._is_resumable,
                    saved=saved[i],
                    hashed_from=self._hashed_from(i),
                    writer=self._writer,
                    is_scratch=i >= kept,
                )
            )
        state = opened["sink"] if opened else None
        self._sink = self._family.make(self._files, state, self._documents)
        self._shard += 1

    def _restore(self, state: dict[str, Any]) -> None:
        for shard in state["complete"]:
            names = self._names(shard["shard"])
            kept = len(names) - self._family.scratch
            self._forget_sidecar(names[0])
            for i, name in enumerate(names[:kept]):
                publish_left(name, shard["files"][i], self._hashed_from(i) or 0)
            for name in names[kept:]:
                remove_left(name)
        self._shard, self._tokens = state["shard"], state["tokens"]
        self._documents = state["documents"]
        if state["open"] is not None:
            self._shard -= 1
            self._open(state["open"])

    @property
    def has_complete(self) -> bool:
        """Whether there are shards to publish."""
        return bool(self._complete)

    def write(self, ids: IdArray, ends: Ends = ()) -> None:
        """Take ids, and the positions in them at which documents end."""
        if self._shard_tokens is None:
            assert self._sink is not None
            self._sink.write(ids, ends)
            self._documents += len(ends)
            return
        places = np.asarray(ends, np.int64)
        start = 0  # of the ids that remain to be written
        while start < len(ids) or len(places):
            is_next_id = start < len(ids) and not (len(places) and places[0] == start)
            if self._is_exact and self._tokens == self._shard_tokens and is_next_id:
                # Not earlier: a document end may follow in the next call, and shards must not
                # depend on how the ids are divided into calls.
                self._close()
            if self._sink is None:
                self._open()
            cut = self._cut(start, len(ids), places)
            inside = int(np.searchsorted(places, cut, "right"))
            is_full = False
            if not self._is_exact and inside:
                first = np.searchsorted(places, start + self._shard_tokens - self._tokens)
                if is_full := bool(first < inside):
                    inside = int(first) + 1
            assert self._sink is not None
            self._sink.write(ids[start:cut], places[:inside] - start)
            self._tokens += cut - start
            self._documents += inside
            start, places = cut, places[inside:]
            if is_full:
                self._close()

    def _cut(self, start: int, stop: int, places: Any) -> int:
        """The position in the ids at which the open shard ends at the latest."""
        assert self._shard_tokens is not None
        room = self._shard_tokens - self._tokens
        if self._is_exact:
            return min(stop, start + room)
        first = int(np.searchsorted(places, start + room))
        return int(places[first]) if first < len(places) else stop

    def finish(self) -> None:
        """Complete the open shard, so that everything can be published."""
        if self._sink is not None:
            self._close()
        self._writer.close()
        self._is_finished = True

    def _close(self) -> None:
        assert self._sink is not None
        self._sink.finish()
        self._writer.wait()
        for file in self._files:
            if not file.is_scratch:
                file.sync()
            file.close()
            if self._is_hashed and not file.is_scratch:
                about = os.path.basename(file.target), file.size, _digest(file)
                self.complete_files.append(about)
        self._complete.append(self._files)
        self._files, self._sink, self._tokens = [], None, 0

    def sync(self) -> None:
        """Wait until all writes are on the disk."""
        for file in self._files:
            file.sync()

    def getstate(self) -> dict[str, Any]:
        """The state to save after `sync`, as JSON values."""
        opened = None
        if self._sink is not None:
            opened = {"files": [f.saved() for f in self._files], "sink": self._sink.getstate()}
        first = self._shard - (opened is not None) - len(self._complete)
        return {
            "shard": self._shard,
            "tokens": self._tokens,
            "documents": self._documents,
            "open": opened,
            "complete": [
                {"shard": first + i, "files": [f.saved() for f in files if not f.is_scratch]}
                for i, files in enumerate(self._complete)
            ],
        }

    def publish(self) -> None:
        """Give the complete shards their names; after `finish`, remove leftover shards."""
        while self._complete:
            files = self._complete[0]
            kept = self._family.in_order(files[: len(files) - self._family.scratch])
            self._forget_sidecar(files[0].target)
            publish_together(kept)
            for file in files:
                if file.is_scratch:
                    file.discard()
            del self._complete[0]
        if self._is_finished and self._shard_tokens is not None:
            self._remove_leftovers()

    def _forget_sidecar(self, name: str) -> None:
        """Remove the sidecar of an older file called `name`, if this run writes no sidecars."""
        if not self._family.has_sidecar and has_sidecar(name):
            places.remove(sidecar_path(name))

    def _remove_leftovers(self) -> None:
        """Remove the shards of an earlier run that come after our last one.

        A reader of all files of this name would take them for a part of this output.
        """
        for shard in left_shards(self._family, self._path, self._shard):
            names = self._family.kept_names(self._path, shard)
            self._forget_sidecar(names[0])
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    places.remove(name)

    def close(self) -> None:
        """Close the hidden files and leave them for a later process."""
        with contextlib.ExitStack() as stack:  # closes the rest if one of them raises
            for file in self._files:
                stack.callback(file.close)
            self._writer.close()

    def discard(self) -> None:
        """Remove all files that are not published."""
        with contextlib.ExitStack() as stack:
            for file in [*self._files, *(file for files in self._complete for file in files)]:
                stack.callback(file.discard)
            self._writer.close()


def _digest(file: PartFile) -> str:
    """The SHA-256 of all of a file. Read again if its beginning was not hashed."""
    if not file.hashed_from:
        return file.digest()
    digest = hashlib.sha256()
    for block in file.contents():
        digest.update(block)
    return digest.hexdigest()
