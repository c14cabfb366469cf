"""Rules of some formats that tiktoken lacks; they apply before the pattern cuts a text.

*Added tokens* are texts that always become their id, wherever they occur; special tokens do so only
where they are allowed. Both kinds may have *flags* (`TokenFlags`). *Normalizers* change the text
between them (`changing.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..normalizers import Normalizer

__all__ = ["MARK", "NO_RULES", "TextRules", "TokenFlags"]

MARK = "\u2581"  # SentencePiece's replacement for a space


class TokenFlags(NamedTuple):
    """How a special or added token is found, as in Hugging Face's `AddedToken`."""

    normalized: bool = False  # found in the normalized text, after tokens without this flag
    lstrip: bool = False  # includes the white space before it
    rstrip: bool = False  # includes the white space after it
    single_word: bool = False  # not found where it touches a word


class _Fields(NamedTuple):  # not a dataclass: `dataclasses` is slow to import
    added_tokens: tuple[tuple[str, int], ...] = ()  # always recognized
    normalizer: Normalizer | None = None
    # By text of special and added tokens; a token that is not listed has no flags.
    token_flags: tuple[tuple[str, TokenFlags], ...] = ()
    # Changes by pre-tokenizers, made after all added tokens have been found.
    second_normalizer: Normalizer | None = None
    drops_first_space: bool = False  # decoding removes one space at the start
    # What special and added tokens decode to, if not to their own text.
    decoded_texts: tuple[tuple[str, bytes], ...] = ()
    # What ids decode to at the start of a text, where this differs from their usual text (with
    # `drops_first_space`: from their usual text without its first space).
    first_texts: tuple[tuple[int, str], ...] = ()
    # With `drops_first_space`: from each id until there is text, not only from the first id.
    drops_first_spaces: bool = False


class TextRules(_Fields):
    """Rules of an encoding beyond tiktoken's; none by default. Immutable, and can be pickled."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> TextRules:
        """Args: the fields. Raises ValueError if normalizers could make a text too long, or if
        `token_flags` lists a token twice.
        """
        self = super().__new__(cls, *args, **kwargs)
        growth = 1.0
        for normalizer in (self.normalizer, self.second_normalizer):
            growth *= normalizer.growth if normalizer else 1.0
        if growth > 1.0:
            from ..normalizers.growth import MOST_GROWTH  # most encodings need no normalizers

            if growth > MOST_GROWTH:
                raise ValueError(
                    f"the normalizer and the pre-tokenizers could make a text grow by a factor of "
                    f"{growth:.4g} together, and at most {MOST_GROWTH} is allowed"
                )
        if len(dict(self.token_flags)) < len(self.token_flags):
            raise ValueError("token_flags has a text twice")
        return self

    def __repr__(self) -> str:
        # Digests of encodings contain it.
        shown = [
            f"{name}={getattr(value, 'spec', value)!r}"
            for name, value in self._asdict().items()
            if value != self._field_defaults[name]
        ]
        return f"TextRules({', '.join(shown)})"


NO_RULES = TextRules()
