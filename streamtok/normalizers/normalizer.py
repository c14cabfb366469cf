"""A sequence of normalization steps."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from .._core.encode import check_special_size
from ..errors import VocabularyError
from ..patterns.budget import shortened
from . import characters
from .edges import JoinedSpaces, MetaspaceText, Prepend, Strip
from .forms import Form
from .growth import MOST_GROWTH, growth_of, n_bytes
from .longest_map import LongestMap
from .precompiled import Precompiled
from .replace import Replace, ReplaceRuns, UnknownRuns
from .step import BEGIN, END, FIRST, WHOLE, Step

__all__ = ["Normalizer"]

_KINDS: dict[str, Callable[..., Step]] = {
    kind.__name__: kind  # the first item of a step's `spec`
    for kind in (
        *(characters.BertAccents, characters.BertChinese, characters.BertClean),
        *(characters.ByteLetters, characters.Lowercase, characters.Nmt, characters.StripAccents),
        *(JoinedSpaces, LongestMap, MetaspaceText, Precompiled),
        *(Prepend, Replace, ReplaceRuns, Strip, UnknownRuns),
    )
} | {form: partial(Form, form) for form in ("NFC", "NFD", "NFKC", "NFKD")}

MOST_TOKENS = 1 << 24  # bytes of a vocabulary's added tokens, normalized


class Normalizer:
    """Steps, applied in order. Immutable; compared and hashed by its `spec`; can be pickled.

    True if it has steps, which may change a text.

    >>> from streamtok.normalizers import Normalizer, Replace
    >>> normalizer = Normalizer([Replace("--", "—")])
    >>> normalizer.normalize("a--b")
    'a—b'
    """

    __slots__ = ("growth", "spec", "steps")

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        """Raises ValueError for steps that could make a text more than MOST_GROWTH times as long.

        `growth` is the maximum number of bytes that one byte of a segment becomes.
        """
        self.steps: Sequence[Step] = tuple(steps)
        self.spec: tuple[Any, ...] = tuple(step.spec for step in self.steps)
        self.growth = growth_of([step.growth for step in self.steps])
        if self.growth > MOST_GROWTH:
            index, worst = max(enumerate(self.steps), key=lambda item: growth_of([item[1].growth]))
            raise ValueError(
                f"a text could grow by a factor of {self.growth:.4g}, and at most {MOST_GROWTH} is "
                f"allowed: of the {len(self.steps)} steps, number {index + 1}, "
                f"{shortened(reprlib.repr(worst.spec))}, adds the most, "
                f"a factor of {growth_of([worst.growth]):.4g}"
            )

    @classmethod
    def from_spec(cls, spec: tuple[Any, ...]) -> Normalizer:
        """The normalizer with this `spec`. Raises VocabularyError for an unknown step."""
        for name, *_ in spec:
            if name not in _KINDS:
                raise VocabularyError(f"unknown step {name!r} of a normalizer")
        return cls(_KINDS[name](*settings) for name, *settings in spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Normalizer.from_spec, (self.spec,)

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Normalizer) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        return f"Normalizer{self.spec!r}"

    def normalize_tokens(self, texts: Iterable[str], is_first: bool) -> list[str]:
        """Normalize tokens of a vocabulary. Raises ValueError if the results are too long."""
        found: list[str] = []
        total = 0
        for text in texts:
            found.append(self.normalize(text, is_first))
            check_special_size(found[-1].encode("utf-8", "surrogatepass"))
            total += n_bytes(found[-1])
            if total > MOST_TOKENS:
                raise ValueError(
                    f"the tokens are too long together: once normalized, they have more than "
                    f"{MOST_TOKENS >> 20} MiB"
                )
        return found

    def normalize(self, text: str, is_first: bool = True) -> str:
        """The result for a whole segment. is_first: whether it is the first of its stream."""
        return self.apply(text, BEGIN | FIRST * is_first | END)

    def apply(self, text: str, where: int = WHOLE) -> str:
        """The result for a segment, or for the part of one that `where` says: see `Step`.

        Nothing is remembered between calls, so a text must begin and end at borders of all steps.
        """
        for step in self.steps:
            text = step.apply(text, where)
        return text
