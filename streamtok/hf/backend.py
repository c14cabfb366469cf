"""Tokenizer: what `tokenizers.Tokenizer` is, over streamtok's engine and the real tokenizer.

The real tokenizer is kept, and every change goes to it. It is compiled when ids are first asked
for, and again after a change. What streamtok has no answer for, or another one, is the real one's
work: pairs, words that are cut already, offsets, training, and all that raises.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import logging
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import tokenizers
from tokenizers import Tokenizer as RealTokenizer  # also where this one is in its place

from .._core.encode import ALL, NO_SPECIAL, has_surrogate
from ..answers.prompt_cache import PromptCache
from ..errors import UnsupportedPatternError, UnsupportedStreamError
from .compiled_tokenizer import Compiled, Frame, Refusal, compile_tokenizer, texts_of
from .lazy import (
    Encoding,
    Origin,
    Padding,
    Truncation,
    cut_ranges,
    padded_length,
    real_encoding,
)

__all__ = ["Tokenizer", "is_text", "log_once", "threads"]

_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
_MODEL_SETTINGS = (
    "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
    "byte_fallback", "ignore_merges",
)  # fmt: skip
_CACHED_FROM = 4096  # characters of a prompt that a cache may know


class Tokenizer:
    """A `tokenizers.Tokenizer` whose ids come from streamtok, wherever they are the same.

    It has every method and property of the real one, with the same results, and never refuses a
    tokenizer: `engine` says who encodes, and `reason` why it is not streamtok. A change to this
    object is one to the real tokenizer, which is not to be changed behind its back.
    """

    _lock: threading.RLock
    _compiled: Compiled | None
    _refusal: str | None

    def __init__(self, real: Any, *, prompt_cache: int = 0) -> None:
        """real: a `tokenizers.Tokenizer`, or one of these, or a model of `tokenizers.models`.

        prompt_cache: bytes of a `PromptCache` for texts of one prompt each; 0: none.
        """
        if type(real) is Tokenizer:
            real = real._real
        if isinstance(real, tokenizers.models.Model):
            real = RealTokenizer(real)
        if type(real) is not RealTokenizer:
            raise TypeError(
                f"a tokenizers.Tokenizer is needed, not {type(real).__name__}; of a transformers "
                "tokenizer give streamtok.hf.accelerate(tokenizer)"
            )
        self._begin(real, prompt_cache)

    def _begin(self, real: Any, prompt_cache: int) -> None:
        self._real = real
        self._cache_bytes = prompt_cache
        self._lock = threading.RLock()
        self._compiled = None
        self._refusal = None
        self._cache: PromptCache | None = None
        self._handed_out: dict[str, Any] = {}  # parts that callers have, and may change
        self._states: dict[str, Any] = {}  # of these, when they were compiled
        self._read_settings()

    def _read_settings(self) -> None:
        found = self._real.truncation
        self._truncation = Truncation(**found) if found else None
        found = self._real.padding
        self._padding = Padding(**found) if found else None

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
        return "tokenizers" if self._engine() is None else "streamtok"

    @property
    def reason(self) -> str | None:
        """str | None: why it is not streamtok."""
        self._engine()
        return self._refusal

    @property
    def real(self) -> Any:
        """tokenizers.Tokenizer: the real one. To change it, change this object."""
        return self._real

    def _engine(self) -> Compiled | None:
        """What is compiled of the tokenizer as it is now; None if it cannot be."""
        if self._handed_out:
            self._look_at_parts()
        if self._compiled is None and self._refusal is None:
            with self._lock:
                if self._compiled is None and self._refusal is None:
                    self._compile()
        return self._compiled

    def _compile(self) -> None:
        real = self._real
        plain = self._with_settings(None, None, False)
        try:
            self._compiled = compile_tokenizer(real)
        except Refusal as error:
            self._refusal = str(error)
            log_once(self._refusal)
            return
        finally:
            self._with_settings(*plain)
        if self._cache_bytes:
            try:
                self._cache = PromptCache(self._compiled.encoding, self._cache_bytes)
            except (UnsupportedPatternError, UnsupportedStreamError):
                self._cache = None

    def _with_settings(
        self, truncation: Truncation | None, padding: Padding | None, encode_special: bool
    ) -> tuple[Truncation | None, Padding | None, bool]:
        """Let the real tokenizer do this; what it did before. Under the lock."""
        real = self._real
        found = real.truncation, real.padding
        before = (
            Truncation(**found[0]) if found[0] else None,
            Padding(**found[1]) if found[1] else None,
            real.encode_special_tokens,
        )
        if before[0] != truncation:
            real.no_truncation() if truncation is None else real.enable_truncation(
                **truncation._asdict()
            )
        if before[1] != padding:
            real.no_padding() if padding is None else real.enable_padding(**padding._asdict())
        if before[2] != encode_special:
            real.encode_special_tokens = encode_special
        return before

    def _changes(self) -> None:
        """Before a change: encodings that are in use stay what they are."""
        with self._lock:
            self._keep_for_encodings()
            self._forget()

    def _forget(self) -> None:
        self._compiled = None
        self._refusal = None
        self._cache = None

    def _keep_for_encodings(self) -> None:
        """Write down the tokenizer as it is if encodings that are in use may need it later."""
        compiled = self._compiled
        if compiled is not None and compiled.json is None:
            del compiled
            if _references(self.__dict__, "_compiled") > _ONE_REFERENCE:
                self._compiled.json = self._real.to_str()  # type: ignore[union-attr]

    def _part(self, name: str) -> Any:
        """A part of the real tokenizer, which its owner may change."""
        with self._lock:
            self._keep_for_encodings()
            part = getattr(self._real, name)
            if part is not None:
                self._handed_out[name] = part
                self._states.setdefault(name, _state_of(part))
            return part

    def _look_at_parts(self) -> None:
        """Compile again if a part was changed that somebody has, and forget those nobody has."""
        with self._lock:
            for name in [*self._handed_out]:
                state = _state_of(getattr(self._real, name))
                if state != self._states[name]:
                    self._forget()
                    self._states[name] = state
                is_sequence = type(self._handed_out[name]).__name__ == "Sequence"
                if not is_sequence and _references(self._handed_out, name) == _ONE_REFERENCE:
                    del self._handed_out[name], self._states[name]

    # Encoding

    def encode(
        self,
        sequence: Any,
        pair: Any = None,
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Any:
        """Encoding: of a text; or tokenizers.Encoding: of a pair, or of words."""
        compiled = self._engine()
        if (
            compiled is None
            or pair is not None
            or is_pretokenized
            or type(sequence) is not str
            or self._is_refused(compiled, add_special_tokens)
            or not is_text(sequence)
        ):
            return self._real.encode(sequence, pair, is_pretokenized, add_special_tokens)
        encode_special = self._real.encode_special_tokens
        ids = self._ids(compiled, sequence, encode_special)
        made = self._made(
            compiled, sequence, ids, add_special_tokens, encode_special, True, self._truncation
        )
        if self._padding is not None:
            _pad_all([made], self._padding)
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
        compiled = self._engine()
        if (
            compiled is None
            or is_pretokenized
            or not isinstance(input, list | tuple)
            or self._is_refused(compiled, add_special_tokens)
            or not all(type(text) is str and is_text(text) for text in input)
        ):
            real = self._real
            encode = real.encode_batch if has_offsets else real.encode_batch_fast
            return encode(input, is_pretokenized, add_special_tokens)  # type: ignore[no-any-return]
        encode_special = self._real.encode_special_tokens
        if len(input) == 1:
            rows = [self._ids(compiled, input[0], encode_special)]
        else:
            rows = compiled.encoding.encode_batch(
                input,
                num_threads=threads(),
                allowed_special=NO_SPECIAL if encode_special else ALL,
                disallowed_special=(),
            )
        truncation = self._truncation
        made = [
            self._made(
                compiled, text, ids, add_special_tokens, encode_special, has_offsets, truncation
            )
            for text, ids in zip(input, rows, strict=True)
        ]
        if self._padding is not None:
            _pad_all(made, self._padding)
        return made

    def _is_refused(self, compiled: Compiled, add_special_tokens: bool) -> bool:
        """Whether the settings ask for what only the real one knows: truncation that raises or cuts
        to nothing, or special tokens that are text and hide others.
        """
        if compiled.special_hides and self._real.encode_special_tokens:
            return True
        truncation = self._truncation
        if truncation is None:
            return False
        room = truncation.max_length - compiled.frame(add_special_tokens).size
        return room <= truncation.stride or truncation.strategy != "longest_first"

    def _ids(self, compiled: Compiled, text: str, encode_special: bool) -> list[int]:
        if encode_special:
            return compiled.encoding.encode(text, disallowed_special=())
        cache = self._cache
        if cache is not None and len(text) >= _CACHED_FROM:
            return cache.encode(text)
        return compiled.encoding.encode(text, allowed_special=ALL)

    def _made(
        self,
        compiled: Compiled,
        text: str,
        ids: list[int],
        add_special_tokens: bool,
        encode_special: bool,
        has_offsets: bool,
        truncation: Truncation | None,
    ) -> Encoding:
        frame = compiled.frame(add_special_tokens)
        origin = Origin(
            self, compiled, text, add_special_tokens, encode_special, has_offsets, truncation
        )
        if truncation is None or len(ids) + frame.size <= truncation.max_length:
            return Encoding(_framed(ids, frame), frame, origin)
        most = truncation.max_length - frame.size
        ranges = cut_ranges(len(ids), most, truncation.stride, truncation.direction)
        start, stop = ranges[0]
        made = Encoding(_framed(ids[start:stop], frame), frame, origin, start)
        made._overflowing = [
            Encoding(_framed(ids[start:stop], frame), frame, (made, place), start)
            for place, (start, stop) in enumerate(ranges[1:])
        ]
        return made

    def _encode_again(self, origin: Origin) -> Any:
        """The real encoding, without padding."""
        real = self._real
        if origin.compiled is not self._compiled and origin.compiled.json is not None:
            real = RealTokenizer.from_str(origin.compiled.json)
            real.no_padding()
            before = Tokenizer(real)
            before._compiled = origin.compiled
            return before._encode_now(origin)
        return self._encode_now(origin)

    def _encode_now(self, origin: Origin) -> Any:
        real = self._real
        with self._lock:
            before = self._with_settings(origin.truncation, None, origin.encode_special_tokens)
            try:
                if origin.has_offsets:
                    return real.encode(origin.text, add_special_tokens=origin.add_special_tokens)
                (made,) = real.encode_batch_fast(
                    [origin.text], add_special_tokens=origin.add_special_tokens
                )
                return made
            finally:
                self._with_settings(*before)

    def _names_of(self, ids: list[int], origin: Origin) -> list[str] | None:
        """The tokens of these ids; None where an id does not tell."""
        compiled = origin.compiled
        if (
            not origin.has_offsets  # the real one has no tokens then, either
            or not compiled.names_are_tokens
            or compiled is not self._compiled
            or (compiled.renamed and not compiled.renamed.isdisjoint(ids))
        ):
            return None
        names = compiled.names
        try:
            return [*map(names.__getitem__, ids)]
        except KeyError:
            name = self._real.id_to_token
            names.update((id, name(id)) for id in {*ids}.difference(names))
            return [*map(names.__getitem__, ids)]

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
        compiled = self._engine()
        if compiled is not None:
            text = _decoded(compiled, self._real, ids, skip_special_tokens)
            if text is not None:
                return text
        return self._real.decode(ids, skip_special_tokens)  # type: ignore[no-any-return]

    def decode_batch(
        self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True
    ) -> list[str]:
        """list[str]: `decode` of each."""
        compiled = self._engine()
        if compiled is None or not isinstance(sequences, list | tuple):
            return self._real.decode_batch(  # type: ignore[no-any-return]
                sequences, skip_special_tokens
            )
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    def _decoding(self) -> Compiled | None:
        """What is compiled, where the text of ids is that of each, one after the other."""
        compiled = self._compiled if not self._handed_out else self._engine()
        if compiled is None or not (compiled.decodes_bytes or compiled.decodes_spaces):
            return None
        return compiled

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

    # Vocabulary

    def add_tokens(self, tokens: Iterable[Any]) -> int:
        """int: how many of these are new."""
        self._changes()
        return self._real.add_tokens(tokens)  # type: ignore[no-any-return]

    def add_special_tokens(self, tokens: Iterable[Any]) -> int:
        """int: how many of these are new."""
        self._changes()
        return self._real.add_special_tokens(tokens)  # type: ignore[no-any-return]

    def train(self, files: Any, trainer: Any = None) -> None:
        """Train the real tokenizer's model on files."""
        self._changes()
        self._real.train(files, trainer)
        self._forget_words()

    def train_from_iterator(self, iterator: Any, trainer: Any = None, length: Any = None) -> None:
        """Train the real tokenizer's model on texts."""
        self._changes()
        self._real.train_from_iterator(iterator, trainer, length)
        self._forget_words()

    def _forget_words(self) -> None:
        """The real model may know words by ids from before."""
        clear = getattr(self._real.model, "_clear_cache", None)
        if clear is not None:
            clear()

    def __getattr__(self, name: str) -> Any:
        """All that is not here: the real tokenizer's."""
        if name == "_real":  # an object that is only just made
            raise AttributeError(name)
        return getattr(self._real, name)

    # Copies

    def __deepcopy__(self, memo: Any) -> Tokenizer:
        twin = Tokenizer.__new__(Tokenizer)
        with self._lock:
            twin._begin(copy.deepcopy(self._real, memo), self._cache_bytes)
            twin._real.encode_special_tokens = self._real.encode_special_tokens
            if not self._handed_out:
                twin._compiled, twin._refusal = self._compiled, self._refusal
        for name, value in self._others().items():
            twin.__dict__[name] = copy.deepcopy(value, memo)
        return twin

    def __copy__(self) -> Tokenizer:
        return copy.deepcopy(self)

    def _others(self) -> dict[str, Any]:
        """Attributes that callers have set."""
        return {name: value for name, value in self.__dict__.items() if name not in _OWN}

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (
            self._real.to_str(),
            self._real.encode_special_tokens,
            self._cache_bytes,
            self._others(),
        )

    def __repr__(self) -> str:
        return repr(self._real)

    def __str__(self) -> str:
        return str(self._real)

    # So that isinstance(tokenizer, tokenizers.Tokenizer) holds, which callers ask.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return RealTokenizer


