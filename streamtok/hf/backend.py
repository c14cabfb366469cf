"""Tokenizer: a `tokenizers.Tokenizer` on top of streamtok's engine and the real tokenizer.

The real tokenizer is kept, and every change is made to it. It is compiled when ids are first
needed, and again after a change. Where streamtok has no result or a different one, the real
tokenizer does the work: for pairs, words that are already split, some offsets, training, and all
calls that raise.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import logging
import os
import threading
from collections.abc import Sequence
from typing import Any

import tokenizers
from tokenizers import Tokenizer as RealTokenizer  # before a program replaces it

from .._core.encode import ALL, NO_SPECIAL
from ..engines.rules import MARK
from ..errors import UnsupportedPromptError
from ..prompts import Prompt, prompt_of
from .compiled_tokenizer import Compiled, Refusal, compile_tokenizer
from .lazy import Call, Encoding, Padding, Snapshot, Truncation, ids_of, real_encoding

__all__ = ["Tokenizer", "log_once", "threads"]

_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
_MODEL_SETTINGS = (
    "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
    "byte_fallback", "ignore_merges", "max_input_chars_per_word", "alpha", "nbest_size",
)  # fmt: skip


class Tokenizer:
    """A `tokenizers.Tokenizer` whose ids come from streamtok wherever they are the same.

    It has every method and property of the real one, with the same results, and never refuses a
    tokenizer: `engine` names the library that encodes, and `reason` says why it is not streamtok.
    Changes to this object are made to the real tokenizer, which must not be changed directly.
    """

    def __init__(self, real: Any) -> None:
        """real: a `tokenizers.Tokenizer`, a `streamtok.hf.Tokenizer`, or a model of
        `tokenizers.models`.
        """
        if type(real) is Tokenizer:
            real = real._real
        if isinstance(real, tokenizers.models.Model):
            real = RealTokenizer(real)
        if type(real) is not RealTokenizer:
            raise TypeError(
                f"a tokenizers.Tokenizer is needed, not {type(real).__name__}; for a transformers "
                "tokenizer, call streamtok.hf.accelerate(tokenizer)"
            )
        self._begin(real)

    def _begin(self, real: Any) -> None:
        self._real = real
        self._lock = threading.RLock()  # held to change or compile
        self._snapshot = Snapshot()
        self._handed_out: dict[str, Any] = {}  # the state of parts that callers may change
        self._read_settings()

    def _read_settings(self) -> None:
        """Copy the real tokenizer's settings. The lock must be held."""
        truncation, padding = self._real.truncation, self._real.padding
        self._snapshot = self._snapshot._replace(
            truncation=Truncation(**truncation) if truncation else None,
            padding=Padding(**padding) if padding else None,
            encode_special_tokens=self._real.encode_special_tokens,
        )

    @staticmethod
    def from_file(path: Any) -> Tokenizer:
        """Tokenizer: from a `tokenizer.json`."""
        return Tokenizer(RealTokenizer.from_file(path))

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """Tokenizer: from the text of a `tokenizer.json`."""
        return Tokenizer(RealTokenizer.from_str(json))

    @staticmethod
    def from_buffer(buffer: Any) -> Tokenizer:
        """Tokenizer: from the bytes of a `tokenizer.json`."""
        return Tokenizer(RealTokenizer.from_buffer(buffer))

    @staticmethod
    def from_pretrained(identifier: str, revision: str = "main", token: Any = None) -> Tokenizer:
        """Tokenizer: from a model on the Hub."""
        return Tokenizer(RealTokenizer.from_pretrained(identifier, revision, token))

    # The engine

    @property
    def engine(self) -> str:
        """str: the library that encodes texts, "streamtok" or "tokenizers"."""
        return "tokenizers" if self._now().compiled is None else "streamtok"

    @property
    def reason(self) -> str | None:
        """str | None: why streamtok does not encode; None if it does."""
        return self._now().reason

    @property
    def real(self) -> Any:
        """tokenizers.Tokenizer: the real tokenizer. To change it, change this object."""
        return self._real

    def _now(self) -> Snapshot:
        """The tokenizer's current state, compiled if possible."""
        if self._handed_out:
            self._check_parts()
        now = self._snapshot
        if now.compiled is None and now.reason is None:
            with self._lock:
                if self._snapshot.compiled is None and self._snapshot.reason is None:
                    self._compile()
                now = self._snapshot
        return now

    def _compile(self) -> None:
        try:
            self._snapshot = self._snapshot._replace(compiled=compile_tokenizer(self._real))
        except Refusal as error:
            log_once(str(error))
            self._snapshot = self._snapshot._replace(reason=str(error))

    def _forget(self) -> None:
        """Compile again when ids are next needed. Encodings made earlier do not change."""
        self._snapshot = self._snapshot._replace(compiled=None, reason=None)

    def _part(self, name: str) -> Any:
        """A part of the real tokenizer, which the caller may change."""
        with self._lock:
            part = getattr(self._real, name)
            if part is not None:
                self._handed_out.setdefault(name, _state_of(part))
            return part

    def _check_parts(self) -> None:
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
        """Encoding: of a text; tokenizers.Encoding: of a pair, of words, of a Prompt, or of a text
        that the real tokenizer has to encode.
        """
        now = self._now()
        if pair is not None or is_pretokenized or type(sequence) is not str or now.is_refused:
            prompt = prompt_of(sequence)
            if prompt is not None and pair is None and not is_pretokenized:
                return self._encode_prompt(prompt, now, add_special_tokens)
            return self._real.encode(sequence, pair, is_pretokenized, add_special_tokens)
        ids = ids_of(now, sequence)
        return Encoding(Call(now, [sequence], [ids].__getitem__, len(ids), add_special_tokens), 0)

    def _encode_prompt(self, prompt: Prompt, now: Snapshot, add_special_tokens: bool) -> Any:
        """tokenizers.Encoding: of a Prompt, without word ids; offsets refer to `str(prompt)`."""
        if now.compiled is None:
            raise UnsupportedPromptError(
                f"tokenizers encodes here, and it does not know prompts: {now.reason}"
            )
        found, spans = now.compiled.encoding.encode_with_offsets(prompt)
        ids = found.tolist()
        state = {
            "ids": ids,
            "type_ids": [0] * len(ids),
            "tokens": [*map(self._real.id_to_token, ids)],
            "words": [None] * len(ids),
            "offsets": spans.tolist(),
            "special_tokens_mask": [0] * len(ids),
            "attention_mask": [1] * len(ids),
            "overflowing": [],
            "sequence_ranges": {},
        }
        made = tokenizers.Encoding()
        made.__setstate__(json.dumps(state).encode())
        return self._real.post_process(made, None, add_special_tokens)

    def _encode_prompts(self, input: Sequence[Any], add_special_tokens: bool) -> list[Any]:
        """list[tokenizers.Encoding]: of Prompts and texts; with padding, all are equally long."""
        rows = [
            real_encoding(self.encode(one, add_special_tokens=add_special_tokens)) for one in input
        ]
        padding = self._real.padding
        if padding is not None:
            names = ("direction", "pad_id", "pad_type_id", "pad_token")
            longest = max(map(len, rows), default=0)
            for row in rows:
                row.pad(longest, **{name: padding[name] for name in names})
        return rows

    def encode_batch(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Any]:
        """list[Encoding]: the result of `encode` for each input; a pair is a tuple. With padding,
        all are equally long.

        A batch with Prompts must not have pairs.
        """
        return self._batch(input, is_pretokenized, add_special_tokens, True)

    def encode_batch_fast(
        self, input: Any, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> list[Any]:
        """list[Encoding]: as from `encode_batch`, but all offsets are 0."""
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
            if isinstance(input, list | tuple) and any(prompt_of(one) is not None for one in input):
                return self._encode_prompts(input, add_special_tokens)
            real = self._real
            encode = real.encode_batch if has_offsets else real.encode_batch_fast
            return encode(input, is_pretokenized, add_special_tokens)  # type: ignore[no-any-return]
        texts = [*input]  # the caller may change the list before offsets are needed
        if len(texts) == 1:
            rows = [ids_of(now, texts[0])]
        else:
            rows = now.compiled.encoding.encode_batch(  # type: ignore[union-attr]
                texts,
                num_threads=threads(),
                allowed_special=NO_SPECIAL if now.encode_special_tokens else ALL,
                disallowed_special=(),
            )
        longest = max(map(len, rows), default=0)
        call = Call(now, texts, rows.__getitem__, longest, add_special_tokens, has_offsets)
        return call.encodings()

    def post_process(self, encoding: Any, pair: Any = None, add_special_tokens: bool = True) -> Any:
        """tokenizers.Encoding: the encoding, truncated, completed by special tokens, and padded."""
        pair = None if pair is None else real_encoding(pair)
        return self._real.post_process(real_encoding(encoding), pair, add_special_tokens)

    # Decoding

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """str: the text of these ids. Unknown ids are skipped."""
        compiled = self._now().compiled
        if compiled is not None:
            text = _decoded(compiled, ids, skip_special_tokens)
            if text is not None:
                return text
        return self._real.decode(ids, skip_special_tokens)  # type: ignore[no-any-return]

    def decode_batch(
        self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """list[str]: the result of `decode` for each sequence."""
        if self._now().compiled is None or not isinstance(sequences, list | tuple):
            return self._real.decode_batch(  # type: ignore[no-any-return]
                sequences, skip_special_tokens
            )
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    # Settings and vocabulary; see also `_SETTING` and `_CHANGING`.

    @property
    def encode_special_tokens(self) -> bool:
        """bool: whether special tokens in a text are read as plain text."""
        return self._real.encode_special_tokens  # type: ignore[no-any-return]

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        with self._lock:
            self._real.encode_special_tokens = value
            self._read_settings()

    def __getattr__(self, name: str) -> Any:
        """All other attributes are the real tokenizer's."""
        if name == "_real":  # not yet initialized
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

    # This makes isinstance(tokenizer, tokenizers.Tokenizer) true, which callers check.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return RealTokenizer


_OWN = {"_handed_out", "_lock", "_real", "_snapshot"}
_SETTING = ("enable_truncation", "no_truncation", "enable_padding", "no_padding")
_CHANGING = ("add_tokens", "add_special_tokens", "train", "train_from_iterator")
_ASYNC = ("encode", "encode_batch", "encode_batch_fast", "decode_batch")


def _add_change(name: str) -> None:
    """Add a method that calls the real tokenizer's method, which checks the arguments, and then
    updates this tokenizer.
    """

    @functools.wraps(getattr(RealTokenizer, name))
    def change(self: Tokenizer, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            if name in _CHANGING:
                self._forget()
            found = getattr(self._real, name)(*args, **kwargs)
            if name.startswith("train") and hasattr(self._real.model, "_clear_cache"):
                self._real.model._clear_cache()  # the real model caches ids from before training
            self._read_settings()
            return found

    setattr(Tokenizer, name, change)


def _add_async(name: str) -> None:
    call = getattr(Tokenizer, name)

    async def called(self: Tokenizer, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(call, self, *args, **kwargs)

    called.__doc__ = f"`{name}` on another thread."
    setattr(Tokenizer, f"async_{name}", called)


def _add_part(name: str) -> None:
    def get(self: Tokenizer) -> Any:
        return self._part(name)

    def set_(self: Tokenizer, value: Any) -> None:
        with self._lock:
            self._forget()
            setattr(self._real, name, value)
            self._handed_out.pop(name, None)
        if value is not None:
            self._part(name)  # the caller can change it

    doc = f"The real tokenizer's {name.replace('_', '-')}."
    setattr(Tokenizer, name, property(get, set_, doc=doc))


for _name in _PARTS:
    _add_part(_name)
for _name in (*_SETTING, *_CHANGING):
    _add_change(_name)
for _name in _ASYNC:
    _add_async(_name)


@functools.lru_cache(maxsize=100)
def log_once(reason: str) -> None:
    """Log why the `tokenizers` library encodes, once per process for each reason."""
    message = "tokenizers encodes, not streamtok: %s"
    logging.getLogger("streamtok.hf").warning(message, reason)


def _state_of(part: Any) -> Any:
    if part is None:
        return None
    if isinstance(part, tokenizers.models.Model):  # its full state holds the whole vocabulary
        return type(part), [getattr(part, name, None) for name in _MODEL_SETTINGS]
    try:
        return part.__getstate__()
    except Exception:  # written in Python, with unknown state
        return object()


def _decoded(compiled: Compiled, ids: Any, skip_special_tokens: bool) -> str | None:
    """The text of the ids; None if it may differ from the real tokenizer's."""
    renamed = compiled.renamed
    if type(ids) is not list or (renamed and not renamed.isdisjoint(ids)):
        return None
    try:
        if skip_special_tokens:
            special = compiled.special_ids
            ids = [id for id in ids if id not in special]
        if not compiled.decodes_pieces:
            return None
        if compiled.decodes_words:
            return compiled.encoding.decode(ids)
        data = compiled.encoding.definition.decoder.decode(ids)
        # SentencePiece's decoder replaces incomplete characters differently, hence "strict".
        text = data.decode("utf-8", "replace" if compiled.decodes_bytes else "strict")
    except (KeyError, ValueError, OverflowError, TypeError):
        return None
    if compiled.decodes_spaces and MARK in text:
        if not compiled.byte_ids.isdisjoint(ids):  # "▁" from byte tokens does not become a space
            return None
        text = text.replace(MARK, " ")
    return text.removeprefix(" ") if compiled.drops_space else text


_OFF = ("0", "false", "no", "off", "n", "f")


def threads() -> int:
    """The number of threads that the environment allows the `tokenizers` library to use."""
    if os.environ.get("TOKENIZERS_PARALLELISM", "").lower() in _OFF:
        return 1
    return int(os.environ.get("RAYON_NUM_THREADS") or 0) or os.cpu_count() or 1


def _restored(json: str, others: dict[str, Any]) -> Tokenizer:
    made = Tokenizer(RealTokenizer.from_str(json))
    made.__dict__.update(others)
    return made
