"""The output files of one run: shards, published one by one.

Ids are appended to hidden files. Where a unit of the input ends, `end_unit` returns the length of
each file. Once a record on the disk has these lengths, `publish` gives complete shards their final
names. Another process can cut the files back to a row of the record (`go_on`) and continue; it
needs nothing else. The bytes that `finish` writes depend on totals, so the other process writes
them again. At the end, shards left over from an earlier, longer run are removed.

Files for a store are written on this machine and uploaded when published, because some formats
rewrite headers or read their own files. No other process can continue them.

All shards share the log of skipped records.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...files import (
    PartFile,
    Piece,
    is_left,
    publish_left,
    publish_together,
    remove_left,
)
from ...threads import WriterThread
from ..stores import places
from ..stores.urls import is_url
from .by_name import Family
from .flat import Formed, Sink, divide
from .sidecar import Digests, Sidecar, matching_sidecar, skip_log_path

if TYPE_CHECKING:
    from ..rows import Row, Totals


class Files:
    """The files of one output, or its shards of about `shard_tokens` ids each.

    A shard ends with the first document that brings it to `shard_tokens` ids.
    """

    def __init__(
        self,
        path: str,
        family: Family,
        *,
        shard_tokens: int | None = None,
        is_resumable: bool = False,
        has_log: bool = False,
    ):
        """path: a path or a URL. has_log: log skipped records. Call `begin` or `go_on` next."""
        self._path = path
        self._family = family
        self._shard_tokens = shard_tokens
        self._is_resumable = is_resumable
        self._shard = 0  # the number of the open shard, or of the next one
        self._documents = 0  # in earlier shards
        self._files: list[PartFile] = []  # of the open shard
        self._sidecar = ""  # the path of its sidecar
        self._n_recorded: list[int] = []  # for each file, how many pieces are in rows
        self._sink: Sink | None = None
        self._writer = WriterThread()
        self._complete: list[list[PartFile]] = []
        self._scratch: list[list[PartFile]] = []  # of the complete shards
        self._log_path = skip_log_path(family.names(path, None)[0]) if has_log else None
        self._log: PartFile | None = None  # created when the first record is skipped
        self._is_finished = False

    def begin(self) -> None:
        """Create the first files. Raises OSError."""
        try:
            self._open(None)
        except BaseException:
            self.discard()
            raise

    def go_on(self, row: Row) -> None:
        """Continue from a row of a record. Raises OSError and CheckpointError."""
        try:
            self._shard = row.shard
            self._documents = row.totals.documents - row.in_shard[1]
            if self._shard_tokens is not None:
                self._settle_shards()
            if row.log is not None:
                self._log = self._open_log(True)
                self._log.cut_back(row.log, ())
            if row.sizes is not None or not row.shard:
                self._open(row if row.sizes is not None else None)
        except BaseException:
            self.close()
            raise

    def _settle_shards(self) -> None:
        """Publish complete shards that are still hidden, and remove shards after the open one."""
        before = self._shard
        while before and any(map(is_left, self._family.names(self._path, before - 1))):
            before -= 1
        for shard in range(before, self._shard):
            names = self._family.kept_names(self._path, shard)
            for name in self._family.in_order(names):
                publish_left(name)
            for name in self._family.names(self._path, shard)[len(names) :]:
                remove_left(name)
        after = self._shard + 1
        while any(map(is_left, names := self._family.names(self._path, after))):
            for name in names:
                remove_left(name)
            after += 1

    def _open(self, row: Row | None) -> None:
        shard = None if self._shard_tokens is None else self._shard
        names = self._family.names(self._path, shard)
        kept = len(names) - self._family.scratch - 1
        self._sidecar = names.pop(kept)
        self._files = []
        for i, name in enumerate(names):
            self._files.append(
                places.open_new(
                    name,
                    is_resumable=self._is_resumable,
                    goes_on=row is not None,
                    hashed_from=self._family.hashed_from(i, self._is_resumable),
                    writer=self._writer,
                    is_scratch=i >= kept,
                )
            )
        self._sink = self._family.format.make(self._files, self._family.about, self._documents)
        self._n_recorded = [0] * len(names)
        if row is None:
            self._sink.begin()
            return
        assert row.sizes is not None
        for i, (file, size) in enumerate(zip(self._files, row.sizes, strict=True)):
            file.cut_back(size, row.pieces[i])
            self._n_recorded[i] = len(row.pieces[i])
        self._sink.tokens, self._sink.documents, self._sink.open = row.in_shard
        if not is_url(self._path):
            remove_left(self._sidecar)

    @property
    def has_complete(self) -> bool:
        """Whether there are shards to publish."""
        return bool(self._complete)

    def append(self, found: Formed) -> None:
        """Append ids, and begin new shards as needed. Raises OSError and FormatLimitError."""
        while found.n_ids or len(found.ends):
            if self._sink is None:
                self._open(None)
            assert self._sink is not None
            last = len(found.ends)
            if self._shard_tokens is not None:
                last = int(np.searchsorted(found.ends, self._shard_tokens - self._sink.tokens))
            if last == len(found.ends):
                self._sink.write(found)
                return
            before, found = divide(found, last)
            self._sink.write(before)
            self._close()

    def log(self, line: bytes) -> None:
        """Append a line to the log, if there is one. Raises OSError."""
        if self._log_path is None:
            return
        if self._log is None:
            self._log = self._open_log(False)
        self._log.write(line)

    def _open_log(self, goes_on: bool) -> PartFile:
        assert self._log_path is not None
        return places.open_new(self._log_path, is_resumable=self._is_resumable, goes_on=goes_on)

    def keep_log(self) -> str | None:
        """Save the log of a run that fails; return its path, or None if there is no log."""
        if self._log is None or self._log_path is None:
            return None
        places.create(self._log_path, self._log.contents())
        return self._log_path

    def end_unit(self, is_mark: bool) -> dict[str, Any]:
        """The fields of a `Row` that describe the files, at the end of a unit or at a mark.

        Sizes and pieces are left out if no shard is open, or if the files cannot be continued.
        """
        if not is_mark:
            for file in self._files:
                file.end_piece()
        sink = self._sink
        found: dict[str, Any] = {
            "shard": self._shard,
            "in_shard": (0, 0, 0) if sink is None else (sink.tokens, sink.documents, sink.open),
            "log": None if self._log is None else self._log.size,
        }
        if sink is None or not self._is_resumable:
            return found
        for file in self._files:
            file.wait()
        new = tuple(
            tuple(file.pieces[n:]) for file, n in zip(self._files, self._n_recorded, strict=True)
        )
        self._n_recorded = [len(file.pieces) for file in self._files]
        return found | {"sizes": tuple(file.size for file in self._files), "pieces": new}

    @property
    def pieces(self) -> tuple[tuple[Piece, ...], ...]:
        """All pieces of the files of the open shard."""
        return tuple(tuple(file.pieces) for file in self._files)

    def finish(self, totals: Totals | None = None) -> list[tuple[str, int]]:
        """Complete the open shard; return the names and sizes of the files to publish.

        A size of -1 marks a temporary file, which is to be removed.
        """
        if self._sink is not None:
            self._close(totals if self._shard_tokens is None else None)
        self._writer.close()
        self._is_finished = True
        logs = [] if self._log is None else [self._log]
        for file in logs:
            file.sync()
            file.close()
        kept = [(file.target, file.size) for files in (logs, *self._complete) for file in files]
        return kept + [(file.target, -1) for files in self._scratch for file in files]

    def _close(self, totals: Totals | None = None) -> None:
        assert self._sink is not None
        self._sink.finish()
        for file in self._files:
            file.end_piece()
        self._writer.wait()
        kept = self._files[: len(self._files) - self._family.scratch]
        digests = [Digests(file.size, tuple(file.pieces)) for file in kept]
        sidecar = places.open_new(self._sidecar, is_resumable=self._is_resumable)
        self._files.append(sidecar)
        family, about = self._family, self._family.about
        described = Sidecar(
            encoding=about.encoding,
            digest=about.digest,
            format=family.chosen,
            dtype=family.dtype,
            tokens=self._sink.tokens,
            documents=self._sink.documents,
            size=digests[0].size,
            pieces=digests[0].pieces,
            files=dict(zip(family.format.further, digests[1:], strict=True)),
            vocabulary=about.vocabulary,
            job=about.job,
            text_bytes=None if totals is None else totals.bytes,
            skipped={} if totals is None else totals.skipped_because,
        )
        sidecar.write(described.to_json())
        kept.append(sidecar)
        for file in kept:
            file.sync()
            file.close()
        self._complete.append(self._family.in_order(kept))
        self._scratch.append([file for file in self._files if file.is_scratch])
        self._documents += self._sink.documents
        self._files, self._sink = [], None
        self._shard += 1

    def sync(self) -> None:
        """Wait until all writes are on the disk."""
        for file in self._files:
            file.sync()
        if self._log is not None:
            self._log.sync()

    def publish(self, before: int | None = None) -> None:
        """Give complete shards their final names.

        After `finish`, also publish the log, and remove the leftovers of an earlier run.

        before: the number of the first shard that is not safe from a crash yet.
        """
        if self._is_finished and self._log is not None:
            self._log.publish()
            self._log = None
        elif self._is_finished and self._log_path is not None:
            # No record was skipped: remove the log of an earlier run.
            if not is_url(self._log_path):
                remove_left(self._log_path)
            with contextlib.suppress(FileNotFoundError):
                places.remove(self._log_path)
        while self._complete:
            if before is not None and self._shard - len(self._complete) >= before:
                return
            files = self._complete[0]
            publish_together(files)
            for file in self._scratch[0]:
                file.discard()
            del self._complete[0], self._scratch[0]
        if self._is_finished and self._shard_tokens is not None:
            self.remove_leftovers()

    def publish_left(self, done: list[tuple[str, int]]) -> None:
        """Publish the files that another process's `finish` returned.

        Raises OSError and CheckpointError.
        """
        for name, size in done:
            if size < 0:
                remove_left(name)
            else:
                publish_left(name, size)

    def remove_leftovers(self) -> None:
        """Remove the shards of an earlier run that are numbered after our last shard.

        A reader of all shards would take them for a part of this output. Files without a matching
        sidecar are not ours, and stay.
        """
        for shard in self._family.shards_there(self._path):
            names = self._family.kept_names(self._path, shard)
            if shard < self._shard or matching_sidecar(names[0]) is None:
                continue
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    places.remove(name)

    def close(self) -> None:
        """Close the hidden files, and keep them for a later process."""
        with contextlib.ExitStack() as stack:  # closes all files even if one raises
            for file in [*self._files, *([] if self._log is None else [self._log])]:
                stack.callback(file.close)
            self._writer.close()

    def discard(self) -> None:
        """Remove all files that are not published yet."""
        with contextlib.ExitStack() as stack:
            if self._log is not None:
                stack.callback(self._log.discard)
            for file in [*self._files, *itertools.chain(*self._scratch, *self._complete)]:
                stack.callback(file.discard)
            self._writer.close()
