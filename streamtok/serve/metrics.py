"""Exposes the counters of a server as Prometheus metrics, by the official client library.

The library's own HTTP server answers scrapes, in threads. It limits neither clients nor time, so
only Prometheus should reach its address.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..pipeline.host_port import format_host_port
from .counters import LIMITS

try:
    from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "metrics need prometheus-client: pip install 'streamtok[metrics]'", name=error.name
    ) from None

if TYPE_CHECKING:
    from .counters import Counters, HttpCounters

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


class HttpCountersCollector(Collector):
    """The same for the service over HTTP."""

    def __init__(self, counters: HttpCounters):
        self._counters = counters

    def collect(self) -> Iterable[Metric]:
        counters = self._counters
        for name, attribute, text in _COUNTERS[:2]:
            yield CounterMetricFamily(PREFIX + name, text, value=getattr(counters, attribute))
        yield GaugeMetricFamily(
            PREFIX + "requests_open", "Requests that are under way.", value=counters.open
        )
        requests = CounterMetricFamily(
            PREFIX + "requests", "Requests that were answered.", labels=["path", "status"]
        )
        for (path, status), n in dict(counters.requests).items():  # a copy: this is another thread
            requests.add_metric([path, str(status)], n)
        yield requests


def make_registry(collector: Collector) -> CollectorRegistry:
    """A registry of these metrics and of the process's memory, CPU time and descriptors."""
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    return registry


@contextlib.contextmanager
def expose(collector: Collector, host: str, port: int) -> Iterator[str]:
    """Answer Prometheus from other threads inside this block. Gives the URL.

    port: 0 for any free one. Raises OSError if the server cannot listen there.
    """
    try:
        server, thread = start_http_server(port, host, make_registry(collector))
    except OSError as error:
        code = error.errno or 0
        raise OSError(code, os.strerror(code), format_host_port(host, port)) from None
    application: Any = server.get_app()

    def answered(environ: dict[str, Any], start_response: Any) -> Any:
        try:
            return application(environ, start_response)
        except TypeError:  # the library compares the version that Accept names with a number
            return application({**environ, "HTTP_ACCEPT": ""}, start_response)

    server.set_app(answered)
    # Of a client that breaks off, socketserver prints a traceback.
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    try:
        yield f"http://{format_host_port(host, server.server_port)}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
