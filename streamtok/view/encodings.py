"""The encodings that the page offers: those with a name, the given one, and loaded ones."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from ..encoding import Encoding
from ..errors import VocabularyError
from ..formats.detection import load
from ..registry import get_encoding, list_encoding_names

MAX_VOCABULARY = 64 << 20  # bytes of a file that the page loads
MAX_LOADED = 4  # files that are kept; the one that was loaded first is forgotten


class Encodings:
    """Encodings by the names that the page shows. Those of the package load when asked for."""

    def __init__(self, given: Encoding | str) -> None:
        """given: the one that is chosen at first. Raises ValueError for an unknown name."""
        self._given: dict[str, Encoding] = {}
        names = list_encoding_names()
        if isinstance(given, str):
            get_encoding(given)
            self.first = given
        else:
            self.first = given.name
            if given.name in names and get_encoding(given.name) is not given:
                self.first = f"{given.name} (given)"
            if self.first not in names:
                self._given[self.first] = given
        self._loaded: dict[str, Encoding] = {}
        self._named = names
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """list[str]: all of them, the given one first."""
        return [*self._given, *self._named, *self._loaded]

    def load(self, data: bytes | bytearray, file: str) -> str:
        """str: the name of the encoding in a vocabulary file. Raises VocabularyError.

        Only `data` is read: neither other files nor the hub nor the user's cache.
        """
        file = "".join(one for one in os.path.basename(file) if one.isalnum() or one in "-_.")
        file = file.lstrip(".")[-60:] or "vocabulary"
        name = f"{file.partition('.')[0] or file} (loaded)"
        with tempfile.TemporaryDirectory(prefix="streamtok-") as folder:
            path = Path(folder, file)
            path.write_bytes(data)
            try:
                encoding = load(path, name=name, cache=False)
            except (VocabularyError, OSError) as error:
                text = str(error).replace(f"{folder}{os.sep}", "")
                raise VocabularyError(text.replace(folder, "")) from None
        with self._lock:
            kept = [one for one in self._loaded.items() if one[0] != name]
            self._loaded = dict([*kept, (name, encoding)][-MAX_LOADED:])
        return name

    def get(self, name: str) -> Encoding:
        """Encoding: the one of that name. Raises ValueError for a name that is not in `names`."""
        found = self._given.get(name) or self._loaded.get(name)
        if found is not None:
            return found
        return get_encoding(name)
