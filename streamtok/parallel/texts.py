"""Whole texts to ids: one of any kind, many at once, a large one on several threads.

The core encodes without the GIL; which thread takes which text, or part of one, is decided as they
go (`_core`). Here are the threads themselves, and the texts that must be encoded one by one because
something about them is out of the ordinary.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._core.encode import COUNT, LIST, Batch, Cuts, LargeText, bytes_of, check_policy, size_of
from ..engines.plain import PlainEngine
from ..engines.protocol import NO_LIMIT, Engine
from ..engines.template import NO_TEMPLATE, Template
from ..errors import UnsupportedPatternError
from .cached import cached_property
from .threads import check_threads, run_in_threads, usable_cores

if TYPE_CHECKING:
    from .._core.encode import Encoder, Output, SpecialMatcher
    from .._types import AllowedSpecial, DisallowedSpecial, Text
    from ..patterns.pattern import Pattern
    from ..special_tokens import SpecialTokens

LARGE = 1 << 20  # characters or bytes of a text that is shared between threads
PART = 1 << 18  # of its parts, about: the ids of one fit into the cache of a core
PER_THREAD = 1 << 17  # characters or bytes for which it pays to start another thread


class TextEncoder:
    """Encodes whole texts of any kind, with any settings. Immutable, shared by threads."""

    def __init__(
        self,
        engine: Engine,
        encoder: Encoder,
        pattern: Pattern | None,
        specials: SpecialTokens,
        template: Template,
    ) -> None:
        """encoder, pattern: the engine's; the pattern is None if it has no tables."""
        self.engine = engine
        self.is_plain = isinstance(engine, PlainEngine)
        self.encoder = encoder
        self.pattern = pattern
        self.specials = specials
        self.template = template

    @cached_property
    def cuts(self) -> Cuts | None:
        """Where texts may be cut; None where they must not be: the pre-tokens are not known, or the
        text is changed before it is cut into pre-tokens.
        """
        if not self.is_plain:
            return None
        assert self.pattern is not None
        assert self.encoder.scanner is not None
        return Cuts(self.encoder.scanner, self.pattern.clean_cut_pairs)

    def encode(
        self,
        text: Text,
        allowed_special: AllowedSpecial,
        disallowed_special: DisallowedSpecial,
        errors: str,
        output: Output[Any],
        add_special_tokens: bool = False,
        num_threads: int = 1,
        max_tokens: int | None = None,
    ) -> Any:
        """The ids of a text, as `output` gives them. Raises as `Encoding.encode`."""
        matcher = self.specials.matcher(allowed_special, disallowed_special)
        if errors != "strict":
            check_policy(errors)
        if max_tokens is not None:
            budget = check_budget("max_tokens", max_tokens)
            template = self.template if add_special_tokens else NO_TEMPLATE
            return self._first(text, matcher, errors, budget, template)
        ids: Any = None
        if num_threads != 1 or (output is COUNT and size_of(text) >= LARGE):
            ids = self._encode_large(text, matcher, errors, output, num_threads)
        if ids is None:
            ids = self.engine.encode(text, matcher, errors, output)
        return self.template.around(ids) if add_special_tokens else ids

    def encode_batch(
        self,
        texts: Sequence[Text],
        matcher: SpecialMatcher,
        errors: str,
        num_threads: int,
        add_special_tokens: bool = False,
    ) -> list[list[int]]:
        """The ids of each text. More threads than cores are not started.

        Raises what encoding them one after the other would raise first.
        """
        n_threads = min(check_threads(num_threads), usable_cores())
        check_policy(errors)
        texts = list(texts)
        rows: list[Any] = [None] * len(texts)
        if self.cuts is not None:
            limit = LARGE if n_threads > 1 else sys.maxsize
            batch = Batch(self.encoder, matcher, texts, errors, limit)
            large = [
                self._encode_large(texts[i], matcher, errors, LIST, n_threads) for i in batch.large
            ]
            n_threads = max(1, min(n_threads, batch.size // PER_THREAD))
            batch.share(n_threads)
            run_in_threads(batch.work, n_threads, batch.stop)
            rows = batch.lists()
            for i, ids in zip(batch.large, large, strict=True):
                rows[i] = ids
        for i, ids in enumerate(rows):
            if ids is None:  # something about this text is out of the ordinary
                rows[i] = self.engine.encode(texts[i], matcher, errors, LIST)
        if add_special_tokens and self.template != NO_TEMPLATE:
            rows = [self.template.around(ids) for ids in rows]
        return rows

    def _encode_large(
        self,
        text: Text,
        matcher: SpecialMatcher,
        errors: str,
        output: Output[Any],
        num_threads: int,
    ) -> Any:
        """What `Engine.encode` gives, from several threads; None where it must be asked itself.

        That is so for texts that are small, that cannot be cut, or that may need repair. A text
        that is only counted goes in parts in one thread, too, so that no copy of all of it is
        needed.
        """
        num_threads = min(check_threads(num_threads), usable_cores())
        needs_parts = num_threads > 1 or (output is COUNT and not isinstance(text, bytes))
        if not needs_parts or size_of(text) < LARGE or self.cuts is None:
            return None
        large = LargeText(self.encoder, self.cuts, matcher, text, errors, output, PART)
        if large.n_parts < 2:
            return None
        num_threads = min(num_threads, large.n_parts)
        run_in_threads(large.work, num_threads, large.stop)
        return large.result()

    def _first(
        self, text: Text, matcher: SpecialMatcher, errors: str, budget: int, template: Template
    ) -> list[int]:
        """The first `budget` ids, or all if there are fewer. Reads no further than it must."""
        whole = text_view(text)
        ids: list[int] = []
        try:
            chain = self.engine.chain(matcher, errors)
        except UnsupportedPatternError:
            ids = self.engine.encode(text, matcher, errors, LIST)
            return [*template.before, *ids, *template.after][:budget]
        tail = chain.tail(template)
        stop, is_end = 0, False
        while len(ids) < budget and not is_end:
            start, stop = stop, stop + min(5 * (budget - len(ids)) + 64, 1 << 20)
            is_end = stop >= len(whole)
            found = chain.encode(tail, whole[start:stop], is_end, LIST, NO_LIMIT)
            ids += found
        return ids[:budget]


def text_view(text: Any) -> Any:
    """A str, bytes or a view of bytes, of which parts are taken without code of a derived class.

    Raises TypeError for everything else, and where the bytes are not contiguous.
    """
    if isinstance(text, str):
        return str.__str__(text)
    if type(text) is bytes:
        return text
    try:
        view = memoryview(text)
    except TypeError:
        kind = type(text).__name__
        raise TypeError(f"text must be str or bytes-like, not {kind}") from None
    if not view.contiguous:
        raise TypeError("text must be contiguous bytes")
    if view.ndim > 1 or view.format not in ("B", "b", "c"):
        return bytes_of(text)  # raises, where that is not said in another way only
    return view.cast("B")


def check_budget(name: str, value: Any, least: int = 0) -> int:
    """`value` as an int. Raises TypeError for no integer, ValueError below `least`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number
