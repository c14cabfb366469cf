"""The page that `streamtok view` serves: an ASGI application, and a server for it.

    app = make_app(token=None)          # mount it: Mount("/tokens", app)

The package needs streamtok's extra `web` (Starlette and uvicorn). The page consists of HTML, style
sheets and scripts from this package and loads nothing from other hosts. Its contents come from
`streamtok.answers.views` and public functions. `guard.py` controls access.
"""

from ..errors import MissingLibraryError

try:
    import starlette  # noqa: F401  # the modules of this package need both
    import uvicorn  # noqa: F401
except ModuleNotFoundError as error:
    what = "streamtok.view and streamtok serve --http"
    raise MissingLibraryError(what, error.name or "starlette", "web") from None

from .app import make_app
from .web_server import Server

__all__ = ["Server", "make_app"]
