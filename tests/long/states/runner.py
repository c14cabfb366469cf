"""Drives the machines of this package at full speed, for as long as is wanted.

    python -m tests.long.fuzz --states --seconds 60
    python -m tests.long.fuzz --states --machines stream,decoder --steps 10_000_000 --seed 7
    python -m tests.long.fuzz --states --repeat stream:7000000012:0-13,21

The machines run in a child process that the parent watches: a difference, a crash, and a step that
takes too long all end with the machine, its seed, and the command that does it again with as few
steps as are needed. hypothesis.stateful cannot carry this: a crash or a hang of the core would end
the process that has to shrink it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib
import json
import mmap
import os
import random
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from .shrink import Spec, shrunk

MACHINES = {
    "stream": "StreamMachine",
    "decoder": "DecoderMachine",
    "trainer": "TrainerMachine",
    "whole": "WholeMachine",
    "pipeline": "PipelineMachine",
}
BEAT = struct.Struct("<QQQQ")  # which machine, its seed, its step, steps in all
LONGEST = 400  # steps of one machine
_WAITING = 15  # times as long as a step may work it may take by the clock


class Machine(Protocol):
    """What each of the machines is."""

    def step(self) -> str: ...
    def finish(self) -> None: ...


def machines(wanted: str) -> dict[str, Callable[[random.Random], Machine]]:
    """Those of the wanted ones that there are."""
    found = {}
    for name in wanted.split(",") if wanted else MACHINES:
        if name not in MACHINES:
            sys.exit(f"there is no machine {name!r}: choose from {', '.join(MACHINES)}")
        try:
            module = importlib.import_module(f".{name}", __package__)
        except ModuleNotFoundError as error:
            if error.name != f"{__package__}.{name}":
                raise
            if wanted:
                sys.exit(f"the machine {name!r} is not written yet")
            continue
        found[name] = getattr(module, MACHINES[name])
    return found


def length(seed: int) -> int:
    """How many steps the machine of this seed does."""
    return min(5 + int(random.Random(seed ^ 0x5EED).expovariate(1 / 60)), LONGEST)


def run_machine(
    make: Callable[[random.Random], Machine],
    seed: int,
    steps: Iterable[int],
    beat: Callable[[int], None],
) -> Iterator[str]:
    """Do these steps of a machine, and its end; the names of what was done.

    Each step draws from a generator of its own, so that it stays what it is if others are left out.
    """
    rng = random.Random(seed)
    machine = make(rng)
    for step in steps:
        beat(step)
        rng.seed(seed * 1_000_003 + step)
        yield machine.step()
    beat(LONGEST)
    rng.seed(seed * 1_000_003 - 1)
    machine.finish()


class Watch:
    """What the child tells: where it is, in shared memory, and results, through a pipe."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 4096)
        self.read, self.write = os.pipe()

    def beat(self, machine: int, seed: int, step: int, done: int) -> None:
        BEAT.pack_into(self.memory, 0, machine, seed, step, done)

    def where(self) -> tuple[int, int, int, int]:
        return BEAT.unpack_from(self.memory)

    def say(self, **what: Any) -> None:
        os.write(self.write, json.dumps(what).encode() + b"\n")


def work(
    watch: Watch, makers: dict[str, Callable[[random.Random], Machine]], options: Any, first: int,
    done: int,
) -> None:  # fmt: skip
    """The child: machine after machine, until there is a difference or enough was done."""
    names = list(makers)
    counts: collections.Counter[str] = collections.Counter()
    deadline = time.monotonic() + options.seconds_left
    said = time.monotonic()
    seed = first
    while done < options.steps and time.monotonic() < deadline:
        index = seed % len(names)
        name, at = names[index], 0

        def beat(step: int) -> None:
            nonlocal at
            at = step
            watch.beat(index, seed, step, done)  # noqa: B023

        try:
            for rule in run_machine(makers[name], seed, range(length(seed)), beat):
                counts[f"{name} {rule}"] += 1
                done += 1
        except AssertionError as error:
            watch.say(machine=name, seed=seed, step=at, what=str(error), counts=counts, done=done)
            counts.clear()
            if not options.keep_going:
                return
        seed += 1
        if time.monotonic() - said > 2:
            said = time.monotonic()
            watch.say(counts=counts, done=done, seed=seed)
            counts.clear()
    watch.say(counts=counts, done=done, seed=seed, end=True)


