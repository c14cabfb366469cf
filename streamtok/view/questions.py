"""The questions that the page asks: JSON objects, limited in size and time, each field checked."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..errors import StreamtokError
from ..special_tokens import SPECIAL_POLICIES, special_settings

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .encodings import Encodings

MAX_QUESTION = 8 << 20  # bytes of JSON: a text of 2^20 characters, up to 6 bytes each
_BODY_TIMEOUT = 60.0  # seconds in which a body must be there

Answer = dict[str, Any]


class Refused(Exception):
    """A question that is not answered. Its text is shown to the user."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class Question:
    """The fields of a question. Each method raises `Refused` for a field of another form."""

    def __init__(self, fields: dict[str, Any], encodings: Encodings) -> None:
        self._fields = fields
        self._encodings = encodings

    def text(self, name: str = "text", limit: int = 1 << 20) -> str:
        """str: of at most `limit` characters."""
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise Refused(f"{name} must be text")
        if len(value) > limit:
            raise Refused(
                f"the text has {len(value):,} characters, more than the {limit:,} that are taken "
                "here: streamtok count takes files of any size",
                413,
            )
        return value

    def number(self, name: str, least: int, most: int) -> int:
        """int: from `least` to `most`."""
        value = self._fields.get(name)
        if type(value) is not int or not least <= value <= most:
            raise Refused(f"{name} must be a number from {least} to {most}")
        return value

    def choice(self, name: str, *choices: str) -> str:
        """str: one of `choices`."""
        value = self._fields.get(name)
        if value not in choices:
            raise Refused(f"{name} must be one of {', '.join(choices)}")
        return str(value)

    def values(self, name: str, most: int) -> list[Any]:
        """list: of at most `most` values."""
        value = self._fields.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise Refused(f"{name} must be a list of at most {most} values")
        return value

    def encoding(self, name: str = "encoding") -> Encoding:
        """Encoding: one that the page offers."""
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise Refused(f"{name} must be the name of an encoding")
        return self._encodings.get(value)

    def encodings(self, name: str = "encodings", most: int = 4) -> list[Encoding]:
        """list[Encoding]: one to `most`."""
        names = self.values(name, most)
        if not names or not all(isinstance(one, str) for one in names):
            raise Refused(f"{name} must be one to {most} names of encodings")
        return [self._encodings.get(one) for one in names]

    def specials(self) -> dict[str, Any]:
        """The keyword arguments of `Encoding.encode`, for the policy of special tokens."""
        return special_settings(self.choice("special", *SPECIAL_POLICIES))


class Bodies:
    """Reads the bodies of requests, each within a time; their bytes together are limited."""

    def __init__(self, most: int) -> None:
        """most: bytes of all bodies that are being read and answered."""
        self._most = most
        self._held = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request, kind: str, most: int) -> AsyncIterator[bytearray]:
        """The body, of at most `most` bytes, which count until the context ends.

        Raises Refused for another content type, a larger body, one that comes too slowly, and where
        there is no room for it.
        """
        # A page of another site can send other types than JSON without asking first.
        given = request.headers.get("content-type", "").partition(";")[0].strip()
        if given.lower() != kind:
            raise Refused(f"Content-Type must be {kind}", 415)
        body = bytearray()
        try:
            try:
                await asyncio.wait_for(self._fill(body, request, most), _BODY_TIMEOUT)
            except asyncio.TimeoutError:
                text = f"the body must come within {_BODY_TIMEOUT:.0f} seconds"
                raise Refused(text, 408) from None
            yield body
        finally:
            self._held -= len(body)

    async def _fill(self, body: bytearray, request: Request, most: int) -> None:
        async for part in request.stream():
            body += part
            self._held += len(part)
            if len(body) > most:
                raise Refused(f"a request has at most {most:,} bytes", 413)
            if self._held > self._most:
                raise Refused("too many large requests are under way: try again", 503)


def endpoint(
    answer: Callable[[Question], Answer],
    encodings: Encodings,
    bodies: Bodies,
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that reads a question and gives `answer(question)`, from another thread."""

    def to_fields(fields: Answer) -> Answer:
        return answer(Question(fields, encodings))

    async def asked(request: Request) -> Response:
        try:
            async with bodies.read(request, "application/json", MAX_QUESTION) as body:
                return said(await run_in_threadpool(answered, to_fields, body))
        except Exception as error:
            return refusal(error)

    return asked


def refusal(error: Exception) -> Response:
    """The response for an expected failure. Raises the error again if it is none."""
    if isinstance(error, Refused):
        return answer_of({"error": str(error)}, error.status)
    if isinstance(error, StreamtokError | ValueError | LookupError):
        return answer_of({"error": message_of(error)}, 422)
    raise error


def message_of(error: Exception) -> str:
    """The first line of the message, which says what is wrong and where."""
    # str() of a KeyError puts the message in quotes.
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(text).partition("\n")[0]


def answered(
    answer: Callable[[Answer], Answer], body: bytes | bytearray, errors: str = "strict"
) -> bytes:
    """The JSON of the answer to the fields of a body. Raises Refused, and what `answer` raises.

    errors: for bytes of the body that are not UTF-8.
    """
    try:
        fields = json.loads(body.decode("utf-8", errors))
    except UnicodeDecodeError as error:
        raise Refused(f"byte {error.start} of the body is not UTF-8 ({error.reason})") from None
    except (ValueError, RecursionError):
        raise Refused("the body is not JSON") from None
    if not isinstance(fields, dict):
        raise Refused("the body must be a JSON object")
    return _json(answer(fields))


def answer_of(value: Answer, status: int = 200) -> Response:
    """The response that says this."""
    return said(_json(value), status)


def said(data: bytes, status: int = 200) -> Response:
    """The response that has this JSON."""
    return Response(data, status, media_type="application/json")


def _json(value: Answer) -> bytes:
    # In ASCII, because half a surrogate pair has no UTF-8.
    return json.dumps(value, separators=(",", ":")).encode()
