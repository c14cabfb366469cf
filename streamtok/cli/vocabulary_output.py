"""Vocabulary files as outputs of `convert` and `train`: their format, and what they may overwrite.

Also lists the files that an encoding is read from, which no command may overwrite.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence

from ..errors import VocabularyError
from ..formats import WRITTEN
from ..jobs.sinks.outputs import check_output
from . import overwriting
from .messages import Refused, shown
from .options import add_option


def add_format(parser: argparse._ActionsContainer) -> None:
    """Add --to."""
    add_option(
        parser,
        "--to FORMAT",
        f"{', '.join(WRITTEN)} (default: by the name of the output; huggingface for .json)",
        choices=list(WRITTEN),
    )


def choose_format(path: str, to: str | None) -> str:
    """The format `to`, or else the one that `path` implies. Raises VocabularyError."""
    if to is not None:
        return to
    from ..formats.conversion import format_of  # slow to import

    try:
        return format_of(path)
    except ValueError as error:
        raise VocabularyError(f"{error}: use --to {'|'.join(WRITTEN)}") from None


def files_of(output: str, format: str) -> list[str]:
    """The files of a vocabulary that is saved as `output`; those of gpt2 are in a folder."""
    names = WRITTEN[format].files
    return [output] if len(names) == 1 else [os.path.join(output, name) for name in names]


def check_vocabulary(
    outputs: Sequence[str],
    inputs: Iterable[str],
    is_forced: bool,
) -> None:
    """Raise Refused unless `outputs`, the files of a vocabulary, may be written.

    They must be regular files, must not be inputs, and must replace nothing unless forced, because
    without its vocabulary the ids of a corpus are worthless.
    """
    for path in outputs:
        if not check_output(path):
            raise Refused(f"{shown(path)} is not a regular file: a vocabulary needs one")
    overwriting.refuse_inputs(outputs, inputs)
    overwriting.refuse_existing(outputs, is_forced)


def vocabulary_files(name: str) -> list[str]:
    """The files from which the encoding `name` may be read; none for a published encoding.

    name: a FILE, a FILE@PATTERN, a folder of vocabulary files, or the name of an encoding.
    """
    paths = [name, name.rpartition("@")[0]] if "@" in name else [name]
    if not any(map(os.path.exists, paths)):
        return []  # the name of an encoding
    from ..formats.detection import read_together  # slow to import

    return [file for path in paths for file in read_together(path)]