def fork(run: Callable[[], None]) -> int:
    """The id of a child that runs this."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
        code = 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stderr.flush()
        os._exit(code)


class Timer:
    """How long a process has been at one step.

    What counts is its processor time, because other processes may leave it none for a while. A step
    that waits for ever takes no such time, so the clock counts, too, but for much longer.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._begin = self._now()

    def is_over(self, seconds: float) -> bool:
        (worked, passed), (worked_before, passed_before) = self._now(), self._begin
        return worked - worked_before > seconds or passed - passed_before > _WAITING * seconds

    def _now(self) -> tuple[float, float]:
        passed = time.monotonic()
        try:
            # The name, in brackets, may hold anything. User and system time: the fields 14 and 15.
            fields = Path(f"/proc/{self._pid}/stat").read_text("utf-8").rpartition(")")[2].split()
            worked = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError):  # no Linux: the clock alone
            worked = passed
        return worked, passed


class Run:
    """The parent: watches children, counts, and tells what they found."""

    def __init__(self, options: Any) -> None:
        self.options = options
        self.makers = machines(options.machines)
        self.names = list(self.makers)
        self.counts: collections.Counter[str] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        self.start = time.monotonic()
        self.seed = options.seed * 1_000_000_007
        self.done = self.before = 0
        self.machines = 0

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def __call__(self) -> bool:
        """Whether there was no difference."""
        is_over = False
        while not is_over and self.done < self.options.steps:
            self.options.seconds_left = self.options.seconds - self.seconds()
            if self.options.seconds_left <= 0:
                break
            is_over = self.watch_one()
        self.table()
        return not self.kinds

    def watch_one(self) -> bool:
        """Run one child to its end; whether all is over."""
        watch = Watch()
        pid = fork(lambda: work(watch, self.makers, self.options, self.seed, self.done))
        os.close(watch.write)
        is_over, last, timer = False, (0, 0, 0, 0), Timer(pid)
        with os.fdopen(watch.read) as pipe:
            while True:
                ready = select.select([pipe], [], [], min(1, self.options.step_seconds / 4))[0]
                if ready and not (line := pipe.readline()):
                    break
                if ready:
                    is_over |= self.hear(json.loads(line))
                if watch.where() != last:
                    last, timer = watch.where(), Timer(pid)
                elif timer.is_over(self.options.step_seconds):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    return self.lost(last, f"hang: a step takes {self.options.step_seconds} s")
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status < 0:
            return self.lost(watch.where(), f"crash: {signal.Signals(-status).name}")
        if status:
            return self.lost(watch.where(), "the machine itself failed")
        return is_over

    def hear(self, said: dict[str, Any]) -> bool:
        """A line from the child; whether it was its last one, and the last child's."""
        self.counts.update(said["counts"])
        self.done = said["done"]
        if "what" in said:
            self.seed = said["seed"] + 1
            return self.found(Spec(said["machine"], said["seed"], range(said["step"] + 1)),
                              said["what"])  # fmt: skip
        self.seed = said["seed"]
        if self.done - self.before > 200_000 or "end" in said:
            self.before = self.done
            speed = self.done / max(self.seconds(), 0.001)
            print(f"{self.done} steps, {self.seconds():.0f} s, {speed:.0f} a second", flush=True)
        return "end" in said

    def lost(self, where: tuple[int, int, int, int], what: str) -> bool:
        index, seed, step, self.done = where
        self.seed = seed + 1
        return self.found(Spec(self.names[index], seed, range(step + 1)), what)

    def found(self, spec: Spec, what: str) -> bool:
        """Tell of a difference; whether that ends the run."""
        kind = "".join(c for c in what.partition("\n")[0] if not c.isdigit())[:60]
        self.kinds[kind] += 1
        if self.options.keep_going:
            if self.kinds[kind] == 1:
                print(f"{self.seconds():.1f} s, {self.done} steps: {spec}: {what}\n", flush=True)
            return False
        first = what.partition("\n")[0]
        print(f"DIFFERENCE after {self.seconds():.1f} s and {self.done} steps: {first}", flush=True)
        print(f"  python -m tests.long.fuzz --states --repeat {spec}\nshrinking...", flush=True)
        small = shrunk(spec, lambda spec: self.fails(spec)[0], seconds=self.options.shrink_seconds)
        print(self.fails(small)[1] or what)
        print(f"\n  python -m tests.long.fuzz --states --repeat {small}", flush=True)
        return True

    def fails(self, spec: Spec) -> tuple[bool, str]:
        """Whether these steps fail, in a child; and what they say."""
        read, write = os.pipe()

        def run() -> None:
            os.close(read)
            for kind in (signal.SIGALRM, signal.SIGPROF):
                signal.signal(kind, signal.SIG_DFL)
            seconds = self.options.step_seconds
            signal.setitimer(signal.ITIMER_PROF, seconds + min(1, seconds))
            signal.setitimer(signal.ITIMER_REAL, seconds * _WAITING)
            with contextlib.suppress(AttributeError):
                import faulthandler

                faulthandler.disable()
            try:
                make = self.makers[spec.machine]
                for _ in run_machine(make, spec.seed, spec.steps, lambda _: None):
                    pass
            except AssertionError as error:
                os.write(write, str(error).encode("utf-8", "replace")[:60_000])
                os._exit(3)

        pid = fork(run)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as pipe:
            said = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status < 0 and not said:
            said = f"ends by {signal.Signals(-status).name}"
        return status != 0, said

    def table(self) -> None:
        file: IO[str] = sys.stdout
        for rule, count in sorted(self.counts.items()):
            print(f"  {rule:<24}{count:>12}", file=file)
        for kind, count in self.kinds.most_common():
            print(f"  {count} times: {kind}", file=file)
        print(f"{self.done} steps in {self.seconds():.0f} s, seed {self.options.seed}: "
              f"{sum(self.kinds.values()) or 'no'} difference(s)", flush=True)  # fmt: skip


