"""The counters of a server: plain numbers that only the event loop's thread changes."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Limit: TypeAlias = Literal["connections", "pending", "idle", "silent", "unread", "lifetime"]
LIMITS: tuple[Limit, ...] = get_args(Limit)


@dataclass
class Counters:
    """Totals since the server started, except for `open`. Any thread may read them."""

    bytes: int = 0  # of encoded text
    tokens: int = 0  # ids sent
    connections: int = 0  # accepted by the system, including refused ones
    open: int = 0  # streams open at present
    refused: int = 0  # connections beyond max_connections, or while the server closes
    resets: int = 0  # connections that were reset
    special_refusals: int = 0  # streams ended by a disallowed special token
    decoding_errors: int = 0  # streams ended by bytes that are not UTF-8
    limits: dict[Limit, int] = field(default_factory=lambda: dict.fromkeys(LIMITS, 0))


@dataclass
class HttpCounters:
    """Totals of the service over HTTP since it started, except for `open`.

    Its threads change `bytes` and `tokens` under a lock.
    """

    bytes: int = 0  # of encoded text
    tokens: int = 0  # ids sent
    open: int = 0  # requests under way
    requests: collections.Counter[tuple[str, int]] = field(  # by path and status
        default_factory=collections.Counter
    )
