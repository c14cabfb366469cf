"""What all commands share: contenders that take turns, processes of their own, tables."""

from __future__ import annotations

import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_PAUSE = 0.02  # seconds: lets threads of the previous contender go to sleep
Calls = dict[str, Callable[[], Any]]


def only_equal(calls: Calls, own: str = "streamtok") -> Calls:
    """The calls whose results equal the first one's. Raises SystemExit if `own` is not one."""
    judge = next(iter(calls))
    expected, equal = calls[judge](), {}
    for name, call in calls.items():
        try:
            if name == judge or call() == expected:
                equal[name] = call
        except Exception as error:
            if name == own:
                raise
            print(f"{name}: {error}", file=sys.stderr)
    if own not in equal:
        raise SystemExit("the answers are not the same")
    return equal


def in_turns(
    calls: Calls,
    rounds: int,
    clock: Callable[[], float] = time.process_time,
    least: float = 0.0,
) -> dict[str, list[float]]:
    """Seconds of each call in each round. The order is random, so that it cannot favour a call.

    least: a short call is repeated for this many seconds, at most 1000 times.
    """
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name in random.sample(list(calls), len(calls)):
            time.sleep(_PAUSE)
            count, begin = 0, clock()
            while count == 0 or (clock() - begin < least and count < 1000):
                calls[name]()
                count += 1
            found[name].append((clock() - begin) / count)
    return found


def ratio(above: Iterable[float], below: Iterable[float]) -> float:
    """The median of the quotients within a round."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def grid(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Lines of a Markdown table; the first column has names, the others numbers."""
    first, *others = columns
    yield f"| {first} | {' | '.join(others)} |".replace("|  |", "| |")
    yield f"|---|{'--:|' * len(others)}"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"


def show(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table, each line as soon as it is available."""
    for line in grid(columns, rows):
        print(line, flush=True)


def environment(folder: Path) -> dict[str, str]:
    """dict: ours, with this checkout on the path and a folder for compiled modules.

    So modules are compiled once, as in an installed package.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONPATH": path}


def memory(key: str = "VmHWM", pid: int | str = "self") -> int:
    """Resident bytes of a process. key: VmHWM (peak) or VmRSS (now).

    The kernel's other figure, `ru_maxrss`, begins at the size of the parent.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        if (key, pid) != ("VmHWM", "self"):
            raise SystemExit("this system does not report the memory of a process") from None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024)
    return int(status.partition(f"{key}:")[2].split()[0]) * 1024
