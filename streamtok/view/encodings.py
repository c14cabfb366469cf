"""The encodings that the page offers: those with a name, and the one that was given."""

from __future__ import annotations

from ..encoding import Encoding
from ..registry import get_encoding, list_encoding_names

__all__ = ["Encodings"]


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
        self.names = [*self._given, *names]

    def get(self, name: str) -> Encoding:
        """Encoding: the one of that name. Raises ValueError for a name that is not in `names`."""
        if name in self._given:
            return self._given[name]
        return get_encoding(name)
