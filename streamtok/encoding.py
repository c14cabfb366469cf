"""Encoding: whole texts to ids and back, as `tiktoken.Encoding` does it.

Every public method and property of `tiktoken.Encoding` 0.14 is here under its name, with its
arguments, results and exceptions (github.com/openai/tiktoken, MIT). Beyond it, text may be bytes,
`errors` says what happens to bytes that are no UTF-8, and `count` makes no list. Streams are in
`chunker.py`; the algorithms are in `_core`, and in plain Python in `reference.py`.
"""

from __future__ import annotations

import functools
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

import numpy as np

from . import surrogates
from ._core.calls import ALL, NO_SPECIAL, QuickCalls
from ._core.cuts import Cuts
from ._core.decoder import Decoder
from ._core.encoder import Encoder
from ._core.scanner import Scanner
from ._core.source import size_of
from ._core.special import SpecialMatcher
from ._core.text import check_policy
from ._core.vocab import TokenTable
from .engines.rules import NO_RULES, TextRules, run_normalized
from .errors import PatternError, UnsupportedPatternError
from .parallel.texts import LARGE, encode_batch, encode_large, map_in_threads
from .patterns.pattern import Pattern
from .special_order import in_order_of_preference
from .vocabulary.table import NO_ID, Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt

    from .chunker import StreamDecoder, StreamEncoder
    from .readers import SupportsRead

    IdArray: TypeAlias = npt.NDArray[np.uint32]

Text: TypeAlias = "str | bytes | bytearray | memoryview"
AllowedSpecial: TypeAlias = "Literal['all'] | AbstractSet[str]"
DisallowedSpecial: TypeAlias = "Literal['all'] | Collection[str] | None"


