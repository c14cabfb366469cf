"""Options, each of which is defined once, as an annotated field of a dataclass.

A field made by `said` defines an option completely: its spelling on the command line, its help, the
parser of its value, and what it affects. The command's parser (`cli.options`) and the JSON of a job
are built from the fields. This module does not name any option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from ..files import shown

T = TypeVar("T")

IDS = "ids"  # affects the ids: a job that is continued must have the same value
UNREAD = "unread"  # affects only text not read yet: it may change when a job is continued
NOTHING = "nothing"  # does not affect the ids

_KEY = "option"  # in a field's metadata


@dataclass(frozen=True)
class Option:
    """One option. usage: its names and a placeholder for the value, as in "-o --output FILE".

    text: its help. decides: IDS, UNREAD or NOTHING. group: the title of its group in the help;
    further lines describe the group. one_of: options with the same word exclude each other. more:
    further arguments for `ArgumentParser.add_argument`.
    """

    usage: str
    text: str
    parse: Callable[[str], Any] | None
    decides: str
    group: str
    one_of: str | None
    more: Mapping[str, Any]

    @property
    def flag(self) -> str:
        """The name that messages use, such as --max-pending."""
        return next(one for one in self.usage.split() if one.startswith("--"))


def said(
    usage: str,
    text: str = "",
    parse: Callable[[str], Any] | None = None,
    *,
    decides: str = NOTHING,
    default: Any = None,
    group: str = "",
    one_of: str | None = None,
    **more: Any,
) -> Any:
    """Make a field for an option; see `Option`. If `text` is empty, each command adds its own."""
    option = Option(usage, text, parse, decides, group, one_of, more)
    return field(default=default, metadata={_KEY: option})


def option_of(one: Field[Any]) -> Option | None:
    """The option of a field, or None."""
    found: Option | None = one.metadata.get(_KEY)
    return found


def said_fields(kind: Any, *decides: str) -> list[tuple[Field[Any], Option]]:
    """The fields of a dataclass that are options and affect one of `decides`."""
    return [
        (one, option)
        for one in fields(kind)
        if (option := option_of(one)) is not None and option.decides in decides
    ]


def to_json(value: Any) -> Any:
    """Convert the value of an option to JSON."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return list(value) if isinstance(value, tuple) else value


def from_json(one: Field[Any], value: Any) -> Any:
    """Convert a value that `to_json` returned to the type of its field."""
    if isinstance(value, list):
        return tuple(value)
    if "bytes" in str(one.type) and isinstance(value, str):
        return value.encode("latin-1")
    return value


def in_words(option: str, value: Any) -> str:
    """Describe an option in words.

    value: from `to_json`; True if a switch was given, None or False if the option was not given.
    """
    if value is None or value is False:
        return f"without {option}"
    if value is True:
        return f"with {option}"
    values = value if isinstance(value, list) else [value]
    return f"with {option} {','.join(shown(str(one)) for one in values)}"
