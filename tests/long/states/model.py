"""What a test knows of a stream: the bytes that were accepted, and the ids that were given out.

Nothing here knows how a stream works. Whether bytes are UTF-8 is asked of Python's own codec.
"""

from __future__ import annotations

import codecs
import random
import re
from typing import NamedTuple

PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
LONE = re.compile("[\ud800-\udfff]")


class Fault(NamedTuple):
    """Why a call must fail. `start` and `end` are offsets in the stream."""

    kind: str  # "utf-8", or "text after half a character"
    start: int = 0
    end: int = 0
    reason: str = ""


class Step(NamedTuple):
    """What a call adds to the accepted bytes, if it succeeds, and why it may not."""

    data: bytes
    waiting: bytes
    fault: Fault | None
    text: str | None  # the chunk, where it is a str


def utf8_of(text: str, errors: str) -> bytes:
    """The bytes that a str stands for: pairs of surrogates are a character, lone ones U+FFFD.

    Under "surrogateescape" U+DC80 to U+DCFF are the bytes that they escape.
    """
    if text.isascii() or not LONE.search(text):
        return text.encode()
    text = PAIR.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    if errors != "surrogateescape":
        return LONE.sub("\ufffd", text).encode()
    text = LONE.sub(lambda m: m[0] if "\udc80" <= m[0] <= "\udcff" else "\ufffd", text)
    return text.encode("utf-8", "surrogateescape")


def unfinished(data: bytes) -> bytes:
    """The start of a character that `data` ends with."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            try:
                return decode_open(data[-back:], "strict")[1]
            except UnicodeDecodeError:
                return b""
        if byte < 0x80:
            return b""
    return b""


def completion(waiting: bytes) -> bytes:
    """Bytes that make `waiting` a character."""
    for more in (b"\x80", b"\xa0", b"\x90", b"\x80\x80", b"\xa0\x80", b"\x90\x80\x80", b"\x80" * 3):
        try:
            (waiting + more).decode()
        except UnicodeDecodeError:
            continue
        return more
    raise ValueError(f"nothing completes {waiting!r}")


def decode_open(data: bytes | bytearray, errors: str) -> tuple[str, bytes]:
    """The text of bytes that may go on, and an unfinished character at their end."""
    text, consumed = codecs.utf_8_decode(data, errors, False)
    rest = bytes(data[consumed:])
    if rest[:1] == b"\xed" and rest[1:2] >= b"\xa0":
        # Python waits for the end of a surrogate, which is no UTF-8 whatever follows.
        return bytes(data).decode("utf-8", errors), b""
    return text, rest


def damaged(rng: random.Random, state: bytes, foreign: list[bytes]) -> bytes:
    """A state that lost or changed some bytes, or one of these, which are of something else."""
    bad = bytearray(state)
    kind = rng.randrange(4)
    if kind == 0:
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del bad[rng.randrange(len(bad)) :]
    elif kind == 2:
        bad += rng.choice([b"\0", b"x", bad[:10]])
    else:
        bad = bytearray(rng.choice(foreign))
    return bytes(bad)


class Model:
    """The bytes that one stream accepted since it began, and the ids that it gave for them."""

    __slots__ = ("accepted", "errors", "given", "text", "waiting")

    def __init__(self, errors: str) -> None:
        self.errors = errors
        self.begin()

    def begin(self) -> None:
        self.accepted = bytearray()
        self.given: list[int] = []
        self.waiting = b""  # the start of a character; part of `accepted`
        self.text: str | None = ""  # all of it, if every chunk was a str

    def copy(self) -> Model:
        twin = Model(self.errors)
        twin.accepted = self.accepted[:]
        twin.given = self.given[:]
        twin.waiting, twin.text = self.waiting, self.text
        return twin

    def foresee(self, chunk: str | bytes | bytearray | memoryview, final: bool) -> Step:
        """What `chunk` does if all is well."""
        fault = None
        if isinstance(chunk, str):
            data = utf8_of(chunk, self.errors)
            # A pair that two chunks divide is two lone surrogates.
            text = None if "\ud800" <= chunk[-1:] <= "\udbff" else chunk
            if self.waiting and chunk:
                at = len(self.accepted)
                fault = Fault("text after half a character", at - len(self.waiting), at)
            elif self.waiting and final and self.errors == "strict":
                at = len(self.accepted)
                fault = Fault("utf-8", at - len(self.waiting), at, "unexpected end of data")
            if self.errors != "surrogateescape":
                return Step(data, b"" if data else self.waiting, fault, text)
            return Step(data, unfinished(self.waiting + data[-4:]), fault, text)
        data = bytes(chunk)
        joined = self.waiting + data
        waiting = unfinished(joined[-4:])
        if self.errors == "strict":
            try:
                joined.decode() if final else decode_open(joined, "strict")
            except UnicodeDecodeError as error:
                shift = len(self.accepted) - len(self.waiting)
                fault = Fault("utf-8", error.start + shift, error.end + shift, error.reason)
        return Step(data, waiting, fault, None if data else "")

    def take(self, step: Step, ids: list[int]) -> None:
        """The call has succeeded."""
        self.accepted += step.data
        self.given += ids
        self.waiting = step.waiting
        if self.text is not None:
            self.text = None if step.text is None else self.text + step.text

    def repaired(self) -> bytes:
        """The accepted bytes as the encoding sees them; an unfinished character is as it is."""
        if self.errors != "replace":
            return bytes(self.accepted)
        text, rest = decode_open(self.accepted, "replace")
        return text.encode() + rest
