"""Imports Starlette, or says which extra installs it."""

from __future__ import annotations

from ..errors import MissingLibraryError

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import Headers
    from starlette.requests import ClientDisconnect, HTTPConnection, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ModuleNotFoundError:
    what = "streamtok.view and streamtok serve --http"
    raise MissingLibraryError(what, "starlette", "web") from None

__all__ = [
    "ClientDisconnect",
    "HTTPConnection",
    "Headers",
    "JSONResponse",
    "Request",
    "Response",
    "Route",
    "Starlette",
    "run_in_threadpool",
]
