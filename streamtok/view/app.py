"""`make_app`: the page as an ASGI application, which other applications can mount."""

from __future__ import annotations

import functools
from collections.abc import Collection
from importlib import resources
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .. import __version__
from .encodings import MAX_VOCABULARY, Encodings
from .guard import LOOPBACK, Guard, Receive, Scope, Send
from .questions import Bodies, answer_of, endpoint, refusal
from .tab_answers import LONGEST_STREAM, LONGEST_TEXT, TabAnswers

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .given import Given

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class View:
    """The application that `make_app` makes."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guard(scope, receive, send)


def make_app(
    *,
    token: str | None,
    encoding: Encoding | str = "cl100k_base",
    hosts: Collection[str] | None = LOOPBACK,
    text: str = "",
    given: Given | None = None,
) -> View:
    """View: an ASGI application that serves the page under any prefix.

    token: what the URL of the first request must have as `?token=...`; None lets everybody in
    who reaches the application, for applications that check their users themselves. encoding: the
    one that the page begins with, a name or an `Encoding`. hosts: the names under which the
    application may be reached, without a port; None: addresses in numbers, and localhost.
    text: what the page shows at first. given: the file that it shows instead.

    Raises ValueError for an unknown encoding. It costs nothing until it is used; then it
    keeps at most 4 vocabularies that the page loaded.

    >>> app = make_app(token=None, encoding="gpt2")
    >>> type(app).__name__
    'View'
    """
    encodings = Encodings(encoding)
    tabs = TabAnswers()
    bodies = Bodies(2 * MAX_VOCABULARY)
    if given is not None:
        text = given.text

    async def page(request: Request) -> Response:
        return _file("index.html")

    async def file(request: Request) -> Response:
        return _file(request.path_params["name"])

    async def about(request: Request) -> Response:
        return JSONResponse(
            {
                "version": __version__,
                "encodings": encodings.names,
                "first": encodings.first,
                "text": text,
                "max_vocabulary": MAX_VOCABULARY,
                "longest_stream": LONGEST_STREAM,
                "longest_text": LONGEST_TEXT,
                "given": None
                if given is None
                else {"name": given.name, "is_whole": given.is_whole, "is_utf8": given.is_utf8},
            }
        )

    async def load(request: Request) -> Response:
        """A vocabulary file that the page sends: bytes, with the file's name in the URL."""
        try:
            async with bodies.read(request, "application/octet-stream", MAX_VOCABULARY) as data:
                file = request.query_params.get("name", "")
                name = await run_in_threadpool(encodings.load, data, file)
                return answer_of({"name": name})
        except Exception as error:
            return refusal(error)

    routes = [
        Route("/", page),
        Route("/static/{name}", file),
        Route("/api/about", about),
        Route("/api/encoding", load, methods=["POST"]),
    ]
    for path, answer in {
        "text": tabs.text,
        "ids": tabs.ids,
        "stream": tabs.stream,
        "compare": tabs.compare,
        "pretokens": tabs.pretokens,
        "merges": tabs.merges,
        "languages": tabs.languages,
        "vocabulary/search": tabs.search,
        "vocabulary/token": tabs.token,
    }.items():
        asked = endpoint(answer, encodings, bodies)
        routes.append(Route(f"/api/{path}", asked, methods=["POST"]))
    return View(Guard(Starlette(routes=routes), token=token, hosts=hosts))


@functools.lru_cache
def page_files() -> dict[str, tuple[bytes, str]]:
    """Name -> its bytes and its media type, of all files of the page.

    They are read once, and nothing else can be asked for by name.
    """
    found = {}
    for file in resources.files("streamtok.view").joinpath("static").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in TYPES:
            found[file.name] = (file.read_bytes(), TYPES[suffix])
    return found


def _file(name: str) -> Response:
    found = page_files().get(name)
    if found is None:
        return Response("there is no such file\n", 404, media_type="text/plain")
    return Response(found[0], media_type=found[1])
