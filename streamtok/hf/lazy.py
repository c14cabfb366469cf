"""Encoding: what `tokenizers.Encoding` is, with ids from streamtok, and the rest on request.

Ids, masks and types are integers that are known. Tokens, offsets, words and all else are those of
the real tokenizer, which encodes the text when they are first asked for. A call that changes an
encoding makes it a real one.
"""

from __future__ import annotations

import copyreg
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tokenizers

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
        "_real", "add_special_tokens", "compiled", "encode_special_tokens", "frame", "has_offsets",
        "ids", "ranges", "text", "truncation",
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

    def real(self, part: int) -> Any:
        """A new real encoding of this part, without padding."""
        parts = self._real
        if parts is None:
            whole = self.compiled.encode_again(self)
            parts = self._real = [whole, *whole.overflowing]
        return _merge([parts[part]], False)


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
        """A field that is not there yet: make all of them. Others that look wait for that. All that
        is not here is the real encoding's.
        """
        if name not in _FIELDS:
            if name.startswith("_"):
                raise AttributeError(f"'tokenizers.Encoding' object has no attribute {name!r}")
            return getattr(self._real(), name)
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
        """int: the number of input texts."""
        return self._made.n_sequences if self._made is not None else 1

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
