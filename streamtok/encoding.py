"""Encoding: whole texts to ids and back, as `tiktoken.Encoding` does it.

Every public method and property of `tiktoken.Encoding` 0.14 is here under its name, with its
arguments, results and exceptions (github.com/openai/tiktoken, MIT). Beyond it, text may be bytes,
`errors` says what happens to bytes that are not UTF-8, and `count` makes no list. Streams are in
`chunker.py`, counters, budgets and chunks in `answers/`; the algorithms are in `_core`, and in
plain Python in `reference/`.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ._core.encode import ALL, NO_SPECIAL, size_of
from ._types import AllowedSpecial, DisallowedSpecial, SupportsRead, Text
from .answers.answering import AnsweringEncoding
from .engines.protocol import encode_whole
from .engines.rules import NO_RULES
from .engines.template import NO_TEMPLATE
from .parallel.texts import LARGE, encode_batch, encode_large
from .parallel.threads import map_in_threads
from .patterns.pattern import Pattern
from .special_tokens import resolve_allowed

if TYPE_CHECKING:
    from ._core.encode import SpecialMatcher
    from ._types import IdArray
    from .chunker import StreamDecoder, StreamEncoder
    from .views.tokens import TextTokens


class Encoding(AnsweringEncoding):
    """A vocabulary, a pre-tokenization pattern and special tokens.

    Immutable and safe to use from any number of threads.

    >>> enc = streamtok.get_encoding("gpt2")
    >>> enc.encode("hello world")
    [31373, 995]
    """

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

    # Encoding. `encode`, `encode_ordinary`, `encode_to_numpy` and `count` are in
    # `_core/texts/fast_path.pxi`.

    def _encode_to_numpy(
        self,
        text: Text,
        allowed_special: AllowedSpecial,
        disallowed_special: DisallowedSpecial,
        errors: str,
        add_special_tokens: bool,
        num_threads: int,
    ) -> IdArray:
        """`encode_to_numpy` of texts, and with settings, of any kind."""
        matcher = self._matcher(allowed_special, disallowed_special)
        ids: IdArray | None = None
        if num_threads != 1:
            ids = self._encode_large(text, matcher, errors, "array", num_threads)
        if ids is None:
            ids = encode_whole(self._engine, text, matcher, errors, "array", repairs=False)
        with_template: IdArray = self._template.around(ids, "array") if add_special_tokens else ids
        return with_template

    def _count(
        self,
        text: Text,
        allowed_special: AllowedSpecial,
        disallowed_special: DisallowedSpecial,
        errors: str,
        add_special_tokens: bool,
        num_threads: int,
    ) -> int:
        """`count` of texts, and with settings, of any kind."""
        matcher = self._matcher(allowed_special, disallowed_special)
        n: int | None = None
        if num_threads != 1 or size_of(text) >= LARGE:
            n = self._encode_large(text, matcher, errors, "count", num_threads)
        if n is None:
            n = encode_whole(self._engine, text, matcher, errors, "count")
        with_template: int = self._template.around(n, "count") if add_special_tokens else n
        return with_template

    def encode_ordinary_batch(
        self, text: Sequence[Text], *, num_threads: int = 8, errors: str = "strict"
    ) -> list[list[int]]:
        """list[list[int]]: `encode_ordinary` of each text, on several threads, spread by size.

        num_threads: not more than there are cores are used. A large text is shared between them.
        """
        return self._encode_batch(text, self._ordinary, errors, num_threads)

    def encode_batch(
        self,
        text: Sequence[Text],
        *,
        num_threads: int = 8,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
        errors: str = "strict",
        add_special_tokens: bool = False,
    ) -> list[list[int]]:
        """list[list[int]]: `encode` of each text; threads as for `encode_ordinary_batch`."""
        matcher = self._matcher(allowed_special, disallowed_special)
        rows = self._encode_batch(text, matcher, errors, num_threads)
        if add_special_tokens and self._template != NO_TEMPLATE:
            rows = [self._template.around(ids, "list") for ids in rows]
        return rows

    def encode_with_unstable(
        self,
        text: Text,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = ALL,
    ) -> tuple[list[int], list[list[int]]]:
        """(stable, completions): the ids before the last pre-token, and ways in which it may go on.

        tiktoken's definition, whose completions are neither all nor only the possible ones. For
        final ids use `stream_encoder`. Slow: meant for small texts.
        """
        from .unstable import encode_with_unstable

        if self._rules != NO_RULES:
            raise ValueError(f"encode_with_unstable is tiktoken's and does not know {self._rules}")
        matcher = self._matcher(allowed_special, disallowed_special)
        # Raises for disallowed special tokens and for wrong types.
        encode_whole(self._engine, text, matcher, "strict", "count", repairs=False)
        whole = text if isinstance(text, str) else bytes(text).decode()
        allowed = resolve_allowed(allowed_special, self.special_tokens_set)
        return encode_with_unstable(self, whole, allowed)

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
        """TextTokens: the tokens of a text, to look at: boxes in a notebook, bars with print().

        Each has its id, bytes, rank and span; `as_json()` is a plain value. Special tokens in the
        text are plain text unless it is said otherwise. Raises as `encode_with_offsets`.

        >>> print(enc.show("hello world"))
        hello|·world
        """
        from .views.tokens import show_tokens

        return show_tokens(
            self,
            text,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            add_special_tokens=add_special_tokens,
        )

    def _repr_html_(self) -> str:
        """str: for notebooks: a table of what the encoding is made of."""
        from .views.markup import table_html

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
        """StreamEncoder: takes text in chunks, gives the ids that `encode` gives for the whole.

        Raises UnsupportedPatternError where the pre-tokenization pattern cannot be streamed.
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
        """StreamDecoder: takes ids as they come, gives the text that `decode` gives for all.

        stop: texts that end the stream, see `answers.stops.StoppingDecoder`.
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
        """Iterator[list[int]]: the ids that each chunk makes final, then those of the end.

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

    # Decoding. `decode` and `decode_bytes` are in `_core/texts/fast_path.pxi`.

    def decode_tokens_bytes(self, tokens: Sequence[int] | IdArray) -> list[bytes]:
        """list[bytes]: each token by itself."""
        return [self._decoder.token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Sequence[int] | IdArray) -> tuple[str, list[int]]:
        """(str, list[int]): the text, and for each token the index of its first character in it.

        A token that begins inside a character has that character's index. Raises
        UnicodeDecodeError where the tokens are not UTF-8.
        """
        tokens = list(tokens)
        parts = self.decode_tokens_bytes(tokens)
        if parts:
            parts[0] = self.decode_bytes(tokens[:1])
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

    def _encode_bytes(self, text: bytes) -> list[int]:
        """tiktoken's private method: bytes that are not UTF-8 are merged with the pre-token before.

        With rules that tiktoken does not know, as `encode_ordinary` with "surrogateescape".
        """
        if self._rules != NO_RULES:
            return self.encode_ordinary(text, errors="surrogateescape")
        from .unstable import encode_bytes

        return encode_bytes(self, text)

    def _encode_large(
        self, text: Text, matcher: SpecialMatcher, errors: str, into: str, num_threads: int
    ) -> Any:
        """On several threads; None where that is of no use."""
        return encode_large(self._encoder, self._cuts, text, matcher, errors, into, num_threads)

    def _encode_batch(
        self, texts: Sequence[Text], matcher: SpecialMatcher, errors: str, num_threads: int
    ) -> list[list[int]]:
        return encode_batch(
            self._engine, self._encoder, self._cuts, texts, matcher, errors, num_threads
        )
