"""JSON from a file that may be damaged or hostile: parsed within limits, with positions for errors.

The text must be UTF-8. Lone surrogates, NaN and Infinity, and integers of thousands of digits are
refused. More values or deeper nesting than any vocabulary has are refused, too, because `[[],[],…`
takes twenty times its size in memory. All errors are `VocabularyError` and name the file and the
position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from ..errors import VocabularyError
from ..patterns.budget import shortened
from ..vocabulary.table import MAX_ID
from .loading import MAX_MESSAGE, decode_utf8, shown, without_collection
from .serde_float import serde_float

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JsonValue", "parse_json"]

MAX_VALUES = 1 << 23  # enough for two million tokens, each with a merge
MAX_DEPTH = 64  # of values that are read; known formats have fewer than ten levels
_T = TypeVar("_T")


def parse_json(data: bytes, source: str, parse_float: Callable[[str], float] = serde_float) -> Any:
    """The value of a JSON text. Errors name `source`, and the line and column of bad syntax.

    For a key that is given twice, the last value counts, as in tokenizers. parse_float: converts a
    number that is not an integer; by default, as tokenizers does.
    """
    count = sum(map(data.count, (b",", b"[", b"{")))  # an upper bound: strings may hold them, too
    if count > MAX_VALUES:
        raise VocabularyError(f"{source}: more than {MAX_VALUES} JSON values")
    try:
        with without_collection():
            return msgspec.json.Decoder(float_hook=parse_float).decode(data)
    except RecursionError:
        raise VocabularyError(f"{source}: nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Invalid UTF-8 raises one or the other, depending on the version of msgspec.
        decode_utf8(data, source)
        reason = str(error.__cause__ or error).removeprefix("JSON is malformed: ")
        what, _, offset = reason.removesuffix(")").partition(" (byte ")
        if not offset:
            raise VocabularyError(f"{source}: {what}") from None
        before = data[: int(offset)].decode("utf-8", "replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise VocabularyError(f"{source}, line {line}, column {column}: {what}") from None


class JsonValue:
    """A JSON value and its position in the file. Each accessor checks the type.

    >>> JsonValue({"model": {"type": "BPE"}}, "x.json")["model"]["type"].as_str()
    'BPE'
    """

    def __init__(self, value: Any, position: str, depth: int = 0) -> None:
        self.value = value
        self.position = position
        self.depth = depth
        if depth > MAX_DEPTH:
            raise VocabularyError(f"{position[:200]}…: nested deeper than {MAX_DEPTH}")

    def __getitem__(self, key: str) -> JsonValue:
        """The field `key` of an object; its value is None if the field is missing."""
        return JsonValue(self.as_dict().get(key), f"{self.position}: {key}", self.depth + 1)

    def fail(self, message: str) -> NoReturn:
        """Raise a VocabularyError that begins with the position."""
        raise VocabularyError(f"{self.position}: {shortened(message, MAX_MESSAGE)}")

    def _typed(self, kind: type[_T], description: str) -> _T:
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            self.fail(f"expected {description}, found {shown(self.value)}")
        return self.value

    def as_dict(self) -> dict[str, Any]:
        """The value, which must be an object."""
        return self._typed(dict, "an object")

    def as_list(self) -> list[Any]:
        """The value, which must be an array."""
        return self._typed(list, "an array")

    def as_str(self) -> str:
        """The value, which must be a string."""
        return self._typed(str, "a string")

    def as_ids(self) -> dict[str, int]:
        """The value, which must be an object with ids by text."""
        ids = self.as_dict()
        numbers = ids.values()
        is_right = not set(map(type, numbers)) - {int}
        if ids and not (is_right and 0 <= min(numbers) <= max(numbers) <= MAX_ID):
            for text, number in ids.items():
                if type(number) is not int or not 0 <= number <= MAX_ID:
                    self.fail(
                        f"the id of {shown(text)} must be in 0 … {MAX_ID}, not {shown(number)}"
                    )
        return ids

    def as_int(self) -> int:
        """The value, which must be an integer."""
        return self._typed(int, "an integer")

    def as_bool(self, default: bool = False) -> bool:
        """The value, which must be true or false; `default` if it is missing."""
        return default if self.value is None else self._typed(bool, "true or false")

    def elements(self) -> list[JsonValue]:
        """The elements of an array, each with its position."""
        return [
            JsonValue(value, f"{self.position}[{i}]", self.depth + 1)
            for i, value in enumerate(self.as_list())
        ]

    def flat(self, key: str) -> list[JsonValue]:
        """This object alone, or the objects in the field `key` of a Sequence, flattened and in
        order; none for null.
        """
        if self.value is None:
            return []
        if self["type"].value != "Sequence":
            return [self]
        self.allow_only("type", key)
        return [part for one in self[key].elements() for part in one.flat(key)]

    def allow_only(self, *keys: str) -> None:
        """Fail if this object has a field that is not in `keys` and neither null nor false."""
        for key, value in self.as_dict().items():
            if key not in keys and value not in (None, False):
                self.fail(f"the field {shown(key)} is not supported, it has {shown(value)}")
