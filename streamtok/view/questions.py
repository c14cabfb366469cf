"""The questions that the page asks: JSON objects, limited in size, each field checked."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from ..encoding import Encoding
from ..errors import StreamtokError
from .encodings import Encodings
from .optional_starlette import JSONResponse, Request, Response, run_in_threadpool

__all__ = ["Answer", "Question", "Refused", "answer_of", "endpoint", "refusal"]

MAX_QUESTION = 64 << 20  # bytes of JSON; each field has a limit of its own

Answer = dict[str, Any]


class Refused(Exception):
    """A question that is not answered. Its text is shown to the user."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class Question:
    """The fields of a question. Each method raises `Refused` for a field that is not as it says."""

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
                "here: the tab File takes files of any size",
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
        policy = self.choice("special", "plain", "allow", "refuse")
        return {
            "allowed_special": "all" if policy == "allow" else frozenset(),
            "disallowed_special": "all" if policy == "refuse" else frozenset(),
        }


def endpoint(
    answer: Callable[[Question], Answer], encodings: Encodings
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that reads a question and gives `answer(question)`, from another thread."""

    async def asked(request: Request) -> Response:
        try:
            fields = await _read(request)
            return answer_of(await run_in_threadpool(answer, Question(fields, encodings)))
        except Exception as error:
            return refusal(error)

    return asked


def refusal(error: Exception) -> Response:
    """The response for an expected failure. Raises the error again if it is none."""
    if isinstance(error, Refused):
        return answer_of({"error": str(error)}, error.status)
    if isinstance(error, StreamtokError | ValueError | LookupError):
        # The first line of a long message says what is wrong and where.
        return answer_of({"error": str(error).partition("\n")[0]}, 422)
    raise error


async def _read(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise Refused("a question must be application/json", 415)
    size = 0
    parts = []
    async for part in request.stream():
        size += len(part)
        if size > MAX_QUESTION:
            raise Refused(f"a question must have at most {MAX_QUESTION >> 20} MiB", 413)
        parts.append(part)
    try:
        fields = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise Refused("the question is not JSON") from None
    if not isinstance(fields, dict):
        raise Refused("the question must be a JSON object")
    return fields


def answer_of(value: Answer, status: int = 200) -> Response:
    """The response that says this."""
    # In ASCII, because half a surrogate pair has no UTF-8.
    data = json.dumps(value, separators=(",", ":"))
    return Response(data, status, media_type=JSONResponse.media_type)
