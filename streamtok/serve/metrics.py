"""Exposes the counters of a server as Prometheus metrics, through the official client library.

This module defines the metrics. `scrape.py` serves them over HTTP.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from ..pipeline.host_port import format_host_port
from .counters import LIMITS
from .listening import accept, open_tcp
from .scrape import Scrapes

try:
    from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "metrics need prometheus-client: pip install 'streamtok[metrics]'", name=error.name
    ) from None

if TYPE_CHECKING:
    from .counters import Counters

PREFIX = "streamtok_"
_COUNTERS = [  # name, attribute of Counters, help
    ("bytes", "bytes", "Bytes of text that were encoded."),
    ("tokens", "tokens", "Token ids that were emitted."),
    ("connections", "connections", "Connections that were made, refused ones included."),
    ("connections_refused", "refused", "Connections that got no stream."),
    ("connections_reset", "resets", "Connections that broke off."),
    (
        "special_token_refusals",
        "special_refusals",
        "Streams that were ended by a disallowed special token.",
    ),
    (
        "decoding_errors",
        "decoding_errors",
        "Streams that were ended by bytes that are not UTF-8.",
    ),
]


class CountersCollector(Collector):
    """Reads the counters only when a scrape asks for them, so that serving costs nothing more."""

    def __init__(self, counters: Counters):
        self._counters = counters

    def collect(self) -> Iterable[Metric]:
        counters = self._counters
        for name, attribute, text in _COUNTERS:
            yield CounterMetricFamily(PREFIX + name, text, value=getattr(counters, attribute))
        yield GaugeMetricFamily(
            PREFIX + "connections_open", "Streams that are open now.", value=counters.open
        )
        limits = CounterMetricFamily(
            PREFIX + "limits_hit", "Connections that a limit has ended.", labels=["limit"]
        )
        for limit in LIMITS:
            limits.add_metric([limit], counters.limits[limit])
        yield limits


def make_registry(counters: Counters) -> CollectorRegistry:
    """A registry of these counters and of the process's memory, CPU time and descriptors."""
    registry = CollectorRegistry()
    registry.register(CountersCollector(counters))
    ProcessCollector(registry=registry)
    return registry


@contextlib.asynccontextmanager
async def expose(counters: Counters, host: str, port: int) -> AsyncIterator[str]:
    """Answer Prometheus from the event loop inside this block. Gives the URL.

    port: 0 for any free one. Raises OSError if the server cannot listen there.
    """
    listeners = await open_tcp(host, port)
    scrapes = Scrapes(make_wsgi_app(make_registry(counters)))
    servers = await accept(listeners, scrapes.make_protocol)
    try:
        yield f"http://{format_host_port(*listeners[0].getsockname()[:2])}/metrics"
    finally:
        for one in servers:
            one.close()
        scrapes.abort()
