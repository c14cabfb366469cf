"""Encoding: a `tokenizers.Encoding` with ids from streamtok, and everything else on request.

streamtok provides the ids and masks, the types if the post-processor gives none but 0, and the
offsets if they are certain to be the real tokenizer's. For everything else, the real tokenizer
encodes the text when it is first needed. A call that changes an encoding turns it into a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tokenizers

from .._core.encode import ALL
from .compiled_tokenizer import Compiled, Frame

__all__ = ["Call", "Encoding", "Padding", "Snapshot", "Truncation", "ids_of", "real_encoding"]

_RealEncoding = tokenizers.Encoding
_merge = _RealEncoding.merge  # of a single encoding, without growing offsets, it makes a copy


class Truncation(NamedTuple):
    """The arguments of `enable_truncation`."""

    max_length: int
    stride: int
    strategy: str
    direction: str


class Padding(NamedTuple):
    """The arguments of `enable_padding`."""

    length: int | None
    pad_to_multiple_of: int | None
    pad_id: int
    pad_type_id: int
    pad_token: str
    direction: str


class Snapshot(NamedTuple):
    """The state of a tokenizer for one call. It never changes.

    A call reads it once and uses nothing else, so changes by another thread apply as a whole or not
    at all.
    """

    compiled: Compiled | None = None
    reason: str | None = None  # why `compiled` is None; if both are None, nothing is compiled yet
    truncation: Truncation | None = None
    padding: Padding | None = None
    encode_special_tokens: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether the real tokenizer must encode: nothing is compiled, or only it supports the
        settings. Such settings are a truncation strategy other than longest_first, a stride too
        large for the ids that special tokens leave, and special tokens read as text that hide
        others or are looked up.
        """
        compiled, truncation = self.compiled, self.truncation
        if compiled is None or (compiled.special_hides and self.encode_special_tokens):
            return True
        if truncation is None:
            return False
        most = truncation.max_length - compiled.framed.size
        return most <= truncation.stride or truncation.strategy != "longest_first"


def ids_of(now: Snapshot, text: str) -> list[int]:
    """The ids of a text. `now` must not be refused."""
    encoding = now.compiled.encoding  # type: ignore[union-attr]
    if now.encode_special_tokens:
        return encoding.encode(text, disallowed_special=())
    return encoding.encode(text, allowed_special=ALL)


class Call:
    """Texts that were encoded together, with their settings. It never changes."""

    __slots__ = ("_most", "_row", "add_special_tokens", "has_offsets", "now", "texts")

    def __init__(
        self,
        now: Snapshot,
        texts: list[str],
        row: Callable[[int], list[int]] | None,
        longest: int,
        add_special_tokens: bool,
        has_offsets: bool = True,
    ) -> None:
        """row: returns the ids of a text, without the frame and before truncation; None: the text
        is encoded again. longest: the number of such ids in the longest text.
        """
        self.now = now
        self.texts = texts
        self._row = row
        self.add_special_tokens = add_special_tokens
        self.has_offsets = has_offsets
        self._most = longest

    @property
    def compiled(self) -> Compiled:
        return self.now.compiled  # type: ignore[return-value]

    @property
    def frame(self) -> Frame:
        return self.compiled.frame(self.add_special_tokens)

    @property
    def most(self) -> int:
        """How many ids of a text truncation keeps."""
        truncation = self.now.truncation
        return self._most if truncation is None else truncation.max_length - self.frame.size

    @property
    def longest(self) -> int:
        """How many ids the longest row has, before padding."""
        return min(self._most, self.most) + self.frame.size

    @property
    def width(self) -> int:
        """How many ids rows are padded to; 0 without padding."""
        padding = self.now.padding
        if padding is None:
            return 0
        width = self.longest if padding.length is None else padding.length
        return width + -width % (padding.pad_to_multiple_of or 1)

    @property
    def cuts_left(self) -> bool:
        return self.now.truncation is not None and self.now.truncation.direction == "left"

    @property
    def pads_left(self) -> bool:
        return self.now.padding is not None and self.now.padding.direction == "left"

    @property
    def pad_id(self) -> int:
        return 0 if self.now.padding is None else self.now.padding.pad_id

    def encodings(self) -> list[Encoding]:
        """list[Encoding]: one for each text."""
        return [Encoding(self, row) for row in range(len(self.texts))]

    def kept(self, row: int) -> list[int]:
        """The ids of a text after truncation, without the frame."""
        return self.cut(ids_of(self.now, self.texts[row]) if self._row is None else self._row(row))

    def cut(self, values: list[Any]) -> list[Any]:
        """Truncate a list that has one value for each id of a text."""
        if self.now.truncation is None or len(values) <= self.most:
            return values
        return values[len(values) - self.most :] if self.cuts_left else values[: self.most]


