"""An encoding by its name in a command line, a plan or a column: a name, a path, a model."""

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
    """An encoding as a command line names it: by its own name, by what `formats.load` takes as a
    str (a path wins over all but the names of encodings), or by the name of an OpenAI model.

    "FILE@PATTERN" adds a pattern (a name in `formats.PATTERNS`) to a file that has none. Raises
    ValueError for a name that is none of these, OSError, VocabularyError.
    """
    if name in list_encoding_names():
        return get_encoding(name)
    from .detection import load  # takes longer to import than all that a bundled encoding needs

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
    """What a later process has to open for the encoding `name`, or None if the name is enough.

    The files, folders and models of the hub that `open_encoding` takes have names that say little,
    such as tokenizer.json.
    """
    is_named = name in list_encoding_names() or not (
        "@" in name or "/" in name or os.sep in name or os.path.exists(name)
    )
    return None if is_named else name


def _similar(name: str) -> str | None:
    """The encoding or model that a mistyped name most likely means, or None.

    Hyphens and dots do not count. Numbers do: gpt-3 is a mistyped gpt-3.5, but not gpt-2.
    """
    import difflib

    def letters(text: str) -> str:
        return re.sub("[-_. ]", "", text.lower())

    def digits(text: str) -> str:
        return re.sub("[^0-9]", "", text)

    if os.path.splitext(name)[1][1:].isalpha():  # the name of a file
        return None
    known = {letters(one): one for one in (*MODEL_TO_ENCODING, *list_encoding_names())}
    fitting = [one for one in known if digits(one).startswith(digits(name))]
    found = difflib.get_close_matches(letters(name), fitting, 1)
    if not found:
        return None
    meant = known[found[0]]
    encoding = MODEL_TO_ENCODING.get(meant, meant)
    return meant if meant == encoding else f"{meant}, which uses {encoding}"
