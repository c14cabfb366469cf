"""What a server counts. Plain numbers, changed by the event loop's thread alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

Limit: TypeAlias = Literal["connections", "descriptors", "pending", "idle", "unread", "lifetime"]
LIMITS: tuple[Limit, ...] = get_args(Limit)


@dataclass
class Counters:
    """Totals since the server began, but for `open`. Any thread may read them."""

    bytes: int = 0  # of text, encoded
    tokens: int = 0  # given out
    connections: int = 0  # accepted by the system, refused ones included
    open: int = 0  # streams now
    refused: int = 0  # connections beyond max_connections, or while the server closed
    resets: int = 0  # connections that broke off
    special_refusals: int = 0  # streams ended by a disallowed special token
    decoding_errors: int = 0  # streams ended by bytes that are not UTF-8
    limits: dict[Limit, int] = field(default_factory=lambda: dict.fromkeys(LIMITS, 0))
