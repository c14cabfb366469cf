"""A plan: which part of which input becomes which file. A value, the same on every machine.

Parts of a file are ranges of about `part_size` bytes. They are arithmetic: nothing but the size and
the first bytes of the inputs is read to make a plan. Where exactly a part begins, `bounds` finds
out when it runs, from the bytes around the place; two neighbours find the same place without
talking. What cannot be cut is one part.

On the disk a plan is JSON lines: a header, then one line for each part.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import PlanError
from ..files.part_file import is_hidden
from ..formats.opening import open_encoding
from ..pipeline import PART_SIZE, sinks
from ..pipeline.job import EncodeJob
from ..pipeline.option_fields import IDS, UNREAD, said_fields
from ..pipeline.sources import is_compressed
from ..registry import get_encoding, list_encoding_names
from ..stores import places
from ..stores.urls import check_writable, is_url
from .bounds import can_cut
from .ranges import InputFile, Part, cut_inputs, input_now

if TYPE_CHECKING:
    from ..encoding import Encoding

PLAN_FILE = "plan.jsonl"
_MAGIC = "streamtok plan 2"


class Plan:
    """The parts of one job. Immutable.

    `len(plan)` parts, `plan[i]` is part number i. `job` has the options. `job_digest` (SHA-256)
    stands for all that the ids of finished parts depend on, `digest` (SHA-256) for that and the
    output. Plans with one digest are equal, though what they do with text that has not been read
    may differ.
    """

    def __init__(
        self,
        output: str,
        job: EncodeJob,
        inputs: Iterable[InputFile],
        parts: Iterable[tuple[int, int, int]],
    ):
        """parts: (number of the input, start, stop), in order."""
        self.output = output
        self.job = job
        self.inputs = tuple(inputs)
        # Three arrays: a million parts take 24 MB.
        self._columns = array("q"), array("q"), array("q")
        for row in parts:
            for column, value in zip(self._columns, row, strict=True):
                column.append(value)
        digest = hashlib.sha256()
        unread = [one.name for one, _ in said_fields(job, UNREAD)]
        for line in self._lines((*unread, "output")):
            digest.update(line.encode("utf-8", "surrogatepass"))
        self.job_digest = digest.hexdigest()
        digest.update(output.encode("utf-8", "surrogatepass"))
        self.digest = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, number: int) -> Part:
        if not 0 <= number < len(self):
            raise IndexError(f"the plan has the parts 0 … {len(self) - 1}, not {number}")
        which, start, stop = (column[number] for column in self._columns)
        return Part(number, self.inputs[which], start, stop)

    def __iter__(self) -> Iterator[Part]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Plan of {len(self)} parts for {self.output!r}>"

    def path(self, number: int) -> str:
        """The first file of a part."""
        chosen = self.job.chosen
        suffix = sinks.TABLE[chosen].part_suffix or f".{chosen}"
        name = f"part-{number:06d}-of-{len(self):06d}{suffix}"
        return places.join(self.output, name)

    def in_folder(self, folder: str) -> Plan:
        """The same plan, whose folder has been moved, or has another name from here."""
        made = copy.copy(self)
        made.output = folder
        return made

    # On the disk

    def lines(self) -> Iterator[str]:
        """The lines of the plan's file, each with its newline."""
        return self._lines(())

    def _lines(self, omitted: Iterable[str]) -> Iterator[str]:
        header = {
            "streamtok": _MAGIC,
            "output": self.output,
            "parts": len(self),
            "inputs": len(self.inputs),
            "part_size": self.job.part_size,
            **self.job.as_json(),
        }
        for name in omitted:
            del header[name]
        yield json.dumps(header) + "\n"
        for part in self:
            one = part.input
            row = {
                "part": part.number,
                "input": one.path,
                "start": part.start,
                "stop": part.stop,
                "size": one.size,
                "tag": one.tag,
            }
            yield json.dumps(row) + "\n"

    def save(self) -> str:
        """Write the plan into its output folder, and return the path of its file.

        If the folder holds this plan already, the job goes on: finished parts stay, the others
        do with unread text as this plan says. Raises OSError, and PlanError for another plan.
        """
        path = places.join(self.output, PLAN_FILE)
        places.make_folder(self.output)
        found = self.find_saved()
        if found is None:
            with contextlib.suppress(FileExistsError):  # another driver was faster
                places.create(path, (one.encode("utf-8", "surrogatepass") for one in self.lines()))
                return path
            found = self.find_saved()
        assert found is not None
        if found.job.as_json() != self.job.as_json():
            places.write(
                path, b"".join(one.encode("utf-8", "surrogatepass") for one in self.lines())
            )
        return path

    def find_saved(self) -> Plan | None:
        """This plan as its output folder holds it, perhaps with other UNREAD options, or None.

        Raises OSError, and PlanError if the folder holds another plan, or other files.
        """
        if not places.exists(self.output):
            return None
        # Another driver may be writing the plan, or have been killed while it did.
        there = [name for name in places.names_in(self.output) if not is_hidden(name)]
        if not there:
            return None
        if PLAN_FILE not in there:
            raise PlanError(f"{self.output} holds other files: give a new or an empty folder")
        found = Plan.load(places.join(self.output, PLAN_FILE))
        if found != self:
            raise PlanError(
                f"{self.output} holds the parts of another plan: {_difference(found, self)}. "
                "Give another output, or remove that folder"
            )
        return found

    @classmethod
    def load(cls, path: str) -> Plan:
        """The plan in a file, or in the output folder that it is in. Raises OSError, PlanError."""
        is_file = path.endswith(f"/{PLAN_FILE}") if is_url(path) else not os.path.isdir(path)
        if not is_file:
            path = places.join(path, PLAN_FILE)
        with places.open_lines(path, "surrogatepass") as file:
            try:
                return cls._read(file)
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                raise PlanError(f"{path} is not a plan, or damaged: {error}") from None

    @classmethod
    def _read(cls, lines: Iterable[str]) -> Plan:
        rows = map(json.loads, lines)
        header: dict[str, Any] = next(rows, {})
        if header.get("streamtok") != _MAGIC:
            raise ValueError(f"the first line does not say {_MAGIC!r}")
        inputs: list[InputFile] = []
        columns = array("q"), array("q"), array("q")  # a list of rows would take 160 bytes a part
        for number, row in enumerate(rows):
            if row["part"] != number:
                raise ValueError(f"part {number} is missing")
            one = InputFile(row["input"], row["size"], row["tag"])
            if row["start"] == 0:  # an input may be given twice
                inputs.append(one)
            elif not inputs or inputs[-1] != one:
                raise ValueError(f"part {number} continues an input that has no beginning")
            columns[0].append(len(inputs) - 1)
            columns[1].append(row["start"])
            columns[2].append(row["stop"])
        parts = zip(*columns, strict=True)
        job = replace(EncodeJob.from_json(header), part_size=header["part_size"])
        made = cls(header["output"], job, inputs, parts)
        if len(made) != header["parts"]:
            raise ValueError(f"it has {len(made)} parts, not {header['parts']}")
        return made


