"""The documents' pipeline and its checkpoint, against the bytes of a run that nothing disturbs.

The model is only the inputs and the settings: whatever has failed before, a run that says it is
complete has left these files and nothing else, and one that says it is not has left each file as
it was or whole. `step` does one of: a run in which a system call fails, a run that goes on, a
change of the inputs, and a run during which another one begins.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet  # noqa: F401  # a call that fails in the middle of its import breaks it

from streamtok.cli.main import main as streamtok_main
from streamtok.cli.stop_signals import Signals

from ..crash import Scenario, contents, make_text, scenarios

_CALLS = ("write", "fsync", "replace", "ftruncate", "remove", "open", "lseek", "close")
_FAILURES = ("full", "still full", "broken", "interrupted", "signal")
_SIZE = 3000  # characters of the inputs
_STEPS = 150  # a run makes fewer system calls than this, or about as many


class PipelineMachine:
    """One folder with inputs and an output, and all that happens to it."""

    def __init__(self, rng: random.Random, scenario: Scenario | None = None):
        """scenario: None for a random one of those that read files."""
        self._rng = rng
        if scenario is None:
            made = scenarios(_SIZE, rng.randrange(1000))
            fitting = [one for one in made if one.stdin is None and "large" not in one.name]
            scenario = rng.choice(fitting)
        self.scenario = scenario
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
        self.log: list[str] = []

    def step(self) -> str:
        """str: what was done. Raises AssertionError, with all that was done before."""
        rules: list[tuple[int, Callable[[], str]]] = [
            (8, self._fail),
            (3, self._go_on),
            (1, self._change),
            (1, self._append),
            (1, self._touch),
            (2, self._run_twice_at_once),
        ]
        [rule] = self._rng.choices([rule for _, rule in rules], [weight for weight, _ in rules])
        try:
            done = rule()
        except AssertionError as error:
            self._root.cleanup()
            done = "; ".join([*self.log, rule.__name__])
            raise AssertionError(f"{self.scenario.name}: {error}\nafter: {done}") from error
        self.log.append(done)
        return done.partition(" at call ")[0].partition(" ")[0]

    def finish(self) -> None:
        """Complete what was begun, compare, and remove all files."""
        try:
            self._go_on()
            if self._is_begun or self._is_changed:
                self._go_on()
        finally:
            self._root.cleanup()

    # Rules

    def _fail(self) -> str:
        kind = self._rng.choice(_FAILURES)
        at = self._rng.randrange(self._rng.choice([5, 20, _STEPS]))
        self._allow()
        with _failing(at, kind) as calls:
            code, said = self._run()
        what = f"{kind} at call {at}" + (f", {calls[at]}" if at < len(calls) else ", not reached")
        if code == 0:
            self._check_complete(what)
        else:
            self._check_refused(code, said, what)
        return what

    def _go_on(self) -> str:
        self._allow()
        code, said = self._run()
        if code == 0:
            self._check_complete("a run that goes on")
            return "went on to the end"
        self._check_refused(code, said, "a run that goes on")
        assert self._is_changed, f"a run that should have gone on says {said!r}"
        assert _is_of_the_change(said), said
        self._forget()
        return "was told of the change, and forgot"

    def _change(self) -> str:
        """Other text, of the same size or not."""
        name = self._rng.choice(sorted(self._inputs))
        if name.endswith((".txt", ".u8")):
            size = len(self._inputs[name])
            text = make_text(self._rng, self._rng.choice([0, 100, size])).encode()
            if self._rng.random() < 0.5:  # of the very same size
                text = (text + b"x" * size)[:size].decode("utf-8", "ignore").encode()
                text += b"x" * (size - len(text))
        elif name.endswith(".jsonl"):
            lines = self._inputs[name].splitlines(keepends=True)
            self._rng.shuffle(lines)
            text = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
        else:
            return "changed nothing"
        return self._replace_input(name, text, "changed")

    def _append(self) -> str:
        name = self._rng.choice(sorted(self._inputs))
        if name.endswith(".txt"):
            return self._replace_input(name, self._inputs[name] + b" more", "appended to")
        if name.endswith(".jsonl"):
            more = b'{"meta": {"text": "one more line"}}\n'
            return self._replace_input(name, self._inputs[name] + more, "appended to")
        return "appended nothing"

    def _touch(self) -> str:
        """The same bytes, written later: a run may go on, or say that the input has changed."""
        name = self._rng.choice(sorted(self._inputs))
        return self._replace_input(name, self._inputs[name], "touched")

    def _run_twice_at_once(self) -> str:
        """Another run of the same command begins in the middle of one, by one path or another."""
        at = self._rng.randrange(_STEPS // 2)
        through_link = self._rng.random() < 0.5
        inner: list[tuple[int, str]] = []
        self._allow()

        def begin(name: str) -> None:
            inner.append(self._run(through_link))

        with _at_call(at, begin):
            code, said = self._run()
        for number, words in inner:
            assert number in (0, 1), f"the other run ended with {number} and says {words!r}"
            # Either it came first, or it saw the one that was there.
            assert number == 0 or "another process" in words or _is_of_the_change(words), words
        what = f"two at once at call {at}"
        if code == 0:
            self._check_complete(what)
        else:
            is_known = "another process" in said or (self._is_changed and _is_of_the_change(said))
            assert is_known, f"{what}: {said}"
            self._check_refused(code, said, what)
        return what

    # The command, and what it leaves

    def _run(self, through_link: bool = False) -> tuple[int, str]:
        folder = self._link if through_link else self._folder
        # Inputs by one name: another one is another input.
        inputs = [str(self._folder / name) for name in self._inputs]
        args = ["encode", *inputs, *self.scenario.args, "-o", str(folder / self.scenario.out)]
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = streamtok_main([*args, "-q", *self.scenario.resume, "--checkpoint-every", "0"])
        return code, said.getvalue()

    def _expected(self) -> dict[str, bytes]:
        key = tuple(sorted(self._inputs.items()))
        if key not in self._known:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                self.scenario.files = dict(self._inputs)
                self.scenario.prepare(folder)
                assert streamtok_main(self.scenario.command(folder)) == 0
                self._known[key] = _files(folder, self._inputs.keys())
        return self._known[key]

    def _allow(self) -> None:
        for name, data in self._expected().items():
            self._may_see.setdefault(name, set()).add(data)

    def _check_complete(self, what: str) -> None:
        found, good = _files(self._folder, self._inputs.keys()), self._expected()
        # A hidden file that could not be removed is the failure's; the next run takes it.
        shown = {name for name in found if name in good or not name.startswith(".streamtok")}
        assert shown == good.keys(), f"after {what}: {sorted(shown)}, not {sorted(good)}"
        for name, data in good.items():
            assert found[name] == data, f"after {what}: {name} differs"
        if self._rng.random() < 0.3:  # the next run writes over what this one made
            self._may_see = {name: {data} for name, data in good.items()}
            self._is_begun = self._is_changed = False
        else:
            self._forget()

    def _check_refused(self, code: int, said: str, what: str) -> None:
        assert code in (1, 130), f"after {what}: exit code {code}: {said}"
        assert said.count("\n") <= 1, f"after {what}: {said}"
        assert "Traceback" not in said, f"after {what}: {said}"
        for name, data in _files(self._folder, self._inputs.keys()).items():
            if name.startswith(".") or ".checkpoint" in name:
                continue
            assert name in self._may_see, f"after {what}: {name} is there"
            assert data in self._may_see[name], f"after {what}: {name} is in pieces"
        for name, data in self._inputs.items():
            assert (self._folder / name).read_bytes() == data, f"after {what}: lost input {name}"
        self._is_begun = True

    def _forget(self) -> None:
        """Begin anew: what the user does who is told to."""
        for name in _files(self._folder, self._inputs.keys()):
            (self._folder / name).unlink()
        self._may_see.clear()
        self._is_begun = self._is_changed = False

    def _replace_input(self, name: str, data: bytes, verb: str) -> str:
        is_finished = bool(self._may_see) and data != self._inputs[name]
        self._inputs[name] = data
        self._write_input(name)
        self._is_changed |= self._is_begun or is_finished
        return f"{verb} {name}"

    def _write_input(self, name: str) -> None:
        path = self._folder / name
        path.write_bytes(self._inputs[name])
        self._time += 1
        os.utime(path, (self._time, self._time))


def _is_of_the_change(said: str) -> bool:
    """bool: a run was refused because an input is not what it was for the run before."""
    return "changed" in said or "is a finished output" in said


def _files(folder: Path, inputs: Any) -> dict[str, bytes]:
    return contents(folder, inputs)


# System calls that fail


class Calls(list[str]):
    """The names of the calls that were made. open: descriptors of files that were made."""

    def __init__(self) -> None:
        super().__init__()
        self.open: set[int] = set()


@contextlib.contextmanager
def _at_call(at: int, act: Callable[[str], None], again: bool = False) -> Iterator[Calls]:
    """Call act, with the name, before the at-th system call that changes files, or from it on.

    Calls inside `act` do not count. At the end all is closed that is still open, as it is at the
    end of a process: the locks of an interrupted one must not stop the next.
    """
    calls = Calls()
    is_acting = False
    lock = threading.Lock()
    originals = {name: getattr(os, name) for name in _CALLS}

    def counted(name: str) -> Callable[..., Any]:
        original = originals[name]

        def call(*args: Any, **settings: Any) -> Any:
            nonlocal is_acting
            if name == "open" and not args[1] & os.O_CREAT:
                return original(*args, **settings)
            with lock:
                number = len(calls)
                is_mine = not is_acting and (number == at or (again and number > at))
                if not is_acting:
                    calls.append(name)
                if is_mine:
                    is_acting = True
            if name == "close":
                calls.open.discard(args[0])
            if not is_mine:
                result = original(*args, **settings)
                if name == "open":
                    calls.open.add(result)
                return result
            try:
                if name == "close":  # it closes all the same
                    original(*args, **settings)
                elif name == "write":
                    original(args[0], args[1][: len(args[1]) // 2])
                act(name)
            finally:
                is_acting = False
            if name == "close":
                return None
            if name == "write":  # a part is written, as a system call may do
                return len(args[1]) // 2
            result = original(*args, **settings)
            if name == "open":
                calls.open.add(result)
            return result

        return call

    try:
        for name in _CALLS:
            setattr(os, name, counted(name))
        yield calls
    finally:
        for name, original in originals.items():
            setattr(os, name, original)
        for fd in calls.open:
            os.close(fd)


def _is_heard() -> bool:
    """bool: SIGINT is the command's, not that of whoever runs this."""
    return getattr(signal.getsignal(signal.SIGINT), "__func__", None) is Signals._handle


def _failing(at: int, kind: str) -> contextlib.AbstractContextManager[Calls]:
    """The at-th call fails: see `_FAILURES`."""

    def act(name: str) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if kind in ("full", "still full"):
            if name in ("write", "open", "fsync", "close", "ftruncate"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif kind == "broken":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        elif kind == "signal" and _is_heard():
            signal.raise_signal(signal.SIGINT)
        elif is_main:
            raise KeyboardInterrupt

    return _at_call(at, act, again=kind == "still full")
