"""Parts of a plan in processes of this machine; `parallel.worker_processes` says how they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import PlanError
from ..parallel.worker_processes import answer_numbers, check_workers, give_numbers
from .part import Record, run_part
from .plan import Plan

_SHOWN = 5  # errors in a message
_PROGRAM = "import sys; from streamtok.parts.workers import run_worker; run_worker(sys.argv[1])"


def run_parts(
    plan: Plan,
    numbers: Iterable[int],
    workers: int,
    advance: Callable[[Record], None] = lambda record: None,
) -> None:
    """Run parts of a saved plan in `workers` processes; `advance` gets the record of each.

    A part that cannot be encoded does not stop the others: its error is raised at the end. Raises
    PlanError for such parts, and for a part whose worker died three times. However it ends, the
    workers have ended, and what is done stays done.
    """
    check_workers(workers)

    def take(answer: dict[str, Any]) -> None:
        advance(Record.from_json(answer))

    raise_errors(give_numbers(_PROGRAM, plan.save(), numbers, workers, take))


def raise_errors(errors: list[str]) -> None:
    """Raise PlanError with the first of the errors, if there are any."""
    if errors:
        more = f"\nand {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
        raise PlanError("\n".join(errors[:_SHOWN]) + more)


def run_worker(path: str) -> None:
    """Be a worker for the plan at `path`."""
    plan = Plan.load(path)
    answer_numbers(lambda number: run_part(plan, number).as_json())
