"""`make_app`: the page as an ASGI application, which other applications can mount."""

from __future__ import annotations

import mimetypes
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .. import __version__
from ..encoding import Encoding
from ..registry import get_encoding, list_encoding_names
from . import tab_answers
from .guard import LOOPBACK, Guard
from .questions import Bodies, endpoint

if TYPE_CHECKING:
    from .given import Given

_FILES = Path(__file__).with_name("static")
_MAX_QUESTION = 8 << 20  # bytes of JSON: a text of 2^20 characters, up to 6 bytes each

mimetypes.add_type("text/javascript", ".js")  # on Windows, other programs may set a wrong one


def make_app(
    *,
    token: str | None,
    encoding: Encoding | str = "cl100k_base",
    hosts: Collection[str] | None = LOOPBACK,
    text: str = "",
    given: Given | None = None,
) -> Guard:
    """Guard: an ASGI application that serves the page under any prefix.

    token: the URL of the first request must contain it as `?token=...`. None admits every client,
    for applications that check their users themselves. encoding: a name or an `Encoding`, which is
    selected at first. hosts: names under which the application may be reached, without a port;
    None: numeric addresses and localhost. text: the text shown at first. given: a file to show
    instead.

    Raises ValueError for an unknown encoding. Loads the encoding, which takes tens of milliseconds
    if nothing has used it before.

    >>> app = make_app(token=None, encoding="gpt2")
    >>> type(app).__name__
    'Guard'
    """
    if isinstance(encoding, str):
        encoding = get_encoding(encoding)
    names = list_encoding_names()
    first = encoding.name
    if first in names and get_encoding(first) is not encoding:
        first = f"{first} (given)"
    own = {} if first in names else {first: encoding}
    about = {
        "version": __version__,
        "encodings": [*own, *names],
        "first": first,
        "text": text if given is None else given.text,
        "longest_stream": tab_answers.LONGEST_STREAM,
        "longest_text": tab_answers.LONGEST_TEXT,
        "longest_merges": tab_answers.LONGEST_MERGES,
        "given": None
        if given is None
        else {"name": given.name, "is_whole": given.is_whole, "is_utf8": given.is_utf8},
    }

    async def tell(request: Request) -> Response:
        return JSONResponse(about)

    def encoding_of(kind: Any, name: Any) -> Encoding:
        return own.get(name) or get_encoding(name)

    bodies = Bodies(_MAX_QUESTION)
    routes: list[Route | Mount] = [Route("/api/about", tell)]
    for name, kind in tab_answers.QUESTIONS.items():
        asked = endpoint(kind, bodies, encoding_of)
        routes.append(Route(f"/api/{name}", asked, methods=["POST"]))
    routes.append(Mount("/", StaticFiles(directory=_FILES, html=True)))
    return Guard(Starlette(routes=routes), token=token, hosts=hosts)
