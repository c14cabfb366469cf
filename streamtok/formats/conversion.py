"""`save` writes an encoding in one of the supported formats, which the caller names.

If the format cannot express the encoding, an error is raised and nothing is written.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from .. import formats
from ..errors import VocabularyError
from . import WRITTEN

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["format_of", "save"]

_READ_ONLY = ("tekken.json", ".model", ".pkl", ".pickle", ".gguf")


def format_of(path: str) -> str:
    """The format that the file name `path` implies. Raises ValueError if it implies none."""
    base = os.path.basename(os.path.normpath(path))
    if base.endswith(_READ_ONLY):
        raise ValueError(
            f"{base!r} is the name of a format that is read and not written; keep the original file"
        )
    single = {about.files[0]: name for name, about in WRITTEN.items() if len(about.files) == 1}
    in_folders = {file for about in WRITTEN.values() for file in about.files} - single.keys()
    for file, name in single.items():
        if base not in in_folders and os.path.splitext(base)[1] == os.path.splitext(file)[1]:
            return name
    raise ValueError(f"the file name {base!r} does not tell the format")


def save(encoding: Encoding, path: str, format: str) -> None:
    """Write `encoding` to the file `path`, or to the folder `path` for GPT-2's pair. A file appears
    only once it is complete.

    Raises OSError, and VocabularyError if the format cannot express the encoding.
    """
    if format == "tiktoken":
        formats.save_tiktoken(encoding, path)
    elif format == "huggingface":
        formats.save_huggingface(encoding, path)
    elif format == "streamtok":
        formats.save_packed(encoding, path)
    else:
        os.makedirs(path, exist_ok=True)
        try:
            formats.save_gpt2(encoding, *(os.path.join(path, x) for x in WRITTEN["gpt2"].files))
        except VocabularyError:
            with contextlib.suppress(OSError):  # it existed before and is not empty
                os.rmdir(path)
            raise
