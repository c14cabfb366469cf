"""Encoding: what `tokenizers.Encoding` is, with ids from streamtok, and the rest on request.

Ids, masks and types are integers that are known. Offsets are streamtok's where they are the same.
Words and all else are those of the real tokenizer, which encodes the text when they are first asked
for. A call that changes an encoding makes it a real one.
"""

from __future__ import annotations

import contextlib
import copyreg
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tokenizers

from ..errors import StreamtokError

if TYPE_CHECKING:
    from .compiled_tokenizer import Compiled

__all__ = [
    "Encoding",
    "Origin",
    "Padding",
    "Truncation",
    "cut_ranges",
    "padded_length",
    "real_encoding",
]


class Truncation(NamedTuple):
    """What `enable_truncation` was given."""

    max_length: int
    stride: int
    strategy: str
    direction: str


class Padding(NamedTuple):
    """What `enable_padding` was given."""

    length: int | None
    pad_to_multiple_of: int | None
    pad_id: int
    pad_type_id: int
    pad_token: str
    direction: str


_RealEncoding = tokenizers.Encoding
_merge = _RealEncoding.merge  # of one, without growing offsets, it is a copy


class _Kind(type):
    """What `streamtok.hf.Tokenizer` gives is of one class for `isinstance`: pairs, merged and
    unpickled encodings are real ones.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _RealEncoding)


class Origin:
    """A text that was encoded, and how: enough to make the real encoding of each of its parts.

    Shared by the encoding of what was kept and those of what was cut off, and never changed but for
    what it remembers.
    """

    __slots__ = (
        "_real", "_spans", "add_special_tokens", "compiled", "encode_special_tokens", "frame",
        "has_offsets", "ids", "ranges", "text", "truncation",
    )  # fmt: skip

    def __init__(
        self,
        compiled: Compiled,
        text: str,
        ids: list[int],
        add_special_tokens: bool,
        encode_special_tokens: bool,
        has_offsets: bool,
        truncation: Truncation | None,
    ) -> None:
        """ids: those of the text, without the frame, and before truncation."""
        self.compiled = compiled
        self.text = text
        self.ids = ids
        self.add_special_tokens = add_special_tokens
        self.encode_special_tokens = encode_special_tokens
        self.has_offsets = has_offsets
        self.truncation = truncation
        self.frame = frame = compiled.frame(add_special_tokens)
        n = len(ids)
        self.ranges: Sequence[tuple[int, int]] = ((0, n),)  # of the ids of each part
        if truncation is not None and n + frame.size > truncation.max_length:
            most = truncation.max_length - frame.size
            self.ranges = cut_ranges(n, most, truncation.stride, truncation.direction)
        self._real: list[Any] | None = None
        self._spans: list[tuple[int, int]] | None = None

    def real(self, part: int) -> Any:
        """A new real encoding of this part, without padding."""
        parts = self._real
        if parts is None:
            whole = self.compiled.encode_again(self)
            parts = self._real = [whole, *whole.overflowing]
        return _merge([parts[part]], False)

    def spans(self) -> list[tuple[int, int]] | None:
        """The characters of each id of the text; None where the real encoding must be asked."""
        if self._spans is not None:
            return self._spans
        is_cut = len(self.ranges) > 1
        # The first id of a part may keep a space that it loses inside of a text.
        if self._real is not None or (is_cut and self.compiled.keeps_first):
            return None
        spans = None
        with contextlib.suppress(ValueError, StreamtokError):  # an id of several texts
            spans = self.compiled.spans(self.text, self.encode_special_tokens)
        if is_cut:  # the other parts will ask for them
            self._spans = spans
        return spans


class Encoding(metaclass=_Kind):
    """The ids of one text, and what is known of each, as `tokenizers.Encoding`.

    `streamtok.hf.Tokenizer` makes it. Lists are new at each call.
    """

    __slots__ = ("_later", "_made", "_origin", "_pad_to", "_padding", "_part")

    _made: Any  # the real encoding, once it is needed
    _later: Callable[[], Encoding]  # makes the encoding, where there is nothing else yet

    def __init__(
        self, origin: Origin, part: int = 0, padding: Padding | None = None, pad_to: int = 0
    ) -> None:
        """part: 0 is what was kept of the text, and all others what was cut off. padding: what
        fills it up to `pad_to` ids.
        """
        self._origin = origin
        self._part = part
        self._padding = padding
        self._pad_to = pad_to
        self._made = None

    @staticmethod
    def later(make: Callable[[], Encoding]) -> Encoding:
        """Encoding: what `make` makes when it is first looked at."""
        made = Encoding.__new__(Encoding)
        made._later = make
        return made

    def __getattr__(self, name: str) -> Any:
        """A field that is not there yet: make all of them. Others that look wait for that."""
        if name not in _FIELDS:
            raise AttributeError(f"'tokenizers.Encoding' object has no attribute {name!r}")
        with _MAKING:
            if hasattr(self, "_later"):
                made = self._later()
                for field in _FIELDS:
                    setattr(self, field, getattr(made, field))
                del self._later
        return object.__getattribute__(self, name)

    def _pad(self, length: int, padding: Padding) -> None:
        """Pad to `length`, with all that was cut off."""
        self._pad_to = length
        self._padding = padding

    def _real(self) -> Any:
        """The real encoding, which no other object has."""
        if self._made is None:
            made = self._origin.real(self._part)
            if self._padding is not None:
                _, _, pad_id, type_id, token, direction = self._padding
                made.pad(
                    self._pad_to,
                    direction=direction,
                    pad_id=pad_id,
                    pad_type_id=type_id,
                    pad_token=token,
                )
            self._made = made
        return self._made

    def _framed(self, before: Sequence[Any], inner: list[Any], after: Sequence[Any]) -> list[Any]:
        return [*before, *inner, *after] if self._origin.frame.size else inner

    def _padded(self, values: list[Any], filling: Any) -> list[Any]:
        n = self._pad_to - len(values)
        if n <= 0:
            return values
        assert self._padding is not None
        fill = [filling] * n
        return fill + values if self._padding.direction == "left" else values + fill

    @property
    def ids(self) -> list[int]:
        """list[int]: the ids."""
        if self._made is not None:
            return self._made.ids  # type: ignore[no-any-return]
        origin, padding = self._origin, self._padding
        start, stop = origin.ranges[self._part]
        frame = origin.frame
        ids = self._framed(frame.before, origin.ids[start:stop], frame.after)
        return ids if padding is None else self._padded(ids, padding.pad_id)

    @property
    def attention_mask(self) -> list[int]:
        """list[int]: 0 for padding, 1 for all else."""
        if self._made is not None:
            return self._made.attention_mask  # type: ignore[no-any-return]
        return self._padded([1] * self._n, 0)

    @property
    def special_tokens_mask(self) -> list[int]:
        """list[int]: 1 for ids that were added to those of the text, and for padding."""
        if self._made is not None:
            return self._made.special_tokens_mask  # type: ignore[no-any-return]
        frame = self._origin.frame
        before, after = len(frame.before), len(frame.after)
        inner = self._n - before - after
        return self._padded([1] * before + [0] * inner + [1] * after, 1)

    @property
    def type_ids(self) -> list[int]:
        """list[int]: the type of each id, as the post-processor says."""
        if self._made is not None:
            return self._made.type_ids  # type: ignore[no-any-return]
        frame = self._origin.frame
        # The real post-processor gives its type to what was kept only.
        types = [0 if self._part else frame.type] * (self._n - frame.size)
        types = self._framed(frame.before_types, types, frame.after_types)
        return self._padded(types, self._padding.pad_type_id if self._padding else 0)

    @property
    def tokens(self) -> list[str]:
        """list[str]: each id's token as the vocabulary writes it."""
        origin = self._origin
        # Without offsets, the real one has no tokens either.
        if self._made is None and origin.has_offsets:
            start, stop = origin.ranges[self._part]
            names = origin.compiled.names_of(origin.ids[start:stop])
            if names is not None:
                frame = origin.frame
                names = self._framed(frame.before_tokens, names, frame.after_tokens)
                return self._padded(names, self._padding.pad_token if self._padding else "")
        return self._real().tokens  # type: ignore[no-any-return]

    @property
    def overflowing(self) -> list[Any]:
        """list[Encoding]: what was cut off, in pieces."""
        if self._made is not None:
            return self._made.overflowing  # type: ignore[no-any-return]
        if self._part:
            return []
        return [
            Encoding(self._origin, part, self._padding, self._pad_to)
            for part in range(1, len(self._origin.ranges))
        ]

    @property
    def n_sequences(self) -> int:
        """int: how many texts these are the ids of."""
        return self._real().n_sequences if self._made is not None else 1

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """list[tuple[int, int]]: the characters that each id stands for."""
        if self._made is not None:
            return self._made.offsets  # type: ignore[no-any-return]
        origin = self._origin
        none = (0, 0)
        if not origin.has_offsets:
            return [none] * len(self)
        spans = origin.spans()
        if spans is None:
            return self._real().offsets  # type: ignore[no-any-return]
        if len(origin.ranges) > 1:
            start, stop = origin.ranges[self._part]
            spans = spans[start:stop]
        frame = origin.frame
        spans = self._framed([none] * len(frame.before), spans, [none] * len(frame.after))
        return self._padded(spans, none)

    @property
    def word_ids(self) -> list[int | None]:
        """list[int | None]: the word that each id is in."""
        return self._real().word_ids  # type: ignore[no-any-return]

    @property
    def words(self) -> list[int | None]:
        """list[int | None]: the old name of `word_ids`."""
        return self._real().words  # type: ignore[no-any-return]

    @property
    def sequence_ids(self) -> list[int | None]:
        """list[int | None]: the text that each id is of."""
        return self._real().sequence_ids  # type: ignore[no-any-return]

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """int | None: the place of the id that has this character."""
        return self._real().char_to_token(char_pos, sequence_index)  # type: ignore[no-any-return]

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """int | None: the word that has this character."""
        return self._real().char_to_word(char_pos, sequence_index)  # type: ignore[no-any-return]

    def token_to_chars(self, token_index: int) -> Any:
        """The characters of the id at this place."""
        return self._real().token_to_chars(token_index)

    def token_to_sequence(self, token_index: int) -> int | None:
        """int | None: the text that the id at this place is of."""
        return self._real().token_to_sequence(token_index)  # type: ignore[no-any-return]

    def token_to_word(self, token_index: int) -> Any:
        """The word of the id at this place."""
        return self._real().token_to_word(token_index)

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Any:
        """The characters of a word."""
        return self._real().word_to_chars(word_index, sequence_index)

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> Any:
        """The places of a word's ids."""
        return self._real().word_to_tokens(word_index, sequence_index)

    def pad(
        self,
        length: int,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Pad to `length`."""
        self._real().pad(
            length, direction=direction, pad_id=pad_id, pad_type_id=pad_type_id, pad_token=pad_token
        )

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """Cut to `max_length` ids; what is cut off comes into `overflowing`."""
        self._real().truncate(max_length, stride=stride, direction=direction)

    def set_sequence_id(self, sequence_id: int) -> None:
        """Say of which text all ids are."""
        self._real().set_sequence_id(sequence_id)

    @staticmethod
    def merge(encodings: Sequence[Any], growing_offsets: bool = True) -> Any:
        """tokenizers.Encoding: these one after another."""
        return _merge([*map(real_encoding, encodings)], growing_offsets)

    def __len__(self) -> int:
        return len(self._made) if self._made is not None else max(self._n, self._pad_to)

    @property
    def _n(self) -> int:
        """Ids without padding."""
        start, stop = self._origin.ranges[self._part]
        return stop - start + self._origin.frame.size

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self._real(),)

    def __deepcopy__(self, memo: Any) -> Any:
        return _merge([self._real()], False)

    def __copy__(self) -> Any:
        return _merge([self._real()], False)

    def __repr__(self) -> str:
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, "
            "attention_mask, special_tokens_mask, overflowing])"
        )

    # So that isinstance(encoding, tokenizers.Encoding) holds, which callers ask.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return _RealEncoding


_FIELDS = [name for name in Encoding.__slots__ if name != "_later"]
_MAKING = threading.RLock()


def _same(encoding: Any) -> Any:
    return encoding


def _reduced(encoding: Any) -> Any:
    """How a real encoding is pickled: as ever, and also where `tokenizers.Encoding` is streamtok's,
    though pickle looks for its class there.
    """
    if tokenizers.Encoding is _RealEncoding:
        return encoding.__reduce_ex__(2)
    return _restored, (encoding.__getstate__(),)


def _restored(state: bytes) -> Any:
    made = _RealEncoding()
    made.__setstate__(state)
    return made


copyreg.pickle(_RealEncoding, _reduced)


def real_encoding(encoding: Any) -> Any:
    """The real encoding of one that is ours; any other as it is."""
    return encoding._real() if type(encoding) is Encoding else encoding


def padded_length(longest: int, padding: Padding) -> int:
    """To how many ids texts are padded of which the longest has so many."""
    length = longest if padding.length is None else padding.length
    return length + (-length % padding.pad_to_multiple_of if padding.pad_to_multiple_of else 0)


def cut_ranges(n: int, most: int, stride: int, direction: str) -> list[tuple[int, int]]:
    """Where `n` ids are cut into pieces of at most `most`, each with `stride` of the one before."""
    step = most - stride
    ranges: list[tuple[int, int]] = []
    if direction == "right":
        start, stop = 0, min(most, n)
        while stop < n:
            ranges.append((start, stop))
            start += step
            stop = min(start + most, n)
        return [*ranges, (start, stop)]
    start, stop = max(n - most, 0), n
    while start > 0:
        ranges.append((start, stop))
        stop -= step
        start = max(stop - most, 0)
    return [*ranges, (start, stop)]
