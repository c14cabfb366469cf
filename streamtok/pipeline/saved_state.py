"""Checks the shape of a saved state, before anything acts on it.

The digest of a checkpoint finds damage. A file that somebody wrote has a right digest and may still
hold anything: a shape says for each field what it may be, and the error names the field.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import CheckpointError

__all__ = [
    "BASE64",
    "COUNT",
    "SAVED_FILE",
    "Choice",
    "Each",
    "Limit",
    "Optional",
    "Times",
    "check_shape",
    "damaged",
]

_MOST = 1 << 62
_SHOWN = 60  # characters of a value


class Optional(NamedTuple):
    """None, or a value of a shape."""

    shape: Any


class Choice(NamedTuple):
    """One of some values."""

    values: tuple[str, ...]


class Limit(NamedTuple):
    """A count of at most `most`."""

    most: int


class Times(NamedTuple):
    """A list of exactly `length` values of a shape."""

    length: int
    shape: Any


class Each(NamedTuple):
    """A dict with any keys, whose values have a shape."""

    shape: Any


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(base64.b64decode(value, validate=True))
    except ValueError:
        return False


COUNT = Limit(_MOST)
BASE64: Callable[[Any], bool] = _is_base64
SAVED_FILE = {"size": COUNT, "sha256": re.compile("[0-9a-f]{64}")}


def check_shape(value: Any, shape: Any, where: str, path: str) -> None:
    """Raise CheckpointError that names the file `path` and the field, unless `value` fits.

    shape: a type; a dict of shapes, whose keys all must be there and no others; a list of one
    shape, for a list of any length; a pattern for a text; a function that says whether a value
    fits; or one of the classes above. where: the name of the field.
    """
    if isinstance(shape, Optional):
        if value is not None:
            check_shape(value, shape.shape, where, path)
        return
    if isinstance(shape, Choice):
        fits = isinstance(value, str) and value in shape.values
    elif isinstance(shape, Limit):
        fits = type(value) is int and 0 <= value <= shape.most
    elif isinstance(shape, Times):
        fits = isinstance(value, list) and len(value) == shape.length
    elif isinstance(shape, re.Pattern):
        fits = isinstance(value, str) and shape.fullmatch(value) is not None
    elif isinstance(shape, Each):
        fits = isinstance(value, dict)
        shape = dict.fromkeys(value, shape.shape) if fits else shape
    elif isinstance(shape, dict):
        fits = isinstance(value, dict) and value.keys() == shape.keys()
    elif isinstance(shape, list):
        fits = isinstance(value, list)
    elif isinstance(shape, type):
        fits = type(value) is shape
    else:
        fits = shape(value)
    if not fits:
        raise damaged(path, where, value)
    if isinstance(shape, dict):
        for key, inner in shape.items():
            check_shape(value[key], inner, f"{where}.{key}", path)
    elif isinstance(shape, (list, Times)):
        inner = shape.shape if isinstance(shape, Times) else shape[0]
        for number, one in enumerate(value):
            check_shape(one, inner, f"{where}[{number}]", path)


def damaged(path: str, where: str, value: Any) -> CheckpointError:
    """The exception for a field that no run of streamtok has saved so."""
    shown = repr(value)
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}…"
    return CheckpointError(f"{path} is damaged: its {where} is {shown}; remove it to start again")
