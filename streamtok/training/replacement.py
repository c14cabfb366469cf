"""Text that is not well-formed, chunk by chunk: what the policy "replace" makes of it.

Bytes become what `bytes.decode("utf-8", "replace")` makes of all of them; in a str, the two halves
of a surrogate pair become their character, and lone ones U+FFFD, as in tiktoken. What the next
chunk decides is held: the bytes of an unfinished character, or the first half of a pair, as three
bytes.

Everything here is a function: what goes wrong changes nothing.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from .. import surrogates
from .._core.encode import bytes_of

if TYPE_CHECKING:
    from .._types import Text

__all__ = ["check_held", "held_bytes", "repair"]


def repair(held: bytes, chunk: Text, final: bool, offset: int) -> tuple[str, bytes]:
    """(str, bytes): the text that goes on with `chunk`, and what is held now.

    held: what is held before; offset: of that in the text, for errors. Raises UnicodeDecodeError
    where a str follows an unfinished character, UnicodeEncodeError where bytes follow half a pair.
    """
    half = held.decode("utf-8", "surrogatepass") if _is_half(held) else ""
    if half or (isinstance(chunk, str) and not held):
        text, half = surrogates.repair_chunk(half, chunk, final, "replace")
        return text, half.encode("utf-8", "surrogatepass")
    if isinstance(chunk, str):
        if chunk:
            raise UnicodeDecodeError(
                "utf-8", held, offset, offset + len(held),
                "a str chunk follows an unfinished character",
            )  # fmt: skip
        chunk = b""
    return surrogates.decode_begun(held + bytes_of(chunk), final)


def held_bytes(held: bytes) -> bytes:
    """bytes: the UTF-8 of what is held if the text ends there."""
    return repair(held, b"", True, 0)[0].encode()


def check_held(held: bytes, errors: str) -> None:
    """Raise ValueError for what is never held under this policy."""
    is_fine = not held or (errors == "replace" and (_is_half(held) or _is_unfinished(held)))
    if not is_fine:
        raise ValueError(f"{held!r} is not the beginning of a character")


def _is_half(held: bytes) -> bool:
    return len(held) == 3 and held[0] == 0xED and 0xA0 <= held[1] < 0xB0 and held[2] >> 6 == 2


def _is_unfinished(held: bytes) -> bool:
    # By Python's own rule, which also waits after the first two bytes of a surrogate: states that
    # were saved at such a place load.
    return codecs.utf_8_decode(held, "replace", False)[1] == 0
