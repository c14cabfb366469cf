"""Reads questions as JSON objects, within limits of size and time, and checks their fields."""

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

_BODY_TIMEOUT = 60.0  # seconds in which a body must arrive
_MOST_BODIES = 16  # limit on the size of all bodies together, as a multiple of that of one body

Answer = dict[str, Any]
Q = TypeVar("Q")
Convert = Callable[[Any, Any], Any]  # (type of a field, JSON) to its value: msgspec's `dec_hook`


class Question(Protocol):
    """A `msgspec.Struct` of a question's fields, with a method that answers it."""

    def answer(self) -> Answer: ...


class Refused(Exception):
    """Raised to refuse a question. The text is shown to the user."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class Bodies:
    """Reads request bodies, with limits on the time, the size and the total size."""

    def __init__(self, most: int) -> None:
        """most: largest size of a body in bytes."""
        self._most = most
        self._held = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytearray]:
        """Yield the body, which must be JSON. Its bytes count as held until the context ends.

        Raises Refused if the content type is not JSON, if the body is too large or too slow, or if
        all bodies together are too large.
        """
        # A page of another site can send types other than JSON without a preflight request.
        given = request.headers.get("content-type", "").partition(";")[0].strip()
        if given.lower() != "application/json":
            raise Refused("Content-Type must be application/json", 415)
        body = bytearray()
        try:
            try:
                await asyncio.wait_for(self._fill(body, request), _BODY_TIMEOUT)
            except asyncio.TimeoutError:
                text = f"the body must arrive within {_BODY_TIMEOUT:.0f} seconds"
                raise Refused(text, 408) from None
            yield body
        finally:
            self._held -= len(body)

    async def _fill(self, body: bytearray, request: Request) -> None:
        async for part in request.stream():
            body += part
            self._held += len(part)
            if len(body) > self._most:
                raise Refused(f"a request may have at most {self._most:,} bytes", 413)
            if self._held > _MOST_BODIES * self._most:
                raise Refused("too many large requests are under way: try again", 503)


def endpoint(
    kind: type[Question], bodies: Bodies, convert: Convert
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that reads a question and answers it on another thread."""

    async def asked(request: Request) -> Response:
        try:
            async with bodies.read(request) as body:
                return await run_in_threadpool(
                    answer_body, kind, kind.answer, body, convert=convert
                )
        except Refused as error:
            return response_of({"error": str(error)}, error.status)
        except (StreamtokError, ValueError, LookupError) as error:
            return response_of({"error": message_of(error)}, 422)

    return asked


def message_of(error: Exception) -> str:
    """The first line of the message, which says what is wrong and where."""
    # str() of a KeyError would put the message in quotes.
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(text).partition("\n")[0]


def answer_body(
    kind: type[Q],
    answer: Callable[[Q], Answer],
    body: bytes | bytearray,
    errors: str = "strict",
    convert: Convert | None = None,
) -> Response:
    """Answer the question in a body. Raises Refused, and the exceptions of `answer`.

    kind: a `msgspec.Struct` of the fields that the body must have. errors: policy for bytes
    that are not UTF-8. convert: makes the values of types that JSON does not have.
    """
    try:
        # msgspec's own decoder would refuse a lone surrogate.
        fields = json.loads(body.decode("utf-8", errors))
        question = msgspec.convert(fields, kind, dec_hook=convert)
    except UnicodeDecodeError as error:
        raise Refused(f"byte {error.start} of the body is not UTF-8 ({error.reason})") from None
    except msgspec.ValidationError as error:
        raise Refused(str(error)) from None
    except (ValueError, RecursionError):
        raise Refused("the body is not JSON") from None
    return response_of(answer(question))


def response_of(value: Answer, status: int = 200) -> Response:
    """A response with this value as JSON."""
    # ASCII, because UTF-8 cannot encode a lone surrogate.
    data = json.dumps(value, separators=(",", ":"))
    return Response(data, status, media_type="application/json")
