"""What an encoding is made of: a vocabulary, a pattern, special tokens, and the engine of them.

Streams and everything else that needs no more than this take an `EncodingDefinition`. The methods
that users call are in `encoding.py`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._core.encode import (
    ALL,
    NO_SPECIAL,
    Cuts,
    Decoder,
    Encoder,
    FastEncoding,
    Scanner,
    SpecialMatcher,
    TokenTable,
)
from ._types import AllowedSpecial, DisallowedSpecial, Text
from .engines.model_settings import NO_SETTINGS, ModelSettings
from .engines.plain import PlainEngine
from .engines.protocol import Engine, encode_whole
from .engines.rules import NO_RULES, TextRules
from .engines.template import NO_TEMPLATE, Template
from .errors import PatternError, UnsupportedPatternError
from .patterns.pattern import Pattern
from .special_tokens import (
    check_special_tokens,
    in_order_of_preference,
    resolve_allowed,
    resolve_disallowed,
)
from .vocabulary.table import NO_ID, Vocabulary

if TYPE_CHECKING:
    from .engines.protocol import Chain
    from .engines.token_sizes import TokenSizes
    from .engines.trace import Tracer

__all__ = ["EncodingDefinition"]

_MATCHERS_KEPT = 128  # for settings that calls have used


class EncodingDefinition(FastEncoding):
    """A vocabulary, a pattern, special tokens and text rules; and what is built from them.

    Immutable and safe to use from any number of threads.
    """

    name: str
    _model_settings: ModelSettings = NO_SETTINGS  # set by loaders
    _origin: tuple[Any, ...] | None = None  # how a process that loads a pickle gets the same object

    def __init__(
        self,
        name: str,
        *,
        pat_str: str | Pattern,
        mergeable_ranks: Mapping[bytes, int] | Vocabulary,
        special_tokens: Mapping[str, int],
        explicit_n_vocab: int | None = None,
        rules: TextRules = NO_RULES,
        template: Template = NO_TEMPLATE,
    ):
        """Args as in tiktoken; mergeable_ranks may also be a `Vocabulary`, pat_str a `Pattern`.

        rules: what a format does to text beyond tiktoken, see `engines/rules.py`. template: ids
        around a text, for `add_special_tokens` only.

        Raises VocabularyError for a table that cannot be used (not all 256 bytes, a rank twice, an
        empty token or one beyond 65 535 bytes), PatternError for a pattern that does not compile.
        A pattern that cannot be turned into tables still encodes whole texts, through the `regex`
        package; `stream_encoder` then raises UnsupportedPatternError.
        """
        if not isinstance(mergeable_ranks, Vocabulary):
            mergeable_ranks = Vocabulary.from_ranks(mergeable_ranks)
        self.name = name
        self._pat_str = pat_str.source if isinstance(pat_str, Pattern) else pat_str
        self._vocabulary = mergeable_ranks
        self._special_tokens = check_special_tokens(special_tokens)
        self._rules = rules
        self._template = template
        self._added_tokens = check_special_tokens(dict(rules.added_tokens))
        if both := self._special_tokens.keys() & self._added_tokens.keys():
            raise ValueError(f"{min(both)!r} is both a special token and an added token")
        self._table = TokenTable(
            mergeable_ranks.tokens,
            mergeable_ranks.offsets,
            mergeable_ranks.ids,
            mergeable_ranks.lefts,
            mergeable_ranks.byte_ids,
            mergeable_ranks.ties,
            mergeable_ranks.parts,
            None if mergeable_ranks.model is None else mergeable_ranks.model.core,
        )
        self._decode_only = dict(mergeable_ranks.decode_only)  # no merge gives these
        decoded = {text: text.encode() for text in (*special_tokens, *self._added_tokens)}
        decoded |= {
            text: other.encode("utf-8", "surrogateescape") for text, other in rules.decoded_texts
        }
        self._decode_only |= {token: decoded[text] for text, token in self._added_tokens.items()}
        self.max_token_value: int = max(
            self._table.max_id, *self._special_tokens.values(), *self._decode_only, 0
        )
        if explicit_n_vocab:
            given = len(mergeable_ranks) + len(self._special_tokens)
            if given != explicit_n_vocab or self.max_token_value != explicit_n_vocab - 1:
                raise ValueError(
                    f"explicit_n_vocab is {explicit_n_vocab}, but there are {given} tokens and "
                    f"the highest id is {self.max_token_value}"
                )
        self._special_ids = set(self._special_tokens.values())
        self._decoder = Decoder(
            _table_without_ids() if rules.has_symbols else self._table,
            {token: decoded[text] for text, token in self._special_tokens.items()},
            self._decode_only,
            {token: text.encode() for token, text in rules.first_texts},
        )
        self._set_decoder(self._decoder, rules.decodes_without_first_space)
        self._pattern, unsupported = _compile(pat_str)
        pattern = self._pattern
        scanner = Scanner(pattern, pattern.substitutes) if pattern else None
        self._encoder = Encoder(self._table, scanner)
        self._engine = self._make_engine(unsupported)
        self._matchers: dict[tuple[frozenset[str], frozenset[str]], SpecialMatcher] = {}
        if self._is_plain:
            self._set_fast_path(self._encoder, self._ordinary, self._default)

    def _make_engine(self, unsupported: UnsupportedPatternError | None) -> Engine:
        # Engines that few encodings have are imported where they are needed: `regex` alone takes
        # longer to import than all of this package.
        engine: Engine
        if unsupported is None:
            engine = PlainEngine(self._encoder)
        else:
            from .engines.regex_engine import RegexEngine

            engine = RegexEngine(self._encoder, self._pat_str, unsupported)
        rules = self._rules
        if rules.normalizer == "spaces":
            from .engines.spaces import SpacesEngine

            engine = SpacesEngine(engine, frozenset(self._special_tokens), rules.space_first)
        elif rules != NO_RULES:
            from .engines.rewriting import RewritingEngine, changes_text

            if changes_text(rules, self._preferred_specials):
                engine = RewritingEngine(engine, rules, self._preferred_specials)
        return engine

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    @property
    def pattern(self) -> Pattern | None:
        """The compiled pattern, or None where `regex` finds the pre-tokens."""
        return self._pattern

    @functools.cached_property
    def special_tokens_set(self) -> set[str]:
        """set[str]: the special tokens' texts."""
        return set(self._special_tokens)

    @functools.cached_property
    def digest(self) -> str:
        """str: SHA-256 of all that decides about ids: vocabulary, pattern, special tokens.

        Not of the template, which only those calls use that ask for it.
        """
        import hashlib

        h = hashlib.sha256(self._vocabulary.digest.encode())
        h.update(repr((self._pat_str, sorted(self._special_tokens.items()))).encode())
        if self._rules != NO_RULES:
            h.update(repr(self._rules).encode())
        return h.hexdigest()

    # The vocabulary

    def token_byte_values(self) -> list[bytes]:
        """list[bytes]: all tokens that text can become but special ones, in order of bytes."""
        vocabulary = self._vocabulary
        if self._rules.has_symbols:
            return sorted(vocabulary.decode_only.values())
        tokens = zip(vocabulary.to_list(), vocabulary.ids.tolist(), strict=True)
        return sorted(token for token, id in tokens if id != NO_ID)

    @property
    def eot_token(self) -> int:
        """int: the id of <|endoftext|>, as in tiktoken. KeyError if the encoding has none.

        A model may end its texts with another token: see `eos_token`.
        """
        return self._special_tokens["<|endoftext|>"]

    @property
    def eos_token(self) -> int:
        """int: the id that ends a text of this model, as the files beside its vocabulary say.

        That is the `eos_token` of `tokenizer_config.json` or `special_tokens_map.json`, or else the
        first `eos_token_id` of `generation_config.json` or `config.json`. Without such files, it is
        `eot_token`. Raises KeyError if there is none.
        """
        return self._model_settings.eos[0] if self._model_settings.eos else self.eot_token

    @property
    def eos_tokens(self) -> tuple[int, ...]:
        """tuple[int, ...]: all ids that end what the model writes, `eos_token` first.

        `generation_config.json` may name several. Empty if there is none.
        """
        eot = self._special_tokens.get("<|endoftext|>")
        return self._model_settings.eos or (() if eot is None else (eot,))

    @property
    def truncation(self) -> dict[str, Any] | None:
        """dict | None: the field `truncation` of the tokenizer.json, which is kept, not applied."""
        return copy.deepcopy(self._model_settings.truncation)

    @property
    def padding(self) -> dict[str, Any] | None:
        """dict | None: the field `padding` of the tokenizer.json, which is kept, not applied."""
        return copy.deepcopy(self._model_settings.padding)

    def is_special_token(self, token: int) -> bool:
        """bool: whether this id is a special token's."""
        if not isinstance(token, int):
            raise AssertionError(f"a token is an int, not {type(token).__name__}")
        return token in self._special_ids

    @property
    def n_vocab(self) -> int:
        """int: max_token_value + 1."""
        return self.max_token_value + 1

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """int: the id of the one token, special or not, that is exactly this text.

        Raises KeyError if there is none, TypeError for what is neither a str nor bytes.
        """
        if isinstance(text_or_bytes, str):
            text_or_bytes = text_or_bytes.encode("utf-8")
        elif not isinstance(text_or_bytes, (bytes, bytearray, memoryview)):
            raise TypeError(  # bytes(3) would be three zero bytes
                f"a token is looked up by a str or bytes, not by {type(text_or_bytes).__name__}"
            )
        text_or_bytes = bytes(text_or_bytes)
        found = None if self._rules.has_symbols else self._table.find(text_or_bytes)
        if found is None:
            found = self._other_ids.get(text_or_bytes)
        if found is None:
            raise KeyError(text_or_bytes)
        return found

    def decode_single_token_bytes(self, token: int) -> bytes:
        """bytes: one token. Raises KeyError if there is none of this id."""
        return self._decoder.token_bytes(token)

    @functools.cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return self._vocabulary.to_ranks()

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        if self._rules.has_symbols:  # whoever cuts into pre-tokens also writes them in symbols
            return self._encode(text_or_bytes, NO_SPECIAL, (), "strict")
        if isinstance(text_or_bytes, str):
            text_or_bytes = text_or_bytes.encode("utf-8")
        return self._encoder.encode_pretoken(text_or_bytes)

    @functools.cached_property
    def _other_ids(self) -> dict[bytes, int]:
        """Ids of special and added tokens, and of tokens that only decode."""
        ids = {token: id for id, token in self._decode_only.items()}
        known = self._added_tokens | self._special_tokens
        return ids | {text.encode(): token for text, token in known.items()}

    @functools.cached_property
    def _special_texts(self) -> dict[int, bytes]:
        """The texts of the special tokens that decode to others."""
        changed = (text for text, _ in self._rules.decoded_texts if text in self._special_tokens)
        return {self._special_tokens[text]: text.encode() for text in changed}

    @property
    def _is_plain(self) -> bool:
        """Whether text goes to the tables as it is: nothing is done to it before."""
        return isinstance(self._engine, PlainEngine)

    def _encode(
        self,
        text: Text,
        allowed_special: AllowedSpecial,
        disallowed_special: DisallowedSpecial,
        errors: str,
        add_special_tokens: bool = False,
    ) -> list[int]:
        """`encode` of texts, and with settings, of any kind: the fast path's other half."""
        matcher = self._matcher(allowed_special, disallowed_special)
        ids: list[int] = encode_whole(self._engine, text, matcher, errors, "list")
        return self._template.around(ids, "list") if add_special_tokens else ids

    @functools.cached_property
    def _cuts(self) -> Cuts | None:
        """Where texts may be cut; None where they must not be: the pre-tokens are not known, or the
        text is changed before it is cut into pre-tokens.
        """
        if not self._is_plain:
            return None
        assert self._pattern is not None
        assert self._encoder.scanner is not None
        return Cuts(self._encoder.scanner, self._pattern.clean_cut_pairs)

    @functools.cached_property
    def _token_sizes(self) -> TokenSizes:
        from .engines.token_sizes import TokenSizes

        return TokenSizes(self._vocabulary, {**self._special_tokens, **self._added_tokens})

    def _tracer(self, chain: Chain, errors: str, template: Template = NO_TEMPLATE) -> Tracer:
        """What says where the ids of a stream came from. Raises UnsupportedPatternError."""
        from .engines.trace import Tracer

        is_total = self._pattern is None or self._pattern.is_total
        if self._vocabulary.model is None and not is_total:
            raise UnsupportedPatternError(
                f"the pattern of {self.name!r} leaves text out, so the ids do not tell where in a "
                "stream they came from"
            )
        sizes = self._token_sizes if self._vocabulary.model is None else None
        return Tracer(chain, sizes, errors, template)

    @functools.cached_property
    def _preferred_specials(self) -> list[tuple[str, int]]:
        known = {**self._special_tokens, **self._added_tokens}
        if self._rules.longest_first:
            order = sorted(known, key=lambda text: -len(text.encode()))
        else:
            order = in_order_of_preference(known)
        return [(text, known[text]) for text in order]

    # Made when they are asked for: with thousands of special tokens they take a third of the time
    # of loading.
    @functools.cached_property
    def _ordinary(self) -> SpecialMatcher:
        return self._matcher_for(NO_SPECIAL, ())

    @functools.cached_property
    def _default(self) -> SpecialMatcher:
        return self._matcher_for(NO_SPECIAL, ALL)

    def _matcher(self, allowed: AllowedSpecial, disallowed: DisallowedSpecial) -> SpecialMatcher:
        if disallowed is ALL and allowed is NO_SPECIAL:
            return self._default
        return self._matcher_for(allowed, disallowed)

    def _matcher_for(
        self, allowed: AllowedSpecial, disallowed: DisallowedSpecial
    ) -> SpecialMatcher:
        every = self.special_tokens_set
        chosen = frozenset(resolve_allowed(allowed, every)) & every
        refused = resolve_disallowed(disallowed, chosen, every)
        if self._added_tokens:
            chosen |= frozenset(self._added_tokens)
            refused -= frozenset(self._added_tokens)
        key = chosen, refused
        matcher = self._matchers.get(key)
        if matcher is None:
            matcher = SpecialMatcher(self._preferred_specials, *key)
            if len(self._matchers) >= _MATCHERS_KEPT:
                self._matchers.clear()
            self._matchers[key] = matcher  # for others: who clears it takes nothing from this call
        return matcher

    def __reduce__(self) -> tuple[Any, ...]:
        if self._origin is not None:  # by reference: nothing else to carry
            return self._origin
        pattern = self._pattern
        return _rebuilt, (
            type(self),
            self.name,
            pattern if pattern is not None and pattern.is_composed else self._pat_str,
            self._vocabulary,
            self._special_tokens,
            self._rules,
            self._template,
            *([] if self._model_settings == NO_SETTINGS else [self._model_settings]),
        )


