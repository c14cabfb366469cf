"""Files of any kind, read within limits: what is damaged or hostile is an error, not a crash.

A file is read whole, up to 128 MiB (the largest vocabulary known has 35 MB). JSON must be UTF-8,
without a key given twice, without numbers that are none or have more digits than any id, and
neither of more values nor nested deeper than a vocabulary is: `[[],[],…` takes twenty times its
size in memory. All errors are `VocabularyError` and name the file and the place.
"""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..errors import PatternError, VocabularyError

if TYPE_CHECKING:
    from ..encoding import Encoding

    Path = str | os.PathLike[str]

__all__ = ["Reader", "check_specials", "parse_json", "read_bytes", "stem"]

MAX_FILE_BYTES = 1 << 27
MAX_VALUES = 1 << 23  # of a JSON text: two million tokens, each with a merge
MAX_DEPTH = 64  # of values looked into: those in use are not nested deeper than ten
MAX_MESSAGE = 500  # characters: what a file holds may be megabytes
MAX_JSON_DIGITS = 32  # of an integer: more than any id or size has; int() of many takes long
MAX_SPECIAL_BYTES = 1 << 21  # of all special and added tokens: a tree of them is held in memory
_T = TypeVar("_T")


def read_bytes(path: Path) -> bytes:
    """bytes: the whole file. OSError if it cannot be read, VocabularyError if it is too large."""
    with open(path, "rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise VocabularyError(
            f"{os.fspath(path)}: more than {MAX_FILE_BYTES >> 20} MiB are no vocabulary"
        )
    return data


def stem(path: Path) -> str:
    """str: the file's name without its suffix, as the name of an encoding."""
    return os.path.basename(os.fspath(path)).partition(".")[0] or "loaded"


def parse_json(data: bytes, source: str) -> Any:
    """The value of a JSON text; errors name `source`, the line and the column."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VocabularyError(f"{source}, byte {error.start}: not UTF-8") from None

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
        raise VocabularyError(f"{source}: {constant} is no JSON")

    def integer(digits: str) -> int:
        if len(digits) > MAX_JSON_DIGITS:
            raise VocabularyError(f"{source}: a number of {len(digits)} digits, {shown(digits)}")
        return int(digits)

    count = sum(map(data.count, (b",", b"[", b"{")))  # those in strings, too
    if count > MAX_VALUES:
        raise VocabularyError(f"{source}: more than {MAX_VALUES} values are no vocabulary")
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_int=integer)
    except json.JSONDecodeError as error:
        raise VocabularyError(
            f"{source}, line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise VocabularyError(f"{source}: nested too deep") from None


def shown(value: object) -> str:
    """`value` for a message, cut where it is long."""
    text = repr(value[:60]) if isinstance(value, (str, bytes)) else reprlib.repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


class Reader:
    """A JSON value and where it stands; what it is not, it says by name.

    >>> Reader({"model": {"type": "BPE"}}, "x.json")["model"]["type"].as_str()
    'BPE'
    """

    def __init__(self, value: Any, place: str, depth: int = 0) -> None:
        self.value = value
        self.place = place
        self.depth = depth
        if depth > MAX_DEPTH:
            raise VocabularyError(f"{place[:200]}…: nested deeper than {MAX_DEPTH}")

    def __getitem__(self, key: str) -> Reader:
        """The field `key` of an object, with None where it is missing."""
        return Reader(self.as_dict().get(key), f"{self.place}: {key}", self.depth + 1)

    def fail(self, message: str) -> NoReturn:
        """Raise the VocabularyError that begins with the place."""
        message = message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"
        raise VocabularyError(f"{self.place}: {message}")

    def _typed(self, kind: type[_T], what: str) -> _T:
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            self.fail(f"expected {what}, got {shown(self.value)}")
        return self.value

    def as_dict(self) -> dict[str, Any]:
        """The value, an object."""
        return self._typed(dict, "an object")

    def as_list(self) -> list[Any]:
        """The value, an array."""
        return self._typed(list, "an array")

    def as_str(self) -> str:
        """The value, a string that is Unicode: no half of a surrogate pair."""
        text = self._typed(str, "a string")
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail(f"half of a surrogate pair in {shown(text)}")
        return text

    def as_int(self) -> int:
        """The value, an integer."""
        return self._typed(int, "an integer")

    def flag(self, default: bool = False) -> bool:
        """The value, true or false; `default` where it is missing."""
        return default if self.value is None else self._typed(bool, "true or false")

    def items(self) -> list[Reader]:
        """The elements of an array, each with its place."""
        return [
            Reader(value, f"{self.place}[{i}]", self.depth + 1)
            for i, value in enumerate(self.as_list())
        ]

    def only(self, *known: str) -> None:
        """Refuse fields of an object that are not among `known` and say something."""
        for key, value in self.as_dict().items():
            if key not in known and value not in (None, False):
                self.fail(f"what {shown(key)} asks for ({shown(value)}) is not known")


def check_specials(special_tokens: Mapping[str, int], source: str) -> dict[str, int]:
    """The special tokens, after checking that no id is given to two of them."""
    owners: dict[int, str] = {}
    for text, token in special_tokens.items():
        if not text:
            raise VocabularyError(f"{source}: a special token without text, id {token}")
        if not 0 <= token < 2**32 - 1:
            raise VocabularyError(f"{source}: the id of {text!r} is {token}, no uint32")
        if token in owners:
            raise VocabularyError(
                f"{source}: id {token} is given twice: to {owners[token]!r} and to {text!r}"
            )
        owners[token] = text
    return dict(special_tokens)


def check_total(texts: Collection[str], source: str) -> None:
    """VocabularyError where special and added tokens are longer than their tree may be."""
    if sum(map(len, texts)) > MAX_SPECIAL_BYTES:
        raise VocabularyError(
            f"{source}: {len(texts)} special and added tokens of more than "
            f"{MAX_SPECIAL_BYTES >> 20} MiB"
        )


def make_encoding(source: str, name: str, **parts: Any) -> Encoding:
    """`Encoding(name, …)`; what is wrong with the parts is the file's fault and names it."""
    from ..encoding import Encoding

    added = parts["rules"].added_tokens if "rules" in parts else ()
    check_total([*parts["special_tokens"], *dict(added)], source)
    try:
        return Encoding(name, **parts)
    except PatternError as error:
        raise VocabularyError(f"{source}: {error}") from error
    except ValueError as error:
        raise VocabularyError(f"{source}: {error}") from None
