"""Exposes the counters of a server as Prometheus metrics, with the official client library.

The library's own HTTP server answers scrapes, in threads. It limits neither the number of clients
nor their time, so only Prometheus should reach its address.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from ..errors import MissingLibraryError
from ..jobs.argument_types import format_host_port

try:
    from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingLibraryError("metrics", "prometheus-client", "metrics", error) from None

if TYPE_CHECKING:
    from .counters import Encoded


class _CountersCollector(Collector):
    """Reads the counters only when scraped, so that serving costs nothing extra."""

    def __init__(self, counters: Encoded):
        self._counters = counters

    def collect(self) -> Iterable[Metric]:
        for one in fields(self._counters):
            name, text = f"streamtok_{one.name}", one.metadata["help"]
            value = getattr(self._counters, one.name)
            if isinstance(value, dict):
                family = CounterMetricFamily(name, text, labels=one.metadata["labels"])
                for label, number in dict(value).items():  # a copy, as it may change
                    family.add_metric([label] if isinstance(label, str) else label, number)
                yield family
            elif one.name.endswith("_open"):
                yield GaugeMetricFamily(name, text, value=value)
            else:
                yield CounterMetricFamily(name, text, value=value)


def make_registry(counters: Encoded) -> CollectorRegistry:
    """A registry of the counters and of the memory, CPU time and descriptors of the process."""
    registry = CollectorRegistry()
    registry.register(_CountersCollector(counters))
    ProcessCollector(registry=registry)
    return registry


@contextlib.contextmanager
def expose(counters: Encoded, host: str, port: int) -> Iterator[str]:
    """Answer Prometheus on other threads inside this block. Yields the URL.

    port: 0 for any free port. Raises OSError if the server cannot listen there.
    """
    try:
        server, thread = start_http_server(port, host, make_registry(counters))
    except OSError as error:
        code = error.errno or 0
        raise OSError(code, os.strerror(code), format_host_port(host, port)) from None
    # By default, socketserver prints a traceback when a client disconnects early.
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    try:
        yield f"http://{format_host_port(host, server.server_port)}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
