"""From the chunks of a stream to characters: UTF-8 cut anywhere, and halves of surrogate pairs.

For streams that must see characters before the core does. The result is text as the core takes it:
without surrogates, except for U+DC80 to U+DCFF where "surrogateescape" lets them stand for bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .._core.encode import bytes_of, utf8_size
from ..surrogates import decode_begun, repair_chunk

if TYPE_CHECKING:
    from .._types import Text

__all__ = ["NO_BYTES_YET", "BytesTaken", "characters_of", "policy_of"]


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


NO_BYTES_YET = BytesTaken()


def policy_of(errors: str) -> str:
    """How text that was repaired becomes bytes again."""
    return "surrogateescape" if errors == "surrogateescape" else "strict"


def characters_of(
    before: BytesTaken, chunk: Text, final: bool, errors: str
) -> tuple[BytesTaken, str]:
    """The characters that a chunk completes.

    Raises UnicodeDecodeError with the offset in the stream, also for a str after bytes that end
    inside a character; UnicodeEncodeError for bytes after half a pair; TypeError.
    """
    half, partial, bytes_in, grown = before
    keeps = errors == "surrogateescape"
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
        chunk, half = repair_chunk(half, chunk, final, errors)
    if isinstance(chunk, str):
        try:
            size = utf8_size(chunk, False)
            has_escapes = False
        except UnicodeEncodeError:
            if not half:  # or else it is repaired
                chunk, half = repair_chunk("", chunk, final, errors)
            size, has_escapes = utf8_size(chunk, keeps), keeps
        if not has_escapes and not partial:
            return BytesTaken(half, b"", bytes_in + size, grown), chunk
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
    return BytesTaken(half, partial, bytes_in, grown), text
