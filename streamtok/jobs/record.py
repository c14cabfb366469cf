"""The record of a run: its progress, from which another process can continue.

The record is an append-only file. Each line is JSON, a tab, and the CRC-32 of the JSON; an
incomplete last line is ignored. The first line holds everything that the ids depend on: the job and
fingerprints of the inputs. Each further line, a row, says where a unit ended in the inputs and in
the output files; it is written once the output up to there is on the disk. The last line of a
finished run says that the files only need to be published.

Only this user can write the file, so a line with the right CRC is known to be ours, and its fields
are not checked. The file is beside the real output file, even if the output was given as a symbolic
link. The caller must hold the locks of the run's outputs (`sinks.locks`).
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

from ..errors import CheckpointError
from ..files import (
    ForeignFileError,
    Piece,
    create_own,
    named,
    open_own,
    remove_left,
    remove_own,
    sync_folder,
    write_all,
    write_whole,
)
from .job import EncodeJob
from .option_fields import IDS
from .rows import Row

_FORMAT = 1
_BEGIN = b'{"record": '
_LARGE = 1 << 20  # bytes; a larger record is rewritten if most of it is obsolete


def record_path(output: str) -> str:
    """The path of the record of a run whose first file is `output`.

    If `output` is a symbolic link, the record is beside its target.
    """
    real = os.path.realpath(output)
    return f"{output if real == os.path.abspath(output) else real}.checkpoint"


class Record:
    """The record at `path`.

    last: the row to continue from; after `load`, it has all pieces of the open shard. done: names
    and sizes of the files to publish, once the run is finished.
    """

    def __init__(self, path: str, job: EncodeJob, inputs: list[dict[str, Any]]):
        """inputs: fingerprints of the inputs. These and the job determine the output."""
        self.path = path
        self._job = job
        self._inputs: list[dict[str, Any]] = json.loads(json.dumps(inputs))
        self.last = Row()
        self.done: list[tuple[str, int]] | None = None
        self.is_begun = False
        self._fd = -1
        self._size = 0

    def load(self) -> None:
        """Read the file, if it exists. `is_begun` tells whether a run can be continued from it.

        Raises CheckpointError if the file is damaged, or if its run had different inputs or
        options.
        """
        try:
            with open(open_own(self.path, os.O_RDONLY), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        except ForeignFileError as error:
            raise CheckpointError(f"{self.path} {error.strerror}") from None
        lines = data.splitlines(keepends=True)
        rows = list(_whole(lines))
        is_torn = len(lines) <= 1 and not data.endswith(b"\n")
        if is_torn and _BEGIN.startswith(data[: len(_BEGIN)]):
            return  # the process died before it had written the first line
        if not rows or rows[0].get("record") != _FORMAT or len(rows) < len(lines) - 1:
            raise CheckpointError(
                f"{self.path} is damaged, or not a record of streamtok; remove it to start again"
            )
        if rows[0]["inputs"] != self._inputs:
            changed = _changed(rows[0]["inputs"], self._inputs)
            raise CheckpointError(f"{changed} since {self.path} was saved")
        if (found := self._job.difference(rows[0]["job"])) is not None:
            then, now = found
            raise CheckpointError(
                f"{self.path} comes from a run {then}, this one is {now}, and the ids already "
                "written depend on that: give it as before, or remove this file to start again"
            )
        pieces: list[list[Piece]] = []
        for row in rows[1:]:
            if "done" in row:
                self.done = [(name, size) for name, size in row["done"]]
                continue
            last = Row.from_json(row)
            if last.shard != self.last.shard or not pieces:
                pieces = [[] for _ in last.pieces]
            for all_of, one in zip(pieces, last.pieces, strict=True):
                all_of += one
            self.last = replace(last, pieces=tuple(map(tuple, pieces)))
        self.is_begun = True
        self._size = sum(map(len, lines[: len(rows)]))

    def begin(self) -> None:
        """Open the file for `add`, or create it with the first line. Raises OSError."""
        with named(self.path):
            if self.is_begun:
                self._fd = open_own(self.path, os.O_WRONLY)
                os.ftruncate(self._fd, self._size)
                os.lseek(self._fd, 0, os.SEEK_END)
                return
            self._fd = create_own(self.path, os.O_WRONLY, 0o600)
        self._append([self._head()])
        sync_folder(os.path.dirname(os.path.abspath(self.path)))

    def _head(self) -> dict[str, Any]:
        return {"record": _FORMAT, "job": self._job.as_json(IDS), "inputs": self._inputs}

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows, in order, and wait until they are on the disk. Raises OSError.

        The output that they describe must already be on the disk.
        """
        rows = list(rows)
        self.last = rows[-1]
        self.is_begun = True  # even if fsync fails, the rows may be in the file
        self._append([asdict(row) for row in rows])

    def finish(self, files: list[tuple[str, int]]) -> None:
        """Append the last line. files: names and sizes of the files to publish."""
        self._append([{"done": files}])
        self.done = files

    def _append(self, rows: list[dict[str, Any]]) -> None:
        data = b"".join(map(_line, rows))
        with named(self.path):
            if os.fstat(self._fd).st_size != self._size:
                raise CheckpointError(f"{self.path} has grown: another process also writes to it")
        write_all(self._fd, data, self.path)
        with named(self.path):
            os.fsync(self._fd)
        self._size += len(data)

    def compact(self, pieces: tuple[tuple[Piece, ...], ...]) -> None:
        """If the record has grown large, rewrite it with only the first line and the last row.

        pieces: all pieces of the open shard, for the last row.
        """
        alive = _line(asdict(replace(self.last, pieces=pieces)))
        if self._size < max(_LARGE, 4 * len(alive)):
            return
        self.close()
        data = _line(self._head()) + alive
        write_whole(self.path, data, is_resumable=True)
        self._size = len(data)
        with named(self.path):
            self._fd = open_own(self.path, os.O_WRONLY)
            os.lseek(self._fd, 0, os.SEEK_END)

    def remove(self) -> None:
        """Remove the record of a complete run."""
        self.close()
        remove_left(self.path)
        remove_own(self.path)
        self.is_begun = False

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def _line(row: dict[str, Any]) -> bytes:
    data = json.dumps(row).encode()
    return b"%s\t%08x\n" % (data, zlib.crc32(data))


def _whole(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the contents of the lines before the first damaged line."""
    for line in lines:
        data, _, crc = line.rpartition(b"\t")
        if crc != b"%08x\n" % zlib.crc32(data):
            return
        row: dict[str, Any] = json.loads(data)
        yield row


def _changed(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> str:
    if len(before) != len(now):
        return f"the number of inputs has changed from {len(before)} to {len(now)}"
    old, new = next(pair for pair in zip(before, now, strict=True) if pair[0] != pair[1])
    if old["name"] != new["name"]:
        return f"the inputs have changed: {new['name']} was {old['name']}"
    return f"{new['name']} has changed"