def _difference(old: Plan, new: Plan) -> str:
    if (found := new.job.difference(old.job.as_json(IDS))) is not None:
        then, this = found
        return f"that one is {then}, this one {this}"
    if old.job.part_size != new.job.part_size:
        then, this = (f"with --part-size {one.job.part_size}" for one in (old, new))
        return f"that one is {then}, this one {this}"
    for one, other in zip(old.inputs, new.inputs, strict=False):
        if one != other:
            what = "has changed since" if one.path == other.path else f"was {one.path}"
            return f"the input {other.path} {what}"
    return (
        f"it has {len(old.inputs)} inputs and {len(old)} parts, not {len(new.inputs)} "
        f"and {len(new)}"
    )


def plan(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    encoding: str | Encoding,
    format: str | None = None,
    part_size: int = PART_SIZE,
    **options: Any,
) -> Plan:
    """Plan: the job that encodes `inputs` into the folder `output`, in parts.

    inputs: paths of regular files or URLs, in order. output: a path or a URL. encoding: a name, a
    vocabulary file, or an `Encoding` that has a name. format: of the parts' files, as `streamtok
    encode --format`. part_size: bytes of an input in a part, about; a compressed one is one
    part. options: those of `streamtok encode` that ids or unread text depend on. Reads the sizes
    of the inputs and their first bytes. Raises OSError, ValueError, PlanError, and what loading the
    encoding raises.
    """
    known = {one.name for one, _ in said_fields(EncodeJob, IDS, UNREAD)} | {"add_special_tokens"}
    if unknown := sorted(options.keys() - known):
        raise TypeError(
            f"{unknown[0]!r} is not an option of a plan: expected one of {', '.join(sorted(known))}"
        )
    name, loaded = _named(encoding)
    job = EncodeJob(encoding=name, format=format, part_size=part_size, **options)
    try:
        job = job.resolve(loaded, "")
    except LookupError as error:
        raise ValueError(str(error)) from None
    return plan_job(inputs, output, job)


def plan_job(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    job: EncodeJob,
) -> Plan:
    """As `plan`, for a job that is resolved."""
    loaded = job.open_encoding()
    job.open_encoder(loaded).release()  # raises for options that no stream accepts
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    output = os.fspath(output)
    if is_url(output):
        output = output.rstrip("/")
        check_writable(output)
    files = [_input(os.fspath(path)) for path in inputs]
    if not files:
        raise PlanError("a plan needs at least one input")
    is_packed = _may_be_packed(job)
    parts = cut_inputs(files, job.part_size, can_cut(job, loaded), is_packed)
    return Plan(output, job, files, parts)


def can_be_cut(made: Plan) -> bool:
    """Whether a smaller part_size would give more parts, as far as is known without trying."""
    job = made.job
    if not can_cut(job, job.open_encoding()):
        return False
    packed = _may_be_packed(job)
    return not all(packed and is_compressed(one.path) for one in made.inputs)


def _input(path: str) -> InputFile:
    one = input_now(path)
    found = sinks.matching_sidecar(path)
    if found is not None:
        raise PlanError(f"{path} holds ids, not text, as its sidecar says")
    return one


def _may_be_packed(job: EncodeJob) -> bool:
    """Whether compressed inputs are decompressed before they are read."""
    return job.unpack and job.parquet is None


def _named(encoding: str | Encoding) -> tuple[str, Encoding]:
    """(name, encoding): the name is what other processes can open."""
    if isinstance(encoding, str):
        return encoding, open_encoding(encoding)
    name = encoding.name
    if name in list_encoding_names() and get_encoding(name).digest == encoding.digest:
        return name, encoding
    raise PlanError(
        f"other machines cannot make {encoding!r} from its name: save it to a file, "
        "and give the path of that file as the encoding"
    )
