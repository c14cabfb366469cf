"""What some formats do to a text before it is cut into pieces, and tiktoken does not.

*Added tokens*: texts that always become their id, wherever they stand; special tokens do so only
where they are allowed. Where several begin at one place, the longest is meant, not the one that
tiktoken's hash table happens to prefer.

*Spaces*, as SentencePiece has them: U+2581 stands for a space, so that both are the same to the
vocabulary, and a space is put before the text unless it is empty (or begins with an allowed special
token, which SentencePiece does not know in texts). Decoding takes one space off the front again.

*NFC*, as Hugging Face's Qwen has it: what lies between special and added tokens is normalised. Only
in whole texts: what a stream would have to hold back is not worked out here.
"""

from __future__ import annotations

import bisect
import struct
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ._core.special import SpecialMatcher
from .errors import PendingLimitExceeded, StateError, UnsupportedStreamError

if TYPE_CHECKING:
    from ._core.stream import Tail
    from .encoding import Encoding, Text

__all__ = ["MARK", "NO_RULES", "SpaceTail", "TextRules"]

MARK = "\u2581"
_MARK = MARK.encode()


@dataclass(frozen=True)
class TextRules:
    """What an encoding does beyond tiktoken; nothing by default. Immutable, and can be pickled."""

    added_tokens: tuple[tuple[str, int], ...] = ()  # always recognised
    longest_first: bool = False
    normalizer: str | None = None  # None, "spaces" or "NFC"
    space_first: bool = False  # a space before the text; only with "spaces"

    def __post_init__(self) -> None:
        if self.normalizer not in (None, "spaces", "NFC"):
            raise ValueError(f"there is no normalizer {self.normalizer!r}")
        if self.space_first and self.normalizer != "spaces":
            raise ValueError('space_first needs the normalizer "spaces"')

    def whole(self, text: Text, allowed: Iterable[str]) -> Text:
        """A whole text as the vocabulary sees it; for "spaces" only."""
        if isinstance(text, str):
            is_special = text.startswith(tuple(allowed))
            text = text.replace(MARK, " ")
            return " " + text if self.space_first and text and not is_special else text
        data = bytes(text)
        is_special = data.startswith(tuple(special.encode() for special in allowed))
        data = data.replace(_MARK, b" ")
        return b" " + data if self.space_first and data and not is_special else data

    def original_offset(self, text: Text, offset: int, allowed: Iterable[str]) -> int:
        """Where in a text is what stands at byte `offset` of `whole` of it; for "spaces" only."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        seen = self.whole(data, allowed)
        offset -= len(seen) - len(data.replace(_MARK, b" "))
        original = 0
        for part in data.split(_MARK):
            if offset <= len(part):
                return original + max(offset, 0)
            offset -= len(part) + 1
            original += len(part) + len(_MARK)
        return len(data)

    def stream(self, tail: Tail, allowed: Iterable[str]) -> Any:
        """`tail`, with the rules before it. Raises UnsupportedStreamError."""
        if self.normalizer is None:
            return tail
        if self.normalizer == "NFC":
            raise UnsupportedStreamError(
                "this encoding normalises text to NFC, which streams cannot do yet: "
                "normalise the text before, and load the vocabulary without its normalizer"
            )
        return SpaceTail(tail, tuple(text.encode() for text in allowed), self.space_first)


NO_RULES = TextRules()
NOTHING = SpecialMatcher([], frozenset(), ())


def run_normalized(
    encoding: Encoding, text: Text, matcher: SpecialMatcher, errors: str, into: str, *, repair: bool
) -> Any:
    """The ids of a whole text, for an encoding with a normalizer; as `Encoding._run`."""
    rules = encoding._rules
    if rules.normalizer == "NFC":
        return _run_nfc(encoding, text, matcher, errors, into, repair=repair)
    allowed = allowed_specials(encoding, matcher)
    seen = rules.whole(text, allowed)

    def original(offset: int) -> int:
        return rules.original_offset(text, offset, allowed)

    try:
        return encoding._run_plain(
            seen, matcher, errors, into, repair=repair, original=original
        )
    except UnicodeDecodeError as error:
        raise UnicodeDecodeError(
            "utf-8", error.object, original(error.start), original(error.end), error.reason
        ) from None


def allowed_specials(encoding: Encoding, matcher: SpecialMatcher) -> list[str]:
    """The special tokens that `matcher` allows."""
    return [text for text in matcher.allowed if text in encoding._special_tokens]


def _run_nfc(
    encoding: Encoding, text: Text, matcher: SpecialMatcher, errors: str, into: str, *, repair: bool
) -> Any:
    whole = text if isinstance(text, str) else bytes(text).decode("utf-8", errors)
    if unicodedata.is_normalized("NFC", whole):  # and so is every part of it
        return encoding._run_plain(text, matcher, errors, into, repair=repair)
    policy = "surrogateescape" if errors == "surrogateescape" else "strict"
    try:
        data = whole.encode("utf-8", policy)
    except UnicodeEncodeError:
        if not repair or policy != "strict":
            raise
        whole = whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        data = whole.encode()
    ids: list[np.ndarray[Any, Any]] = []
    for start, end, token in matcher.split(data):
        if token is None:
            from .encoding import raise_disallowed_special

            raise_disallowed_special(start, data[start:end].decode("utf-8", policy))
        if token >= 0:
            ids.append(np.array([token], dtype=np.uint32))
            continue
        part = unicodedata.normalize("NFC", data[start:end].decode("utf-8", policy))
        found = encoding._run_plain(part, NOTHING, errors, "array", repair=False)
        ids.append(np.asarray(found))
    joined = np.concatenate(ids) if ids else np.empty(0, dtype=np.uint32)
    if into == "count":
        return len(joined)
    return joined.tolist() if into == "list" else joined


@dataclass
class _Place:
    """Where a stream of text stands; offsets with a hat count what the tail was given."""

    held: bytes = b""  # not given to the tail yet: the start of a mark or of a special token
    is_begun: bool = False
    prefix: int = 0  # bytes put before the text
    bytes_in: int = 0
    given: int = 0
    marks_gone: int = 0  # marks before what is pending
    marks: list[int] = field(default_factory=list)  # hat offsets of those in what is pending


_STATE = struct.Struct("<BQQQI")


class SpaceTail:
    """A `Tail` whose text has its spaces as SentencePiece wants them. One call at a time."""

    def __init__(self, tail: Tail, specials: tuple[bytes, ...], space_first: bool) -> None:
        self.tail = tail
        self.specials = specials
        self.space_first = space_first
        self.place = _Place()

    @property
    def pending(self) -> int:
        """int: bytes of the text that wait."""
        place = self.place
        return place.bytes_in - max(self._original(place.given - self.tail.pending), 0)

    @property
    def bytes_in(self) -> int:
        """int: bytes of text taken in."""
        return self.place.bytes_in

    @property
    def tokens_out(self) -> int:
        """int: ids given out."""
        return self.tail.tokens_out

    def reset(self) -> None:
        """Forget everything but the settings."""
        self.tail.reset()
        self.place = _Place()

    def copy(self) -> SpaceTail:
        """An independent one in the same state."""
        twin = SpaceTail(self.tail.copy(), self.specials, self.space_first)
        twin.place = _copied(self.place)
        return twin

    def encode(self, chunk: Text, final: bool, into: str, out: Any, limit: int) -> Any:
        """As `Tail.encode`."""
        place = _copied(self.place)
        given = self._given(place, chunk, final)
        before, self.place = self.place, place
        try:
            result = self.tail.encode(given, final, into, out, limit)
            if type(result) is tuple:
                result = max(self._original(result[0]), 0), result[1]
                self.place = before
                return result
        except UnicodeDecodeError as error:
            start, end = self._original(error.start), self._original(error.end)
            self.place = before
            raise UnicodeDecodeError(
                "utf-8", error.object, max(start, 0), end, error.reason
            ) from None
        except PendingLimitExceeded as error:
            offset = max(self._original(error.offset), 0)
            waiting = place.bytes_in - offset
            self.place = before
            raise PendingLimitExceeded(
                f"{waiting} bytes from offset {offset} of the stream would have to wait, "
                f"max_pending allows {limit}",
                offset=offset, pending=waiting, limit=limit,
            ) from None  # fmt: skip
        except BaseException:
            self.place = before
            raise
        if final:
            self.place = _Place()
        else:
            gone = bisect.bisect_left(place.marks, place.given - self.tail.pending)
            place.marks_gone += gone
            del place.marks[:gone]
        return result

    def _given(self, place: _Place, chunk: Text, final: bool) -> Text:
        """What the tail gets, after `place` has moved on."""
        policy = "surrogateescape" if self.tail.errors == "surrogateescape" else "strict"
        is_text = isinstance(chunk, str)
        data = chunk.encode("utf-8", policy) if isinstance(chunk, str) else bytes(chunk)
        place.bytes_in += len(data)
        if is_text and place.held and place.is_begun and data:
            raise UnicodeDecodeError(
                "utf-8", place.held, place.bytes_in - len(data) - len(place.held),
                place.bytes_in - len(data), "a str chunk follows bytes that end inside a character",
            )  # fmt: skip
        data = place.held + data
        place.held = b""
        if not place.is_begun and data:
            if not final and any(s.startswith(data) and s != data for s in self.specials):
                place.held = data
                return b""
            place.is_begun = True
            if self.space_first and not data.startswith(self.specials):
                place.prefix = 1
        if not final:
            size = 2 if data.endswith(_MARK[:2]) else 1 if data.endswith(_MARK[:1]) else 0
            data, place.held = data[: len(data) - size], data[len(data) - size :]
        prefix = b" " if place.prefix and place.given == 0 and (data or place.held) else b""
        at = place.given + len(prefix)
        parts = data.split(_MARK)
        for part in parts[:-1]:
            at += len(part) + 1
            place.marks.append(at - 1)
        place.given = at + len(parts[-1])
        given = prefix + b" ".join(parts)
        # As text, where it is: the tail then sees to it that no unfinished character is before it.
        return given.decode("utf-8", policy) if is_text else given

    def _original(self, offset: int) -> int:
        """The offset in the text of what the tail has at `offset`."""
        place = self.place
        marks = place.marks_gone + bisect.bisect_left(place.marks, offset)
        return offset - place.prefix + marks * (len(_MARK) - 1)

    def getstate(self) -> bytes:
        """As `Tail.getstate`."""
        p = self.place
        flags = p.prefix | p.is_begun << 1
        head = _STATE.pack(flags, p.bytes_in, p.given, p.marks_gone, len(p.marks))
        marks = struct.pack(f"<{len(p.marks)}Q", *p.marks)
        return head + marks + bytes([len(p.held)]) + p.held + self.tail.getstate()

    def setstate(self, state: bytes) -> None:
        """As `Tail.setstate`."""
        try:
            flags, bytes_in, given, gone, count = _STATE.unpack_from(state)
            at = _STATE.size
            marks = list(struct.unpack_from(f"<{count}Q", state, at))
            at += 8 * count
            size = state[at]
        except (struct.error, IndexError):
            raise StateError("the saved stream state is damaged") from None
        self.tail.setstate(state[at + 1 + size :])
        held = state[at + 1 : at + 1 + size]
        self.place = _Place(held, bool(flags & 2), flags & 1, bytes_in, given, gone, marks)


def _copied(place: _Place) -> _Place:
    return _Place(
        place.held,
        place.is_begun,
        place.prefix,
        place.bytes_in,
        place.given,
        place.marks_gone,
        list(place.marks),
    )
