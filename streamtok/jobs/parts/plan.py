"""A plan maps ranges of the inputs to output files. It is the same on every machine.

Parts of a file are ranges of about `part_size` bytes, computed from its size. To make a plan, only
samples of the inputs are read, by which they are recognized later. The process that runs a part
finds its exact bounds from the bytes around the ends of its range (`spans.span_between`). An input
that cannot be cut is one part.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import PlanError
from ...files import is_hidden
from ...formats.opening import open_encoding
from ...registry import get_encoding, list_encoding_names
from .. import PART_SIZE
from ..job import EncodeJob
from ..option_fields import IDS, UNREAD, said_fields
from ..sinks.format_table import TABLE
from ..sinks.sidecar import matching_sidecar
from ..sources.blocks import is_compressed
from ..sources.fingerprint import fingerprint
from ..stores import places
from ..stores.urls import check_writable, is_url

if TYPE_CHECKING:
    from ...encoding import Encoding

PLAN_FILE = "job.json"
_FORMAT = 1


class InputFile(NamedTuple):
    """An input as it was when the plan was made. It must not have changed when a part of it runs.

    tag: as in `Stored`. is_cut: whether it is divided into parts of about `part_size` bytes,
    instead of being one part.
    """

    path: str
    size: int
    tag: str
    is_cut: bool = True

    def check(self) -> None:
        """Raise PlanError if the input has changed."""
        try:
            now = input_now(self.path)
        except FileNotFoundError:
            raise PlanError(f"{self.path} was removed after the plan was made") from None
        if now[:3] != self[:3]:
            raise PlanError(f"{self.path} has changed since the plan was made: make a new plan")


class Part(NamedTuple):
    """Part `number`: the text between the cuts for bytes `start` and `stop` of the input."""

    number: int
    input: InputFile
    start: int
    stop: int


@dataclass(frozen=True)
class Plan:
    """The parts of one job. `len(plan)` is how many there are, and `plan[i]` is part number i.

    output: the folder. `digest` is a SHA-256 of everything that the files of finished parts depend
    on.
    """

    output: str
    job: EncodeJob
    inputs: tuple[InputFile, ...]

    @cached_property
    def _first_parts(self) -> list[int]:
        """The number of the first part of each input, and then the total number of parts."""
        step = self.job.part_size
        counts = (max(-(-one.size // step), 1) if one.is_cut else 1 for one in self.inputs)
        return list(accumulate(counts, initial=0))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan without UNREAD options, in hexadecimal."""
        row = self._as_json()
        for one, _ in said_fields(self.job, UNREAD):
            del row["job"][one.name]
        return hashlib.sha256(json.dumps(row).encode()).hexdigest()

    def part_digest(self, number: int) -> str:
        """The digest of a part, which its sidecar records."""
        return hashlib.sha256(f"{self.digest} {number}".encode()).hexdigest()

    def __len__(self) -> int:
        return self._first_parts[-1]

    def __getitem__(self, number: int) -> Part:
        if not 0 <= number < len(self):
            raise IndexError(f"the plan has the parts 0 … {len(self) - 1}, not {number}")
        which = bisect_right(self._first_parts, number) - 1
        one, step = self.inputs[which], self.job.part_size
        if not one.is_cut:
            return Part(number, one, 0, one.size)
        start = (number - self._first_parts[which]) * step
        return Part(number, one, start, min(start + step, one.size))

    def __repr__(self) -> str:
        return f"<Plan of {len(self)} parts for {self.output!r}>"

    def path(self, number: int) -> str:
        """The path of the first file of a part."""
        chosen = self.job.chosen
        suffix = TABLE[chosen].suffix or TABLE[chosen].required
        name = f"part-{number:06d}-of-{len(self):06d}{suffix}"
        return places.join(self.output, name)

    # On the disk

    def _as_json(self) -> dict[str, Any]:
        return {
            "streamtok": _FORMAT,
            "part_size": self.job.part_size,
            "job": self.job.as_json(),
            "inputs": self.inputs,
        }

    def save(self) -> str:
        """Write the plan into its output folder, and return the path of its file.

        If the folder already holds this plan, the job continues: finished parts stay, and the
        others use the UNREAD options of `self`. Raises OSError, and a PlanError if the folder holds
        a different plan or other files.
        """
        path = places.join(self.output, PLAN_FILE)
        places.make_folder(self.output)
        data = json.dumps(self._as_json()).encode() + b"\n"
        found = self.find_saved()
        if found is None:
            with contextlib.suppress(FileExistsError):  # another process was faster
                places.create(path, [data])
                return path
            found = self.find_saved()
        assert found is not None
        if found.job.as_json() != self.job.as_json():
            places.write(path, data)
        return path

    def find_saved(self) -> Plan | None:
        """Load this plan from its output folder; return None if the folder is missing or empty.

        The saved plan may have different UNREAD options. Raises OSError, and a PlanError if the
        folder holds a different plan or only other files.
        """
        if not places.exists(self.output):
            return None
        # A process that is writing the plan, or was killed while it did so, has left a hidden file.
        there = [name for name in places.names_in(self.output) if not is_hidden(name)]
        if not there:
            return None
        if PLAN_FILE not in there:
            raise PlanError(f"{self.output} holds other files: give a new or an empty folder")
        found = Plan.load(self.output)
        if found.digest != self.digest:
            difference = self.job.difference(found.job.as_json(IDS))
            what = "it has other inputs, or parts of another size"
            if difference is not None:
                what = f"that one is {difference[0]}, this one {difference[1]}"
            raise PlanError(
                f"{self.output} holds the parts of another plan: {what}. Give another output, or "
                "remove that folder"
            )
        return found

    @classmethod
    def load(cls, path: str) -> Plan:
        """Load a plan from its output folder or its file. Raises OSError and PlanError."""
        file = path
        if os.path.basename(path) != PLAN_FILE and (is_url(path) or os.path.isdir(path)):
            file = places.join(path, PLAN_FILE)
        try:
            row = json.loads(places.read_whole(file))
            if row["streamtok"] != _FORMAT:
                raise ValueError(f"streamtok is {row['streamtok']!r}")
            job = replace(EncodeJob.from_json(row["job"]), part_size=row["part_size"])
            inputs = tuple(InputFile(*one) for one in row["inputs"])
            made = cls(file.removesuffix(PLAN_FILE).rstrip("/") or os.curdir, job, inputs)
            len(made), made.digest  # raises if a value is wrong
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise PlanError(f"{file} is not a plan, or damaged: {error}") from None
        return made


