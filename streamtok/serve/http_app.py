"""Tokenizing and detokenizing over HTTP, with the requests and responses of vLLM's server.

    POST /tokenize           {"prompt": "Tea", "add_special_tokens": true}
                             {"count": 1, "max_model_len": null, "tokens": [3], "token_strs": null}
    POST /detokenize         {"tokens": [3]}  ->  {"prompt": "Tea"}
    POST /detokenize/stream  ids as they come, any number in a line  ->  events with their text
    GET  /health

Prompts that begin alike are encoded once: their ids come from a `PromptCache`. A long text is
encoded on another thread, as many at once as there are processors, in the order in which they came;
a short one is encoded at once, so it does not wait for long ones. The bytes of a request and of all
requests that are under way are limited. Errors are those of OpenAI's API.

The server does not authenticate clients and does not encrypt.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from ..answers.prompt_cache import PromptCache
from ..errors import StreamtokError
from ..view.guard import Application, Receive, Scope, Send
from ..view.optional_starlette import (
    ClientDisconnect,
    Request,
    Response,
    Route,
    Starlette,
    run_in_threadpool,
)
from ..view.questions import Refused, answer_of, answered, in_time, said

if TYPE_CHECKING:
    from ..encoding import Encoding

DEFAULT_MAX_REQUEST = 16 << 20
_MAX_BODIES = 16  # times the bytes of a request: of all requests that are under way
_SMALL = 1 << 14  # bytes of a body that is answered at once
_PAUSE = 300.0  # seconds between two parts of a stream of ids
_MAX_LINE = 1 << 16  # bytes of ids in a line
_MOST = (1 << 32) - 1  # there is no greater id


def make_http_app(
    encoding: Encoding,
    *,
    prompt_cache: int = 1 << 28,
    max_request: int = DEFAULT_MAX_REQUEST,
    max_model_len: int | None = None,
) -> Application:
    """Application: an ASGI application, which other applications can mount.

    prompt_cache: bytes of the cache of prompts. max_request: bytes of a request. max_model_len:
    what `/tokenize` says of the model. Raises UnsupportedPatternError for an encoding that has no
    streams, MissingLibraryError without Starlette.
    """
    service = _Service(encoding, prompt_cache, max_request, max_model_len)
    return Starlette(
        routes=[
            Route("/health", _health, methods=["GET"]),
            Route("/tokenize", service.endpoint(service.tokenize), methods=["POST"]),
            Route("/detokenize", service.endpoint(service.detokenize), methods=["POST"]),
            Route("/detokenize/stream", _IdStream(encoding), methods=["POST"]),
        ]
    )


async def _health(request: Request) -> Response:
    return Response()


class _Service:
    """What all requests share. Its methods run on the event loop, except for the two answers."""

    def __init__(
        self, encoding: Encoding, prompt_cache: int, max_request: int, max_model_len: int | None
    ) -> None:
        self._encoding = encoding
        self._cache = PromptCache(encoding, prompt_cache)
        self._max_request = max_request
        self._max_model_len = max_model_len
        self._under_way = 0  # bytes of bodies
        self._turns = asyncio.Semaphore(os.cpu_count() or 1)  # in the order of asking

    def endpoint(self, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
        """The endpoint that gives `answer(fields)` to a JSON object."""

        async def asked(request: Request) -> Response:
            body = bytearray()
            try:
                await in_time(self._fill(body, request))
                if len(body) <= _SMALL:
                    return said(answered(answer, body))
                async with self._turns:
                    return said(await run_in_threadpool(answered, answer, body))
            except Refused as error:
                return _error(error.status, str(error))
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            finally:
                self._under_way -= len(body)

        return asked

    async def _fill(self, body: bytearray, request: Request) -> None:
        async for part in request.stream():
            body += part
            self._under_way += len(part)
            if len(body) > self._max_request:
                raise Refused(f"a request has at most {self._max_request:,} bytes", 413)
            if self._under_way > _MAX_BODIES * self._max_request:
                raise Refused("too many large requests are under way: try again", 503)

    def tokenize(self, fields: dict[str, Any]) -> dict[str, Any]:
        """TokenizeResponse, to a TokenizeCompletionRequest."""
        if "messages" in fields:
            raise Refused("messages need the model's chat template: send its text as prompt")
        prompt = fields.get("prompt")
        if not isinstance(prompt, str):
            raise Refused("prompt must be text")
        encoding = self._encoding
        ids = self._cache.encode(prompt)
        if _flag(fields, "add_special_tokens", True):
            template = encoding._template
            ids = [*template.before, *ids, *template.after]
        strings = None
        if _flag(fields, "return_token_strs", False):
            tokens = encoding.decode_tokens_bytes(ids)
            strings = [token.decode("utf-8", "replace") for token in tokens]
        return {
            "count": len(ids),
            "max_model_len": self._max_model_len,
            "tokens": ids,
            "token_strs": strings,
        }

    def detokenize(self, fields: dict[str, Any]) -> dict[str, Any]:
        """DetokenizeResponse, to a DetokenizeRequest."""
        ids = fields.get("tokens")
        if not isinstance(ids, list) or not all(map(_is_id, ids)):
            raise Refused("tokens must be a list of ids")
        try:
            return {"prompt": self._encoding.decode(ids)}
        except (KeyError, StreamtokError) as error:
            raise Refused(f"tokens: {error}") from None


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _flag(fields: dict[str, Any], name: str, default: bool) -> bool:
    value = fields.get(name)
    if value is None:
        return default
    if type(value) is not bool:
        raise Refused(f"{name} must be true or false")
    return value


def _error(status: int, text: str) -> Response:
    kind = "BadRequestError" if status < 500 else "ServiceUnavailableError"
    return answer_of(
        {"error": {"message": text, "type": kind, "param": None, "code": status}}, status
    )


class _IdStream:
    """Text from ids as they come: each line of ids is answered by an event, if it completes text.

    An ASGI application of its own, because an answer of Starlette's begins when the body is read.
    """

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        decoder = self._encoding.stream_decoder()
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            async for line in _lines(receive):
                text = decoder.decode(_ids_of(line))
                if text:
                    await _say(send, {"text": text})
            text = decoder.flush()
            if text:
                await _say(send, {"text": text})
            await _say(send, "[DONE]")
        except Refused as error:
            await _say(send, {"error": {"message": str(error), "code": error.status}})
        except (KeyError, StreamtokError) as error:
            await _say(send, {"error": {"message": f"tokens: {error}", "code": 400}})
        except ClientDisconnect:
            return
        await send({"type": "http.response.body"})


async def _say(send: Send, value: Any) -> None:
    data = value if isinstance(value, str) else json.dumps(value)
    event = f"data: {data}\n\n".encode()
    await send({"type": "http.response.body", "body": event, "more_body": True})


async def _lines(receive: Receive) -> AsyncIterator[bytes]:
    """The lines of the body as they come."""
    rest, more = b"", True
    while more:
        try:
            message = await asyncio.wait_for(receive(), _PAUSE)
        except asyncio.TimeoutError:
            raise Refused(f"no ids came for {_PAUSE:.0f} seconds", 408) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = message.get("more_body", False)
        *lines, rest = (rest + message.get("body", b"")).split(b"\n")
        if len(rest) > _MAX_LINE:
            raise Refused(f"a line has at most {_MAX_LINE:,} bytes", 413)
        for line in lines:
            yield line
    yield rest


def _ids_of(line: bytes) -> list[int]:
    try:
        ids = [int(word) for word in line.split()]
    except ValueError:
        raise Refused("a line has ids in decimal, with spaces between them") from None
    if not all(map(_is_id, ids)):
        raise Refused("a line has ids in decimal, with spaces between them")
    return ids
