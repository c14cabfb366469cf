"""What an `Encoding` has, as streams and answers use it, and how its engine is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from .engines.model_settings import ModelSettings
from .engines.plain import PlainEngine
from .engines.rules import NO_RULES, TextRules
from .engines.template import Template
from .errors import UnsupportedPatternError

if TYPE_CHECKING:
    from ._core.encode import Cuts, Decoder, Encoder, SpecialMatcher, TokenTable
    from ._types import AllowedSpecial, DisallowedSpecial, IdArray
    from .engines.protocol import Chain, Engine
    from .engines.token_sizes import TokenSizes
    from .engines.trace import Tracer
    from .patterns.pattern import Pattern
    from .special_tokens import SpecialTokens
    from .vocabulary.table import Vocabulary

__all__ = ["EncodingDefinition", "make_engine", "pretoken_spans"]


class EncodingDefinition(Protocol):
    """What an `Encoding` has."""

    name: str
    _pat_str: str
    _vocabulary: Vocabulary
    _specials: SpecialTokens
    _rules: TextRules
    _template: Template
    _engine: Engine  # text to ids
    _is_plain: bool  # whether the engine gives text to the core as it is
    _encoder: Encoder  # pre-tokens to ids
    _table: TokenTable
    _decoder: Decoder  # ids to bytes

    @property
    def digest(self) -> str: ...
    @property
    def pattern(self) -> Pattern | None: ...
    @property
    def _cuts(self) -> Cuts | None: ...
    @property
    def _token_sizes(self) -> TokenSizes: ...
    def _matcher(
        self, allowed: AllowedSpecial, disallowed: DisallowedSpecial, /
    ) -> SpecialMatcher: ...
    def _tracer(self, chain: Chain, errors: str, template: Template = ...) -> Tracer: ...
    def decode_bytes(self, tokens: Iterable[int] | IdArray) -> bytes: ...


def pretoken_spans(
    encoding: EncodingDefinition, text: str, until: int | None = None
) -> Iterable[tuple[int, int]]:
    """Where the pre-tokens of a text are, in characters. until: as for `Automaton.spans`."""
    if encoding.pattern is not None:
        return encoding.pattern.spans(text, until)
    from .reference.bpe import match_spans

    return match_spans(encoding._pat_str, text)


def make_engine(
    encoder: Encoder,
    pat_str: str,
    unsupported: UnsupportedPatternError | None,
    rules: TextRules,
    specials: SpecialTokens,
) -> Engine:
    """Text to ids. unsupported: why the pattern has no tables, if so.

    Raises PatternError, also for a pattern without tables where text is changed before it is cut.
    """
    # Engines that few encodings have are imported where they are needed: `regex` alone takes
    # longer to import than all of this package.
    if rules != NO_RULES:
        from .engines.rewriting import RewritingEngine, changes_text

        if changes_text(rules, specials.preferred):
            if unsupported is not None:
                raise UnsupportedPatternError(
                    f"{unsupported}: it can cut texts, but not after a normalizer, or after added "
                    "tokens with flags",
                    construct=unsupported.construct, position=unsupported.position,
                )  # fmt: skip
            return RewritingEngine(encoder, rules, specials.preferred)
    if unsupported is not None:
        from .engines.whole_texts import WholeTextEngine

        return WholeTextEngine(encoder, pat_str, unsupported)
    return PlainEngine(encoder)


def _rebuilt(
    kind: Any,
    name: str,
    pat_str: str | Pattern,
    mergeable_ranks: Vocabulary,
    special_tokens: dict[str, int],
    rules: TextRules,
    template: Template,
    settings: ModelSettings,
) -> Any:
    """The `Encoding` that a pickle describes."""
    made = kind(
        name,
        pat_str=pat_str,
        mergeable_ranks=mergeable_ranks,
        special_tokens=special_tokens,
        rules=rules,
        template=template,
    )
    made._model_settings = settings
    return made
