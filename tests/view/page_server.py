"""A page that is served in this process, by a real server on the loopback."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import httpx

from streamtok.view import Server, make_app

TOKEN = "the-token-of-the-tests"

# What the tab Stream and the README's first picture show.
STREAM_TEXT = "Unbelievable streams of tokens: naïve chunks cut 日本語 and 🎉 where they must not."


@contextlib.contextmanager
def serving(app: Any, **settings: Any) -> Iterator[str]:
    """The URL of an application. settings: those of `Server`."""
    server = Server(app, "127.0.0.1", 0, **settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.url
    finally:
        server.stop()
        thread.join(60)
        assert not thread.is_alive()


@contextlib.contextmanager
def served(**settings: Any) -> Iterator[str]:
    """The URL of a page, with the token."""
    with serving(make_app(token=TOKEN, **settings)) as url:
        yield f"{url}?token={TOKEN}"


@contextlib.contextmanager
def client_of(url: str) -> Iterator[httpx.Client]:
    """A client that has opened the page, so that it has the cookie."""
    base = url.partition("?")[0]
    with httpx.Client(base_url=base, trust_env=False, timeout=60) as client:
        assert client.get(url).status_code == 200
        yield client
