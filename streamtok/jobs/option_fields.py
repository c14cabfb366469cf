"""Options that are said once: as the annotated fields of a dataclass.

A field made by `said` has all there is to say of an option: how the command line spells it, its
help, how its value is parsed, and what it decides. The parser (`cli.options`) and the JSON of
a job are made of the fields. No option is named in this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from ..files import shown

T = TypeVar("T")

IDS = "ids"  # the ids depend on it: a job that goes on must have the same
UNREAD = "unread"  # only what becomes of text that was not read: it may change as a job goes on
NOTHING = "nothing"  # the ids are the same

_KEY = "option"  # in the metadata of a field


@dataclass(frozen=True)
class Option:
    """One option. usage: names and what stands for the value, as in "-o --output FILE".

    The field has the name of the last of them, group: its
    title in the help, with a text after it that begins a new line. one_of: options with the same
    word exclude each other. more: as for `ArgumentParser.add_argument`.
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
    """A field for an option; see `Option`. Without a text, a command adds the option by itself."""
    option = Option(usage, text, parse, decides, group, one_of, more)
    return field(default=default, metadata={_KEY: option})


def option_of(one: Field[Any]) -> Option | None:
    """The option that a field is, or None."""
    found: Option | None = one.metadata.get(_KEY)
    return found


def said_fields(kind: Any, *decides: str) -> list[tuple[Field[Any], Option]]:
    """The fields of a dataclass that are options, and decide one of these."""
    return [
        (one, option)
        for one in fields(kind)
        if (option := option_of(one)) is not None and option.decides in decides
    ]


def to_json(value: Any) -> Any:
    """The value of an option in JSON."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return list(value) if isinstance(value, tuple) else value


def from_json(one: Field[Any], value: Any) -> Any:
    """The value of a field that `to_json` gave."""
    if isinstance(value, list):
        return tuple(value)
    if "bytes" in str(one.type) and isinstance(value, str):
        return value.encode("latin-1")
    return value


def in_words(option: str, value: Any) -> str:
    """An option in words. value: in JSON, with true for a switch and null for none."""
    if value is None or value is False:
        return f"without {option}"
    if value is True:
        return f"with {option}"
    values = value if isinstance(value, list) else [value]
    return f"with {option} {','.join(shown(str(one)) for one in values)}"
