"""The base class of results: `as_json`."""

from __future__ import annotations

from typing import Any, ClassVar


class Result:
    """The base class of result dataclasses."""

    __slots__ = ()
    _also: ClassVar[tuple[str, ...]] = ()  # properties that `as_json` includes

    def as_json(self) -> dict[str, Any]:
        """dict: all fields as plain values, bytes in hexadecimal."""
        names = (*vars(type(self))["__dataclass_fields__"], *self._also)
        return {name: _plain(getattr(self, name)) for name in names}


def _plain(value: Any) -> Any:
    if hasattr(value, "as_json"):
        return value.as_json()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
