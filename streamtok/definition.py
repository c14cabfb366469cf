"""The parts of an `Encoding` that streams, answers and formats use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ._core.encode import Decoder, Encoder, Scanner, TokenTable
from .engines.model_settings import NO_SETTINGS, ModelSettings
from .engines.plain import PlainEngine
from .engines.rules import NO_RULES, TextRules
from .engines.template import Template
from .engines.texts import TextEncoder
from .engines.token_sizes import TokenSizes
from .engines.trace import Tracer
from .errors import UnsupportedPatternError, VocabularyError
from .patterns.pattern import Pattern
from .special_tokens import SpecialTokens
from .threads import cached_property
from .vocabulary.table import Vocabulary

if TYPE_CHECKING:
    from ._types import IdArray
    from .engines.prompt_encoder import PromptEncoder
    from .engines.protocol import Engine

__all__ = ["Defined", "Definition"]


class Definition:
    """The parts of an `Encoding`. Immutable, except for `model_settings`, which loaders set."""

    model_settings: ModelSettings = NO_SETTINGS

    def __init__(
        self,
        name: str,
        pat_str: str | Pattern,
        vocabulary: Vocabulary,
        special_tokens: Mapping[str, int],
        rules: TextRules,
        template: Template,
        control_tokens: Iterable[str] | None,
    ) -> None:
        """Arguments and errors as for `Encoding`."""
        self.name = name
        self.pat_str: str = pat_str.source if isinstance(pat_str, Pattern) else pat_str
        self.vocabulary = vocabulary
        self.rules = rules
        self.template = template
        self.specials = specials = SpecialTokens(special_tokens, dict(rules.added_tokens))
        self._given_control = None if control_tokens is None else frozenset(control_tokens)
        if strange := (self._given_control or frozenset()) - specials.every.keys():
            raise ValueError(f"{min(strange)!r} is neither a special token nor an added token")
        self.table = TokenTable(
            vocabulary.tokens,
            vocabulary.offsets,
            vocabulary.ids,
            vocabulary.lefts,
            vocabulary.byte_ids,
            vocabulary.ties,
            vocabulary.parts,
            None if vocabulary.model is None else vocabulary.model.core,
        )
        decoded = {text: text.encode() for text in specials.every} | dict(rules.decoded_texts)
        added = {id: decoded[text] for text, id in specials.added.items()}
        self.decode_only = {**vocabulary.decode_only, **added}  # no merge produces these
        self.decoder = Decoder(  # ids to bytes
            self.table,
            {id: decoded[text] for text, id in specials.special.items()},
            self.decode_only,
            {id: text.encode() for id, text in rules.first_texts},
            rules.drops_first_spaces,
        )
        self.pattern: Pattern | None = None  # None: `regex` finds the pre-tokens
        unsupported = None
        try:
            self.pattern = pat_str if isinstance(pat_str, Pattern) else Pattern.compile(pat_str)
        except UnsupportedPatternError as error:
            unsupported = error
        pattern = self.pattern
        self.encoder = Encoder(  # pre-tokens to ids
            self.table, Scanner(pattern, pattern.substitutes) if pattern else None
        )
        self.engine = self._make_engine(unsupported)  # text to ids
        self.texts = TextEncoder(self.engine, self.encoder, pattern, specials, template)

    def _make_engine(self, unsupported: UnsupportedPatternError | None) -> Engine:
        """unsupported: why the pattern has no tables, or None.

        Raises PatternError, including for a pattern without tables if the rules change text before
        it is cut.
        """
        # Engines that few encodings use are imported on demand: `regex` alone takes longer to
        # import than the whole package.
        if self.rules != NO_RULES:
            from .engines.changing import ChangingEngine, changes_text

            if changes_text(self.rules, self.specials.preferred):
                if unsupported is not None:
                    raise UnsupportedPatternError(
                        f"{unsupported}: it can cut texts, but not after a normalizer, or after "
                        "added tokens with flags",
                        construct=unsupported.construct, position=unsupported.position,
                    )  # fmt: skip
                return ChangingEngine(self.encoder, self.rules, self.specials.preferred)
        if unsupported is not None:
            from .engines.whole_texts import WholeTextEngine

            return WholeTextEngine(self.encoder, self.pat_str, unsupported)
        return PlainEngine(self.encoder)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, except the name, that construct an equal `Encoding`."""
        return {
            "pat_str": self.pat_str if self.pattern is None else self.pattern,
            "mergeable_ranks": self.vocabulary,
            "special_tokens": self.specials.special,
            "rules": self.rules,
            "template": self.template,
            "control_tokens": self._given_control,
        }

    @cached_property
    def control_tokens(self) -> frozenset[str]:
        """See `Encoding.control_tokens`."""
        if self._given_control is not None:
            return self._given_control
        from .engines.prompt_encoder import PlainTexts, is_blank

        special, added = self.specials.texts, self.specials.added
        marks = {text: id for text, id in added.items() if not is_blank(text)}
        control = special.union(marks)
        if not marks:
            return control
        return control - PlainTexts(*self._parts, control).made(marks, ["*"])

    @cached_property
    def prompts(self) -> PromptEncoder:
        """The encoder of prompts. Raises UnsupportedPromptError."""
        from .engines.prompt_encoder import PromptEncoder

        unknown: list[Any] = []
        model = self.vocabulary.model
        if model is not None:
            stages = [stage for stage in model.stages if stage[0] == "Symbols"]
            unknown = [stage[4] for stage in stages] if stages else [model.unknown]
        return PromptEncoder(*self._parts, self.control_tokens, unknown=unknown)

    @property
    def _parts(self) -> tuple[Engine, Encoder, Pattern | None, SpecialTokens, TextRules]:
        return self.engine, self.encoder, self.pattern, self.specials, self.rules

    def check_byte_level(self, done: str) -> None:
        """Raise VocabularyError unless this is byte-level BPE. done: a word such as "extended"."""
        model = self.vocabulary.model
        if model is not None or self.vocabulary.byte_ids is not None:
            kind = "BPE of characters" if model is None else model.kind
            raise VocabularyError(
                f"{self.name} is a model of {kind}: only byte-level BPE can be {done}"
            )

    @cached_property
    def token_sizes(self) -> TokenSizes:
        """The length in bytes of each id, for a vocabulary of merges."""
        return TokenSizes(self.vocabulary)

    def pretoken_spans(self, text: str, until: int | None = None) -> Iterable[tuple[int, int]]:
        """The spans of the pre-tokens of a text, in characters. until: as for `Automaton.spans`."""
        if self.pattern is not None:
            return self.pattern.spans(text, until)
        from .reference.bpe import match_spans

        return match_spans(self.pat_str, text)

    def tracer(self, errors: str, template: Template) -> Tracer:
        """A tracer of the spans of text that the ids of a stream came from."""
        sizes = self.token_sizes if self.vocabulary.model is None else None
        return Tracer(sizes, errors, template)


class Defined(Protocol):
    """What streams and answers use of an `Encoding`."""

    name: str
    definition: Definition

    @property
    def digest(self) -> str: ...
    @property
    def pattern(self) -> Pattern | None: ...
    def decode_bytes(self, tokens: Iterable[int] | IdArray) -> bytes: ...
