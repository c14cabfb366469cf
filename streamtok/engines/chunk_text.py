"""From the chunks of a stream to characters: UTF-8 cut anywhere, and halves of surrogate pairs.

For streams that must see characters before the core does. The result is text as the core takes it:
without surrogates, except for U+DC80 to U+DCFF where "surrogateescape" lets them stand for bytes.
"""

from __future__ import annotations

import codecs
import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import bytes_of, utf8_size
from ..surrogates import decode_begun, repair, repair_chunk

if TYPE_CHECKING:
    from .._types import Text

__all__ = ["NO_BYTES_YET", "BytesTaken", "Odd", "characters_of", "policy_of"]

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Odd(NamedTuple):
    """A character that was something else in the chunk."""

    at: int  # its first byte, as encoded
    n_bytes: int  # in the chunk
    n_characters: int


class BytesTaken(NamedTuple):
    """The chunks so far, and the bytes of them that are not a character yet."""

    half: str = ""  # the first half of a surrogate pair that ended a str chunk
    partial: bytes = b""  # those of a character that is not complete
    bytes_in: int = 0
    grown: int = 0  # bytes that repair added

    @property
    def end(self) -> int:
        """The offset of the next chunk, in the repaired text, as all offsets are."""
        return self.bytes_in + self.grown

    @property
    def reached(self) -> int:
        """Where the next character begins."""
        return self.end - len(self.partial)

    def to_json(self) -> list[Any]:
        """What `from_json` takes."""
        return [self.half, self.partial.hex(), self.bytes_in, self.grown]

    @classmethod
    def from_json(cls, value: Any, errors: str) -> BytesTaken:
        """One that was saved as JSON. Raises ValueError and TypeError if it is none."""
        half, partial, bytes_in, grown = value
        self = cls(half, bytes.fromhex(partial), bytes_in, grown)
        if type(half) is not str or not (half == "" or "\ud800" <= half <= "\udbff"):
            raise ValueError("expected half a character")
        if any(type(x) is not int or not 0 <= x < 1 << 62 for x in (bytes_in, grown)):
            raise ValueError("expected numbers of bytes")
        begun = characters_of(NO_BYTES_YET, self.partial, False, errors)[0].partial
        if len(self.partial) > 3 or begun != self.partial or self.reached < 0:
            raise ValueError("it ends with bytes that do not begin a character")
        return self


NO_BYTES_YET = BytesTaken()


def policy_of(errors: str) -> str:
    """How text that was repaired becomes bytes again."""
    return "surrogateescape" if errors == "surrogateescape" else "strict"


def characters_of(
    before: BytesTaken, chunk: Text, final: bool, errors: str, odd: list[Odd] | None = None
) -> tuple[BytesTaken, str]:
    """The characters that a chunk completes. odd: gets those that were something else.

    Raises UnicodeDecodeError with the offset in the stream, also for a str after bytes that end
    inside a character; UnicodeEncodeError for bytes after half a pair; TypeError.
    """
    half, partial, bytes_in, grown = before
    keeps = errors == "surrogateescape"
    # Of a str, each character is one of the source, also where their bytes are one together.
    is_source = odd is not None and isinstance(chunk, str) and bool(chunk)
    if isinstance(chunk, str):
        chunk = str.__str__(chunk)
        if chunk and partial and not keeps:
            raise UnicodeDecodeError(
                "utf-8", partial, bytes_in - len(partial), bytes_in,
                "a str chunk follows bytes that end inside a character",
            )  # fmt: skip
    else:
        chunk = bytes_of(chunk)
    if half:
        _note_pairs(half, chunk, before.end, errors, odd)
        chunk, half = repair_chunk(half, chunk, final, errors)
    if isinstance(chunk, str):
        try:
            size = utf8_size(chunk, False)
            has_escapes = False
        except UnicodeEncodeError:
            if not half:  # or else it is repaired
                _note_pairs("", chunk, before.end, errors, odd)
                chunk, half = repair_chunk("", chunk, final, errors)
            size, has_escapes = utf8_size(chunk, keeps), keeps
        if is_source or not (has_escapes or partial):
            text = partial.decode("utf-8", "surrogateescape") + chunk if partial else chunk
            return BytesTaken(half, b"", bytes_in + size, grown), text
        chunk = chunk.encode("utf-8", policy_of(errors))  # they may be bytes of one character
    bytes_in += len(chunk)
    data = partial + chunk if partial else chunk
    try:
        text, partial = decode_begun(data, final, errors)
    except UnicodeDecodeError as error:
        start = bytes_in - len(data)
        raise UnicodeDecodeError(
            "utf-8", data[error.start : error.end], start + error.start, start + error.end,
            error.reason,
        ) from None  # fmt: skip
    if errors == "replace" and "\ufffd" in text:
        grown += utf8_size(text, False) - (len(data) - len(partial))
        _note_repaired(data[: len(data) - len(partial)], before.reached, odd)
    return BytesTaken(half, partial, bytes_in, grown), text


def _note_pairs(half: str, chunk: Text, at: int, errors: str, odd: list[Odd] | None) -> None:
    """Add the pairs of surrogates that stand for one character. at: where the text begins."""
    if odd is None or not isinstance(chunk, str):
        return
    text, last = half + chunk, 0
    for match in _PAIR.finditer(text):
        at += utf8_size(repair(text[last : match.start()], errors), errors == "surrogateescape")
        odd.append(Odd(at, 4, 2))
        at, last = at + 4, match.end()


class _Sizes(threading.local):
    found: list[tuple[int, int]] | None = None


_sizes = _Sizes()


def _note_size(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    assert _sizes.found is not None
    _sizes.found.append((error.start, error.end))
    return "\ufffd", error.end


codecs.register_error("streamtok.replace", _note_size)


def _note_repaired(data: bytes, at: int, odd: list[Odd] | None) -> None:
    """Add what became U+FFFD of data, which begins at `at`."""
    if odd is None:
        return
    found: list[tuple[int, int]] = []
    _sizes.found = found
    try:
        data.decode("utf-8", "streamtok.replace")
    finally:
        _sizes.found = None
    for start, end in found:
        odd.append(Odd(at + start, end - start, 1))
        at += 3 - (end - start)
