"""Tokenizer: what `tokenizers.Tokenizer` is, over streamtok's engine and the real tokenizer.

The real tokenizer is kept, and every change goes to it. It is compiled when ids are first asked
for, and again after a change. What streamtok has no answer for, or another one, is the real one's
work: pairs, words that are cut already, offsets, training, and all that raises.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import tokenizers
from tokenizers import Tokenizer as RealTokenizer  # also where this one is in its place

from .._core.encode import ALL, NO_SPECIAL
from .compiled_tokenizer import Compiled, Refusal, compile_tokenizer
from .lazy import Encoding, Origin, Padding, Truncation, padded_length, real_encoding

__all__ = ["Snapshot", "Tokenizer", "log_once", "threads"]

_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
_MODEL_SETTINGS = (
    "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
    "byte_fallback", "ignore_merges", "max_input_chars_per_word", "alpha", "nbest_size",
)  # fmt: skip


class Snapshot(NamedTuple):
    """A tokenizer as one call finds it.

    A call reads it once and goes by nothing else, so that what another thread changes meanwhile
    counts as a whole or not at all. It never changes.
    """

    compiled: Compiled | None = None
    reason: str | None = None  # why there is none; with neither, it was not compiled yet
    truncation: Truncation | None = None
    padding: Padding | None = None
    encode_special_tokens: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether the real tokenizer must encode: nothing is compiled, or the settings ask for what
        only it knows: truncation that it would not let be set now, as when the special tokens leave
        less than the stride, or special tokens that are text and hide others.
        """
        compiled, truncation = self.compiled, self.truncation
        if compiled is None or (compiled.special_hides and self.encode_special_tokens):
            return True
        if truncation is None:
            return False
        most = truncation.max_length - compiled.framed.size
        return most <= truncation.stride or truncation.strategy != "longest_first"

    def ids_of(self, text: str) -> list[int]:
        """The ids of a text. Only where it is not refused, as all that follows."""
        encoding = self.compiled.encoding  # type: ignore[union-attr]
        if self.encode_special_tokens:
            return encoding.encode(text, disallowed_special=())
        return encoding.encode(text, allowed_special=ALL)

    def encoding_of(
        self, text: str, ids: list[int], add_special_tokens: bool, has_offsets: bool = True
    ) -> Encoding:
        """The encoding of a text that has these ids, truncated but not padded."""
        compiled: Any = self.compiled
        return Encoding(
            Origin(
                compiled, text, ids, add_special_tokens, self.encode_special_tokens, has_offsets,
                self.truncation,
            )
        )  # fmt: skip


