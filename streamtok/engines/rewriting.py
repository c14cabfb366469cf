"""The engine for texts that are changed before the pattern cuts them: see `stretches.py`.

A whole text is a stream of one chunk. Most texts have no added token, and nothing that a normalizer
would change: they go to the engine behind this one as they are.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import SpecialMatcher, Tail, bytes_of, utf8_size
from .added_tokens import Finder, can_overlap
from .chunk_text import NO_BYTES_YET, characters_of, policy_of
from .plain import PlainEngine
from .rewriting_chain import RewritingChain
from .rules import TextRules, TokenFlags
from .shortcut import path_of, shortcut_of
from .stretches import BEGINNING, RefusedToken, Stages, Walk
from .template import NO_TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .._core.encode import Untouched
    from .._types import Text
    from ..normalizers import Form, Normalizer
    from .protocol import Engine

__all__ = ["RewritingEngine", "changes_text"]

_NO_SPECIAL = SpecialMatcher([], frozenset(), ())
_NO_FLAGS = TokenFlags()
_BLOCK = 1 << 16  # characters
_SMALL_BLOCK = 1 << 11
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
    """Another engine, behind added tokens with flags, and normalizers."""

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
        # A plain copy, once: others may write to bytes, and a derived class may have other methods.
        text = str.__str__(text) if isinstance(text, str) else bytes_of(text)
        stages = self.stages(matcher, errors)
        shortcut = stages.shortcut
        if shortcut and shortcut.begins_plain:
            found = self._encode_left(text, matcher, errors, into, shortcut.untouched)
            if found is not None:
                return found
        if isinstance(text, str):
            utf8_size(text, errors == "surrogateescape")  # raises for other surrogates
        taken, characters = characters_of(NO_BYTES_YET, text, True, errors)
        if shortcut and len(characters) > _BLOCK and isinstance(self.inner, PlainEngine):
            form = self.normalizer.only_form if self.normalizer else None
            has_more = stages.normalized is not None or stages.second is not None
            if form is None or has_more or stages.raw.matcher.finds(characters, 0, True)[1]:
                return self._encode_blocks(characters, matcher, errors, into, shortcut.untouched)
            changed = _changed(characters, form, shortcut.untouched)
            return self.inner.encode(changed, _NO_SPECIAL, policy_of(errors), into)
        if _is_left(stages, characters):
            return self.inner.encode(characters, _NO_SPECIAL, policy_of(errors), into)
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
        shortcut = stages.shortcut
        if shortcut and shortcut.begins_plain and shortcut.untouched.is_all_of(text):
            return self.inner
        _, characters = characters_of(NO_BYTES_YET, text, True, errors)
        return self.inner if _is_left(stages, characters) else self

    def chain(self, matcher: SpecialMatcher, errors: str) -> RewritingChain:
        """See `Engine`."""
        stages = self.stages(matcher, errors)
        inner = self.inner.chain(stages.raw.matcher, policy_of(errors))
        return RewritingChain(inner, stages, errors)

    def stages(self, matcher: SpecialMatcher, errors: str) -> Stages:
        """What is done to a text where `matcher` says which special tokens are in it."""
        has_escapes = errors == "surrogateescape"
        stages = self._stages.get((matcher, has_escapes))
        if stages is None:
            raw, normalized = self._finders(matcher)
            how = shortcut_of(raw, self.normalizer, normalized, self.second)
            path = path_of(how, raw, self.normalizer) if how and how.begins_plain else None
            stages = Stages(raw, self.normalizer, normalized, self.second, has_escapes, how, path)
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

    def _encode_left(
        self, text: Text, matcher: SpecialMatcher, errors: str, into: str, untouched: Untouched
    ) -> Any:
        """The ids of a text that is left as it is, or else None."""
        if isinstance(self.inner, PlainEngine) and errors != "surrogateescape":
            return self.inner.encode(text, matcher, errors, into, untouched)
        if not untouched.is_all_of(text):
            return None
        return self.inner.encode(text, matcher, errors, into)

    def _encode_blocks(
        self, text: str, matcher: SpecialMatcher, errors: str, into: str, untouched: Untouched
    ) -> Any:
        """The ids of a long text, block by block, so that most of it takes the short way."""
        chain = self.chain(matcher, errors)
        tail = chain.tail(NO_TEMPLATE)
        no_limit = 4 * len(text)  # bytes: all of it may wait
        found = []
        for block in (*_blocks(text, untouched), ""):
            ids = chain.encode(tail, block, not block, into, None, no_limit)
            if type(ids) is tuple:
                return ids
            found.append(ids)
        if into == "count":
            return sum(found)
        return (
            list(itertools.chain.from_iterable(found)) if into == "list" else np.concatenate(found)
        )

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
    """Whether there is no token in the text, and no normalizer changes it."""
    if stages.raw.matcher.finds(text, 0, True)[1]:
        return False
    if stages.normalizer is not None and not stages.normalizer.leaves(text):
        return False
    if stages.normalized is not None and stages.normalized.matcher.finds(text, 0, True)[1]:
        return False
    return stages.second is None or stages.second.leaves(text)


def _blocks(text: str, untouched: Untouched) -> Iterator[str]:
    """A text in blocks, short ones where something may be changed."""
    for at in range(0, len(text), _BLOCK):
        block = text[at : at + _BLOCK]
        size = _BLOCK if untouched.parts_of(block) else _SMALL_BLOCK
        for start in range(0, len(block), size):
            yield block[start : start + size]


def _changed(text: str, form: Form, untouched: Untouched) -> str:
    """A long text, normalized in blocks, most of which are left as they are."""
    parts = []
    at = 0
    while at < len(text):
        end = form.next_border(text, at + _BLOCK)
        block = text[at:end]
        if untouched.is_all_of(block):
            parts.append(block)
            at = end
        while at < end:
            stop = min(end, form.next_border(text, at + _SMALL_BLOCK))
            block = text[at:stop]
            parts.append(block if untouched.is_all_of(block) else form.normalize(block, False))
            at = stop
    return "".join(parts)


def _no_note(waiting: int, taken: int) -> None:
    return None
