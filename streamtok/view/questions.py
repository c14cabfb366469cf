"""Questions as JSON objects: limited in size and time, each field checked by its declared type."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..errors import StreamtokError

_BODY_TIMEOUT = 60.0  # seconds in which a body must be there
_MOST_BODIES = 16  # times the bytes of a body: of all that are under way

Answer = dict[str, Any]
Q = TypeVar("Q")
Convert = Callable[[Any, Any], Any]  # of a field's type and its value: msgspec's `dec_hook`


class Question(Protocol):
    """A `msgspec.Struct` of fields that can answer."""

    def answer(self) -> Answer: ...


class Refused(Exception):
    """A question that is not answered. Its text is shown to the user."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class Bodies:
    """Reads the bodies of requests, each within a time; their bytes together are limited."""

    def __init__(self, most: int) -> None:
        """most: bytes of a body."""
        self._most = most
        self._held = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytearray]:
        """The body, which must be JSON. Its bytes count until the context ends.

        Raises Refused for another content type, a larger body, one that comes too slowly, and where
        there is no room for it.
        """
        # A page of another site can send other types than JSON without asking first.
        given = request.headers.get("content-type", "").partition(";")[0].strip()
        if given.lower() != "application/json":
            raise Refused("Content-Type must be application/json", 415)
        body = bytearray()
        try:
            try:
                await asyncio.wait_for(self._fill(body, request), _BODY_TIMEOUT)
            except asyncio.TimeoutError:
                text = f"the body must come within {_BODY_TIMEOUT:.0f} seconds"
                raise Refused(text, 408) from None
            yield body
        finally:
            self._held -= len(body)

    async def _fill(self, body: bytearray, request: Request) -> None:
        async for part in request.stream():
            body += part
            self._held += len(part)
            if len(body) > self._most:
                raise Refused(f"a request has at most {self._most:,} bytes", 413)
            if self._held > _MOST_BODIES * self._most:
                raise Refused("too many large requests are under way: try again", 503)


def endpoint(
    kind: type[Question], bodies: Bodies, convert: Convert
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that reads a question and answers it, from another thread."""

    async def asked(request: Request) -> Response:
        try:
            async with bodies.read(request) as body:
                return said(
                    await run_in_threadpool(answered, kind, kind.answer, body, convert=convert)
                )
        except Refused as error:
            return answer_of({"error": str(error)}, error.status)
        except (StreamtokError, ValueError, LookupError) as error:
            return answer_of({"error": message_of(error)}, 422)

    return asked


def message_of(error: Exception) -> str:
    """The first line of the message, which says what is wrong and where."""
    # str() of a KeyError puts the message in quotes.
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(text).partition("\n")[0]


def answered(
    kind: type[Q],
    answer: Callable[[Q], Answer],
    body: bytes | bytearray,
    errors: str = "strict",
    convert: Convert | None = None,
) -> bytes:
    """The JSON of the answer to a body. Raises Refused, and what `answer` raises.

    kind: a `msgspec.Struct` of the fields that the body must have. errors: for bytes of the body
    that are not UTF-8. convert: for types of fields that JSON has not.
    """
    try:
        # Not by msgspec, which refuses half a surrogate pair.
        fields = json.loads(body.decode("utf-8", errors))
        question = msgspec.convert(fields, kind, dec_hook=convert)
    except UnicodeDecodeError as error:
        raise Refused(f"byte {error.start} of the body is not UTF-8 ({error.reason})") from None
    except msgspec.ValidationError as error:
        raise Refused(str(error)) from None
    except (ValueError, RecursionError):
        raise Refused("the body is not JSON") from None
    return _json(answer(question))


def answer_of(value: Answer, status: int = 200) -> Response:
    """The response that says this."""
    return said(_json(value), status)


def said(data: bytes, status: int = 200) -> Response:
    """The response that has this JSON."""
    return Response(data, status, media_type="application/json")


def _json(value: Answer) -> bytes:
    # In ASCII, because half a surrogate pair has no UTF-8.
    return json.dumps(value, separators=(",", ":")).encode()
