"""The engine for texts that are changed before the pattern cuts them: see `stretches.py`.

A whole text is a stream of one chunk. Nearly all go the short way: the core looks for tokens, and
changes what is between them by tables of the normalizers (`normalizers/compiled.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import SpecialMatcher, Tail, bytes_of, transform, utf8_size
from ..normalizers.compiled import AT_BEGIN, AT_FIRST, compiled
from .added_tokens import Finder, can_overlap
from .chunk_text import NO_BYTES_YET, characters_of, policy_of
from .plain import PlainEngine
from .rewriting_chain import RewritingChain
from .rules import TextRules, TokenFlags
from .stretches import BEGINNING, RefusedToken, Stages, Walk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .._types import Text
    from ..normalizers import Normalizer
    from .protocol import Engine

__all__ = ["RewritingEngine", "changes_text"]

_NO_SPECIAL = SpecialMatcher([], frozenset(), ())
_NO_FLAGS = TokenFlags()
_SETTINGS_KEPT = 128  # for sets of special tokens that calls have allowed or refused


def changes_text(rules: TextRules, preferred: Sequence[tuple[str, int]]) -> bool:
    """Whether the rules need more than the core: flags of tokens, or text that is changed.

    preferred: the special and added tokens, the one that is preferred first.
    """
    if rules.normalizer == "spaces":
        return False
    if _normalizer_of(rules.normalizer) or _normalizer_of(rules.second_normalizer):
        return True
    if any(flags[1:] != _NO_FLAGS[1:] for _, flags in rules.token_flags):
        return True
    normalized = {text for text, flags in rules.token_flags if flags.normalized}
    groups: tuple[list[str], list[str]] = [], []
    for text, _ in preferred:
        groups[text in normalized].append(text)
    return can_overlap(*groups)  # or else one after the other finds the same as all at once


def _normalizer_of(normalizer: str | Normalizer | None) -> Normalizer | None:
    """None: nothing is changed."""
    if isinstance(normalizer, str):
        from ..normalizers import Form, Normalizer

        assert normalizer == "NFC"
        return Normalizer([Form("NFC")])
    return None if normalizer is None or normalizer.is_identity else normalizer


class RewritingEngine:
    """Another engine, after added tokens with flags, and normalizers."""

    def __init__(
        self, inner: Engine, rules: TextRules, preferred: Sequence[tuple[str, int]]
    ) -> None:
        """preferred: as for `changes_text`. Raises ValueError for a token that normalizes to "".

        A token whose normalized text is another one's, too, is hidden by the one preferred.
        """
        self.inner = inner
        self.normalizer = _normalizer_of(rules.normalizer)
        self.second = _normalizer_of(rules.second_normalizer)
        self.flags: Mapping[str, TokenFlags] = dict(rules.token_flags)
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

    def encode(self, text: Text, matcher: SpecialMatcher, errors: str, into: str) -> Any:
        """See `Engine`."""
        stages = self.stages(matcher, errors)
        if stages.at_once is not None and isinstance(self.inner, PlainEngine):
            found = self.inner.encode(text, matcher, errors, into, stages.at_once.transform)
            if found is not None:
                return found
        # A plain copy, once: others may write to bytes, and a derived class may have other methods.
        text = str.__str__(text) if isinstance(text, str) else bytes_of(text)
        if isinstance(text, str):
            utf8_size(text, errors == "surrogateescape")  # raises for other surrogates
        taken, characters = characters_of(NO_BYTES_YET, text, True, errors)
        walk = Walk(stages, BEGINNING)
        try:
            walk.feed(characters, True)
        except RefusedToken as refused:
            return taken.end - refused.rest, refused.text
        if isinstance(self.inner, PlainEngine):
            tail = Tail(self.inner.encoder, _NO_SPECIAL, policy_of(errors))
            return tail.encode_parts(walk.parts, True, into, None, _no_note)
        return self._encode_stretches(walk.parts, policy_of(errors), into)

    def behind(self, text: str | bytes, matcher: SpecialMatcher, errors: str) -> Engine:
        """The inner engine if `encode` gives the text to it as it is; or else this one."""
        stages = self.stages(matcher, errors)
        _, characters = characters_of(NO_BYTES_YET, text, True, errors)
        return self.inner if _is_left(stages, characters) else self

    def chain(self, matcher: SpecialMatcher, errors: str) -> RewritingChain:
        """See `Engine`."""
        stages = self.stages(matcher, errors)
        inner = self.inner.chain(stages.raw.matcher, policy_of(errors))
        return RewritingChain(inner, stages, errors)

    def stages(self, matcher: SpecialMatcher, errors: str) -> Stages:
        """The changes to a text where `matcher` says which special tokens are in it."""
        has_escapes = errors == "surrogateescape"
        stages = self._stages.get((matcher, has_escapes))
        if stages is None:
            raw, normalized = self._finders(matcher)
            both = (self.normalizer, self.second)
            at_once, tables = None, [None if one is None else compiled(one) for one in both]
            if raw.is_plain and normalized is None:
                at_once = compiled(*(one for one in both if one is not None))
            stages = Stages(raw, both[0], normalized, both[1], has_escapes, at_once, *tables)
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

    def _encode_stretches(self, parts: list[str | int | None], errors: str, into: str) -> Any:
        """The ids of parts, through an engine that has no stream."""
        from ..reference.bpe import MatchTime
        from .regex_engine import RegexEngine

        assert isinstance(self.inner, RegexEngine)
        left = MatchTime(sum(len(part) for part in parts if isinstance(part, str)))
        ids = []
        texts: list[str] = []
        for part in [*parts, None]:
            if isinstance(part, str):
                texts.append(part)
                continue
            if texts:
                ids.append(self.inner.encode("".join(texts), _NO_SPECIAL, errors, "array", left))
                texts.clear()
            if part is not None:
                ids.append(np.array([part], dtype=np.uint32))
        joined = np.concatenate(ids) if ids else np.empty(0, dtype=np.uint32)
        if into == "count":
            return len(joined)
        return joined.tolist() if into == "list" else joined


def _is_left(stages: Stages, text: str) -> bool:
    """Whether there is no token in the text, and no normalizer changes it; False proves nothing."""
    if stages.at_once is None or stages.raw.matcher.finds(text, 0, True)[1]:
        return False
    try:
        found = transform(stages.at_once.transform, text, AT_BEGIN | AT_FIRST, True, False)
    except UnicodeEncodeError:
        return False
    return found is not None and found[0] is None


def _no_note(waiting: int, taken: int) -> None:
    return None
