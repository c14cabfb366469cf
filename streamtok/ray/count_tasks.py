"""Pre-tokens counted in parts on a Ray cluster, for training.

A task counts one part, and its counts come back; they are merged here, in the order of the text.
The merge loop runs once, in the process that asked. `parts/counted_parts.py` says what a part is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import PlanError, StreamtokError
from ..parts.counted_parts import count_part, open_trainer, parts_of
from ..parts.plan import PART_SIZE
from ..parts.ranges import Part
from ..training.trainer import Trainer
from .cluster import RETRIES, connected, in_flight, why_lost

__all__ = ["count_on_ray"]


def count_on_ray(
    paths: Iterable[str],
    pattern: str,
    address: str | None = None,
    *,
    errors: str = "strict",
    part_size: int = PART_SIZE,
    advance: Callable[[int], None] = lambda size: None,
    memory_limit: int | None = None,
    spill_folder: str | None = None,
    max_in_flight: int | None = None,
) -> Trainer:
    """A trainer with the counts of some files, each one text, counted by Ray tasks of one CPU.

    The counts, and their order, are those of `count_in_parts`, whose arguments these are. address:
    of a cluster, as for `ray.init`; the files must be the same on all nodes. max_in_flight: parts
    that are being counted, or wait to be merged, at a time; twice the CPUs of the cluster by
    default. Parts whose worker or node is lost are tried again. The first error ends it, and
    cancels the tasks. Raises as `count_in_parts`, and MissingLibraryError without Ray.
    """
    trainer = open_trainer(pattern, errors, memory_limit, spill_folder)
    parts = parts_of(paths, part_size)
    with connected(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=[OSError])(_work)
        limit = max_in_flight or in_flight(ray)
        running: dict[int, Any] = {}
        try:
            for number in range(len(parts)):
                # Ahead of the merged ones, so that few counts wait in the cluster's memory.
                for ahead in range(number, min(number + limit, len(parts))):
                    if ahead not in running:
                        running[ahead] = task.remote(parts[ahead], pattern, errors)
                trainer.merge(_counts(ray, number, running[number]))
                del running[number]
                advance(parts[number].stop - parts[number].start)
        finally:
            for reference in running.values():
                ray.cancel(reference, force=True)
    return trainer


def _counts(ray: Any, number: int, reference: Any) -> Trainer:
    try:
        answer: Trainer | str = ray.get(reference)
    except ray.exceptions.RayError as error:
        raise PlanError(why_lost(number, error)) from None
    if isinstance(answer, str):
        raise PlanError(answer)
    return answer


def _work(part: Part, pattern: str, errors: str) -> Trainer | str:
    """What a task does. Bad text is an answer and not an exception, which Ray would try again."""
    try:
        return count_part(part, pattern, errors)
    except (StreamtokError, ValueError) as error:
        return str(error)
