"""Encode whole texts: one of any kind, a batch, or a large one on several threads.

The core encodes without the GIL. Threads take texts, or parts of them, as they become free
(`_core/texts/work_list.pxi`). This module starts the threads.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import ARRAY, COUNT, LIST, Cuts, WorkList, bytes_of, check_policy, size_of
from ..threads import cached_property, check_threads, run_in_threads, usable_cores
from .plain import PlainEngine
from .protocol import NO_LIMIT, Engine
from .template import NO_TEMPLATE, Template

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._core.encode import ChangeRules, Encoder, Output, SpecialMatcher, Tail
    from .._types import AllowedSpecial, DisallowedSpecial, IdArray, Text
    from ..patterns.pattern import Pattern
    from ..special_tokens import SpecialTokens

LARGE = 1 << 20  # characters or bytes from which a text is split among threads
PART = 1 << 18  # approximate size of the parts; the ids of each fit into a core's cache
PER_THREAD = 1 << 17  # characters or bytes that make it worth starting another thread


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
        self.is_direct = pattern is not None  # the core encodes whole texts by itself
        self.encoder = encoder
        self.pattern = pattern
        self.specials = specials
        self.template = template

    @cached_property
    def cuts(self) -> Cuts | None:
        """Finds offsets at which texts may be split; None if they must not be split, because their
        pre-tokens are unknown or texts are changed first.
        """
        return self._pattern_cuts if self.is_plain else None

    @cached_property
    def _pattern_cuts(self) -> Cuts:
        """Finds offsets at which text may be split before it reaches the pattern."""
        assert self.pattern is not None
        assert self.encoder.scanner is not None
        return Cuts(self.encoder.scanner, self.pattern.clean_cut_pairs)

    def rules(
        self, allowed_special: AllowedSpecial, disallowed_special: DisallowedSpecial
    ) -> ChangeRules:
        """How the core changes a text before encoding it; used only if `is_direct`."""
        return self.engine.rules(self.specials.matcher(allowed_special, disallowed_special))

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
        """The ids of a text in the form of `output`. Raises what `Encoding.encode` raises."""
        matcher = self.specials.matcher(allowed_special, disallowed_special)
        if errors != "strict":
            check_policy(errors)
        if max_tokens is not None:
            budget = check_budget("max_tokens", max_tokens)
            template = self.template if add_special_tokens else NO_TEMPLATE
            tail = self.engine.tail(matcher, errors, template)
            return first_ids(text_view(text), tail, budget)
        if num_threads != 1 or (output is COUNT and size_of(text) >= LARGE):
            ids = self._encode_large(text, matcher, errors, output, num_threads)
        else:
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
        """The ids of each text. At most one thread is started for each core.

        Raises the error that encoding the texts in order would raise first.
        """
        n_threads = min(check_threads(num_threads), usable_cores())
        check_policy(errors)
        texts = list(texts)
        if self.is_direct:
            rows = self._encode_all(texts, matcher, errors, n_threads)
        else:
            rows = [self.engine.encode(text, matcher, errors, LIST) for text in texts]
        if add_special_tokens and self.template != NO_TEMPLATE:
            rows = [self.template.around(ids) for ids in rows]
        return rows

    def encode_flat(
        self, texts: Sequence[Text], matcher: SpecialMatcher, errors: str, num_threads: int
    ) -> tuple[IdArray, npt.NDArray[np.int64]]:
        """The ids of all texts, concatenated, and the end of each text's ids."""
        n_threads = min(check_threads(num_threads), usable_cores())
        if self.is_direct:
            ids, ends, _ = self._work_list(texts, matcher, errors, ARRAY, n_threads).flat()
            return ids, ends
        rows = [self.engine.encode(text, matcher, errors, ARRAY) for text in texts]
        return np.concatenate(rows), np.cumsum([len(row) for row in rows], dtype=np.int64)

    def _work_list(
        self,
        texts: Sequence[Text],
        matcher: SpecialMatcher,
        errors: str,
        output: Output[Any],
        n_threads: int,
        cuts: Cuts | None = None,
    ) -> WorkList:
        """A finished work list."""
        how = errors, output, n_threads, (PART, PER_THREAD), cuts
        work = WorkList(self.encoder, self.engine.rules(matcher), list(texts), *how)
        run_in_threads(work.work, min(work.n_threads, work.n_runs), work.stop)
        return work

    def _encode_all(
        self, texts: list[Text], matcher: SpecialMatcher, errors: str, n_threads: int
    ) -> list[list[int]]:
        """The ids of each text; each large text is split among all threads."""
        large = []
        if n_threads > 1:
            large = [i for i, text in enumerate(texts) if size_of(text) >= LARGE]
        rows: list[list[int]] = []
        begin = 0
        for i in [*large, len(texts)]:
            if i > begin:
                some = texts[begin:i]
                rows += self._work_list(some, matcher, errors, LIST, n_threads).lists()
            if i < len(texts):
                rows.append(self._encode_large(texts[i], matcher, errors, LIST, n_threads))
            begin = i + 1
        return rows

    def _encode_large(
        self,
        text: Text,
        matcher: SpecialMatcher,
        errors: str,
        output: Output[Any],
        num_threads: int,
    ) -> Any:
        """The ids of a text; several threads encode the parts of a large one.

        If ids are only counted, one thread also works in parts, to avoid a copy of the whole text.
        """
        n_threads = min(check_threads(num_threads), usable_cores())
        needs_parts = n_threads > 1 or (output is COUNT and not isinstance(text, bytes))
        needs_parts = needs_parts and self.is_direct and size_of(text) >= LARGE
        if needs_parts and self.engine.rules(matcher).can_cut:
            cuts = self._pattern_cuts
            return self._work_list([text], matcher, errors, output, n_threads, cuts).result()
        return self.engine.encode(text, matcher, errors, output)


def first_ids(whole: Any, tail: Tail, budget: int) -> list[int]:
    """The first `budget` ids of a text or a Prompt, or all if there are fewer. tail: a new one.

    Reads little more text than needed.
    """
    ids: list[int] = []
    stop, is_end = 0, False
    while len(ids) < budget and not is_end:
        start, stop = stop, stop + min(5 * (budget - len(ids)) + 64, 1 << 20)
        is_end = stop >= len(whole)
        found = tail.encode(whole[start:stop], is_end, LIST, NO_LIMIT)
        ids += found
    return ids[:budget]


def text_view(text: Any) -> Any:
    """A str, bytes or a view of bytes that can be sliced without calling code of a derived class.

    Raises TypeError for other types, and for bytes that are not contiguous.
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
        return bytes_of(text)  # raises if the items are not bytes
    return view.cast("B")


def check_budget(name: str, value: Any, least: int = 0) -> int:
    """`value` as an int. Raises TypeError if it is not an integer, and ValueError if it is below
    `least`.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number