def find_plan(path: str) -> str | None:
    """The folder of a job in parts, if `path` is that folder or its plan file; else None.

    Raises OSError.
    """
    folder = path.removesuffix(PLAN_FILE) if os.path.basename(path) == PLAN_FILE else path
    folder = folder.rstrip("/") or (os.curdir if not path.startswith("/") else "/")
    return folder if places.exists(places.join(folder, PLAN_FILE)) else None


def plan(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    encoding: str | Encoding,
    format: str | None = None,
    part_size: int = PART_SIZE,
    **options: Any,
) -> Plan:
    """Plan a job that encodes `inputs` into the folder `output`, in parts.

    inputs: paths of regular files or URLs, in order. output: a path or a URL. encoding: a name, a
    vocabulary file, or an `Encoding` that `get_encoding` returns. format: as in `streamtok encode
    --format`. part_size: approximate bytes of an input per part; a compressed input is one part.
    options: the options of `streamtok encode` that affect the ids or decide which text is accepted.
    Reads samples of the inputs. Raises OSError, TypeError, ValueError, PlanError, and the errors of
    loading the encoding.
    """
    known = {one.name for one, _ in said_fields(EncodeJob, IDS, UNREAD)} | {"add_special_tokens"}
    if unknown := sorted(options.keys() - known):
        raise TypeError(
            f"{unknown[0]!r} is not an option of a plan: expected one of {', '.join(sorted(known))}"
        )
    if isinstance(encoding, str):
        name, loaded = encoding, open_encoding(encoding)
    else:  # other processes open it by its name
        name, loaded = encoding.name, encoding
        is_named = name in list_encoding_names()
        if not is_named or get_encoding(name).digest != encoding.digest:
            raise PlanError(
                f"other machines cannot make {encoding!r} from its name: save it to a file, "
                "and give the path of that file as the encoding"
            )
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
    """As `plan`, for a resolved job."""
    if job.shard_tokens is not None:
        raise ValueError("a plan cannot use shard_tokens: each part has one output; use part_size")
    loaded = job.open_encoding()
    job.open_encoder(loaded).release()  # raises for options that no stream accepts
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    output = os.fspath(output)
    if is_url(output):
        output = output.rstrip("/")
        check_writable(output)
    if job.is_split:
        is_cut = job.can_cut
    else:  # a document may be cut only if the format does not record where documents end
        has_cuts = loaded.definition.texts.cuts is not None
        is_cut = has_cuts and not TABLE[job.chosen].keeps_documents
    files = []
    for path in [os.fspath(one) for one in inputs]:
        one = input_now(path)
        if matching_sidecar(path) is not None:
            raise PlanError(f"{path} holds ids, not text, as its sidecar says")
        is_packed = job.parquet is None and one.size > job.part_size and is_compressed(path)
        files.append(one._replace(is_cut=is_cut and not is_packed))
    if not files:
        raise PlanError("a plan needs at least one input")
    return Plan(output, job, tuple(files))


def input_now(path: str) -> InputFile:
    """Fingerprint an input.

    Raises OSError, and a PlanError unless it is a regular file or a URL.
    """
    if not is_url(path) and not os.path.isfile(path):
        os.stat(path)  # raises if it does not exist
        raise PlanError(f"{path} is not a regular file: only those can be read in parts")
    return InputFile(path, *fingerprint(path))
