"""The documents' pipeline and its checkpoint, against the bytes of a run that nothing disturbs.

The model is only the inputs and the settings: whatever has failed before, a run that says it is
complete has left these files and nothing else, and one that says it is not, or that died, has left
each file as it was or whole. `step` does one of: a run in which a system call fails or is the last,
a run that goes on, a change of the inputs, and a run during which another one begins.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import signal
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet  # noqa: F401  # a call that fails in the middle of its import breaks it

from streamtok.cli.main import main as streamtok_main
from streamtok.cli.stop_signals import Signals
from streamtok.jobs.sources import unit_ends

from ...system_calls import Act, Calls, at_call, no_space
from ..crash import Scenario, contents, die_at_step, make_text, scenarios
from ..steps import Machine

_FAILURES = ("full", "still full", "broken", "interrupted", "signal", "killed", "killed")
_SIZE = 3000  # characters of the inputs
_UNIT = 300  # bytes
_EXISTS = "exists; --force"  # what a run says after another has finished
_STEPS = 150  # a run makes fewer system calls than this, or about as many


RULES = {"fail": 8, "go_on": 3, "change": 3, "run_twice_at_once": 2}


class PipelineMachine(Machine):
    """One folder with inputs and an output, and all that happens to it."""

    def __init__(self, rng: random.Random, scenario: Scenario | None = None):
        """scenario: None for a random one of those that read files."""
        super().__init__(rng, RULES)
        if scenario is None:
            made = scenarios(_SIZE, rng.randrange(1000))
            fitting = [one for one in made if one.stdin is None and "large" not in one.name]
            scenario = rng.choice(fitting)
        self.scenario = replace(scenario, files=dict(scenario.files), unit=_UNIT)
        self.settings = scenario.name
        self._root = tempfile.TemporaryDirectory()
        self._folder = Path(self._root.name) / "real"
        self._folder.mkdir()
        self._link = Path(self._root.name) / "link"  # another spelling of every path
        self._link.symlink_to(self._folder)
        self._inputs = dict(scenario.files)
        self._time = 1_000_000_000
        for name in self._inputs:
            self._write_input(name)
        self._is_changed = False  # inputs, since a run was left in the middle
        self._is_begun = False
        self._known: dict[tuple[tuple[str, bytes], ...], dict[str, bytes]] = {}
        self._may_see: dict[str, set[bytes]] = {}  # contents that an output may have

    def finish(self) -> None:
        """Complete what was begun, and compare."""
        with self.told():
            self.go_on()
            if self._is_begun or self._is_changed:
                self.go_on()
        self._root.cleanup()

    # Rules

    def fail(self) -> None:
        kind = self.rng.choice(_FAILURES)
        at = self.rng.randrange(self.rng.choice([5, 20, _STEPS]))
        self._allow()
        if kind == "killed":
            code, said, reached = die_at_step(self.scenario, self._folder, at), "", ""
        else:
            with _failing(at, kind) as calls:
                code, said = self._run()
            reached = f", {calls[at]}" if calls.is_reached else ", not reached"
        what = f"{kind} at call {at}{reached}"
        self.story.append(what)
        if code == 0:
            self._check_complete(what)
        else:
            self._check_refused(code, said, what)

    def die(self, at: int) -> bool:
        """Die at a call and go on; whether the run had so many."""
        self._allow()
        self.story.append(f"die at call {at}")
        code = die_at_step(self.scenario, self._folder, at)
        if code == 0:
            self._check_complete(f"no death at call {at}")
            return False
        self._check_refused(code, "", f"death at call {at}")
        self.go_on()
        return True

    def go_on(self) -> None:
        self._allow()
        self.story.append("go on")
        code, said = self._run()
        # A failure may have come after the last step of a run.
        if code == 0 or (_EXISTS in said and not self._is_changed):
            self._check_complete("a run that goes on")
            return
        self._check_refused(code, said, "a run that goes on")
        assert self._is_changed, f"a run that should have gone on says {said!r}"
        assert _is_of_the_change(said), said
        self._forget()

    def change(self) -> None:
        """Other text, of the same size or not; more of it; or the same bytes, written later."""
        name = self.rng.choice(sorted(self._inputs))
        data = self._inputs[name]
        is_text = name.endswith(".txt")
        kind = self.rng.choice(["text", "append", "touch"])
        if kind == "touch" or not (is_text or name.endswith(".jsonl")):
            pass  # a run may go on, or say that the input has changed
        elif kind == "append":
            data += b" more" if is_text else b'{"meta": {"text": "one more line"}}\n'
        elif is_text:
            size = len(data)
            data = make_text(self.rng, self.rng.choice([0, 100, size])).encode()
            if self.rng.random() < 0.5:  # of the very same size
                data = (data + b"x" * size)[:size].decode("utf-8", "ignore").encode()
                data = data.ljust(size, b"x")
        else:
            lines = [line.removesuffix(b"\n") + b"\n" for line in data.splitlines(keepends=True)]
            self.rng.shuffle(lines)
            data = b"".join(lines)
        self._is_changed |= self._is_begun or (bool(self._may_see) and data != self._inputs[name])
        self._inputs[name] = data
        self._write_input(name)
        self.story.append(f"{kind} {name}")

    def run_twice_at_once(self) -> None:
        """Another run of the same command begins in the middle of one, by one path or another."""
        at = self.rng.randrange(_STEPS // 2)
        through_link = self.rng.random() < 0.5
        inner: list[tuple[int, str]] = []
        self._allow()

        def begin(name: str, paths: tuple[Any, ...]) -> None:
            inner.append(self._run(through_link))

        with _at_call(at, begin):
            code, said = self._run()
        for number, words in inner:
            assert number in (0, 1), f"the other run ended with {number} and says {words!r}"
            # Either it came first, or it saw the one that was there.
            assert number == 0 or "another process" in words or _is_of_the_change(words), words
        self.story.append(what := f"two at once at call {at}")
        # A failure may have come after the last step of a run.
        if code == 0 or (_EXISTS in said and not inner and not self._is_changed):
            self._check_complete(what)
        else:
            is_known = "another process" in said or (self._is_changed and _is_of_the_change(said))
            is_known = is_known or (_EXISTS in said and any(number == 0 for number, _ in inner))
            assert is_known, f"{what}: {said}"
            self._check_refused(code, said, what)

    # The command, and what it leaves

    def _run(self, through_link: bool = False) -> tuple[int, str]:
        folder = self._link if through_link else self._folder
        # Inputs by one name: another one is another input.
        inputs = [str(self._folder / name) for name in self._inputs]
        args = ["encode", *inputs, *self.scenario.args, "-o", str(folder / self.scenario.out)]
        said = io.StringIO()
        more = ["-q", *self.scenario.resume, "--checkpoint-every", "0"]
        with contextlib.redirect_stderr(said), mock.patch.object(unit_ends, "UNIT", _UNIT):
            code = streamtok_main([*args, *more])
        return code, said.getvalue()

    def _expected(self) -> dict[str, bytes]:
        key = tuple(sorted(self._inputs.items()))
        if key not in self._known:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                self.scenario.files = dict(self._inputs)
                self.scenario.prepare(folder)
                with mock.patch.object(unit_ends, "UNIT", _UNIT):
                    assert streamtok_main(self.scenario.command(folder)) == 0
                self._known[key] = contents(folder, self._inputs.keys())
        return self._known[key]

    def _allow(self) -> None:
        for name, data in self._expected().items():
            self._may_see.setdefault(name, set()).add(data)

    def _check_complete(self, what: str) -> None:
        found, good = contents(self._folder, self._inputs.keys()), self._expected()
        # A hidden file that could not be removed is the failure's; the next run takes it.
        shown = {name for name in found if name in good or not name.startswith(".streamtok")}
        assert shown == good.keys(), f"after {what}: {sorted(shown)}, not {sorted(good)}"
        for name, data in good.items():
            assert found[name] == data, f"after {what}: {name} differs"
        self._forget()

    def _check_refused(self, code: int, said: str, what: str) -> None:
        assert code in (1, 130, 137), f"after {what}: exit code {code}: {said}"
        assert said.count("\n") <= 1, f"after {what}: {said}"
        assert "Traceback" not in said, f"after {what}: {said}"
        for name, data in contents(self._folder, self._inputs.keys()).items():
            if name.startswith(".") or ".checkpoint" in name:
                continue
            assert name in self._may_see, f"after {what}: {name} is there"
            assert data in self._may_see[name], f"after {what}: {name} is in pieces"
        for name, data in self._inputs.items():
            assert (self._folder / name).read_bytes() == data, f"after {what}: lost input {name}"
        self._is_begun = True

    def _forget(self) -> None:
        """Begin anew: what the user does who is told to."""
        for name in contents(self._folder, self._inputs.keys()):
            (self._folder / name).unlink()
        self._may_see.clear()
        self._is_begun = self._is_changed = False

    def _write_input(self, name: str) -> None:
        path = self._folder / name
        path.write_bytes(self._inputs[name])
        self._time += 1
        os.utime(path, (self._time, self._time))


def _is_of_the_change(said: str) -> bool:
    """bool: a run was refused because an input is not what it was for the run before."""
    return "changed" in said or _EXISTS in said


@contextlib.contextmanager
def _failing(at: int, kind: str) -> Iterator[Calls]:
    """The at-th call fails: see `_FAILURES`."""

    def act(name: str, paths: tuple[Any, ...]) -> None:
        if kind in ("full", "still full"):
            no_space(name, paths)
        elif kind == "broken":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        elif kind == "signal" and _is_heard():
            signal.raise_signal(signal.SIGINT)
        elif threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    with _at_call(at, act, again=kind == "still full") as calls:
        yield calls


@contextlib.contextmanager
def _at_call(at: int, act: Act, again: bool = False) -> Iterator[Calls]:
    """`at_call`; what is open still is closed in the end, as at the end of a process: the locks of
    an interrupted one must not stop the next.
    """
    with at_call(at, act, again=again) as calls:
        yield calls
    for fd in calls.opened:
        os.close(fd)


def _is_heard() -> bool:
    """bool: SIGINT is the command's, not that of whoever runs this."""
    return getattr(signal.getsignal(signal.SIGINT), "__func__", None) is Signals._handle
