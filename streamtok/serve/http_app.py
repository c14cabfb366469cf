"""Tokenizes and detokenizes over HTTP, with the requests and responses of vLLM's server.

    POST /tokenize           {"prompt": "Tea", "add_special_tokens": true}
                             {"count": 1, "max_model_len": null, "tokens": [3], "token_strs": null}
                             {"prompt": [{"control": "<|user|>"}, "Tea"]}, {"messages": [...]}
    POST /detokenize         {"tokens": [3]}  ->  {"prompt": "Tea"}
    GET  /health

Unlike in vLLM, the text of a special token is plain text by default, because a prompt may come from
a user. In a list of parts, special tokens are recognized only inside {"control": …}; a chat
template encodes messages in the same way. Long texts are encoded on other threads, as many at a
time as there are processors, in order of arrival. Short texts are encoded immediately, without
waiting for long ones. The number of requests in progress, their bytes and their time are limited;
`/health` does not count, and is answered at any load. Errors have the form of OpenAI's API.

The server does not authenticate clients and does not encrypt. It refuses requests from the web
pages of other sites: `Host` must be a numeric address, localhost or a configured name, and
`Origin`, if sent, must be the service itself.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any

from .. import view  # noqa: F401  # says which extra to install

# isort: split
from msgspec import Meta, Struct
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from .._core.encode import text_bytes
from ..errors import StreamtokError
from ..prompts import Control, Prompt
from ..view.guard import Application, Message, Receive, Scope, Send, cross_site, is_local
from ..view.questions import Bodies, Q, Refused, answer_body, message_of, response_of
from .counters import HttpCounters
from .listening import reserve_descriptors
from .server import DEFAULT_GRACE, DEFAULT_MAX_CONNECTIONS, DEFAULT_PORT, announced

if TYPE_CHECKING:
    from .._types import AllowedSpecial, DisallowedSpecial
    from ..encoding import Encoding
    from ..formats.chat_template import ChatTemplate

DEFAULT_MAX_REQUEST = 16 << 20
_SMALL = 1 << 14  # bytes of the largest body that is answered on the event loop
_Id = Annotated[int, Meta(ge=0, lt=1 << 32)]
_ENDS = "the service is shutting down"  # uvicorn cancels requests that outlast the grace period
_SPARE = 64  # connections in addition to the requests, for refusals and /health


class _Control(Struct):
    """A part of a prompt in which special tokens are recognized."""

    control: str


class _Tokenize(Struct):
    """The supported fields of a TokenizeCompletionRequest or a TokenizeChatRequest.

    Null is the same as a missing field.
    """

    prompt: str | list[str | _Control] | None = None
    messages: list[dict[str, Any]] | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    tools: list[dict[str, Any]] | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class _Detokenize(Struct):
    """A DetokenizeRequest."""

    tokens: list[_Id]


class HttpApp:
    """An ASGI application, which other applications can mount. `counters` has its totals.

    Refuses requests from pages of other sites, and requests beyond `max_requests` at a time.
    """

    def __init__(
        self,
        encoding: Encoding,
        *,
        allowed_special: AllowedSpecial = frozenset(),
        disallowed_special: DisallowedSpecial = frozenset(),
        errors: str = "strict",
        chat_template: ChatTemplate | None = None,
        hosts: Collection[str] = (),
        max_requests: int = DEFAULT_MAX_CONNECTIONS,
        max_request: int = DEFAULT_MAX_REQUEST,
        max_model_len: int | None = None,
    ) -> None:
        """allowed_special, disallowed_special: as for `Encoding.encode`, but the text of special
        tokens is plain text by default. errors: policy for requests that are not UTF-8.
        chat_template: encodes messages; without one, they are refused. hosts: names that `Host` may
        have besides numeric addresses and localhost. max_requests: requests at a time.
        max_request: bytes of a request's body. max_model_len: the value in answers of `/tokenize`.
        """
        self.counters = HttpCounters()
        self._lock = threading.Lock()  # for the counters, which several threads change
        self._encoding = encoding
        self._text: dict[str, Any] = {
            "allowed_special": allowed_special,
            "disallowed_special": disallowed_special,
            "errors": errors,
        }
        self._chat_template = chat_template
        self._hosts = frozenset(map(str.lower, hosts))
        self._max_requests = max_requests
        self._max_model_len = max_model_len
        self._bodies = Bodies(max_request)
        self._turns = asyncio.Semaphore(os.cpu_count() or 1)  # grants turns in order of arrival
        routes = [
            Route("/health", _health, methods=["GET"]),
            Route("/tokenize", self._endpoint(_Tokenize, self._tokenize), methods=["POST"]),
            Route("/detokenize", self._endpoint(_Detokenize, self._detokenize), methods=["POST"]),
        ]
        self._paths = frozenset(route.path for route in routes)
        self._app: Application = Starlette(routes=routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        path = path if path in self._paths else "other"

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.counters.requests[path, str(message["status"])] += 1
            await send(message)

        why = cross_site(scope["method"], Headers(scope=scope), self._is_host)
        if why is None and path != "/health" and self.counters.requests_open >= self._max_requests:
            why = 503, f"{self._max_requests} requests are under way already: try again"
        if why is not None:
            await _error(*why, {"connection": "close"})(scope, receive, counted)
            return
        self.counters.requests_open += path != "/health"
        try:
            await self._app(scope, receive, counted)
        finally:
            self.counters.requests_open -= path != "/health"

    def _is_host(self, name: str) -> bool:
        return is_local(name) or name in self._hosts

    def _endpoint(self, kind: type[Q], answer: Callable[[Q], dict[str, Any]]) -> Any:
        """An endpoint that reads a question from JSON and responds with `answer(question)`."""

        async def asked(request: Request) -> Response:
            errors = self._text["errors"]
            try:
                async with self._bodies.read(request) as body:
                    if len(body) <= _SMALL:
                        return answer_body(kind, answer, body, errors)
                    async with self._turns:
                        return await run_in_threadpool(answer_body, kind, answer, body, errors)
            except Refused as error:
                return _error(error.status, str(error))
            except ClientDisconnect:
                return Response(status_code=400)  # no client reads it
            except asyncio.CancelledError:
                return _error(503, _ENDS)

        return asked

    def _tokenize(self, asked: _Tokenize) -> dict[str, Any]:
        """The TokenizeResponse for a TokenizeCompletionRequest or a TokenizeChatRequest."""
        encode = self._encode_prompt if asked.messages is None else self._encode_chat
        text, ids = encode(asked)
        strings = None
        if asked.return_token_strs:
            tokens = self._encoding.decode_tokens_bytes(ids)
            strings = [token.decode("utf-8", "replace") for token in tokens]
        with self._lock:
            self.counters.bytes += len(text_bytes(text, "strict"))
            self.counters.tokens += len(ids)
        return {
            "count": len(ids),
            "max_model_len": self._max_model_len,
            "tokens": ids,
            "token_strs": strings,
        }

    def _encode_prompt(self, asked: _Tokenize) -> tuple[str, list[int]]:
        """The text and the ids of the prompt."""
        prompt: Any = asked.prompt
        settings = self._text
        if prompt is None:
            raise Refused("prompt must be text")
        if isinstance(prompt, list):
            prompt = Prompt(*[Control(x.control) if isinstance(x, _Control) else x for x in prompt])
            settings = {"errors": settings["errors"]}
        add = asked.add_special_tokens is not False
        try:
            ids = self._encoding.encode(prompt, add_special_tokens=add, **settings)
        except ValueError as error:  # a disallowed special token
            raise Refused(f"prompt: {message_of(error).rstrip('.')}") from None
        return str(prompt), ids

    def _encode_chat(self, asked: _Tokenize) -> tuple[str, list[int]]:
        """The text that the chat template makes from the messages, and its ids."""
        template = self._chat_template
        if template is None:
            raise Refused("messages need a chat template, but this service has none: send prompt")
        if asked.chat_template is not None:
            raise Refused("chat_template is set when the service is started, not by a request")
        if asked.add_special_tokens:
            raise Refused("add_special_tokens: the chat template writes all special tokens")
        try:
            prompt = template.prompt(
                asked.messages or [],
                {**(asked.chat_template_kwargs or {}), "tools": asked.tools},
                add_generation_prompt=asked.add_generation_prompt is not False,
                continue_final_message=bool(asked.continue_final_message),
            )
        except Exception as error:  # a template is a program, which may fail in any way
            raise Refused(f"messages: {message_of(error)}") from None
        return str(prompt), template.encode(prompt, self._text["errors"])

    def _detokenize(self, asked: _Detokenize) -> dict[str, Any]:
        """The DetokenizeResponse for a DetokenizeRequest."""
        try:
            return {"prompt": self._encoding.decode(asked.tokens)}
        except (KeyError, StreamtokError) as error:
            raise Refused(f"tokens: {message_of(error)}") from None


async def _health(request: Request) -> Response:
    return Response()


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    kind = "BadRequestError" if status < 500 else "ServiceUnavailableError"
    error = {"message": text, "type": kind, "param": None, "code": status}
    response = response_of({"error": error}, status)
    response.headers.update(headers or {})
    return response


def run_http(
    encoding: Encoding,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    hosts: Collection[str] = (),
    on_ready: Callable[[str], None] | None = None,
    max_connections: int | None = None,
    idle_timeout: float | None = 300.0,
    max_lifetime: float | None = None,
    grace: float = DEFAULT_GRACE,
    metrics: tuple[str, int] | None = None,
    **settings: Any,
) -> int:
    """Serve over HTTP until SIGINT or SIGTERM, and raise the signal again after closing. Returns 0.

    hosts: names that clients may use besides `host`, numeric addresses and localhost.
    max_connections: requests at a time; None for 1000, or fewer if the limit of open files requires
    it. idle_timeout: seconds for which a client may neither send nor read. max_lifetime: seconds
    that a connection may last. For both, 0 or None means no limit. grace: seconds in which open
    requests may finish. on_ready, metrics: as for `streamtok.serve.run`. Other settings: as for
    `HttpApp`.
    """
    from ..view.web_server import Server

    max_requests = reserve_descriptors(max_connections, DEFAULT_MAX_CONNECTIONS)
    app = HttpApp(
        encoding,
        hosts={host, *hosts},
        max_requests=max_requests,
        **settings,
    )
    server = Server(
        app,
        host,
        port,
        max_connections=max_requests + _SPARE,
        idle_timeout=idle_timeout,
        max_lifetime=max_lifetime,
        grace=grace,
    )
    with announced([server.url], app.counters, metrics, on_ready):
        server.run()
    return 0
