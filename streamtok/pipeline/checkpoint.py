"""A checkpoint: a small file that records how far a run has come.

It holds a line with a SHA-256 and then JSON, and is replaced atomically. Only this user can write
it, so the digest finds damage, and fields are not checked one by one. It includes the options on
which the ids already written depend; a run with others cannot continue from it. What only decides
about text that has not been read is not among them. It lies beside the real output file,
however the output's path was spelled. The caller must hold the locks of the run's outputs
(`sinks.Locks`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

from ..errors import CheckpointError
from ..files.own_files import ForeignFileError, check_own, open_own, remove_own
from ..files.part_file import remove_left, write_whole
from .job import EncodeJob
from .option_fields import IDS

_MAGIC = "streamtok checkpoint 4"
_STATE_ERRORS = (
    ValueError, TypeError, LookupError, AttributeError, OverflowError, AssertionError
)  # fmt: skip


def checkpoint_path(output: str) -> str:
    """The path of the checkpoint of a run whose first file is `output`.

    If `output` is a symbolic link, the checkpoint lies beside its target.
    """
    real = os.path.realpath(output)
    return f"{output if real == os.path.abspath(output) else real}.checkpoint"


class Checkpoint:
    """The checkpoint at `path`."""

    def __init__(self, path: str, job: EncodeJob, inputs: list[dict[str, Any]]):
        """inputs: the fingerprints of the inputs, which with the job decide about the output."""
        self.path = path
        self._job = job
        self._inputs: list[dict[str, Any]] = json.loads(json.dumps(inputs))

    @property
    def exists(self) -> bool:
        """Whether there is a checkpoint to continue from."""
        return os.path.lexists(self.path)

    def load(self) -> dict[str, Any] | None:
        """The state that was saved last, or None if there is no checkpoint.

        Raises CheckpointError if the file is damaged or comes from a run with other settings.
        """
        try:
            with open(open_own(self.path, os.O_RDONLY), "rb") as file:
                head, _, body = file.read().partition(b"\n")
        except FileNotFoundError:
            return None
        except ForeignFileError as error:
            raise CheckpointError(f"{self.path} {error.strerror}") from None
        expected = f"{_MAGIC} {hashlib.sha256(body).hexdigest()}"
        if head != expected.encode():
            is_ours = head.startswith(_MAGIC.encode())
            kind = "damaged" if is_ours else "not a checkpoint of streamtok"
            raise CheckpointError(f"{self.path} is {kind}; remove it to start again")
        with self.taking_up():
            found = json.loads(body)
            self._compare(found["job"], found["inputs"])
            state: dict[str, Any] = found["state"]
        return state

    @contextlib.contextmanager
    def taking_up(self, is_begun: bool = False) -> Iterator[None]:
        """Restore a state in this block: what no run has saved raises CheckpointError.

        is_begun: the run goes on from it, and a ValueError comes from a text.
        """
        try:
            yield
        except (CheckpointError, OSError):
            raise
        except _STATE_ERRORS as error:
            if is_begun and isinstance(error, ValueError):
                raise
            raise CheckpointError(
                f"{self.path} is damaged ({error!r}); remove it to start again"
            ) from None

    def _compare(self, job: dict[str, Any], inputs: list[dict[str, Any]]) -> None:
        if inputs != self._inputs:
            raise CheckpointError(f"{_changed(inputs, self._inputs)} since {self.path} was saved")
        if (found := self._job.difference(job)) is not None:
            then, now = found
            raise CheckpointError(
                f"{self.path} comes from a run {then}, this one is {now}, and the ids already "
                "written depend on that: give it as before, or remove this file to start again"
            )

    def save(self, state: dict[str, Any]) -> None:
        """Replace the saved state. Raises OSError; the old state stays valid then."""
        body = json.dumps(
            {"job": self._job.as_json(IDS), "inputs": self._inputs, "state": state}
        ).encode()
        digest = hashlib.sha256(body).hexdigest()
        check_own(self.path)  # a link would lead to another file
        write_whole(self.path, f"{_MAGIC} {digest}\n".encode() + body, is_resumable=True)

    def remove(self) -> None:
        """Remove the checkpoint, because the run is complete."""
        remove_left(self.path)
        remove_own(self.path)


def _changed(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> str:
    if len(before) != len(now):
        return f"the number of inputs has changed from {len(before)} to {len(now)}"
    for old, new in zip(before, now, strict=True):
        if old != new:
            if old["name"] != new["name"]:
                return f"the inputs have changed: {new['name']} was {old['name']}"
            return f"{new['name']} has changed"
    raise AssertionError("the same inputs differ")
