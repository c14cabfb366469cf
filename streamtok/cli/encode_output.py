"""The output of `encode`: its files, which files it may overwrite, and its sink."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence

from ..encoding import Encoding
from ..errors import SidecarError, StreamtokError
from ..jobs.job import EncodeJob
from ..jobs.record import Record, record_path
from ..jobs.sinks.by_name import make_sink
from ..jobs.sinks.flat import Sink
from ..jobs.sinks.outputs import check_output, open_output
from ..jobs.sinks.shards import Files
from ..jobs.sinks.sidecar import read_sidecar, sidecar_path, skip_log_path
from ..jobs.stores.urls import is_url
from . import overwriting
from .messages import Misused, Refused, is_terminal
from .vocabulary_output import vocabulary_files

END = "<|endoftext|>"


def resolve(job: EncodeJob, encoding: Encoding, output: str) -> EncodeJob:
    """Call `EncodeJob.resolve` for an output, and turn its errors into Refused."""
    try:
        return job.resolve(encoding, output)
    except (LookupError, StreamtokError) as error:
        raise Refused(str(error)) from None
    except ValueError as error:
        raise Misused(str(error)) from None


class Output:
    """The output of a run that writes one file, or shards."""

    def __init__(self, path: str, is_forced: bool, job: EncodeJob, encoding: Encoding):
        """job: already resolved. Raises OSError."""
        self._path = path
        self._is_forced = is_forced
        self._job = job
        self._encoding = encoding
        self.family = job.family(encoding)
        self.is_file = check_output(path)

    @property
    def first(self) -> str:
        """The first file. The checkpoint and the log of skipped lines are stored beside it."""
        return self.family.names(self._path, None)[0]

    def check_options(self) -> None:
        """Raise Refused for options that the output does not support."""
        job, chosen = self._job, self.family.chosen
        is_stdout = self._path == "-"
        if is_stdout and chosen in ("u16", "u32") and is_terminal(sys.stdout):
            raise Refused(f"{chosen} cannot go to a terminal: use -o FILE, a pipe or --format text")
        if job.chat is not None and not self.is_file and chosen != "jsonl":
            raise Misused("--chat writes masks to a second file: give one with -o, or use jsonl")
        if job.resume and is_url(self._path):
            raise Misused(
                "--resume keeps unfinished files, which stores cannot: --task writes parts to "
                "a URL, and the same command continues them"
            )
        for option, is_given in (("resume", job.resume), ("shard-tokens", job.shard_tokens)):
            if is_given and not self.is_file:
                raise Misused(f"--{option} needs a regular file: give one with -o")

    def refuse_inputs(self, names: Sequence[str]) -> None:
        """Raise Refused if an output is also an input. names: the inputs."""
        read = [*vocabulary_files(self._job.encoding), *names]
        outputs = [self._path]
        if self.is_file:
            outputs = self.family.kept_names(self._path, None)
            if self._job.resume:
                outputs.append(record_path(outputs[0]))
            if self._job.skip_bad_lines:
                outputs.append(skip_log_path(outputs[0]))
            if self._job.shard_tokens is not None:
                for shard in self.family.shards_there(self._path):
                    outputs += self.family.kept_names(self._path, shard)
        overwriting.refuse_inputs(outputs, read)

    def refuse_existing(self, record: Record | None) -> None:
        """Raise Refused if the run would replace files, unless --force is given.

        Files that earlier processes of the run have published, according to its record, do not
        count. Nor does a sidecar by itself, because it holds no ids.
        """
        if not self.is_file or (record is not None and record.done is not None):
            return
        shards: list[int | None] = [None]
        if self._job.shard_tokens is not None:
            published = 0 if record is None else record.last.shard
            shards = [one for one in self.family.shards_there(self._path) if one >= published]
        for shard in shards:
            first, *others = self.family.kept_names(self._path, shard)
            with contextlib.suppress(SidecarError):  # a file of another kind
                if read_sidecar(first) is not None:
                    others.remove(sidecar_path(first))
            overwriting.refuse_existing([first, *others], self._is_forced)

    def warn_of_lost_ends(self, documents: int) -> str | None:
        """A warning if the output does not record where documents end, else None."""
        is_marked = self._job.append is not None or self._job.prepend is not None
        if is_marked or self.family.format.keeps_documents or documents < 2:
            return None
        specials = self._encoding.special_tokens_set
        name = END if END in specials else min(specials, default=None)
        mark = f"--append {shlex.quote(name)} marks their ends, " if name else ""
        return (
            f"{self.family.chosen} does not record where the {documents:,} documents end: "
            f"{mark}--format jsonl keeps them separate"
        )

    def open(self, record: Record | None, stack: contextlib.ExitStack) -> Files | Sink:
        """Return the files, which are not begun yet, or a sink. Raises Refused and OSError."""
        job = self._job
        if not self.is_file:
            output = open_output(self._path)
            stack.enter_context(output)
            try:
                return make_sink(output, self.family.chosen, self.family.about.max_id)
            except ValueError as error:
                raise Misused(str(error)) from None
        files = Files(
            self._path,
            self.family,
            shard_tokens=job.shard_tokens,
            is_resumable=job.resume,
            has_log=job.skip_bad_lines,
        )

        def leave() -> None:  # does nothing after a complete run
            if record is not None and record.is_begun:
                files.close()
            else:  # no later process could continue the files
                files.discard()
                if record is not None:
                    record.remove()

        stack.callback(leave)
        return files
