"""A plan on Ray: each part is a task that returns its totals.

The tasks are those of Ray Core, not Ray Data: a part writes its own files, so no text or ids travel
between processes. (github.com/ray-project/ray, Apache-2.0; the extra `ray` installs it)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .errors import MissingLibraryError, StreamtokError
from .jobs.parts.commit import commit
from .jobs.parts.part import missing_parts, raise_errors, run_part
from .jobs.parts.plan import Plan
from .jobs.rows import Totals

__all__ = ["encode", "run_parts"]

_RETRIES = 3  # for a part whose worker or node was lost, or whose storage failed
_plans: dict[str, Plan] = {}  # in a worker: the plan of its last part, by reference


def encode(
    plan: Plan,
    address: str | None = None,
    *,
    advance: Callable[[int, Totals], None] = lambda number, totals: None,
) -> Totals:
    """Totals: those of the job. Runs its unfinished parts on a Ray cluster, then commits.

    address: of a running cluster, as for `ray.init`; None: the cluster that the environment names,
    or this machine; "local": this machine. An existing connection to a cluster is used. The output
    folder, the inputs and the vocabulary file, if there is one, must be the same files on all
    nodes. Raises what `run_parts` and `streamtok.commit` raise.
    """
    plan.save()
    run_parts(plan, missing_parts(plan), address, advance=advance)
    return commit(plan)


def run_parts(
    plan: Plan,
    numbers: Iterable[int],
    address: str | None = None,
    *,
    advance: Callable[[int, Totals], None] = lambda number, totals: None,
) -> None:
    """Run these parts as Ray tasks; `advance` gets the number and the totals of each.

    Ray gets at most twice as many tasks at a time as the cluster has CPUs, so the memory of this
    process does not depend on the number of parts. Parts whose worker or node is lost are tried
    again. Parts with bad text are not: when all other parts are done, PlanError is raised with
    their errors. Raises MissingLibraryError without Ray. If the call is interrupted, for example by
    Ctrl-C, running tasks are cancelled; finished parts stay.
    """
    with _connected(address) as ray:
        _run(ray, plan, numbers, advance)


def _run(
    ray: Any,
    plan: Plan,
    numbers: Iterable[int],
    advance: Callable[[int, Totals], None],
) -> None:
    cpus = plan.job.threads or 1
    task = ray.remote(num_cpus=cpus, max_retries=_RETRIES, retry_exceptions=[OSError])(_work)
    # Stored once, however many parts there are. In a list, Ray passes the reference, and each
    # process fetches the plan once.
    shared = [ray.put(plan)]
    limit = max(2 * int(ray.cluster_resources().get("CPU", 1)), 1)
    waiting = iter(numbers)
    running: dict[Any, int] = {}
    errors: list[str] = []
    try:
        while True:
            while len(running) < limit and (number := next(waiting, None)) is not None:
                running[task.remote(shared, number)] = number
            if not running:
                break
            done, _ = ray.wait(list(running), num_returns=1)
            for reference in done:
                number = running.pop(reference)
                try:
                    answer = ray.get(reference)
                except ray.exceptions.RayError as error:
                    errors.append(_why_lost(number, error))
                    continue
                if isinstance(answer, str):
                    errors.append(answer)
                else:
                    advance(number, answer)
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
    raise_errors(errors)


def _work(shared: list[Any], number: int) -> Totals | str:
    """Run a part. A StreamtokError or ValueError is returned as its message, since Ray would wrap
    an exception.
    """
    key = shared[0].hex()  # not the digest: the POLICY of a plan may change
    if key not in _plans:
        import ray

        _plans.clear()
        _plans[key] = ray.get(shared[0])
    try:
        return run_part(_plans[key], number)
    except (StreamtokError, ValueError) as error:
        return str(error)


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """The library, connected. An existing connection is used, and left open.

    address: as for `ray.init`. Raises MissingLibraryError, and what `ray.init` raises.
    """
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns at each start
    try:
        import ray
    except ImportError as error:
        raise MissingLibraryError("jobs on Ray", "ray", "ray", error) from None
    is_ours = not ray.is_initialized()
    if is_ours:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        yield ray
    finally:
        if is_ours:
            ray.shutdown()


def _why_lost(number: int, error: Exception) -> str:
    """The message for a part that Ray gave up on."""
    what = str(error).strip().splitlines() or [type(error).__name__]
    return f"part {number} was lost {_RETRIES + 1} times: {what[-1]}"
