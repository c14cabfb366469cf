"""JSON from a file that may be damaged or hostile: parsed within limits, read with its place.

The text must be UTF-8. Duplicate keys, NaN and Infinity, and integers of thousands of digits are
refused, and so are more values or deeper nesting than a vocabulary has: `[[],[],…` takes twenty
times its size in memory. All errors are `VocabularyError` and name the file and the position.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..errors import VocabularyError
from ..files.named_errors import json_reason
from ..models.serde_float import serde_float
from ..patterns.budget import shortened
from .loading import MAX_MESSAGE, decode_utf8, shown, without_collection

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JsonValue", "parse_json"]

MAX_VALUES = 1 << 23  # two million tokens, each with a merge
MAX_DEPTH = 64  # of the values that are read; known formats nest less than ten deep
MAX_NESTED = 20  # Sequences, one in the other
_T = TypeVar("_T")


@without_collection()
def parse_json(data: bytes, source: str, parse_float: Callable[[str], float] = serde_float) -> Any:
    """The value of a JSON text. Errors name `source`, and the line and column of bad syntax.

    parse_float: reads a number that is not an integer, as tokenizers does if nothing is said.
    """
    text = decode_utf8(data, source)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise VocabularyError(f"{source}: the key {shown(key)} is given twice")
                seen.add(key)
        return result

    def refuse(constant: str) -> NoReturn:
        raise VocabularyError(f"{source}: {constant} is not valid JSON")

    count = sum(map(data.count, (b",", b"[", b"{")))  # an upper bound: strings count, too
    if count > MAX_VALUES:
        raise VocabularyError(f"{source}: more than {MAX_VALUES} JSON values")
    try:
        return json.loads(
            text,
            object_pairs_hook=unique,
            parse_constant=refuse,
            parse_float=parse_float,
        )
    except json.JSONDecodeError as error:
        raise VocabularyError(
            f"{source}, line {error.lineno}, column {error.colno}: {json_reason(error)}"
        ) from None
    except RecursionError:
        raise VocabularyError(f"{source}: nested too deep") from None
    except VocabularyError:
        raise
    except ValueError as error:  # an integer of more digits than Python takes
        raise VocabularyError(f"{source}: {error}") from None


class JsonValue:
    """A JSON value and its place in the file. Each accessor checks the type.

    >>> JsonValue({"model": {"type": "BPE"}}, "x.json")["model"]["type"].as_str()
    'BPE'
    """

    def __init__(self, value: Any, place: str, depth: int = 0) -> None:
        self.value = value
        self.place = place
        self.depth = depth
        if depth > MAX_DEPTH:
            raise VocabularyError(f"{place[:200]}…: nested deeper than {MAX_DEPTH}")

    def __getitem__(self, key: str) -> JsonValue:
        """The field `key` of an object; its value is None if it is missing."""
        return JsonValue(self.as_dict().get(key), f"{self.place}: {key}", self.depth + 1)

    def fail(self, message: str) -> NoReturn:
        """Raise a VocabularyError that begins with the position."""
        raise VocabularyError(f"{self.place}: {shortened(message, MAX_MESSAGE)}")

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
        """The value, which must be a string without lone surrogates."""
        text = self._typed(str, "a string")
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"lone surrogate in the string {shown(text)}")
        return text

    def as_int(self) -> int:
        """The value, which must be an integer."""
        return self._typed(int, "an integer")

    def as_bool(self, default: bool = False) -> bool:
        """The value, which must be true or false; `default` if it is missing."""
        return default if self.value is None else self._typed(bool, "true or false")

    def elements(self) -> list[JsonValue]:
        """The elements of an array, each with its place."""
        return [
            JsonValue(value, f"{self.place}[{i}]", self.depth + 1)
            for i, value in enumerate(self.as_list())
        ]

    def flat(self, key: str, depth: int = 0) -> list[JsonValue]:
        """The parts of an object, or of a Sequence of such objects in the field `key`, in order."""
        if self["type"].value != "Sequence":
            return [self]
        if depth > MAX_NESTED:
            self.fail("sequences are nested too deep")
        self.allow_only("type", key)
        return [part for one in self[key].elements() for part in one.flat(key, depth + 1)]

    def allow_only(self, *keys: str) -> None:
        """Fail for a field of this object that is not in `keys`, unless it is null or false."""
        for key, value in self.as_dict().items():
            if key not in keys and value not in (None, False):
                self.fail(f"the field {shown(key)} is not supported, it has {shown(value)}")
