"""Vocabulary files from Hugging Face's hub, by the name of a model: "org/model".

`huggingface_hub` fetches and caches them; it is imported only when it is needed. `HF_HUB_OFFLINE`,
`HF_HOME` and access tokens work as usual.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from ..errors import VocabularyError

__all__ = ["fetch", "is_hub_name"]

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_FILE_SUFFIXES = (".json", ".model", ".tiktoken", ".pkl", ".pickle", ".bpe", ".txt", ".streamtok",
                  ".gguf")  # fmt: skip


def is_hub_name(name: str) -> bool:
    """Whether a name that is not an existing path may name a model on the hub: org/model.

    A name that begins with an existing folder is a path, and so is one that ends with the suffix of
    a vocabulary file.
    """
    return (
        _NAME.fullmatch(name) is not None
        and not name.endswith(_FILE_SUFFIXES)
        and not os.path.isdir(name.partition("/")[0])
    )


def fetch(name: str, files: Iterable[str], revision: str | None) -> str:
    """Fetch those of `files` that the model has; return their folder. Raises VocabularyError."""
    about = f"{name!r} is neither a file nor a folder here"
    try:
        import huggingface_hub
    except ImportError as error:
        raise VocabularyError(
            f"{about}. To load a model of Hugging Face's hub, install huggingface_hub ({error})"
        ) from None
    try:
        folder = huggingface_hub.snapshot_download(
            name, revision=revision, allow_patterns=list(files)
        )
        return str(folder)
    except Exception as error:  # huggingface_hub's errors have no common base class
        at = "" if revision is None else f" at {revision}"
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise VocabularyError(
            f"{about}, and no model of Hugging Face's hub{at} can be loaded: {reason}"
        ) from None
