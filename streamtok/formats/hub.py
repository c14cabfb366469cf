"""Vocabulary files of Hugging Face's hub, by the name of a model: "org/model".

`huggingface_hub` fetches them and keeps them in its cache; it is only imported here, when a name
asks for it. Only files that are needed are fetched. `HF_HUB_OFFLINE`, `HF_HOME` and tokens work as
there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from ..errors import VocabularyError

__all__ = ["fetch", "is_hub_name"]

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_FILE_SUFFIXES = (".json", ".model", ".tiktoken", ".pkl", ".pickle", ".bpe", ".txt", ".streamtok")


def is_hub_name(name: str) -> bool:
    """Whether a name that is not a path can be one of the hub: org/model.

    A file's name in a folder that exists is a path, and so is one with a vocabulary file's suffix.
    """
    return (
        _NAME.fullmatch(name) is not None
        and not name.endswith(_FILE_SUFFIXES)
        and not os.path.isdir(name.partition("/")[0])
    )


def fetch(
    name: str,
    wanted: tuple[tuple[str, ...], ...],
    optional: Mapping[str, tuple[str, ...]],
    revision: str | None = None,
) -> str:
    """The path of a model's main vocabulary file, which the files that go with it are beside.

    wanted: groups of files, of which the first that the model has is fetched. optional: for the
    first file of a group, further files that are fetched if the model has them. Raises
    VocabularyError.
    """
    source = _Model(name, revision)
    for group in wanted:
        main = source.get(group[0])
        if main is None:
            continue
        # What else is fetched is of the same commit, whatever happens to the model meanwhile.
        source.revision = os.path.basename(os.path.dirname(main))
        for file in group[1:]:
            if source.get(file) is None:
                source.fail(f"it has {group[0]}, but no {file}")
        for file in optional.get(group[0], ()):
            source.get(file)
        return main
    files = ", ".join(" + ".join(group) for group in wanted)
    where = "in the cache (HF_HUB_OFFLINE is set)" if source.is_offline else "there"
    source.fail(f"none of {files} is {where}")


class _Model:
    """One model of the hub."""

    def __init__(self, name: str, revision: str | None) -> None:
        try:
            import huggingface_hub
            from huggingface_hub import constants, errors
        except ImportError as error:
            raise VocabularyError(
                f"{name!r} is neither a file nor a folder. To load a model of Hugging Face's hub, "
                f"install huggingface_hub ({error})"
            ) from None
        self.name = name
        self.revision = revision
        self.hub: Any = huggingface_hub
        self.errors: Any = errors
        self.is_offline = bool(constants.HF_HUB_OFFLINE)

    def get(self, file: str) -> str | None:
        """The path of a file, or None if the model has none (offline: the cache)."""
        try:
            path: str = self.hub.hf_hub_download(self.name, file, revision=self.revision)
        except self.errors.LocalEntryNotFoundError as error:
            if self.is_offline:
                return None
            self.fail(f"{file} is not in the cache, and cannot be fetched: {_first_line(error)}")
        except self.errors.EntryNotFoundError:
            return None
        except self.errors.GatedRepoError as error:
            self.fail(f"access to it must be granted first: {_first_line(error)}")
        except (
            self.errors.RepositoryNotFoundError,
            self.errors.RevisionNotFoundError,
        ) as error:
            self.fail(f"it is not on the hub, or not for you: {_first_line(error)}")
        except (OSError, ValueError) as error:
            self.fail(f"{file} cannot be fetched: {_first_line(error)}")
        return path

    def fail(self, message: str) -> NoReturn:
        """Raise a VocabularyError that names the model, and that it is not a path."""
        at = "" if self.revision is None else f" at {self.revision}"
        raise VocabularyError(
            f"{self.name!r} is neither a file nor a folder here, and as a model of Hugging Face's "
            f"hub{at}: {message}"
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
