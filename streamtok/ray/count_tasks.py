"""Pre-tokens counted in parts on a Ray cluster, for training.

A task counts one part, and its counts come back; they are merged here, in the order of the text.
The merge loop runs once, in the process that asked. `parts/counted_parts.py` says what a part is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import PlanError, StreamtokError
from ..parts import PART_SIZE
from ..parts.counted_parts import Advance, count_part, open_trainer, parts_of
from ..parts.ranges import Part
from ..pipeline.sources import Reading
from ..training.trainer import Trainer
from .cluster import RETRIES, connected, in_flight, why_lost


def count_on_ray(
    paths: Iterable[str],
    pattern: str,
    address: str | None = None,
    *,
    reading: Reading = Reading(),  # noqa: B008 (immutable)
    part_size: int = PART_SIZE,
    advance: Advance = lambda size, skipped: None,
    memory_limit: int | None = None,
    spill_folder: str | None = None,
    max_in_flight: int | None = None,
) -> Trainer:
    """A trainer with the counts of the documents in some files, counted by Ray tasks of one CPU.

    The counts, and their order, are those of `count_in_parts`, whose arguments these are. address:
    of a cluster, as for `ray.init`; the files must be the same on all nodes. max_in_flight: parts
    that are being counted, or wait to be merged, at a time; twice the CPUs of the cluster by
    default. Parts whose worker or node is lost are tried again. The first error ends it, and
    cancels the tasks. Raises as `count_in_parts`, and MissingLibraryError without Ray.
    """
    trainer = open_trainer(pattern, reading.errors, memory_limit, spill_folder)
    parts = parts_of(paths, part_size, reading)
    with connected(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=[OSError])(_work)
        limit = max_in_flight or in_flight(ray)
        running: dict[int, Any] = {}
        try:
            for number in range(len(parts)):
                # Ahead of the merged ones, so that few counts wait in the cluster's memory.
                for ahead in range(number, min(number + limit, len(parts))):
                    if ahead not in running:
                        running[ahead] = task.remote(parts[ahead], pattern, reading)
                counts, skipped = _counts(ray, number, running[number])
                trainer.merge(counts)
                del running[number]
                advance(parts[number].stop - parts[number].start, skipped)
        finally:
            for reference in running.values():
                ray.cancel(reference, force=True)
    return trainer


def _counts(ray: Any, number: int, reference: Any) -> tuple[Trainer, int]:
    try:
        answer: tuple[Trainer, int] | str = ray.get(reference)
    except ray.exceptions.RayError as error:
        raise PlanError(why_lost(number, error)) from None
    if isinstance(answer, str):
        raise PlanError(answer)
    return answer


def _work(part: Part, pattern: str, reading: Reading) -> tuple[Trainer, int] | str:
    """What a task does. Bad text is an answer and not an exception, which Ray would try again."""
    try:
        return count_part(part, pattern, reading)
    except (StreamtokError, ValueError) as error:
        return str(error)
