"""What some formats do to a text before the pattern cuts it, and tiktoken does not.

*Added tokens* are texts that always become their id, wherever they stand; special tokens do so only
where they are allowed. Both kinds may have *flags* (`TokenFlags`). *Normalizers* change the text
between them (`changing.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..normalizers import Normalizer

__all__ = ["MARK", "NO_RULES", "TextRules", "TokenFlags"]

MARK = "\u2581"  # what SentencePiece writes for a space


class TokenFlags(NamedTuple):
    """How a special or added token is found, as in Hugging Face's `AddedToken`."""

    normalized: bool = False  # in the normalized text, after those that are not
    lstrip: bool = False  # takes the white space before it
    rstrip: bool = False  # takes the white space after it
    single_word: bool = False  # not where it touches a word


class _Fields(NamedTuple):  # no dataclass: importing those takes longer than the rest of this file
    added_tokens: tuple[tuple[str, int], ...] = ()  # always recognised
    normalizer: Normalizer | None = None
    # Of special and of added tokens, by text; one that is not here has no flag.
    token_flags: tuple[tuple[str, TokenFlags], ...] = ()
    # What pre-tokenizers do to the text after the last added token was found in it.
    second_normalizer: Normalizer | None = None
    drops_first_space: bool = False  # decoding takes one space off the front
    # What special and added tokens decode to, if not to their own text.
    decoded_texts: tuple[tuple[str, bytes], ...] = ()
    # What ids decode to where they begin a text, if that is not what they decode to elsewhere;
    # with `drops_first_space`, less a space.
    first_texts: tuple[tuple[int, str], ...] = ()
    # With `drops_first_space`: of each id until there is text, not of the first id alone.
    drops_first_spaces: bool = False


class TextRules(_Fields):
    """What an encoding does beyond tiktoken; nothing by default. Immutable, and can be pickled."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> TextRules:
        """Args: the fields. Raises ValueError where they contradict each other."""
        self = super().__new__(cls, *args, **kwargs)
        growth = 1.0
        for normalizer in (self.normalizer, self.second_normalizer):
            growth *= normalizer.growth if normalizer else 1.0
        if growth > 1.0:
            from ..normalizers.growth import MOST_GROWTH  # most encodings need no normalizers

            if growth > MOST_GROWTH:
                raise ValueError(
                    f"the normalizer and what pre-tokenizers do could make a text grow by a factor "
                    f"of {growth:.4g} together, and at most {MOST_GROWTH} is allowed"
                )
        if len(dict(self.token_flags)) < len(self.token_flags):
            raise ValueError("token_flags has a text twice")
        return self

    def __repr__(self) -> str:
        # It goes into digests of encodings.
        shown = [
            f"{name}={getattr(value, 'spec', value)!r}"
            for name, value in self._asdict().items()
            if value != self._field_defaults[name]
        ]
        return f"TextRules({', '.join(shown)})"


NO_RULES = TextRules()
