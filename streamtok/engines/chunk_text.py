"""From the chunks of a stream to characters: UTF-8 cut anywhere.

For streams that must see characters before the core does. The result is text as `repaired` returns
it: without surrogates, except for the bytes that "surrogateescape" keeps.
"""

from __future__ import annotations

import codecs
import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import bytes_of, has_surrogate, repaired, unfinished_size, utf8_size

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
        return [self.partial.hex(), self.bytes_in, self.grown]

    @classmethod
    def from_json(cls, value: Any, errors: str) -> BytesTaken:
        """One that was saved as JSON. Raises ValueError and TypeError if it is none."""
        partial, bytes_in, grown = value
        self = cls(bytes.fromhex(partial), bytes_in, grown)
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
    inside a character; TypeError.
    """
    partial, bytes_in, grown = before
    keeps = errors == "surrogateescape"
    if isinstance(chunk, str):
        chunk = str.__str__(chunk)
        if chunk and partial and not keeps:
            raise UnicodeDecodeError(
                "utf-8", partial, bytes_in - len(partial), bytes_in,
                "a str chunk follows bytes that end inside a character",
            )  # fmt: skip
        text = repaired(chunk, errors)
        # Of a str, each character is one of the source, also where their bytes are one together.
        is_source = odd is not None and bool(chunk)
        if is_source or not (partial or (keeps and has_surrogate(text, 0, len(text)))):
            if odd is not None and text is not chunk:
                _note_pairs(chunk, before.end, errors, odd)
            taken = BytesTaken(b"", bytes_in + utf8_size(text), grown)
            return taken, partial.decode("utf-8", "surrogateescape") + text
        chunk = text.encode("utf-8", "surrogateescape")
    else:
        chunk = bytes_of(chunk)
    bytes_in += len(chunk)
    data = partial + chunk if partial else chunk
    try:
        text, partial = _decode_begun(data, final, errors)
    except UnicodeDecodeError as error:
        start = bytes_in - len(data)
        raise UnicodeDecodeError(
            "utf-8", data[error.start : error.end], start + error.start, start + error.end,
            error.reason,
        ) from None  # fmt: skip
    size = len(data) - len(partial)
    if errors == "replace" and "\ufffd" in text:
        grown += utf8_size(text) - size
        _note_repaired(data[:size], before.reached, odd)
    return BytesTaken(partial, bytes_in, grown), text


def _decode_begun(data: bytes, final: bool, errors: str) -> tuple[str, bytes]:
    """(text, rest): whole characters, decoded, and the bytes of a character that is not complete.

    With `final`, the rest is empty. `codecs.utf_8_decode` waits for the end of a
    surrogate, which is never a character. Raises UnicodeDecodeError.
    """
    end = len(data) - (0 if final else unfinished_size(data))
    try:
        return data[:end].decode("utf-8", errors), data[end:]
    except UnicodeDecodeError:
        data.decode("utf-8", errors)  # the whole text's reason: it may need the bytes cut off
        raise


def _note_pairs(text: str, at: int, errors: str, odd: list[Odd]) -> None:
    """Add the pairs of surrogates that are one character. at: where the text begins."""
    last = 0
    for match in _PAIR.finditer(text):
        at += utf8_size(repaired(text[last : match.start()], errors))
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
