"""The counters of the services: plain numbers, each with the help text that Prometheus shows.

`metrics.py` exposes each field under its own name. Fields whose names end in `_open` are current
values; the others are totals since the start. Any thread may read them.
"""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

Limit: TypeAlias = Literal["connections", "pending", "idle", "unread", "lifetime"]


def _number(text: str) -> Any:
    return field(default=0, metadata={"help": text})


@dataclass
class Encoded:
    """The counters that both services have."""

    bytes: int = _number("Bytes of text that were encoded.")
    tokens: int = _number("Token ids that were emitted.")


@dataclass
class Counters(Encoded):
    """The counters of the socket service. Only the event loop's thread changes them."""

    connections: int = _number("Connections that were made, refused ones included.")
    connections_open: int = _number("Streams that are open now.")
    connections_refused: int = _number("Connections that got no stream.")
    connections_reset: int = _number("Connections that broke off.")
    special_token_refusals: int = _number("Streams that were ended by a disallowed special token.")
    decoding_errors: int = _number("Streams that were ended by bytes that are not UTF-8.")
    limits_hit: dict[Limit, int] = field(
        default_factory=lambda: dict.fromkeys(get_args(Limit), 0),
        metadata={"help": "Connections that a limit has ended.", "labels": ["limit"]},
    )


@dataclass
class HttpCounters(Encoded):
    """The counters of the HTTP service. Threads change `bytes` and `tokens` under a lock."""

    requests_open: int = _number("Requests that are under way.")
    requests: collections.Counter[tuple[str, str]] = field(
        default_factory=collections.Counter,
        metadata={"help": "Requests that were answered.", "labels": ["path", "status"]},
    )
