"""The source text of a stream: its characters, and positions in several units.

This is for code that needs characters before the core sees them. The encoded text is UTF-8, which
chunks may cut anywhere; in it, surrogates and invalid bytes may have been repaired. `characters_of`
returns the characters that a chunk completes: text as `repaired` returns it, without surrogates
other than the bytes that "surrogateescape" keeps. `SourceText` keeps the last part of a text, and
its offset from the start in bytes, characters and UTF-16. Immutable.
"""

from __future__ import annotations

import codecs
import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import (
    bytes_of,
    has_surrogate,
    repaired,
    spans_in,
    unfinished_size,
    utf8_size,
)
from ..prompts import Prompt

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import Text

    Offsets = npt.NDArray[np.int64]

UNITS = ("byte", "character", "utf16")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Odd(NamedTuple):
    """A character whose bytes differ from the input."""

    at: int  # the offset of its first byte in the encoded text
    n_bytes: int  # in the input
    n_characters: int  # in the input


class BytesTaken(NamedTuple):
    """The number of bytes fed so far, and the bytes of an incomplete last character."""

    partial: bytes = b""  # of the incomplete character
    bytes_in: int = 0
    grown: int = 0  # bytes added by repair

    @property
    def end(self) -> int:
        """The offset of the next chunk; like all offsets, it is in the repaired text."""
        return self.bytes_in + self.grown

    @property
    def reached(self) -> int:
        """The offset of the next character."""
        return self.end - len(self.partial)


NO_BYTES_YET = BytesTaken()


def characters_of(
    before: BytesTaken, chunk: Text, final: bool, errors: str, odd: list[Odd] | None = None
) -> tuple[BytesTaken, str]:
    """(bytes taken, characters that the chunk completes). odd: a list to which `Odd` are added.

    Raises UnicodeDecodeError with the offset in the stream, even for a str if it follows bytes that
    end inside a character. Raises TypeError for a chunk that is neither str nor bytes-like.
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
        # Each character of a str counts as one, even an escaped byte that completes a character.
        is_source = odd is not None and bool(chunk)
        if is_source or not (partial or (keeps and has_surrogate(text, 0, len(text)))):
            if odd is not None and text is not chunk:
                _add_pairs(chunk, before.end, errors, odd)
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
        _add_repaired(data[:size], before.reached, odd)
    return BytesTaken(partial, bytes_in, grown), text


def _decode_begun(data: bytes, final: bool, errors: str) -> tuple[str, bytes]:
    """(text, rest): whole characters, decoded, and the bytes of an incomplete last one.

    With `final`, the rest is empty. This is not `codecs.utf_8_decode`, which waits for the end of
    an encoded surrogate, although it is never valid. Raises UnicodeDecodeError.
    """
    end = len(data) - (0 if final else unfinished_size(data))
    try:
        return data[:end].decode("utf-8", errors), data[end:]
    except UnicodeDecodeError:
        data.decode("utf-8", errors)  # raises with the reason for all of `data`
        raise


def _add_pairs(text: str, at: int, errors: str, odd: list[Odd]) -> None:
    """Add the surrogate pairs of `text`, each of which is one character. at: the text's offset."""
    last = 0
    for match in _PAIR.finditer(text):
        at += utf8_size(repaired(text[last : match.start()], errors))
        odd.append(Odd(at, 4, 2))
        at, last = at + 4, match.end()


class _Sizes(threading.local):
    found: list[tuple[int, int]] | None = None


_sizes = _Sizes()