class Encoding(QuickCalls):
    """A vocabulary, a split pattern and special tokens.

    Immutable and safe to use from any number of threads.

    >>> enc = streamtok.get_encoding("gpt2")
    >>> enc.encode("hello world")
    [31373, 995]
    """

    def __init__(
        self,
        name: str,
        *,
        pat_str: str | Pattern,
        mergeable_ranks: Mapping[bytes, int] | Vocabulary,
        special_tokens: Mapping[str, int],
        explicit_n_vocab: int | None = None,
        rules: TextRules = NO_RULES,
    ):
        """Args as in tiktoken; mergeable_ranks may also be a `Vocabulary`, pat_str a `Pattern`.

        rules: what a format does to text beyond tiktoken, see `engines/rules.py`.

        Raises VocabularyError for a table that cannot be used (not all 256 bytes, a rank twice, an
        empty token or one beyond 65 535 bytes), PatternError for a pattern that is no regular
        expression. A pattern that cannot be turned into tables still encodes whole texts, through
        the `regex` package; `stream_encoder` then raises UnsupportedPatternError.
        """
        if not isinstance(mergeable_ranks, Vocabulary):
            mergeable_ranks = Vocabulary.from_ranks(mergeable_ranks)
        self.name = name
        self._pat_str = pat_str.source if isinstance(pat_str, Pattern) else pat_str
        self._vocabulary = mergeable_ranks
        self._special_tokens = _checked_specials(special_tokens)
        self._rules = rules
        self._added_tokens = _checked_specials(dict(rules.added_tokens))
        if both := self._special_tokens.keys() & self._added_tokens.keys():
            raise ValueError(f"{min(both)!r} is a special token and an added one")
        self._table = TokenTable(
            mergeable_ranks.tokens,
            mergeable_ranks.offsets,
            mergeable_ranks.ids,
            mergeable_ranks.lefts,
            mergeable_ranks.byte_ids,
            mergeable_ranks.ties,
            mergeable_ranks.parts,
        )
        self._others = dict(mergeable_ranks.decode_only)  # ids that only decode
        self._others |= {token: text.encode() for text, token in self._added_tokens.items()}
        self.max_token_value: int = max(
            self._table.max_id, *self._special_tokens.values(), *self._others, 0
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
            self._table,
            {token: text.encode() for text, token in self._special_tokens.items()},
            self._others,
        )
        self._set_decoder(self._decoder, rules.space_first)
        self._pattern: Pattern | None = None
        self._unsupported: UnsupportedPatternError | None = None
        try:
            if isinstance(pat_str, Pattern):
                self._pattern = pat_str
            else:
                self._pattern = Pattern.compile(pat_str)
        except UnsupportedPatternError as error:
            self._unsupported = error
            _check_fallback(self._pat_str)  # a pattern that does not compile at all raises here
        self._encoder = Encoder(self._table, Scanner(self._pattern) if self._pattern else None)
        self._matchers: dict[tuple[frozenset[str], frozenset[str]], SpecialMatcher] = {}
        self._ordinary = self._matcher_for(NO_SPECIAL, ())
        self._default = self._matcher_for(NO_SPECIAL, ALL)
        self._is_plain = self._pattern is not None and rules.normalizer is None
        if self._is_plain:
            self._set_quick(self._encoder, self._ordinary, self._default)

    @classmethod
    def train_from_iterator(
        cls,
        texts: Iterable[Text],
        vocab_size: int,
        pattern: str | Pattern = "cl100k",
        *,
        special_tokens: Sequence[str] = (),
        min_frequency: int = 1,
        tie: Literal["raw", "hf", "first"] = "raw",
        name: str = "trained",
        num_threads: int | None = None,
    ) -> Encoding:
        """Encoding: trained on texts, each of which stands for itself; see `Trainer`.

        >>> enc = streamtok.Encoding.train_from_iterator(["low lower", "lowest"], 259)
        >>> enc.encode("low")
        [257]
        """
        from .training.trainer import Trainer

        trainer = Trainer(pattern, num_threads=num_threads)
        trainer.update_documents(texts)
        return trainer.train(
            vocab_size,
            special_tokens=special_tokens,
            min_frequency=min_frequency,
            tie=tie,
            name=name,
        )

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # Encoding. `encode` and `encode_ordinary` are in `_core/calls.pyx`.

    def encode_to_numpy(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
        errors: str = "strict",
        num_threads: int = 1,
    ) -> IdArray:
        """numpy.uint32 [n]: as `encode`, without a list.

        Lone surrogates in a str raise UnicodeEncodeError, as in tiktoken. num_threads: a text of a
        megabyte or more is cut where that changes no id and shared between so many threads, but not
        more than there are cores. A text that others can write to meanwhile (bytearray, mmap) is
        copied first.
        """
        matcher = self._matcher(allowed_special, disallowed_special)
        if num_threads != 1:
            ids: IdArray | None = encode_large(self, text, matcher, errors, "array", num_threads)
            if ids is not None:
                return ids
        ids = self._run(text, matcher, errors, "array", repair=False)
        return ids

    def count(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
        errors: str = "strict",
        num_threads: int = 1,
    ) -> int:
        """int: len(encode(text, …)), without making the ids: memory does not grow with the text.

        num_threads: as for `encode_to_numpy`.

        >>> enc.count("hello world")
        2
        """
        matcher = self._matcher(allowed_special, disallowed_special)
        if num_threads != 1 or size_of(text) >= LARGE:
            found: int | None = encode_large(self, text, matcher, errors, "count", num_threads)
            if found is not None:
                return found
        n: int = self._run(text, matcher, errors, "count")
        return n

    def encode_ordinary_batch(
        self, text: Sequence[Text], *, num_threads: int = 8, errors: str = "strict"
    ) -> list[list[int]]:
        """list[list[int]]: `encode_ordinary` of each text, on several threads, spread by size.

        num_threads: not more than there are cores are used. A large text is shared between them.
        """
        return encode_batch(self, text, self._ordinary, errors, num_threads)

    def encode_batch(
        self,
        text: Sequence[Text],
        *,
        num_threads: int = 8,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
        errors: str = "strict",
    ) -> list[list[int]]:
        """list[list[int]]: `encode` of each text; threads as for `encode_ordinary_batch`."""
        matcher = self._matcher(allowed_special, disallowed_special)
        return encode_batch(self, text, matcher, errors, num_threads)

    def encode_with_unstable(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
    ) -> tuple[list[int], list[list[int]]]:
        """(stable, completions): the ids before the last piece, and ways in which it may go on.

        tiktoken's definition, whose completions are neither all nor only the possible ones; for
        ids that are certain use `stream_encoder`. Slow: meant for small texts.
        """
        from .engines.unstable import encode_with_unstable

        if self._rules != NO_RULES:
            raise ValueError(f"encode_with_unstable is tiktoken's and does not know {self._rules}")
        matcher = self._matcher(allowed_special, disallowed_special)
        # Refuses what is disallowed, and text that is no text.
        self._run(text, matcher, "strict", "count", repair=False)
        whole = text if isinstance(text, str) else bytes(text).decode()
        return encode_with_unstable(self, whole, self._resolve_allowed(allowed_special))

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
        found = self._table.find(text_or_bytes)
        if found is None:
            found = self._other_ids.get(text_or_bytes)
        if found is None:
            raise KeyError(text_or_bytes)
        return found

    # Streams

    def stream_encoder(
        self,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
        errors: str = "strict",
        max_pending: int | None = None,
    ) -> StreamEncoder:
        """StreamEncoder: takes text in chunks, gives the ids that `encode` gives for the whole.

        Raises UnsupportedPatternError where the split pattern cannot be streamed.
        """
        from .chunker import StreamEncoder

        return StreamEncoder(
            self,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
        )

    def stream_decoder(
        self, *, errors: str = "replace", skip_special_tokens: bool = False
    ) -> StreamDecoder:
        """StreamDecoder: takes ids as they come, gives the text that `decode` gives for all."""
        from .chunker import StreamDecoder

        return StreamDecoder(self, errors=errors, skip_special_tokens=skip_special_tokens)

    def iterencode(
        self, chunks: Iterable[Text] | SupportsRead, **settings: Any
    ) -> Iterator[list[int]]:
        """Iterator[list[int]]: the ids that each chunk makes certain, then those of the end.

        chunks: an iterable of text, or a file object, which is read in chunks of 64 KiB. settings:
        as for `stream_encoder`. Empty lists are left out.
        """
        from .readers import read_chunks

        stream = self.stream_encoder(**settings)
        for chunk in read_chunks(chunks):
            if ids := stream.encode(chunk):
                yield ids
        if ids := stream.flush():
            yield ids

    async def aiterencode(
        self, chunks: AsyncIterable[Text] | Iterable[Text] | SupportsRead, **settings: Any
    ) -> AsyncIterator[list[int]]:
        """`iterencode` of chunks that come from an asynchronous iterable, an `asyncio.StreamReader`
        (or what else has a coroutine `read`), or from anything that `iterencode` takes.
        """
        from .readers import aread_chunks

        stream = self.stream_encoder(**settings)
        async for chunk in aread_chunks(chunks):
            if ids := stream.encode(chunk):
                yield ids
        if ids := stream.flush():
            yield ids

    # Decoding. `decode` and `decode_bytes` are in `_core/calls.pyx`.

    def decode_single_token_bytes(self, token: int) -> bytes:
        """bytes: one token. Raises KeyError if there is none of this id."""
        return self._decoder.token_bytes(token)

    def decode_tokens_bytes(self, tokens: Sequence[int] | IdArray) -> list[bytes]:
        """list[bytes]: each token by itself."""
        return [self._decoder.token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int] | IdArray) -> tuple[str, list[int]]:
        """(str, list[int]): the text, and for each token the index of its first character in it.

        A token that begins inside a character has that character's index. Raises
        UnicodeDecodeError where the tokens are no UTF-8.
        """
        parts = self.decode_tokens_bytes(tokens)
        if parts:
            parts[0] = self._without_first_space(parts[0])
        characters = 0
        offsets = []
        for part in parts:
            offsets.append(max(0, characters - (0x80 <= (part or b" ")[0] < 0xC0)))
            characters += sum(not 0x80 <= byte < 0xC0 for byte in part)
        return b"".join(parts).decode("utf-8"), offsets

    def decode_batch(
        self, batch: Sequence[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """list[str]: `decode` of each row of ids, on several threads."""
        return map_in_threads(functools.partial(self.decode, errors=errors), batch, num_threads)

    def decode_bytes_batch(
        self, batch: Sequence[Sequence[int]], *, num_threads: int = 8
    ) -> list[bytes]:
        """list[bytes]: `decode_bytes` of each row of ids, on several threads."""
        return map_in_threads(self.decode_bytes, batch, num_threads)

    # The vocabulary

    def token_byte_values(self) -> list[bytes]:
        """list[bytes]: all tokens that text can become but special ones, in order of bytes."""
        vocabulary = self._vocabulary
        tokens = zip(vocabulary.to_list(), vocabulary.ids.tolist(), strict=True)
        return sorted(token for token, id in tokens if id != NO_ID)

    @property
    def eot_token(self) -> int:
        """int: the id of <|endoftext|>. KeyError if the encoding has none."""
        return self._special_tokens["<|endoftext|>"]

    @functools.cached_property
    def special_tokens_set(self) -> set[str]:
        """set[str]: the special tokens' texts."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """bool: whether this id is a special token's."""
        if not isinstance(token, int):
            raise AssertionError(f"a token is an int, not {type(token).__name__}")
        return token in self._special_ids

    @property
    def n_vocab(self) -> int:
        """int: max_token_value + 1."""
        return self.max_token_value + 1

    @property
    def pattern(self) -> Pattern | None:
        """Pattern: the compiled split pattern, or None where `regex` does the splitting."""
        return self._pattern

    @functools.cached_property
    def digest(self) -> str:
        """str: SHA-256 of all that decides about ids: vocabulary, pattern, special tokens."""
        import hashlib

        h = hashlib.sha256(self._vocabulary.digest.encode())
        h.update(repr((self._pat_str, sorted(self._special_tokens.items()))).encode())
        if self._rules != NO_RULES:
            h.update(repr(self._rules).encode())
        return h.hexdigest()

    # Private, with the names that users of tiktoken know

    @functools.cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return self._vocabulary.to_ranks()

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        if isinstance(text_or_bytes, str):
            text_or_bytes = text_or_bytes.encode("utf-8")
        return self._encoder.encode_piece(text_or_bytes)

    def _encode_bytes(self, text: bytes) -> list[int]:
        return self.encode_ordinary(text, errors="surrogateescape")

    def _encode(
        self,
        text: Text,
        allowed_special: AllowedSpecial,
        disallowed_special: DisallowedSpecial,
        errors: str,
    ) -> list[int]:
        """`encode` of texts, and with settings, of any kind."""
        matcher = self._matcher(allowed_special, disallowed_special)
        ids: list[int] = self._run(text, matcher, errors, "list")
        return ids

    def _run(
        self, text: Text, matcher: SpecialMatcher, errors: str, into: str, repair: bool = True
    ) -> Any:
        """list[int], numpy.uint32 [n] or int, as `into` says: "list", "array" or "count"."""
        if errors != "strict":
            check_policy(errors)
        if self._is_plain:
            # What is nearly always so, with no more calls than it takes. Else once more, below.
            try:
                result = self._encoder.encode(text, matcher, errors, into)
                if type(result) is not tuple:
                    return result
            except UnicodeEncodeError:
                if not repair:
                    raise
        if self._rules.normalizer is not None:
            return run_normalized(self, text, matcher, errors, into, repair=repair)
        return self._run_plain(text, matcher, errors, into, repair=repair)

    def _run_plain(
        self,
        text: Text,
        matcher: SpecialMatcher,
        errors: str,
        into: str,
        *,
        repair: bool,
        original: Callable[[int], int] = int,
    ) -> Any:
        try:
            if self._pattern is None:
                from .engines.regex_engine import encode_whole

                result = encode_whole(self, text, matcher, errors, into)
            else:
                result = self._encoder.encode(text, matcher, errors, into)
        except UnicodeEncodeError:
            if not repair or not isinstance(text, str):
                raise
            text = surrogates.repair(text, errors)
            return self._run_plain(text, matcher, errors, into, repair=repair, original=original)
        if type(result) is tuple:
            raise_disallowed_special(original(result[0]), result[1])
        return result

    def _without_first_space(self, data: bytes) -> bytes:
        return data.removeprefix(b" ") if self._rules.space_first else data

    @functools.cached_property
    def _cuts(self) -> Cuts | None:
        """Where texts may be cut; None where they must not be: nobody knows the pieces, or the text
        is changed before it is cut into pieces.
        """
        if self._pattern is None or self._rules.normalizer is not None:
            return None
        assert self._encoder.scanner is not None
        return Cuts(self._encoder.scanner, self._pattern.clean_cut_pairs)

    @functools.cached_property
    def _other_ids(self) -> dict[bytes, int]:
        """Ids of what is in no piece: special and added tokens, and what only decodes."""
        ids = {token: id for id, token in self._others.items()}
        return ids | {text.encode(): token for text, token in self._special_tokens.items()}

    @functools.cached_property
    def _preferred_specials(self) -> list[tuple[str, int]]:
        known = {**self._special_tokens, **self._added_tokens}
        if self._rules.longest_first:
            order = sorted(known, key=lambda text: -len(text.encode()))
        else:
            order = in_order_of_preference(known)
        return [(text, known[text]) for text in order]

    def _resolve_allowed(self, allowed: AllowedSpecial) -> AbstractSet[str]:
        if isinstance(allowed, str) and allowed == "all":
            return self.special_tokens_set
        if isinstance(allowed, str):  # one token's text, or a word like "none": nobody can tell
            raise TypeError(
                f'allowed_special must be "all" or a collection of str, not the str {allowed!r}'
            )
        return _strings("allowed_special", allowed)

    def _resolve_disallowed(
        self, disallowed: DisallowedSpecial, allowed: AbstractSet[str]
    ) -> frozenset[str]:
        """What raises ValueError in a text. As in tiktoken, None is nothing, and a str other than
        "all" is its characters.
        """
        if isinstance(disallowed, str) and disallowed == "all":
            return frozenset(self.special_tokens_set - allowed)
        refused = _strings("disallowed_special", () if disallowed is None else disallowed)
        if "" in refused:
            raise ValueError(
                "disallowed_special has the empty str, which is in every text: leave it out.\n"
                "(Encountered text corresponding to disallowed special token ''.)"
            )
        return refused

    def _matcher(self, allowed: AllowedSpecial, disallowed: DisallowedSpecial) -> SpecialMatcher:
        if disallowed is ALL and allowed is NO_SPECIAL:
            return self._default
        return self._matcher_for(allowed, disallowed)

    def _matcher_for(
        self, allowed: AllowedSpecial, disallowed: DisallowedSpecial
    ) -> SpecialMatcher:
        chosen = frozenset(self._resolve_allowed(allowed)) & self.special_tokens_set
        refused = self._resolve_disallowed(disallowed, chosen)
        if self._added_tokens:
            chosen |= frozenset(self._added_tokens)
            refused -= frozenset(self._added_tokens)
        key = chosen, refused
        matcher = self._matchers.get(key)
        if matcher is None:
            matcher = SpecialMatcher(self._preferred_specials, *key)
            if len(self._matchers) >= 128:
                self._matchers.clear()
            self._matchers[key] = matcher  # for others: who clears it takes nothing from this call
        return matcher

    def __reduce__(self) -> tuple[Any, ...]:
        from . import registry

        if registry.ENCODINGS.get(self.name) is self:  # by reference: nothing else to carry
            return registry.get_encoding, (self.name,)
        pattern = self._pattern
        return _rebuilt, (
            self.name,
            pattern if pattern is not None and pattern.is_composed else self._pat_str,
            self._vocabulary,
            self._special_tokens,
            self._rules,
        )


def _rebuilt(
    name: str,
    pat_str: str | Pattern,
    mergeable_ranks: Vocabulary,
    special_tokens: dict[str, int],
    rules: TextRules,
) -> Encoding:
    return Encoding(
        name,
        pat_str=pat_str,
        mergeable_ranks=mergeable_ranks,
        special_tokens=special_tokens,
        rules=rules,
    )


def raise_disallowed_special(offset: int, text: str) -> NoReturn:
    """Raise the ValueError that says what to do; `offset` in bytes of UTF-8."""
    raise ValueError(
        f"the text has the disallowed special token {text!r} at byte {offset}.\n"
        f"To encode it as a special token, pass allowed_special={{{text!r}, ...}}.\n"
        "To encode it as plain text, pass disallowed_special=(), or "
        f"disallowed_special=(enc.special_tokens_set - {{{text!r}}}).\n"
        f"(Encountered text corresponding to disallowed special token {text!r}.)"
    )


def _strings(setting: str, texts: Iterable[str]) -> frozenset[str]:
    found = frozenset(texts)
    for text in found:
        if not isinstance(text, str):
            raise TypeError(
                f'{setting} must be "all" or a collection of str, but it has {text!r} in it'
            )
    return found


def _checked_specials(special_tokens: Mapping[str, int]) -> dict[str, int]:
    for text, token in special_tokens.items():
        if not isinstance(text, str) or not text:
            raise ValueError(f"a special token is a str with at least one character, not {text!r}")
        if not isinstance(token, int) or not 0 <= token <= 0xFFFFFFFE:
            raise ValueError(f"the id of special token {text!r} is no uint32: {token!r}")
    return dict(special_tokens)


def _check_fallback(pat_str: str) -> None:
    import regex

    from .patterns.budget import Budget
    from .reference.bpe import compile_pattern

    Budget(pat_str)  # `regex` writes repeats out, too
    try:
        compile_pattern(pat_str)
    except (regex.error, RecursionError) as error:
        raise PatternError(f"the split pattern does not compile: {error}") from error
