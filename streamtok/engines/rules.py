"""What some formats do to a text before the pattern cuts it, and tiktoken does not.

*Added tokens* are texts that always become their id, wherever they stand; special tokens do so only
where they are allowed. Where several begin at one place, the longest one wins, not the one that
tiktoken's hash table happens to prefer. *Normalizers* are in `spaces.py` and `nfc.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["MARK", "NO_RULES", "TextRules"]

MARK = "\u2581"  # what SentencePiece writes for a space


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
            raise ValueError(f'normalizer must be None, "spaces" or "NFC", not {self.normalizer!r}')
        if self.space_first and self.normalizer != "spaces":
            raise ValueError('space_first needs the normalizer "spaces"')
        return self


NO_RULES = TextRules()