@functools.lru_cache(maxsize=1)
def _table_without_ids() -> TokenTable:
    """For a decoder whose ids are all in `decode_only`."""
    import numpy as np

    none = np.full(256, NO_ID, np.uint32)
    bounds = np.arange(257, dtype=np.uint32)
    return TokenTable(bytes(range(256)), bounds, none, np.zeros(256, np.uint32), none)


def _rebuilt(
    kind: type[EncodingDefinition],
    name: str,
    pat_str: str | Pattern,
    mergeable_ranks: Vocabulary,
    special_tokens: dict[str, int],
    rules: TextRules,
    template: Template = NO_TEMPLATE,  # pickles of 0.1.0 have none
    settings: ModelSettings = NO_SETTINGS,
) -> EncodingDefinition:
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


def _compile(pat_str: str | Pattern) -> tuple[Pattern | None, UnsupportedPatternError | None]:
    """The pattern, or why it has no tables. Raises PatternError where it does not compile."""
    if isinstance(pat_str, Pattern):
        return pat_str, None
    try:
        return Pattern.compile(pat_str), None
    except UnsupportedPatternError as error:
        _check_regex(pat_str)
        return None, error


def _check_regex(pat_str: str) -> None:
    import regex

    from .patterns.budget import Budget
    from .reference.bpe import compile_pattern

    Budget(pat_str)  # `regex` writes repeats out, too
    try:
        compile_pattern(pat_str)
    except (regex.error, RecursionError) as error:
        raise PatternError(f"the pre-tokenization pattern does not compile: {error}") from error