_OWN = {
    "_real", "_cache_bytes", "_lock", "_compiled", "_refusal", "_cache", "_handed_out", "_states",
    "_truncation", "_padding",
}  # fmt: skip


def _add_part(name: str) -> None:
    def get(self: Tokenizer) -> Any:
        return self._part(name)

    def set_(self: Tokenizer, value: Any) -> None:
        self._changes()
        setattr(self._real, name, value)
        self._handed_out.pop(name, None)
        self._states.pop(name, None)
        if value is not None:
            self._part(name)

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


def _references(owner: dict[str, Any], name: str) -> int:
    return sys.getrefcount(owner[name])


_ONE_REFERENCE = _references({"": object()}, "")  # when only this module has it


def _state_of(part: Any) -> Any:
    if part is None:
        return None
    if isinstance(part, tokenizers.models.Model):  # its state has the whole vocabulary
        return type(part), [getattr(part, name, None) for name in _MODEL_SETTINGS]
    try:
        return part.__getstate__()
    except Exception:  # one that is written in Python, of which nothing is known
        return object()


def _framed(ids: list[int], frame: Frame) -> list[int]:
    return [*frame.before, *ids, *frame.after] if frame.size else ids


def _pad_all(encodings: list[Encoding], padding: Padding) -> None:
    length = padded_length(max((made._length for made in encodings), default=0), padding)
    for made in encodings:
        made._pad(length, padding)


def is_text(text: str) -> bool:
    """Whether the real tokenizer takes it: no half surrogate pair is in it."""
    return text.isascii() or not has_surrogate(text, 0, len(text))


def _decoded(compiled: Compiled, real: Any, ids: Any, skip_special_tokens: bool) -> str | None:
    """The text of the ids, where it is sure to be that of the real tokenizer."""
    if type(ids) is not list or (compiled.renamed and not compiled.renamed.isdisjoint(ids)):
        return None
    try:
        if skip_special_tokens:
            special = compiled.special_ids
            ids = [id for id in ids if id not in special]
        if compiled.decodes_bytes:
            return compiled.encoding._decoder.decode(ids).decode("utf-8", "replace")
        if not compiled.decodes_spaces or (ids and min(ids) < 0):
            return None
        if not compiled.texts:
            compiled.texts = texts_of(real.get_vocab())
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


def _restored(
    json: str, encode_special: bool, prompt_cache: int, others: dict[str, Any]
) -> Tokenizer:
    made = Tokenizer(RealTokenizer.from_str(json), prompt_cache=prompt_cache)
    made._real.encode_special_tokens = encode_special
    made.__dict__.update(others)
    return made
