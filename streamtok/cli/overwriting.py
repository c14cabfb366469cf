"""What a command may write over: never an input, and only what streamtok made, unless told to.

Every command that writes files asks here before it opens any of them for writing. Two names are one
file if they lead to the same place, through links and other spellings, or if the system says so.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence

from ..pipeline.sinks.outputs import check_output, descriptor_of
from .report import Refused, input_name, shown

_STDIN = 0


def refuse_inputs(outputs: Iterable[str], inputs: Iterable[str]) -> None:
    """Raise Refused if an output is one of the inputs, or the same file as another output.

    outputs: every file that will be written; "-" is standard output. inputs: "-" is standard
    input; what is no regular file cannot be destroyed.
    """
    read: dict[object, str] = {}
    for path in inputs:
        for key in _identities(path, _STDIN):
            read[key] = input_name(path)
    written: set[str] = set()
    for path in outputs:
        for key in _identities(path, 1):
            if key in read:
                raise Refused(
                    f"{_output_name(path)} is also an input ({read[key]}): writing would destroy "
                    "it; give another output"
                )
        if descriptor_of(path) is None:
            real = os.path.realpath(path)
            if real in written:
                raise Refused(f"{shown(path)} leads to another output of this command")
            written.add(real)


def refuse_others(
    outputs: Iterable[str], find_other: Callable[[str], str | None], is_forced: bool
) -> None:
    """Raise Refused for the first output that would replace what streamtok did not make.

    find_other: gives the file that is not ours, or None. is_forced: --force was given.
    """
    if is_forced:
        return
    for path in outputs:
        if (found := find_other(path)) is not None:
            raise Refused(
                f"{shown(found)} exists, and is not an earlier output of this command; --force "
                "replaces it"
            )


def check_vocabulary(
    outputs: Sequence[str],
    inputs: Iterable[str],
    format: str,
    is_forced: bool,
    also: Iterable[str] = (),
) -> None:
    """Raise Refused unless `outputs`, the files of a vocabulary, may be written.

    They must be files, no inputs, and replace only vocabularies of the format, a key of
    `conversion.FORMATS`. also: what else the command writes.
    """
    for path in outputs:
        if not check_output(path):
            raise Refused(f"{shown(path)} is not a file, and a vocabulary is written to a file")
    refuse_inputs([*outputs, *also], inputs)
    refuse_others(outputs, _other_vocabulary(format), is_forced)


def _other_vocabulary(format: str) -> Callable[[str], str | None]:
    """Callable: a path to itself, if there is something else than a vocabulary of the format."""
    from ..formats.detection import is_vocabulary  # takes long

    def find_other(path: str) -> str | None:
        has_data = os.path.isfile(path) and os.path.getsize(path) > 0
        return path if has_data and not is_vocabulary(path, format) else None

    return find_other


def vocabulary_files(name: str) -> list[str]:
    """list[str]: the files that the encoding `name` may be read from.

    It is a FILE, a FILE@PATTERN, or a folder of vocabulary files.
    """
    paths = [name, name.rpartition("@")[0]] if "@" in name else [name]
    if not any(map(os.path.exists, paths)):
        return []  # one that has a name
    from ..formats.detection import read_together  # takes long

    return [file for path in paths for file in read_together(path)]


def _identities(path: str, standard: int) -> list[object]:
    """What tells that two names are one file: for a regular one only."""
    fd = standard if path == "-" else descriptor_of(path)
    try:
        status = os.stat(path) if fd is None else os.fstat(fd)
    except OSError:  # it is not there, or closed
        return []
    if not stat.S_ISREG(status.st_mode):
        return []
    found: list[object] = [os.path.realpath(path)] if fd is None else []
    if status.st_ino:  # some file systems have no numbers
        found.append((status.st_dev, status.st_ino))
    return found


def _output_name(path: str) -> str:
    return "standard output" if path == "-" else shown(path)