class Tokenizer:
    """A `tokenizers.Tokenizer` whose ids come from streamtok, wherever they are the same.

    It has every method and property of the real one, with the same results, and never refuses a
    tokenizer: `engine` says who encodes, and `reason` why it is not streamtok. A change to this
    object is one to the real tokenizer, which is not to be changed behind its back.
    """

    def __init__(self, real: Any) -> None:
        """real: a `tokenizers.Tokenizer`, or one of these, or a model of `tokenizers.models`."""
        if type(real) is Tokenizer:
            real = real._real
        if isinstance(real, tokenizers.models.Model):
            real = RealTokenizer(real)
        if type(real) is not RealTokenizer:
            raise TypeError(
                f"a tokenizers.Tokenizer is needed, not {type(real).__name__}; of a transformers "
                "tokenizer give streamtok.hf.accelerate(tokenizer)"
            )
        self._begin(real)

    def _begin(self, real: Any) -> None:
        self._real = real
        self._lock = threading.RLock()  # for changes, and to compile
        self._snapshot = Snapshot()
        self._handed_out: dict[str, Any] = {}  # the state of parts that callers may change
        self._read_settings()

    def _read_settings(self) -> None:
        """Take over the real tokenizer's settings. Under the lock."""
        truncation, padding = self._real.truncation, self._real.padding
        self._snapshot = self._snapshot._replace(
            truncation=Truncation(**truncation) if truncation else None,
            padding=Padding(**padding) if padding else None,
            encode_special_tokens=self._real.encode_special_tokens,
        )

    @staticmethod
    def from_file(path: Any) -> Tokenizer:
        """Tokenizer: of a `tokenizer.json`."""
        return Tokenizer(RealTokenizer.from_file(path))

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """Tokenizer: of the text of a `tokenizer.json`."""
        return Tokenizer(RealTokenizer.from_str(json))

    @staticmethod
    def from_buffer(buffer: Any) -> Tokenizer:
        """Tokenizer: of the bytes of a `tokenizer.json`."""
        return Tokenizer(RealTokenizer.from_buffer(buffer))

    @staticmethod
    def from_pretrained(identifier: str, revision: str = "main", token: Any = None) -> Tokenizer:
        """Tokenizer: of a model on the Hub."""
        return Tokenizer(RealTokenizer.from_pretrained(identifier, revision, token))

    # Who encodes

    @property
    def engine(self) -> str:
        """str: who encodes texts, "streamtok" or "tokenizers"."""
        return "tokenizers" if self._now().compiled is None else "streamtok"

    @property
    def reason(self) -> str | None:
        """str | None: why it is not streamtok."""
        return self._now().reason

    @property
    def real(self) -> Any:
        """tokenizers.Tokenizer: the real one. To change it, change this object."""
        return self._real

    def _now(self) -> Snapshot:
        """The tokenizer as it is now, compiled if it can be."""
        if self._handed_out:
            self._look_at_parts()
        now = self._snapshot
        if now.compiled is None and now.reason is None:
            with self._lock:
                if self._snapshot.compiled is None and self._snapshot.reason is None:
                    self._compile()
                now = self._snapshot
        return now

    def _compile(self) -> None:
        try:
            compiled = compile_tokenizer(self._real)
        except Refusal as error:
            log_once(str(error))
            self._snapshot = self._snapshot._replace(reason=str(error))
            return
        if self._handed_out:
            compiled.let_go_of_parts()
        self._snapshot = self._snapshot._replace(compiled=compiled)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Any]:
        """The real tokenizer, to be changed in a `with` block. It is compiled again after that, and
        encodings from before stay what they are.
        """
        with self._lock:
            self._forget()
            yield self._real

    def _forget(self) -> None:
        if self._snapshot.compiled is not None:
            self._snapshot.compiled.let_go()
        self._snapshot = self._snapshot._replace(compiled=None, reason=None)

    def _part(self, name: str) -> Any:
        """A part of the real tokenizer, which its owner may change."""
        with self._lock:
            part = getattr(self._real, name)
            if part is not None:
                if self._snapshot.compiled is not None:
                    self._snapshot.compiled.let_go_of_parts()
                self._handed_out.setdefault(name, _state_of(part))
            return part

    def _look_at_parts(self) -> None:
        """Compile again if a part that was handed out has changed."""
        with self._lock:
            for name, before in [*self._handed_out.items()]:
                state = _state_of(getattr(self._real, name))
                if state != before:
                    self._forget()
                    self._handed_out[name] = state

    # Encoding

    def encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Any:
        """Encoding: of a text; or tokenizers.Encoding: of a pair, or of words."""
        now = self._now()
        if pair is not None or is_pretokenized or type(sequence) is not str or now.is_refused:
            return self._real.encode(sequence, pair, is_pretokenized, add_special_tokens)
        made = now.encoding_of(sequence, now.ids_of(sequence), add_special_tokens)
        if now.padding is not None:
            _pad_all([made], now.padding)
        return made

    def encode_batch(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Any]:
        """list[Encoding]: `encode` of each; a pair is a tuple. Padded to one length, if asked."""
        return self._batch(input, is_pretokenized, add_special_tokens, True)

    def encode_batch_fast(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Any]:
        """list[Encoding]: as `encode_batch`; all offsets are 0."""
        return self._batch(input, is_pretokenized, add_special_tokens, False)

    def _batch(
        self, input: Any, is_pretokenized: bool, add_special_tokens: bool, has_offsets: bool
    ) -> list[Any]:
        now = self._now()
        if (
            is_pretokenized
            or not isinstance(input, list | tuple)
            or now.is_refused
            or not all(type(text) is str for text in input)
        ):
            real = self._real
            encode = real.encode_batch if has_offsets else real.encode_batch_fast
            return encode(input, is_pretokenized, add_special_tokens)  # type: ignore[no-any-return]
        if len(input) == 1:
            rows = [now.ids_of(input[0])]
        else:
            rows = now.compiled.encoding.encode_batch(  # type: ignore[union-attr]
                input,
                num_threads=threads(),
                allowed_special=NO_SPECIAL if now.encode_special_tokens else ALL,
                disallowed_special=(),
            )
        made = [
            now.encoding_of(text, ids, add_special_tokens, has_offsets)
            for text, ids in zip(input, rows, strict=True)
        ]
        if now.padding is not None:
            _pad_all(made, now.padding)
        return made

    def post_process(self, encoding: Any, pair: Any = None, add_special_tokens: bool = True) -> Any:
        """tokenizers.Encoding: truncated, with special tokens, and padded."""
        pair = None if pair is None else real_encoding(pair)
        return self._real.post_process(real_encoding(encoding), pair, add_special_tokens)

    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """int: how many ids are added to those of a text, or of two."""
        return self._real.num_special_tokens_to_add(is_pair)  # type: ignore[no-any-return]

    async def async_encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Any:
        """`encode` on another thread."""
        return await _elsewhere(self.encode, sequence, pair, is_pretokenized, add_special_tokens)

    async def async_encode_batch(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Any]:
        """`encode_batch` on another thread."""
        return await _elsewhere(  # type: ignore[no-any-return]
            self.encode_batch, input, is_pretokenized, add_special_tokens
        )

    async def async_encode_batch_fast(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Any]:
        """`encode_batch_fast` on another thread."""
        return await _elsewhere(  # type: ignore[no-any-return]
            self.encode_batch_fast, input, is_pretokenized, add_special_tokens
        )

    # Decoding

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """str: the text of these ids. Ids that there are not are left out."""
        compiled = self._now().compiled
        if compiled is not None:
            text = _decoded(compiled, ids, skip_special_tokens)
            if text is not None:
                return text
        return self._real.decode(ids, skip_special_tokens)  # type: ignore[no-any-return]

    def decode_batch(
        self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """list[str]: `decode` of each."""
        if self._now().compiled is None or not isinstance(sequences, list | tuple):
            return self._real.decode_batch(  # type: ignore[no-any-return]
                sequences, skip_special_tokens
            )
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    async def async_decode_batch(
        self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """`decode_batch` on another thread."""
        return await _elsewhere(  # type: ignore[no-any-return]
            self.decode_batch, sequences, skip_special_tokens
        )

    # Settings. Each is set on the real tokenizer first, which checks it.

    @property
    def truncation(self) -> dict[str, Any] | None:
        """dict | None: what `enable_truncation` was given."""
        return self._real.truncation  # type: ignore[no-any-return]

    @property
    def padding(self) -> dict[str, Any] | None:
        """dict | None: what `enable_padding` was given."""
        return self._real.padding  # type: ignore[no-any-return]

    def enable_truncation(self, max_length: int, *args: Any, **kwargs: Any) -> None:
        """Cut each text to so many ids."""
        with self._lock:
            self._real.enable_truncation(max_length, *args, **kwargs)
            self._read_settings()

    def no_truncation(self) -> None:
        """Cut no text."""
        with self._lock:
            self._real.no_truncation()
            self._read_settings()

    def enable_padding(self, *args: Any, **kwargs: Any) -> None:
        """Pad each text to one length."""
        with self._lock:
            self._real.enable_padding(*args, **kwargs)
            self._read_settings()

    def no_padding(self) -> None:
        """Pad no text."""
        with self._lock:
            self._real.no_padding()
            self._read_settings()

    @property
    def encode_special_tokens(self) -> bool:
        """bool: whether special tokens in a text are plain text."""
        return self._real.encode_special_tokens  # type: ignore[no-any-return]

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        with self._lock:
            self._real.encode_special_tokens = value
            self._read_settings()

    # Vocabulary

    def add_tokens(self, tokens: Iterable[Any]) -> int:
        """int: how many of these are new."""
        with self._changing() as real:
            return real.add_tokens(tokens)  # type: ignore[no-any-return]

    def add_special_tokens(self, tokens: Iterable[Any]) -> int:
        """int: how many of these are new."""
        with self._changing() as real:
            return real.add_special_tokens(tokens)  # type: ignore[no-any-return]

    def train(self, files: Any, trainer: Any = None) -> None:
        """Train the real tokenizer's model on files."""
        with self._changing() as real:
            real.train(files, trainer)
            _forget_words(real)

    def train_from_iterator(self, iterator: Any, trainer: Any = None, length: Any = None) -> None:
        """Train the real tokenizer's model on texts."""
        with self._changing() as real:
            real.train_from_iterator(iterator, trainer, length)
            _forget_words(real)

    def __getattr__(self, name: str) -> Any:
        """All that is not here: the real tokenizer's."""
        if name == "_real":  # an object that is only just made
            raise AttributeError(name)
        return getattr(self._real, name)

    # Copies

    def __deepcopy__(self, memo: Any) -> Tokenizer:
        twin = Tokenizer.__new__(Tokenizer)
        with self._lock:
            twin._begin(copy.deepcopy(self._real, memo))
            if not self._handed_out:
                now = self._snapshot
                twin._snapshot = twin._snapshot._replace(compiled=now.compiled, reason=now.reason)
        for name, value in self._others().items():
            twin.__dict__[name] = copy.deepcopy(value, memo)
        return twin

    def __copy__(self) -> Tokenizer:
        return copy.deepcopy(self)

    def _others(self) -> dict[str, Any]:
        """Attributes that callers have set."""
        return {name: value for name, value in self.__dict__.items() if name not in _OWN}

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._real.to_str(), self._others())

    def __repr__(self) -> str:
        return repr(self._real)

    def __str__(self) -> str:
        return str(self._real)

    # So that isinstance(tokenizer, tokenizers.Tokenizer) holds, which callers ask.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return RealTokenizer


_OWN = {"_handed_out", "_lock", "_real", "_snapshot"}


def _add_part(name: str) -> None:
    def get(self: Tokenizer) -> Any:
        return self._part(name)

    def set_(self: Tokenizer, value: Any) -> None:
        with self._changing() as real:
            setattr(real, name, value)
            self._handed_out.pop(name, None)
        if value is not None:
            self._part(name)  # the caller has it

    doc = f"The real tokenizer's {name.replace('_', '-')}."
    setattr(Tokenizer, name, property(get, set_, doc=doc))


for _name in _PARTS:
    _add_part(_name)


_LOG = logging.getLogger("streamtok.hf")
_said: set[str] = set()
_MOST_SAID = 100


def log_once(reason: str) -> None:
    """Log why tokenizers encodes, once in a process for each reason."""
    if reason not in _said and len(_said) < _MOST_SAID:
        _said.add(reason)
        _LOG.warning("tokenizers encodes, not streamtok: %s", reason)


def _forget_words(real: Any) -> None:
    """The real model may know words by ids from before."""
    clear = getattr(real.model, "_clear_cache", None)
    if clear is not None:
        clear()


def _state_of(part: Any) -> Any:
    if part is None:
        return None
    if isinstance(part, tokenizers.models.Model):  # its state has the whole vocabulary
        return type(part), [getattr(part, name, None) for name in _MODEL_SETTINGS]
    try:
        return part.__getstate__()
    except Exception:  # one that is written in Python, of which nothing is known
        return object()


def _pad_all(encodings: list[Encoding], padding: Padding) -> None:
    length = padded_length(max(map(len, encodings), default=0), padding)
    for made in encodings:
        made._pad(length, padding)


def _decoded(compiled: Compiled, ids: Any, skip_special_tokens: bool) -> str | None:
    """The text of the ids, where it is sure to be that of the real tokenizer."""
    others = compiled.decodes_otherwise
    if type(ids) is not list or (others and not others.isdisjoint(ids)):
        return None
    try:
        if skip_special_tokens:
            special = compiled.special_ids
            ids = [id for id in ids if id not in special]
        if compiled.decodes_bytes:
            return compiled.encoding.definition.decoder.decode(ids).decode("utf-8", "replace")
        if not compiled.decodes_spaces or (ids and min(ids) < 0):
            return None
        # Bytes that are not whole characters become others there than Python makes of them.
        text = b"".join(map(compiled.texts.__getitem__, ids)).decode()  # type: ignore[arg-type]
    except (KeyError, IndexError, ValueError, OverflowError, TypeError):
        return None
    return text.removeprefix(" ") if compiled.drops_space else text


_OFF = ("0", "false", "no", "off", "n", "f")


def threads() -> int:
    """As many threads as programs let tokenizers have."""
    if os.environ.get("TOKENIZERS_PARALLELISM", "").lower() in _OFF:
        return 1
    return int(os.environ.get("RAYON_NUM_THREADS") or 0) or os.cpu_count() or 1


async def _elsewhere(call: Any, *args: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, functools.partial(call, *args))


def _restored(json: str, others: dict[str, Any]) -> Tokenizer:
    made = Tokenizer(RealTokenizer.from_str(json))
    made.__dict__.update(others)
    return made