def _add_size(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    assert _sizes.found is not None
    _sizes.found.append((error.start, error.end))
    return "\ufffd", error.end


codecs.register_error("streamtok.replace", _add_size)


def _add_repaired(data: bytes, at: int, odd: list[Odd] | None) -> None:
    """Add the spans that U+FFFD replaces in `data`, which begins at `at`."""
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


class SourceText(NamedTuple):
    """The characters of the encoded text from byte `at` on; `base` is `at` in each of UNITS.

    Under "surrogateescape", U+DC80 to U+DCFF are one byte each.
    """

    taken: BytesTaken = NO_BYTES_YET
    text: str = ""
    odd: tuple[Odd, ...] = ()
    at: int = 0
    base: tuple[int, int, int] = (0, 0, 0)

    @property
    def end(self) -> int:
        """The end of the complete characters."""
        return self.taken.reached

    def fed(self, chunk: Text, final: bool, errors: str) -> SourceText:
        """The text after another chunk, which an encoder has accepted."""
        odd = list(self.odd)
        taken, text = characters_of(self.taken, chunk, final, errors, odd)
        return self._replace(taken=taken, text=self.text + text, odd=tuple(odd))

    def in_unit(self, spans: Offsets, unit: str) -> Offsets:
        """Convert spans in bytes of the encoded text to `unit`; their characters must still be kept
        here.

        A span that touches a character includes all of it. The result may use the memory of
        `spans`.
        """
        number = UNITS.index(unit)
        if self.at:
            spans = spans - self.at
        if self.odd or (unit != "byte" and has_surrogate(self.text, 0, len(self.text))):
            begins, units = self._characters(number)
            firsts = np.searchsorted(begins, spans[:, 0], "right") - 1
            spans = np.stack([units[firsts], units[np.searchsorted(begins, spans[:, 1])]], axis=1)
        elif not (unit == "byte" or self.text.isascii()):
            spans = spans_in(unit == "utf16", spans, self.text.encode())
        return spans + self.base[number] if self.base[number] else spans

    def _characters(self, number: int) -> tuple[Offsets, Offsets]:
        """The starts of the characters and the end of the text, in bytes and in a unit.

        If the unit is bytes, each byte outside of odd characters counts as a character.
        """
        points = np.frombuffer(self.text.encode("utf-32-le", "surrogatepass"), "<u4")
        sizes = 1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF)
        sizes[points >> 11 == 0xD800 >> 11] = 1
        weights = 1 + (points > 0xFFFF) * np.int64(UNITS[number] == "utf16")
        if UNITS[number] == "byte":
            sizes = weights = np.ones(sizes.sum(), np.int64)
        begins = np.cumsum(sizes) - sizes
        dropped: list[int] = []
        for at, n_bytes, n_characters in self.odd:
            index = int(np.searchsorted(begins, at - self.at))
            if UNITS[number] == "character":
                weights[index] = n_characters
            elif UNITS[number] == "byte" and n_characters == 1:  # a pair keeps its four bytes
                weights[index] = n_bytes
                dropped += index + 1, index + 2
        units = np.cumsum(np.insert(np.delete(weights, dropped), 0, 0))
        end = [utf8_size(self.text)]
        return np.concatenate([np.delete(begins, dropped), end]), units

    def forget(self, before: int) -> SourceText:
        """The text without the characters before byte `before` of the encoded text."""
        if before <= self.at:
            return self
        alone = SourceText(text=self.text)
        n = int(alone.in_unit(np.array([(before - self.at,) * 2]), "character")[0, 0])
        at = self.at + utf8_size(self.text[:n])
        units = [int(self.in_unit(np.array([(at, at)]), unit)[0, 0]) for unit in UNITS]
        odd = tuple(one for one in self.odd if one.at >= at)
        base = units[0], units[1], units[2]
        return self._replace(text=self.text[n:], odd=odd, at=at, base=base)


BEGIN = SourceText()


def fed_source(source: SourceText, chunk: Text | Prompt, final: bool, errors: str) -> SourceText:
    """As `source.fed`, but `chunk` may be a Prompt, in which no character spans a border of
    control.
    """
    if not isinstance(chunk, Prompt):
        return source.fed(chunk, final, errors)
    for text, is_control in chunk.spans:
        if is_control:
            source = source.fed(b"", True, errors).fed(text, False, "replace")
        else:
            source = source.fed(text, False, errors)
    return source.fed(b"", final, errors)


def check_unit(unit: Any) -> None:
    """Raise ValueError for an unknown unit."""
    if unit not in UNITS:
        raise ValueError(f'unit must be "byte", "character" or "utf16", not {unit!r}')
