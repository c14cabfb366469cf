"""Encoding: whole texts to ids and back, as `tiktoken.Encoding` does it.

Every public method and property of `tiktoken.Encoding` 0.14 is here under its name, with its
arguments, results and exceptions (github.com/openai/tiktoken, MIT). In addition, text may be bytes,
`errors` says what happens to bytes that are not UTF-8, and `count` builds no list.

An `Encoding` has a vocabulary, special tokens (`special_tokens.py`), an engine that turns text into
ids (`engines/`), an encoder of whole texts (`engines/texts.py`), and a decoder. Streams
(`chunker.py`) and answers such as counts, budgets and chunks (`answers/`) use these parts. The
algorithms are in `_core`, and in plain Python in `reference/`.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ._core.encode import (
    ALL,
    NO_SPECIAL,
    FastEncoding,
)
from ._types import AllowedSpecial, AnyText, DisallowedSpecial, SupportsRead, Text
from .answers.text_settings import Settings
from .definition import Definition
from .engines.model_settings import ModelSettings
from .engines.rules import NO_RULES, TextRules
from .engines.template import NO_TEMPLATE, Template
from .patterns.pattern import Pattern
from .prompts import Prompt, prompt_of
from .threads import cached_property, map_in_threads
from .vocabulary.table import NO_ID, Vocabulary

if TYPE_CHECKING:
    import re

    import numpy as np
    import numpy.typing as npt

    from ._types import IdArray
    from .answers.counter import Counter
    from .answers.document import Document
    from .answers.splitting import Chunk
    from .answers.truncation import Truncated
    from .answers.views.tokens import TextTokens
    from .chunker import StreamDecoder, StreamEncoder


class Pruned(NamedTuple):
    """An encoding with fewer tokens, and the old id of each new id; see `Encoding.prune`."""

    encoding: Encoding
    old_ids: npt.NDArray[np.uint32]


class Encoding(FastEncoding):
    """A vocabulary, a pre-tokenization pattern and special tokens.

    Immutable and safe to use from any number of threads.

    >>> enc = streamtok.get_encoding("gpt2")
    >>> enc.encode("hello world")
    [31373, 995]
    """

    name: str
    definition: Definition
    """The parts that streams, answers and formats use."""

    _origin: tuple[Any, ...] | None = None  # (function, arguments) of a pickle that is a reference

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
        control_tokens: Iterable[str] | None = None,
    ):
        """Args as in tiktoken; mergeable_ranks may also be a `Vocabulary`, and pat_str a `Pattern`.

        rules: what tiktoken lacks, such as changes of text; see `engines/rules.py`. template: ids
        that `add_special_tokens` puts around a text. control_tokens: see `with_control_tokens`.

        Raises VocabularyError for an unusable table (a missing byte, a duplicate rank, an empty
        token or one of more than 65 535 bytes), and PatternError for a pattern that does not
        compile. A pattern that cannot be turned into tables still encodes whole texts, through the
        `regex` package; `stream_encoder` then raises UnsupportedPatternError.
        """
        if hasattr(self, "definition"):
            raise ValueError("this Encoding is made already: call __init__ once")
        if not isinstance(mergeable_ranks, Vocabulary):
            mergeable_ranks = Vocabulary.from_ranks(mergeable_ranks)
        definition = Definition(
            name, pat_str, mergeable_ranks, special_tokens, rules, template, control_tokens
        )
        specials = definition.specials
        self.name = name
        self.definition = definition
        self._pat_str = definition.pat_str  # named as in tiktoken, like the next two
        self._special_tokens = specials.special
        self.max_token_value: int = max(
            definition.table.max_id, *specials.special.values(), *definition.decode_only, 0
        )
        if explicit_n_vocab:
            given = len(mergeable_ranks) + len(specials.special)
            if given != explicit_n_vocab or self.max_token_value != explicit_n_vocab - 1:
                raise ValueError(
                    f"explicit_n_vocab is {explicit_n_vocab}, but there are {given} tokens and "
                    f"the highest id is {self.max_token_value}"
                )
        texts = definition.texts
        self._encode_any = texts.encode  # for texts without a fast path
        encoder = definition.encoder if texts.is_direct else None
        self._set_parts(definition.decoder, rules.drops_first_space, encoder, texts.rules)

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
        """Encoding: trained on independent texts; see `Trainer`.

        >>> enc = streamtok.Encoding.train_from_iterator(["low lower", "lowest"], 259)
        >>> enc.encode("low")
        [257]
        """
        from .training.vocabulary_trainer import VocabularyTrainer

        trainer = VocabularyTrainer(pattern, num_threads=num_threads)
        trainer.update_documents(texts)
        vocabulary, specials = trainer.train_vocabulary(
            vocab_size, special_tokens=special_tokens, min_frequency=min_frequency, tie=tie
        )
        return cls(
            name,
            pat_str=trainer.pattern,
            mergeable_ranks=vocabulary,
            special_tokens=specials,
        )

    def with_special_tokens(self, special_tokens: Mapping[str, int | None]) -> Encoding:
        """Encoding: a copy with more special tokens. None stands for the id after all others.

        >>> more = enc.with_special_tokens({"<|tool|>": None})
        >>> more.encode("<|tool|>", allowed_special="all")
        [50257]

        Raises ValueError for an id in use, and VocabularyError for a text that is already a token
        or if this is not byte-level BPE.
        """
        from .training.merging import check_apart, check_specials

        definition = self.definition
        definition.check_byte_level("given special tokens")
        check_specials([*special_tokens])
        check_apart(special_tokens, definition.vocabulary.to_list())
        special = dict(definition.specials.special)
        taken = {*definition.vocabulary.ids.tolist(), *definition.decode_only, *special.values()}
        highest = max([self.max_token_value, *filter(None, special_tokens.values())])
        fresh = itertools.count(highest + 1)
        for text, id in special_tokens.items():
            if text in special and id in (None, special[text]):
                continue
            if text in special or id in taken:
                why = f"it has id {special[text]}" if text in special else "another token has it"
                raise ValueError(f"the special token {text!r} cannot have id {id}: {why}")
            special[text] = next(fresh) if id is None else id
            taken.add(special[text])
        control = definition.arguments["control_tokens"]
        if control is not None:
            control = control.union(special_tokens)
        return changed(self, special_tokens=special, control_tokens=control)

    @property
    def control_tokens(self) -> frozenset[str]:
        """frozenset[str]: texts that become tokens in a `Control`, but not in the text of a
        `Prompt`.

        By default all special tokens, and the added tokens that are neither white space nor
        produced by plain text anyway: DeepSeek's `<｜User｜>` is an added token, not a special one.

        >>> enc.control_tokens
        frozenset({'<|endoftext|>'})
        """
        return self.definition.control_tokens

    def with_control_tokens(self, texts: Iterable[str]) -> Encoding:
        """Encoding: a copy with these control tokens. In prompts, other special tokens are text.

        >>> other = enc.with_control_tokens(())
        >>> other.encode(streamtok.Control("<|endoftext|>"))
        [27, 91, 437, 1659, 5239, 91, 29]

        Raises ValueError for a text that is neither a special token nor an added token.
        """
        return changed(self, control_tokens=frozenset(texts))

    def prune(
        self,
        *,
        keep: Iterable[int] | None = None,
        min_count: Mapping[int, int] | Sequence[int] | npt.NDArray[Any] | None = None,
        size: int | None = None,
    ) -> Pruned:
        """Pruned: an encoding with fewer tokens, and the old id of each.

        >>> pruned = enc.prune(size=1000)
        >>> pruned.encoding.n_vocab, pruned.old_ids[pruned.encoding.encode(" the")].tolist()
        (1000, [262])

        Give one of keep, min_count and size. keep: the ids to keep. min_count: a count for each id;
        ids with a count above 0 are kept. size: the number of ids; the earliest merges are kept.
        Bytes, special and added tokens, and the parts that a kept token is merged from always stay.
        New ids are in the order of the old ones, without gaps, so `embeddings[pruned.old_ids]` are
        the rows of a smaller model. Merges keep their order.

        Raises KeyError for unknown ids, ValueError for a size too small for what must stay, and
        VocabularyError if this is not byte-level BPE.
        """
        from .vocabulary.pruning import pruned_vocabulary

        if sum(given is not None for given in (keep, min_count, size)) != 1:
            raise TypeError("give one of keep, min_count and size")
        definition = self.definition
        definition.check_byte_level("pruned")
        template, settings = definition.template, definition.model_settings
        if min_count is not None:
            counts = min_count if isinstance(min_count, Mapping) else dict(enumerate(min_count))
            keep = [id for id, count in counts.items() if count > 0]
        wanted = {*template.before, *template.after, *settings.eos, *map(int, keep or ())}
        wanted |= {*definition.specials.every.values()}
        self.decode_tokens_bytes([*wanted])  # raises for an unknown id
        vocabulary, old_ids = pruned_vocabulary(
            definition.vocabulary, definition.table, wanted, size
        )
        new_ids = {id: new for new, id in enumerate(old_ids.tolist())}
        added = tuple((text, new_ids[id]) for text, id in definition.rules.added_tokens)
        encoding = changed(
            self,
            mergeable_ranks=vocabulary,
            special_tokens={text: new_ids[id] for text, id in self._special_tokens.items()},
            rules=definition.rules._replace(added_tokens=added),
            template=Template(*(tuple(new_ids[id] for id in ids) for ids in template)),
        )
        eos = tuple(new_ids[id] for id in settings.eos)
        encoding.definition.model_settings = settings._replace(eos=eos)
        return Pruned(encoding, old_ids)

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._origin is not None:  # pickled as a reference
            return self._origin
        definition = self.definition
        return _made_again, (type(self), self.name, definition.arguments, definition.model_settings)

    # The vocabulary

    @property
    def pattern(self) -> Pattern | None:
        """The compiled pattern, or None if `regex` finds the pre-tokens."""
        return self.definition.pattern

    @cached_property
    def special_tokens_set(self) -> set[str]:
        """set[str]: the special tokens' texts."""
        return set(self._special_tokens)

    @cached_property
    def digest(self) -> str:
        """str: SHA-256 of all that determines ids: vocabulary, pattern, special tokens, rules.

        The template is excluded, since only calls that ask for it use it.
        """
        import hashlib

        h = hashlib.sha256(self.definition.vocabulary.digest.encode())
        h.update(repr((self._pat_str, sorted(self._special_tokens.items()))).encode())
        if self.definition.rules != NO_RULES:
            h.update(repr(self.definition.rules).encode())
        return h.hexdigest()

    def token_byte_values(self) -> list[bytes]:
        """list[bytes]: the bytes of all tokens except special ones, sorted."""
        vocabulary = self.definition.vocabulary
        if vocabulary.model is not None:
            special = {*self._special_tokens.values()}
            pieces = vocabulary.decode_only.items()
            return sorted(token for id, token in pieces if id not in special)
        tokens = zip(vocabulary.to_list(), vocabulary.ids.tolist(), strict=True)
        return sorted(token for token, id in tokens if id != NO_ID)

    @property
    def eot_token(self) -> int:
        """int: the id of <|endoftext|>, as in tiktoken. Raises KeyError if there is none.

        A model may end its texts with another token: see `eos_token`.
        """
        return self._special_tokens["<|endoftext|>"]

    @property
    def eos_token(self) -> int:
        """int: the id that ends a text of this model, from the files next to its vocabulary.

        This is the `eos_token` of `tokenizer_config.json` or `special_tokens_map.json`, or else the
        first `eos_token_id` of `generation_config.json` or `config.json`. Without such files, it is
        `eot_token`. Raises KeyError if there is none.
        """
        eos = self.definition.model_settings.eos
        return eos[0] if eos else self.eot_token

    @property
    def eos_tokens(self) -> tuple[int, ...]:
        """tuple[int, ...]: all ids that end a model's output, `eos_token` first.

        `generation_config.json` may name several. Empty if there is none.
        """
        eot = self._special_tokens.get("<|endoftext|>")
        return self.definition.model_settings.eos or (() if eot is None else (eot,))

    @property
    def truncation(self) -> dict[str, Any] | None:
        """dict | None: the field `truncation` of the tokenizer.json: kept, but not applied."""
        return copy.deepcopy(self.definition.model_settings.truncation)

    @property
    def padding(self) -> dict[str, Any] | None:
        """dict | None: the field `padding` of the tokenizer.json: kept, but not applied."""
        return copy.deepcopy(self.definition.model_settings.padding)

    def is_special_token(self, token: int) -> bool:
        """bool: whether this is the id of a special token."""
        if not isinstance(token, int):
            raise AssertionError(f"a token is an int, not {type(token).__name__}")
        return token in self.definition.specials.ids

    @property
    def n_vocab(self) -> int:
        """int: max_token_value + 1."""
        return self.max_token_value + 1

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """int: the id of the one token, special or not, that is exactly this text.

        Raises KeyError if there is none, TypeError if it is neither a str nor bytes.
        """
        if isinstance(text_or_bytes, str):
            text_or_bytes = text_or_bytes.encode("utf-8")
        elif not isinstance(text_or_bytes, (bytes, bytearray, memoryview)):
            raise TypeError(  # bytes(3) would be three zero bytes
                f"a token is looked up by a str or bytes, not by {type(text_or_bytes).__name__}"
            )
        text_or_bytes = bytes(text_or_bytes)
        is_text = self.definition.vocabulary.model is None  # otherwise the table has symbols
        found = self.definition.table.find(text_or_bytes) if is_text else None
        return self._other_ids[text_or_bytes] if found is None else found

    def decode_single_token_bytes(self, token: int) -> bytes:
        """bytes: one token. Raises KeyError for an unknown id."""
        return self.definition.decoder.token_bytes(token)

    @cached_property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        return self.definition.vocabulary.to_ranks()

    @cached_property
    def _other_ids(self) -> dict[bytes, int]:
        """The ids of special and added tokens, and of tokens that can only be decoded."""
        ids = {token: id for id, token in self.definition.decode_only.items()}
        known = self.definition.specials.added | self._special_tokens
        return ids | {text.encode(): token for text, token in known.items()}

    # Encoding. `encode`, `encode_ordinary`, `encode_to_numpy` and `count` are in
    # `_core/texts/fast_path.pxi`, and their settings in `special_tokens.py`.

    def _encode_other(self, text: Any, *settings: Any) -> Any:
        """The ids of a prompt; anything else raises TypeError. settings: as for `encode_any`."""
        definition = self.definition
        prompt = prompt_of(text)
        if prompt is None:
            return self._encode_any(text, *settings)  # raises
        self._keep_prompts(definition.prompts.rules)
        return definition.prompts.encode_any(prompt, definition.template, *settings)

    def encode_ordinary_batch(
        self, text: Sequence[Text], *, num_threads: int = 8, errors: str = "strict"
    ) -> list[list[int]]:
        """list[list[int]]: `encode_ordinary` of each text, on several threads, balanced by size.

        num_threads: at most one per core is used. A large text is split among them.
        """
        return self.definition.texts.encode_batch(
            text, self.definition.specials.ordinary, errors, num_threads
        )

    def encode_batch(
        self,
        text: Sequence[Text | Prompt],
        *,
        num_threads: int = 8,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
        errors: str = "strict",
        add_special_tokens: bool = False,
    ) -> list[list[int]]:
        """list[list[int]]: `encode` of each text; threads as for `encode_ordinary_batch`."""
        matcher = self.definition.specials.matcher(allowed_special, disallowed_special)
        texts: list[Any] = list(text)
        try:
            return self.definition.texts.encode_batch(
                texts, matcher, errors, num_threads, add_special_tokens
            )
        except TypeError:
            if all(prompt_of(one) is None for one in texts):
                raise
        encode = functools.partial(
            self.encode,
            allowed_special=allowed_special,
            disallowed_special=() if disallowed_special is None else disallowed_special,
            errors=errors,
            add_special_tokens=add_special_tokens,
        )
        return map_in_threads(encode, texts, num_threads)

    def encode_with_unstable(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
    ) -> tuple[list[int], list[list[int]]]:
        """(stable, completions): the ids before the last pre-token, and possible continuations.

        They are tiktoken's, which misses some continuations and has others that cannot occur. For
        final ids use `stream_encoder`. Slow: meant for small texts.
        """
        from .answers.unstable import encode_with_unstable

        if self.definition.rules != NO_RULES:
            raise ValueError(
                f"encode_with_unstable is tiktoken's and does not support {self.definition.rules}"
            )
        matcher = self.definition.specials.matcher(allowed_special, disallowed_special)
        return encode_with_unstable(self.definition, text, matcher)

    def _encode_bytes(self, text: bytes) -> list[int]:
        """tiktoken's private method: merges bytes that are not UTF-8 with the preceding pre-token.

        With rules that tiktoken lacks, the same as `encode_ordinary` with "surrogateescape".
        """
        if self.definition.rules != NO_RULES:
            return self.encode_ordinary(text, errors="surrogateescape")
        from .answers.unstable import encode_bytes

        return encode_bytes(self.definition, text)

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        if self.definition.vocabulary.model is not None:  # the pre-tokenizer also writes symbols
            return self.encode_ordinary(text_or_bytes)
        if isinstance(text_or_bytes, str):
            text_or_bytes = text_or_bytes.encode("utf-8")
        return self.definition.encoder.encode_pretoken(text_or_bytes)

    # Decoding. `decode` and `decode_bytes` are in `_core/texts/fast_path.pxi`.

    def decode_tokens_bytes(self, tokens: Sequence[int] | IdArray) -> list[bytes]:
        """list[bytes]: each token by itself."""
        return list(map(self.definition.decoder.token_bytes, tokens))

    def decode_with_offsets(self, tokens: Sequence[int] | IdArray) -> tuple[str, list[int]]:
        """(str, list[int]): the text, and for each token the index of its first character in it.

        A token that begins inside a character has that character's index. Raises UnicodeDecodeError
        if the tokens are not UTF-8.
        """
        tokens = list(tokens)
        parts = self.decode_tokens_bytes(tokens)
        for i in range(len(parts)):
            parts[i] = self.decode_bytes(tokens[: i + 1])
            if parts[i] or not self.definition.rules.drops_first_spaces:
                break
        characters = 0
        offsets = []
        for part in parts:
            offsets.append(max(0, characters - (0x80 <= (part or b" ")[0] < 0xC0)))
            characters += sum(not 0x80 <= byte < 0xC0 for byte in part)
        return b"".join(parts).decode("utf-8"), offsets

    def decode_batch(
        self, batch: Sequence[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """list[str]: `decode` of each list of ids, on several threads."""
        return map_in_threads(functools.partial(self.decode, errors=errors), batch, num_threads)

    def decode_bytes_batch(
        self, batch: Sequence[Sequence[int]], *, num_threads: int = 8
    ) -> list[bytes]:
        """list[bytes]: `decode_bytes` of each list of ids, on several threads."""
        return map_in_threads(self.decode_bytes, batch, num_threads)

    # Streams

    def stream_encoder(
        self,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
        errors: str = "strict",
        max_pending: int | None = None,
        add_special_tokens: bool = False,
    ) -> StreamEncoder:
        """StreamEncoder: encodes text in chunks, to the ids that `encode` returns for all of it.

        Raises UnsupportedPatternError if the pre-tokenization pattern cannot be streamed.
        """
        from .chunker import StreamEncoder

        return StreamEncoder(
            self,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
            add_special_tokens=add_special_tokens,
        )

    def stream_decoder(
        self,
        *,
        errors: str = "replace",
        skip_special_tokens: bool = False,
        stop: str | Iterable[str] = (),
    ) -> StreamDecoder:
        """StreamDecoder: decodes ids as they arrive, to the text that `decode` returns for all.

        stop: texts that end the stream; see `answers.stops.StoppingDecoder`.
        """
        if stop != ():
            from .answers.stops import StoppingDecoder

            return StoppingDecoder(
                self, stop, errors=errors, skip_special_tokens=skip_special_tokens
            )
        from .chunker import StreamDecoder

        return StreamDecoder(self, errors=errors, skip_special_tokens=skip_special_tokens)

    def iterencode(
        self, chunks: Iterable[Text] | SupportsRead, **settings: Any
    ) -> Iterator[list[int]]:
        """Iterator[list[int]]: the ids that become final with each chunk, then the remaining ids.

        chunks: an iterable of text, or a file object, which is read in chunks of 64 KiB. settings:
        as for `stream_encoder`. Empty lists are skipped.
        """
        from .files import read_chunks

        stream = self.stream_encoder(**settings)
        for chunk in read_chunks(chunks):
            if ids := stream.encode(chunk):
                yield ids
        if ids := stream.flush():
            yield ids

    async def aiterencode(
        self, chunks: AsyncIterable[Text] | Iterable[Text] | SupportsRead, **settings: Any
    ) -> AsyncIterator[list[int]]:
        """`iterencode` for chunks from an asynchronous iterable, an `asyncio.StreamReader` (or
        another object with a coroutine `read`), or anything that `iterencode` accepts.
        """
        from .files import aread_chunks

        stream = self.stream_encoder(**settings)
        async for chunk in aread_chunks(chunks):
            if ids := stream.encode(chunk):
                yield ids
        if ids := stream.flush():
            yield ids

    # Answers: functions of `answers/`. By default, special tokens in a text are plain text.

    def counter(
        self,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = (),
        errors: str = "strict",
        max_pending: int | None = None,
        add_special_tokens: bool = False,
    ) -> Counter:
        """Counter: counts the tokens of a text that arrives in chunks."""
        from .answers.counter import Counter

        return Counter(
            self,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
            add_special_tokens=add_special_tokens,
        )

    def fits(self, text: AnyText, max_tokens: int, **settings: Any) -> bool:
        """bool: whether a text, a Prompt, or an iterable of chunks has at most `max_tokens` ids in
        all. Chunks may be Prompts if the first one is.

        Reads no further than it must. max_tokens: 0 or more. settings: allowed_special,
        disallowed_special, errors, add_special_tokens (counts the template's ids, too).

        >>> enc.fits("hello world", 1)
        False
        """
        from .answers.truncation import fits

        return fits(Settings(self, **settings), text, max_tokens)

    def truncate(
        self,
        text: AnyText,
        max_tokens: int,
        side: Literal["right", "left"] = "right",
        **settings: Any,
    ) -> Truncated:
        """Truncated(text, n_tokens, was_truncated): the part of a text that fits `max_tokens` ids.

        side: what is dropped, the end ("right") or the beginning ("left"). Keeps the longest text
        that consists of whole characters and of the first (last) tokens of the text, and that by
        itself has at most `max_tokens` ids, including those of add_special_tokens. A Prompt stays a
        Prompt. Costs O(text kept), and O(text) for "left". settings: as for `fits`. Raises
        ValueError if add_special_tokens alone adds more than `max_tokens` ids.

        >>> enc.truncate("hello world, how are you?", 3)
        Truncated(text='hello world,', n_tokens=3, was_truncated=True)
        """
        from .answers.truncation import truncate

        return truncate(Settings(self, **settings), text, max_tokens, side)

    def split(
        self,
        source: AnyText,
        max_tokens: int,
        overlap: int = 0,
        boundary: str | re.Pattern[Any] = "character",
        **settings: Any,
    ) -> Iterator[Chunk]:
        """Iterator[Chunk(text, start, stop, n_tokens)]: chunks of at most `max_tokens` ids each.

        overlap: the maximum number of tokens that a chunk repeats from the one before it. boundary:
        chunks end after a "paragraph", "line", "pretoken", "character" or a match of a regular
        expression; if the next one is too far away, after a finer one. Reads the source as chunks
        are requested, and holds only one of them. Chunks of a Prompt are Prompts. settings: as for
        `fits`.

        >>> [chunk.text for chunk in enc.split("one two three four five", 2)]
        ['one two', ' three four', ' five']
        """
        from .answers.splitting import split

        return split(Settings(self, **settings), source, max_tokens, overlap, boundary)

    def encode_with_offsets(
        self,
        text: Text | Prompt,
        unit: str = "character",
        *,
        disallowed_special: DisallowedSpecial = ALL,
        **settings: Any,
    ) -> tuple[IdArray, npt.NDArray[np.int64]]:
        """(ids, spans): the ids of `encode_to_numpy`, and their spans in the text, int64 [n, 2].

        unit: "byte" (of UTF-8), "character" (of a str, or of the str that bytes decode to) or
        "utf16". A span covers every character that its token came from, including all that were
        composed into one, and white space that an added token absorbs. Text that a normalizer
        removes belongs to the character before it, or, at the start of a text or after an added
        token, to the one after it. Text that a normalizer inserts belongs to the text after it. In
        bytes, spans are exact, but a repaired or changed character counts as a whole. settings: as
        for `encode`; ids of add_special_tokens have empty spans at the two ends. Raises what
        `encode` raises, and UnsupportedPatternError for a pattern without tables.

        >>> ids, spans = enc.encode_with_offsets("naïve text")
        >>> [("naïve text"[start:stop]) for start, stop in spans]
        ['na', 'ïve', ' text']
        """
        known = Settings(self, disallowed_special=disallowed_special, **settings)
        return known.encode_with_offsets(text, unit)

    def encode_batch_with_offsets(
        self,
        texts: Sequence[Text | Prompt],
        unit: str = "character",
        *,
        num_threads: int = 8,
        **settings: Any,
    ) -> list[tuple[IdArray, npt.NDArray[np.int64]]]:
        """list[(ids, spans)]: `encode_with_offsets` of each text, on several threads.

        >>> [spans.tolist() for ids, spans in enc.encode_batch_with_offsets(["a b", "é"], "byte")]
        [[[0, 1], [1, 3]], [[0, 2]]]
        """
        known = Settings(self, **{"disallowed_special": ALL, **settings})
        return map_in_threads(
            lambda text: known.encode_with_offsets(text, unit), texts, num_threads
        )

    def document(self, text: str | Prompt = "", **settings: Any) -> Document:
        """Document: an editable text whose ids follow each edit. If it begins with a Prompt, such
        as Prompt(), it accepts control, too.

        settings: as for `fits`.

        >>> doc = enc.document("hello wor")
        >>> doc.append("ld")
        Change(first=1, removed=1, added=[995])
        """
        from .answers.document import Document

        return Document(Settings(self, **settings), text)

    def is_canonical(self, ids: Iterable[int] | IdArray) -> bool:
        """bool: whether encoding the text of these ids returns the same ids.

        Special ids stay special. Raises KeyError for an unknown id.
        """
        return self.first_drift(ids) is None

    def first_drift(self, ids: Iterable[int] | IdArray) -> int | None:
        """int | None: the index of the first id that changes when the ids' text is encoded again.

        >>> enc.first_drift([31373, 266, 1764]), enc.encode("hello world")
        (1, [31373, 995])
        """
        from .answers.drift import first_drift

        return first_drift(self, ids)

    # What notebooks show

    def show(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = (),
        errors: str = "strict",
        add_special_tokens: bool = False,
    ) -> TextTokens:
        """TextTokens: the tokens of a text for display: boxes in a notebook, bars with print().

        Each has its id, bytes, rank and span; `as_json()` returns plain values. By default, special
        tokens in the text are plain text. Raises what `encode_with_offsets` raises.

        >>> print(enc.show("hello world"))
        hello|·world
        """
        from .answers.views.tokens import show_tokens

        return show_tokens(
            self,
            text,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            add_special_tokens=add_special_tokens,
        )

    def _repr_html_(self) -> str:
        """str: a table of the encoding's properties, for notebooks."""
        from .answers.views.markup import table_html

        special = sorted(self.special_tokens_set)
        more = f" and {len(special) - 8} more" if len(special) > 8 else ""
        return table_html(
            [
                ("name", self.name),
                ("n_vocab", f"{self.n_vocab:,}"),
                ("pattern", self._pat_str),
                ("special tokens", f"{', '.join(special[:8]) or 'none'}{more}"),
            ]
        )


def changed(encoding: Encoding, **arguments: Any) -> Encoding:
    """Encoding: a copy with these arguments changed."""
    definition = encoding.definition
    return _made_again(
        Encoding, encoding.name, definition.arguments | arguments, definition.model_settings
    )


def _made_again(
    kind: type[Encoding], name: str, arguments: dict[str, Any], settings: ModelSettings
) -> Encoding:
    """The `Encoding` that a pickle describes."""
    made = kind(name, **arguments)
    made.definition.model_settings = settings
    return made
