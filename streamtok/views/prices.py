"""Prices that the user gives. None come with the package: they change, and depend on who pays.

    {
      "name": "list prices",
      "date": "2026-11-01",
      "currency": "USD",
      "per_million_tokens": {"o200k_base": 2.5, "gpt-4": 30}
    }

A name is that of an encoding or of a model. The date says when the prices were true.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import StreamtokError

__all__ = ["MOST_BYTES", "PriceList", "read_prices"]

MOST_BYTES = 1 << 20  # of a price list
_LARGEST = 1e12  # a larger price is an error in the file


@dataclass(frozen=True, slots=True)
class PriceList:
    """What a million tokens cost, by the name of an encoding or a model."""

    name: str
    date: str  # ISO 8601, such as 2026-11-01
    currency: str
    per_million_tokens: Mapping[str, float]

    def as_json(self) -> dict[str, Any]:
        """dict: as in a file."""
        return {
            "name": self.name,
            "date": self.date,
            "currency": self.currency,
            "per_million_tokens": dict(self.per_million_tokens),
        }


def read_prices(data: str | bytes) -> PriceList:
    """PriceList: of the text of a JSON file. Raises StreamtokError that says what is wrong."""
    if len(data) > MOST_BYTES:
        raise StreamtokError(f"a price list has at most {MOST_BYTES} bytes, not {len(data)}")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StreamtokError(f"the price list is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise StreamtokError("the price list must be a JSON object")
    texts = {}
    for key in ("name", "date", "currency"):
        if not isinstance(value.get(key), str) or not value[key]:
            raise StreamtokError(f"the price list needs {key!r}, a text")
        texts[key] = value[key]
    try:
        datetime.date.fromisoformat(texts["date"])
    except ValueError:
        raise StreamtokError(
            f"the date of the price list must be like 2026-11-01, not {texts['date']!r}"
        ) from None
    prices = value.get("per_million_tokens")
    if not isinstance(prices, dict) or not prices:
        raise StreamtokError(
            "the price list needs 'per_million_tokens', an object of names and prices"
        )
    for name, price in prices.items():
        if type(price) not in (int, float) or not 0 <= price <= _LARGEST:  # NaN is not
            raise StreamtokError(
                f"the price of {name!r} must be a number, 0 or more, not {str(price)[:40]}"
            )
    return PriceList(**texts, per_million_tokens={name: float(p) for name, p in prices.items()})
