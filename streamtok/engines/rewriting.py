"""The engine for texts that are changed before the pattern cuts them: see `stretches.py`.

A whole text is a stream of one chunk. Nearly all go the short way: the core looks for tokens, and
changes what is between them by tables of the normalizers (`normalizers/compiled.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import ARRAY, SpecialMatcher, transform
from ..normalizers.compiled import AT_BEGIN, AT_FIRST, Changed, compiled
from .added_tokens import Finder, can_overlap
from .chunk_text import NO_BYTES_YET, characters_of, policy_of
from .protocol import NO_LIMIT
from .rewriting_chain import RewritingChain
from .rules import MARK, TextRules, TokenFlags
from .stretches import Stages
from .template import NO_TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._core.encode import Encoder, Output
    from .._types import IdArray, Text
    from ..normalizers import Normalizer
    from .protocol import Chain

__all__ = ["RewritingEngine", "changes_text"]

_NO_SPECIAL = SpecialMatcher([], frozenset(), ())
_NO_FLAGS = TokenFlags()
_NO_ROWS = np.empty((0, 3), np.int64)
_SETTINGS_KEPT = 128  # for sets of special tokens that calls have allowed or refused


def changes_text(rules: TextRules, preferred: Sequence[tuple[str, int]]) -> bool:
    """Whether the rules need more than the core: flags of tokens, or text that is changed.

    preferred: the special and added tokens, the one that is preferred first.
    """
    if _normalizer_of(rules.normalizer) or _normalizer_of(rules.second_normalizer):
        return True
    if any(flags[1:] != _NO_FLAGS[1:] for _, flags in rules.token_flags):
        return True
    normalized = {text for text, flags in rules.token_flags if flags.normalized}
    groups: tuple[list[str], list[str]] = [], []
    for text, _ in preferred:
        groups[text in normalized].append(text)
    return can_overlap(*groups)  # or else one after the other finds the same as all at once


def _normalizer_of(
    normalizer: str | Normalizer | None, space_first: bool = False
) -> Normalizer | None:
    """None: nothing is changed. space_first: with "spaces", one is put before the text."""
    if isinstance(normalizer, str):
        from ..normalizers import Form, Normalizer, Prepend, Replace

        if normalizer == "NFC":
            return Normalizer([Form("NFC")])
        assert normalizer == "spaces"
        # U+2581 stands for a space, so that both are the same to the vocabulary.
        spaces = Replace(MARK, " ")
        return Normalizer([spaces, Prepend(" ", True)] if space_first else [spaces])
    return None if normalizer is None or normalizer.is_identity else normalizer


class RewritingEngine:
    """The core's `Encoder`, after added tokens with flags, and normalizers."""

    def __init__(
        self, encoder: Encoder, rules: TextRules, preferred: Sequence[tuple[str, int]]
    ) -> None:
        """preferred: as for `changes_text`. Raises ValueError for a token that normalizes to "".

        A token whose normalized text is another one's, too, is hidden by the one preferred.
        """
        self.encoder = encoder
        self.normalizer = _normalizer_of(rules.normalizer, rules.space_first)
        self.second = _normalizer_of(rules.second_normalizer)
        self.flags: Mapping[str, TokenFlags] = dict(rules.token_flags)
        if rules.normalizer == "spaces":  # SentencePiece finds its symbols in the changed text
            self.flags = {text: TokenFlags(normalized=True) for text, _ in rules.added_tokens}
        self.tokens = preferred
        normalized: dict[str, tuple[str, int]] = {}
        changed = [token for token in preferred if self._flags_of(token[0]).normalized]
        results = [text for text, _ in changed]
        if self.normalizer:
            results = self.normalizer.normalize_tokens(results, False)
        for found, (text, id) in zip(results, changed, strict=True):
            if not found:
                raise ValueError(
                    f"the added token {text!r} is empty once it is normalized, so it is "
                    "everywhere; it must not be `normalized`"
                )
            normalized.setdefault(found, (text, id))
        # By normalized text, the longest first.
        self.normalized = sorted(normalized.items(), key=lambda item: -len(item[0].encode()))
        self._stages: dict[tuple[SpecialMatcher, bool], Stages] = {}

    def encode(self, text: Text, matcher: SpecialMatcher, errors: str, output: Output[Any]) -> Any:
        stages = self.stages(matcher, errors)
        if stages.at_once is not None:
            transform, inner = stages.at_once.transform, stages.inner
            found = self.encoder.encode(text, stages.raw.matcher, errors, output, transform, inner)
            if found is not None:
                return found
        chain = RewritingChain(self.encoder, stages, errors)  # a stream of one chunk
        return chain.encode(chain.tail(NO_TEMPLATE), text, True, output, NO_LIMIT)

    def changed(self, text: str | bytes, matcher: SpecialMatcher, errors: str) -> Changed | None:
        """What the core encodes instead of a whole text, with rows unless it is the text itself.
        None: there may be tokens in it, or no table does it.
        """
        stages = self.stages(matcher, errors)
        table = stages.at_once
        _, characters = characters_of(NO_BYTES_YET, text, True, errors)
        if table is None or stages.raw.matcher.finds(characters, 0, True)[1]:
            return None
        where, rows = AT_BEGIN | AT_FIRST, _NO_ROWS
        # The second of two normalizers may change back what the first has changed, and the rows of
        # both together may not be those of one after the other: each must leave the text.
        is_one = len(table.inside) == 1
        for one in (table,) if is_one else (stages.first_table, stages.second_table):
            found = one and transform(one.transform, characters, where, True, False)
            if found is None or (found[0] is not None and not is_one):
                return None
        if found is not None and found[0] is not None:
            if stages.has_escapes:
                return None
            found = transform(table.transform, characters, where, True, True)
        if found is None:
            return None
        if found[2] is not None:
            rows = np.frombuffer(found[2], np.int64).reshape(-1, 3)
        result = characters if found[0] is None else found[0].decode()
        if stages.inner is not None and stages.inner.finds(result, 0, True)[1]:
            return None
        return Changed(result, rows, 0)

    def encode_changed(self, text: str, errors: str) -> IdArray:
        """The ids of what `changed` gave."""
        return self.encoder.encode(text, _NO_SPECIAL, policy_of(errors), ARRAY)

    def chain(self, matcher: SpecialMatcher, errors: str) -> Chain:
        return RewritingChain(self.encoder, self.stages(matcher, errors), errors)

    def stages(self, matcher: SpecialMatcher, errors: str) -> Stages:
        """The changes to a text where `matcher` says which special tokens are in it."""
        has_escapes = errors == "surrogateescape"
        stages = self._stages.get((matcher, has_escapes))
        if stages is None:
            raw, normalized = self._finders(matcher)
            both = (self.normalizer, self.second)
            tables = [None if one is None else compiled(one) for one in both]
            at_once = inner = None
            if normalized is not None and normalized.is_plain and both[1] is None:
                inner = normalized.matcher
            if raw.is_plain and (normalized is None or inner is not None):
                at_once = compiled(*(one for one in both if one is not None))
            stages = Stages(
                raw, both[0], normalized, both[1], has_escapes, at_once, tables[0], tables[1], inner
            )
            if len(self._stages) >= _SETTINGS_KEPT:
                self._stages.clear()
            self._stages[matcher, has_escapes] = stages
        return stages

    def _flags_of(self, text: str) -> TokenFlags:
        return self.flags.get(text, _NO_FLAGS)

    def _finders(self, matcher: SpecialMatcher) -> tuple[Finder, Finder | None]:
        allowed, refused = matcher.allowed, matcher.disallowed
        if not self.normalized:
            raw = matcher
        else:
            tokens = [(text, id) for text, id in self.tokens if not self._flags_of(text).normalized]
            raw = SpecialMatcher(tokens, allowed, refused)
        ids = dict(self.tokens)
        finder = Finder(raw, [(ids[text], self._flags_of(text)) for text in raw.specials])
        if not self.normalized:
            return finder, None
        known = {found: token for found, token in self.normalized}
        inside = SpecialMatcher(
            [(found, id) for found, (_, id) in self.normalized],
            frozenset(found for found, (text, _) in self.normalized if text in allowed),
            frozenset(found for found, (text, _) in self.normalized if text in refused),
        )
        second = Finder(
            inside,
            [(known[found][1], self._flags_of(known[found][0])) for found in inside.specials],
        )
        return finder, None if second.is_empty else second
