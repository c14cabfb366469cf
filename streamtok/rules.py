"""What some formats do to a text before it is cut into pieces, and tiktoken does not.

*Added tokens*: texts that always become their id, wherever they stand; special tokens do so only
where they are allowed. Where several begin at one place, the longest is meant, not the one that
tiktoken's hash table happens to prefer.

*Spaces*, as SentencePiece has them: U+2581 stands for a space, so that both are the same to the
vocabulary, and a space is put before the text unless it is empty (or begins with an allowed special
token, which SentencePiece does not know in texts). Decoding takes one space off the front again.

*NFC*, as Hugging Face's Qwen has it: what lies between special and added tokens is normalised. Only
in whole texts: what a stream would have to hold back is not worked out here.

How spaces are treated in a stream is in `space_tail.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import surrogates
from ._core.encode import SpecialMatcher, bytes_of
from .errors import UnsupportedStreamError

if TYPE_CHECKING:
    from ._core.encode import Tail
    from .encoding import Encoding, Text

__all__ = ["MARK", "NO_RULES", "TextRules"]

MARK = "\u2581"
_MARK = MARK.encode()


class _Fields(NamedTuple):  # no dataclass: importing those takes longer than the rest of this file
    added_tokens: tuple[tuple[str, int], ...] = ()  # always recognised
    longest_first: bool = False
    normalizer: str | None = None  # None, "spaces" or "NFC"
    space_first: bool = False  # a space before the text; only with "spaces"


class TextRules(_Fields):
    """What an encoding does beyond tiktoken; nothing by default. Immutable, and can be pickled."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> TextRules:
        """Args: the fields. Raises ValueError where they contradict each other."""
        self = super().__new__(cls, *args, **kwargs)
        if self.normalizer not in (None, "spaces", "NFC"):
            raise ValueError(f"there is no normalizer {self.normalizer!r}")
        if self.space_first and self.normalizer != "spaces":
            raise ValueError('space_first needs the normalizer "spaces"')
        return self

    def whole(self, text: Text, allowed: Iterable[str]) -> Text:
        """A whole text as the vocabulary sees it; for "spaces" only."""
        if isinstance(text, str):
            is_special = text.startswith(tuple(allowed))
            text = text.replace(MARK, " ")
            return " " + text if self.space_first and text and not is_special else text
        data = bytes_of(text)
        is_special = data.startswith(tuple(special.encode() for special in allowed))
        data = data.replace(_MARK, b" ")
        return b" " + data if self.space_first and data and not is_special else data

    def original_offset(self, text: Text, offset: int, allowed: Iterable[str]) -> int:
        """Where in a text is what stands at byte `offset` of `whole` of it; for "spaces" only."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes_of(text)
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
        from .space_tail import SpaceTail

        return SpaceTail(tail, tuple(text.encode() for text in allowed), self.space_first)


NO_RULES = TextRules()
NOTHING = SpecialMatcher([], frozenset(), ())


def run_normalized(
    encoding: Encoding, text: Text, matcher: SpecialMatcher, errors: str, into: str, *, repair: bool
) -> Any:
    """The ids of a whole text, for an encoding with a normalizer; as `Encoding._run`."""
    rules = encoding._rules
    # A plain copy, once: others may write to bytes, and a derived class may have other methods.
    text = str.__str__(text) if isinstance(text, str) else bytes_of(text)
    if rules.normalizer == "NFC":
        return _run_nfc(encoding, text, matcher, errors, into, repair=repair)
    allowed = allowed_specials(encoding, matcher)
    seen = rules.whole(text, allowed)

    def original(offset: int) -> int:
        return rules.original_offset(text, offset, allowed)

    try:
        return encoding._run_plain(seen, matcher, errors, into, repair=repair, original=original)
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
    import unicodedata

    whole = text if isinstance(text, str) else bytes(text).decode("utf-8", errors)
    if unicodedata.is_normalized("NFC", whole):  # and so is every part of it
        return encoding._run_plain(text, matcher, errors, into, repair=repair)
    policy = "surrogateescape" if errors == "surrogateescape" else "strict"
    try:
        data = whole.encode("utf-8", policy)
    except UnicodeEncodeError:
        if not repair or policy != "strict":
            raise
        whole = surrogates.repair(whole, errors)
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
