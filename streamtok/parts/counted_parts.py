"""Pre-tokens counted in parts, in processes of this machine, for training.

Parts of a text are cut where no pre-token lies across, so the counts of the parts are together
those of the text. Each worker leaves the counts of a part in a file; they are merged in the order
of the text, because one way to break ties asks which pair came first.
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ..errors import PlanError
from ..parallel.worker_processes import answer_numbers, check_workers, give_numbers
from ..patterns.pattern import Pattern
from ..pipeline import PART_SIZE
from ..pipeline.skip_log import SkipLog
from ..pipeline.sources import Reading
from ..pipeline.sources.unit_ends import CleanCuts, FindCut, cuts_behind
from ..pipeline.spans import open_span
from ..stores import places
from ..training.trainer import Trainer
from .bounds import span_of_part
from .counted_documents import DocumentCounter
from .ranges import InputFile, Part, cut_inputs, input_now
from .workers import raise_errors

Advance: TypeAlias = Callable[[int, int], None]

_JOB = "job.json"
_BLOCK = 1 << 20
_PROGRAM = "import sys; from streamtok.parts.counted_parts import run_counter; run_counter()"


def count_in_parts(
    paths: Iterable[str],
    pattern: str,
    workers: int,
    *,
    reading: Reading = Reading(),  # noqa: B008 (immutable)
    part_size: int = PART_SIZE,
    advance: Advance = lambda size, skipped: None,
) -> Trainer:
    """A trainer with the counts of the documents in some files, counted by `workers` processes.

    The counts, and their order, are those of one trainer that gets one document after another.
    paths: files or URLs; a compressed one is one part. pattern: as for `Trainer`.
    advance: called with the bytes of each
    part that is counted, and the lines or rows in it that were skipped. The counts of a few parts
    for each worker are on the disk (`TMPDIR`) at a time, and those of one part in memory beside the
    merged ones.
    Raises PlanError for text that cannot be counted, for an input that changes meanwhile, and for
    a part whose worker died three times; OSError, and as `Trainer`.
    """
    check_workers(workers)
    trainer = Trainer(pattern, errors=reading.errors, num_threads=1)
    parts = _parts_of(paths, part_size, reading)
    with tempfile.TemporaryDirectory(prefix="streamtok-") as folder:
        rows = [list(_flat(one)) for one in parts]
        job = {"pattern": pattern, "reading": reading.as_json(), "parts": rows}
        places.write(os.path.join(folder, _JOB), json.dumps(job).encode())
        ready: set[int] = set()
        merged = 0

        def take(answer: dict[str, Any]) -> None:
            nonlocal merged
            ready.add(answer["part"])
            while merged in ready:
                path = _counts_path(folder, merged)
                trainer.merge(Trainer.load_counts(path, num_threads=1))
                os.remove(path)
                merged += 1
            part = parts[answer["part"]]
            advance(part.stop - part.start, answer["skipped"])

        raise_errors(give_numbers(_PROGRAM, folder, range(len(parts)), workers, take))
    return trainer


def _parts_of(paths: Iterable[str], part_size: int, reading: Reading) -> list[Part]:
    """The parts of the files, in the order of the text. Raises OSError, PlanError."""
    inputs = [input_now(path) for path in paths]
    is_cut = reading.can_cut or not reading.is_split
    cut = cut_inputs(inputs, part_size, is_cut, reading.unpack and reading.parquet is None)
    return [Part(i, inputs[which], *bounds) for i, (which, *bounds) in enumerate(cut)]


def _count_part(part: Part, pattern: str, reading: Reading) -> tuple[Trainer, int]:
    """(a trainer with the counts of one part, the lines or rows that were skipped in it).

    Raises PlanError for bytes that are not UTF-8, and for an input that has changed; OSError.
    """
    compiled, clean = _compiled(pattern)
    trainer = Trainer(compiled, errors=reading.errors, num_threads=1)
    path = part.input.path
    find_cut = clean if reading.end is None else cuts_behind(reading.end)
    skip_log = SkipLog()
    span = span_of_part(part, reading, lambda: find_cut)
    counter = DocumentCounter(trainer)
    begin = span.position["at"] if span is not None and span.position is not None else 0
    try:
        if span is not None:
            source = open_span(reading, path, span, skip_log, _BLOCK)
            for parts in source.groups(span.position, False):
                counter.count(parts)
        trainer.end_document()
    except UnicodeError as error:
        if reading.is_split:
            where = f"{path}, bytes {part.start} to {part.stop}"
            raise PlanError(counter.explain(error, where, None)) from None
        raise PlanError(counter.explain(error, path, -begin)) from None
    if input_now(path) != part.input:
        raise PlanError(f"{path} has changed while it was counted: count it again")
    return trainer, skip_log.skipped


@functools.lru_cache(maxsize=4)
def _compiled(pattern: str) -> tuple[Pattern, FindCut]:
    """The pattern, and its cuts."""
    compiled = Trainer(pattern).pattern
    encoding = Trainer(compiled).train(256)
    return compiled, CleanCuts(encoding.stream_encoder(disallowed_special=())).find


def _flat(part: Part) -> tuple[object, ...]:
    return (*part.input, part.start, part.stop)


def _counts_path(folder: str, number: int) -> str:
    return os.path.join(folder, f"{number}.npz")


def run_counter() -> None:
    """Be a worker: sys.argv[1] is the folder of the job."""
    import sys

    folder = sys.argv[1]
    with open(os.path.join(folder, _JOB), encoding="utf-8") as file:
        job = json.load(file)
    reading = Reading.from_json(job["reading"])

    def work(number: int) -> dict[str, Any]:
        path, size, tag, start, stop = job["parts"][number]
        part = Part(number, InputFile(path, size, tag), start, stop)
        trainer, skipped = _count_part(part, job["pattern"], reading)
        trainer.save_counts(_counts_path(folder, number))
        return {"part": number, "skipped": skipped}

    answer_numbers(work)