def repeat(makers: dict[str, Callable[[random.Random], Machine]], spec: Spec) -> None:
    """Do these steps in this process, where a debugger can look."""
    steps = spec.steps if spec.is_given else range(length(spec.seed))
    for rule in run_machine(makers[spec.machine], spec.seed, steps, lambda _: None):
        print(rule, flush=True)
    print("no difference")


def number(text: str) -> int:
    return int(text.replace("_", ""))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.long.fuzz --states", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--machines", default="", help=f"some of {','.join(MACHINES)}")
    parser.add_argument("--steps", type=number, default=1 << 62)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=Spec.parse, help="a machine and seed, as printed")
    parser.add_argument("--keep-going", action="store_true", help="the first of each kind is told")
    parser.add_argument("--step-seconds", type=float, default=20,
                        help="of processor time; longer is a hang (default: 20)")  # fmt: skip
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--slowest", type=float, default=0,
                        help="a call of a stream that takes so many times as long as the whole "
                        "text is a difference (12 is a good value); 0: not measured")  # fmt: skip
    parser.add_argument("--without", default="", help="rules of streams to leave out: forge,starve")
    parser.add_argument("--light", action="store_true",
                        help="megabytes, pools of threads and pickles come a tenth as often, so "
                        "that streams and decoders do two to four times as many steps")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.seconds == float("inf") and options.steps == 1 << 62:
        options.seconds = 60.0
    if options.repeat:
        options.machines = options.repeat.machine
    run = Run(options)
    for make in run.makers.values():
        if hasattr(make, "is_light"):
            make.is_light = options.light
        if hasattr(make, "slowest"):
            make.slowest = options.slowest or None
            make.without = frozenset(options.without.split(","))
    if options.repeat:
        repeat(run.makers, options.repeat)
    elif not run():
        sys.exit(1)
