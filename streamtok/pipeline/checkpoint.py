"""A checkpoint: a small file that says how far a run has come, or that there is none.

It is JSON behind a line with its SHA-256, and replaced as a whole, so that it is never half there.
The settings of the run are in it: a run with other ones does not go on from it. It stands beside
the real file that the run makes, however its path was spelled. Whoever uses it holds the locks of
that run's outputs (`sinks.Locks`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import Any

from ..errors import CheckpointError
from ..files.part_file import remove_left, write_whole

_MAGIC = "streamtok checkpoint 2"


def checkpoint_path(output: str) -> str:
    """str: where the checkpoint of a run is whose first file is `output`.

    Beside the real file, if that is another one than the path says.
    """
    real = os.path.realpath(output)
    return f"{output if real == os.path.abspath(output) else real}.checkpoint"


class Checkpoint:
    """The checkpoint at `path`."""

    def __init__(self, path: str, settings: dict[str, Any]):
        """settings: what the result depends on, for JSON."""
        self.path = path
        self._settings: dict[str, Any] = json.loads(json.dumps(settings))

    @property
    def exists(self) -> bool:
        """bool: whether a run can go on from it."""
        return os.path.exists(self.path)

    def load(self) -> dict[str, Any] | None:
        """dict | None: the state that was saved last.

        Raises CheckpointError if the file is damaged, or saved by a run with other settings.
        """
        try:
            with open(self.path, "rb") as file:
                head, _, body = file.read().partition(b"\n")
        except FileNotFoundError:
            return None
        expected = f"{_MAGIC} {hashlib.sha256(body).hexdigest()}"
        if head != expected.encode():
            is_ours = head.startswith(_MAGIC.encode())
            kind = "damaged" if is_ours else "no checkpoint of this version of streamtok"
            raise CheckpointError(f"{self.path} is {kind}; without it, the run begins anew")
        found = json.loads(body)
        self._compare(found["settings"])
        state: dict[str, Any] = found["state"]
        return state

    def _compare(self, saved: dict[str, Any]) -> None:
        for name in sorted(saved.keys() | self._settings.keys()):
            before, now = saved.get(name), self._settings.get(name)
            if before == now:
                continue
            if name == "inputs" and before and now:
                raise CheckpointError(f"{_changed(before, now)} since {self.path} was saved")
            raise CheckpointError(
                f"{self.path} is of a run with {name} {before!r}, not {now!r}; without it, the "
                "run begins anew"
            )

    def save(self, state: dict[str, Any]) -> None:
        """Replace what was saved. Raises OSError; the old one is there then."""
        body = json.dumps({"settings": self._settings, "state": state}).encode()
        digest = hashlib.sha256(body).hexdigest()
        write_whole(self.path, f"{_MAGIC} {digest}\n".encode() + body, is_resumable=True)

    def remove(self) -> None:
        """The run is complete."""
        remove_left(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path)


def _changed(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> str:
    if len(before) != len(now):
        return f"the inputs have changed: there were {len(before)} and are {len(now)}"
    for old, new in zip(before, now, strict=True):
        if old != new:
            if old["name"] != new["name"]:
                return f"the inputs have changed: {new['name']} was {old['name']}"
            return f"{new['name']} has changed"
    raise AssertionError("the same inputs differ")
