"""Opens an encoding by the name that a command line, a plan or a column gives it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ..registry import (
    MODEL_TO_ENCODING,
    encoding_for_model,
    get_encoding,
    list_encoding_names,
)

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["open_encoding", "vocabulary_of"]


def open_encoding(name: str) -> Encoding:
    """The encoding that a command line names: by its own name, by any str that `formats.load`
    accepts, or by the name of an OpenAI model. Names of encodings take precedence over paths, and
    paths over everything else.

    "FILE@PATTERN" adds a pattern (a name in `formats.PATTERNS`) to a file that has none. Raises the
    errors of `formats.load`, and ValueError for an unknown name.
    """
    if name in list_encoding_names():
        return get_encoding(name)
    from .detection import load  # slower to import than everything that a bundled encoding needs

    if os.path.exists(name):
        return load(name)
    path, _, pattern = name.rpartition("@")
    if path:
        return load(path, pattern=pattern)
    if "/" in name or os.sep in name:
        return load(name)
    try:
        return encoding_for_model(name)
    except KeyError:
        hint = ""
        if similar := _similar(name):
            hint = f"; did you mean {similar}?"
        elif os.path.splitext(name)[1]:
            hint = "; there is no such file"
        raise ValueError(
            f"Unknown encoding {name}: expected one of {', '.join(list_encoding_names())}, a model "
            "of OpenAI such as gpt-4o, a vocabulary file, a model's folder, or the name of a model "
            f"on Hugging Face's hub (org/model){hint}"
        ) from None


def vocabulary_of(name: str) -> str | None:
    """`name`, if a later process has to open it as a vocabulary; None if the encoding's own name is
    enough.

    Encodings from files, folders and models on the hub have names that say little, such as
    "tokenizer".
    """
    is_named = name in list_encoding_names() or not (
        "@" in name or "/" in name or os.sep in name or os.path.exists(name)
    )
    return None if is_named else name


def _similar(name: str) -> str | None:
    """The encoding or model that a mistyped name most likely means, or None.

    Hyphens and dots do not matter, but numbers do: gpt-3 may mean gpt-3.5, but not gpt-2.
    """
    import difflib

    def letters(text: str) -> str:
        return re.sub("[-_. ]", "", text.lower())

    def digits(text: str) -> str:
        return re.sub("[^0-9]", "", text)

    if os.path.splitext(name)[1][1:].isalpha():  # a file's name
        return None
    known = {letters(one): one for one in (*MODEL_TO_ENCODING, *list_encoding_names())}
    fitting = [one for one in known if digits(one).startswith(digits(name))]
    found = difflib.get_close_matches(letters(name), fitting, 1)
    if not found:
        return None
    meant = known[found[0]]
    encoding = MODEL_TO_ENCODING.get(meant, meant)
    return meant if meant == encoding else f"{meant}, which uses {encoding}"