class Encoding:
    """The ids of one text with masks, types and offsets, like a `tokenizers.Encoding`.

    `streamtok.hf.Tokenizer` makes it. Each access returns a new list.
    """

    __slots__ = ("_call", "_kept", "_made", "_row")

    def __init__(self, call: Call, row: int) -> None:
        self._call = call
        self._row = row
        self._kept: list[int] | None = None  # the result of `_inner`, once it is needed
        self._made: Any = None  # the real encoding, once it is needed

    def _inner(self) -> list[int]:
        """The ids of the text after truncation, without frame and padding."""
        if self._kept is None:
            self._kept = self._call.kept(self._row)
        return self._kept

    def _real(self) -> Any:
        """The real encoding, which no other object shares."""
        if self._made is None:
            call, padding = self._call, self._call.now.padding
            made = call.compiled.encode_again(call, self._row)
            if padding is not None:
                made.pad(
                    call.width,
                    direction=padding.direction,
                    pad_id=padding.pad_id,
                    pad_type_id=padding.pad_type_id,
                    pad_token=padding.pad_token,
                )
            self._made = made
        return self._made

    def __getattr__(self, name: str) -> Any:
        """All other attributes are the real encoding's."""
        if not hasattr(_RealEncoding, name):
            raise AttributeError(f"'tokenizers.Encoding' object has no attribute {name!r}")
        return getattr(self._real(), name)

    def _padded(self, values: list[Any], filling: Any) -> list[Any]:
        padding = self._call.now.padding
        if padding is None:
            return values
        n = max(self._call.width - len(values), 0)
        fill = [filling] * n
        return fill + values if padding.direction == "left" else values + fill

    @property
    def ids(self) -> list[int]:
        """list[int]: the ids."""
        if self._made is not None:
            return self._made.ids  # type: ignore[no-any-return]
        frame, padding = self._call.frame, self._call.now.padding
        ids = [*frame.before, *self._inner(), *frame.after]
        return ids if padding is None else self._padded(ids, padding.pad_id)

    @property
    def attention_mask(self) -> list[int]:
        """list[int]: 0 for padding, 1 for everything else."""
        if self._made is not None:
            return self._made.attention_mask  # type: ignore[no-any-return]
        return self._padded([1] * (len(self._inner()) + self._call.frame.size), 0)

    @property
    def special_tokens_mask(self) -> list[int]:
        """list[int]: 1 for ids added around the text and for padding, 0 for the text's ids."""
        if self._made is not None:
            return self._made.special_tokens_mask  # type: ignore[no-any-return]
        frame = self._call.frame
        mask = [1] * len(frame.before) + [0] * len(self._inner()) + [1] * len(frame.after)
        return self._padded(mask, 1)

    @property
    def type_ids(self) -> list[int]:
        """list[int]: the type of each id, as the post-processor sets it."""
        if self._made is not None or self._call.frame.has_types:
            return self._real().type_ids  # type: ignore[no-any-return]
        padding = self._call.now.padding
        types = [0] * (len(self._inner()) + self._call.frame.size)
        return types if padding is None else self._padded(types, padding.pad_type_id)

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """list[tuple[int, int]]: the span of each id in characters of the text."""
        call, none = self._call, [(0, 0)]
        if self._made is None and call.has_offsets:
            found = call.compiled.offsets(call.texts[self._row], call.now.encode_special_tokens)
            if found is not None:
                frame = call.frame
                found = [*none * len(frame.before), *call.cut(found), *none * len(frame.after)]
                return self._padded(found, none[0])
        return self._real().offsets  # type: ignore[no-any-return]

    @property
    def overflowing(self) -> list[Any]:
        """list[tokenizers.Encoding]: the parts that truncation cut off."""
        if self._made is None and self._call.now.truncation is None:
            return []
        return self._real().overflowing  # type: ignore[no-any-return]

    @property
    def n_sequences(self) -> int:
        """int: the number of input texts."""
        return 1 if self._made is None else self._made.n_sequences

    @staticmethod
    def merge(encodings: Sequence[Any], growing_offsets: bool = True) -> Any:
        """tokenizers.Encoding: these encodings, concatenated."""
        return _merge([*map(real_encoding, encodings)], growing_offsets)

    def __len__(self) -> int:
        if self._made is not None:
            return len(self._made)
        return max(len(self._inner()) + self._call.frame.size, self._call.width)

    def __reduce__(self) -> tuple[Any, ...]:
        return real_encoding, (self._real(),)

    def __deepcopy__(self, memo: Any = None) -> Any:
        return _merge([self._real()], False)

    __copy__ = __deepcopy__

    def __repr__(self) -> str:
        return repr(self._real())

    # This makes isinstance(encoding, tokenizers.Encoding) true, which callers check.
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return _RealEncoding


def real_encoding(encoding: Any) -> Any:
    """The real encoding of an `Encoding`; any other object unchanged."""
    return encoding._real() if type(encoding) is Encoding else encoding
