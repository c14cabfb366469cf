"""Access control and security headers.

A request must pass three checks to reach the application:

- `Host` must name this machine. This prevents DNS rebinding, in which an attacker's domain name
  resolves to 127.0.0.1.
- `Origin` and `Sec-Fetch-Site`, if the browser sends them, must be those of the page itself, so
  that no other site can send requests, not even with the cookie. Only a link to the page may be
  on another site.
- The request must have the token: the first request in its URL, later ones in a cookie. The cookie
  is `HttpOnly` and `SameSite=Strict`. Its name depends on the token, because browsers send cookies
  to all ports of a host.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# Images may be data: URLs, because saving an image draws an SVG that the page makes of itself.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """An ASGI application that passes trusted requests to `app` and adds security headers."""

    def __init__(
        self, app: Application, *, token: str | None, hosts: Collection[str] | None
    ) -> None:
        """token: None for no check. hosts: names that `Host` may have, without a port; None:
        localhost and all numeric addresses, which DNS cannot rebind.
        """
        self._app = app
        self._token = None if token is None else token.encode()
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        digest = hashlib.sha256(self._token or b"").hexdigest()
        self.cookie = f"streamtok_{digest[:12]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = HTTPConnection(scope)
        why = cross_site(scope["method"], asked.headers, self._is_host)
        if why is not None:
            await refusal(*why)(scope, receive, send)
            return
        is_new = self._token is not None and not self._is_token(asked.cookies.get(self.cookie, ""))
        if is_new:
            given = asked.query_params.getlist("token")
            if len(given) != 1 or not self._is_token(given[0]):
                text = "this page needs the token: open the URL that was printed"
                await refusal(403, text)(scope, receive, send)
                return
        path = (scope.get("root_path") or "") + "/"

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if is_new and self._token is not None:
                    value = f"{self.cookie}={self._token.decode()}; Path={path}; HttpOnly; "
                    headers.append("set-cookie", f"{value}SameSite=Strict")
            await send(message)

        await self._app(scope, receive, sent)

    def _is_host(self, name: str) -> bool:
        return is_local(name) if self._hosts is None else name in self._hosts

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token or b"")


def cross_site(
    method: str, headers: Headers, is_host: Callable[[str], bool]
) -> tuple[int, str] | None:
    """The status and the reason to refuse a request that another site caused; None to accept it.

    is_host: whether `Host` may be this name, which is given without a port.
    """
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not is_host(_name_of(hosts[0])):
        return 421, "the Host of this request is not a name of this server"
    origins = headers.getlist("origin")
    if origins and origins not in ([f"http://{hosts[0]}"], [f"https://{hosts[0]}"]):
        return 403, "the Origin of this request is not this server"
    sites = headers.getlist("sec-fetch-site")
    modes = headers.getlist("sec-fetch-mode")
    is_navigation = modes == ["navigate"] and method == "GET"
    if not is_navigation and any(site not in ("same-origin", "none") for site in sites):
        return 403, "requests from other sites are refused"
    return None


def is_local(name: str) -> bool:
    """Whether the host is localhost or a numeric address, which DNS cannot rebind."""
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _name_of(host: str) -> str:
    """The name in a `Host` header, in lower case and without the port; "" if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def refusal(status: int, text: str) -> Response:
    """A plain-text response. It closes the connection, because the request's body is not read."""
    return PlainTextResponse(f"{text}\n", status, {**HEADERS, "connection": "close"})
