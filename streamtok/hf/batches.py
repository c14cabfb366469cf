"""What a call of transformers' tokenizer gives, of ids that come straight from the core.

transformers makes an Encoding of each text, asks it for lists, and makes matrices of these.
`answer` makes what the call returns at once; the encodings in it are made when they are looked at.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import ALL, NO_SPECIAL, encode_documents
from .._core.hf_rows import fill_rows, list_rows
from ..parallel.threads import map_in_threads
from .backend import threads
from .lazy import Encoding, padded_length

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray
    from .backend import Snapshot, Tokenizer
    from .compiled_tokenizer import Compiled, Frame
    from .lazy import Padding

__all__ = ["answer", "is_simple"]

_PER_THREAD = 1 << 17  # characters for which a thread is worth its start
# What a call may ask for. All else, and other values, is transformers' own work.
_SETTINGS = (
    "padding_strategy", "truncation_strategy", "max_length", "stride", "pad_to_multiple_of",
    "padding_side",
)  # fmt: skip
_NEVER = (
    "is_split_into_words", "return_overflowing_tokens", "return_special_tokens_mask",
    "return_length", "sanitize_control_tokens",
)  # fmt: skip
_SIMPLE = {
    "add_special_tokens", "return_token_type_ids", "return_attention_mask", "verbose",
    "return_offsets_mapping", "split_special_tokens",
}  # fmt: skip
_KNOWN = {*_SETTINGS, *_NEVER, *_SIMPLE, "return_tensors"}


def is_simple(options: dict[str, Any]) -> bool:
    """Whether a call with these needs neither padding nor truncation nor matrices."""
    return options.keys() <= _SIMPLE


def answer(tokenizer: Any, texts: Any, options: dict[str, Any]) -> Any:
    """BatchEncoding: what transformers' tokenizer gives for these; None: it must answer itself.

    tokenizer: one that has streamtok's engine. options: those of its `_encode_plus`; without
    settings of padding and truncation there is none.
    """
    is_single = type(texts) is str
    if not is_single and (not isinstance(texts, list | tuple) or not texts):
        return None
    settings, tensors = None, None
    if options and not is_simple(options):
        if (
            not options.keys() <= _KNOWN
            or any(options.get(name) for name in _NEVER)
            or not all(name in options for name in _SETTINGS)
        ):
            return None
        settings = {name: options[name] for name in _SETTINGS}
        tensors = options.get("return_tensors")
    asked = options.get("split_special_tokens")
    encode_special = bool(tokenizer.split_special_tokens if asked is None else asked)
    now = _settled(tokenizer, settings, encode_special)
    max_length = None if settings is None else settings["max_length"]
    is_plain = now.truncation is None and now.padding is None and tensors is None
    names = tokenizer.model_input_names
    asked = options.get("return_token_type_ids")
    has_types = "token_type_ids" in names if asked is None else asked
    asked = options.get("return_attention_mask")
    has_mask = "attention_mask" in names if asked is None else asked
    has_spans = options.get("return_offsets_mapping", False)
    if has_spans and tensors is not None:
        return None
    special = options.get("add_special_tokens", True)
    if now.is_refused:
        return None
    if is_single:
        if is_plain and not has_spans:
            return _of_one(tokenizer, now, texts, special, has_types, has_mask, max_length,
                           options.get("verbose", True))  # fmt: skip
        texts = [texts]
    elif not all(type(text) is str for text in texts):
        return None
    batch = _Batch(now, texts, *_flat(now, texts), special)
    encodings = [Encoding.later(functools.partial(batch.make, row)) for row in range(len(texts))]
    found = (batch.lists if tensors is None else batch.matrices)(has_types, has_mask)
    if found is None:
        return None
    if has_spans:
        found["offset_mapping"] = batch.spans(encodings)
    verbose = options.get("verbose", True)
    if max_length is None and max(batch.width, batch.longest) > tokenizer.model_max_length:
        for row in found["input_ids"]:
            tokenizer._eventual_warn_about_too_long_sequence(row, None, verbose)
    if is_single and tensors is None:
        found = {name: rows[0] for name, rows in found.items()}
    return _made(found, encodings, tensors)


def _settled(tokenizer: Any, settings: dict[str, Any] | None, encode_special: bool) -> Snapshot:
    """What the call goes by. The tokenizer keeps it, as after a call of transformers; but what
    another thread asks for meanwhile is not this call's.
    """
    backend: Tokenizer = tokenizer._tokenizer
    now = backend._now()
    if (
        settings is None
        and now.truncation is None
        and now.padding is None
        and now.encode_special_tokens == encode_special
    ):
        return now
    with backend._lock:
        if settings is None:
            backend.no_truncation()
            backend.no_padding()
        else:
            tokenizer.set_truncation_and_padding(**settings)
        if backend.encode_special_tokens != encode_special:
            backend.encode_special_tokens = encode_special
        return backend._now()


def _of_one(
    tokenizer: Any,
    now: Snapshot,
    text: str,
    add_special_tokens: bool,
    has_types: bool,
    has_mask: bool,
    max_length: int | None,
    verbose: bool,
) -> Any:
    """`answer` for one text that is neither padded nor cut: without rows."""
    ids = now.ids_of(text)
    frame = now.compiled.frame(add_special_tokens)  # type: ignore[union-attr]
    n = len(ids)
    if frame.size:
        ids = [*frame.before, *ids, *frame.after]
    if max_length is None and len(ids) > tokenizer.model_max_length:
        tokenizer._eventual_warn_about_too_long_sequence(ids, None, verbose)
    found = {"input_ids": ids}
    if has_types:
        found["token_type_ids"] = [*frame.before_types, *[frame.type] * n, *frame.after_types]
    if has_mask:
        found["attention_mask"] = [1] * len(ids)

    def make() -> Encoding:
        return now.encoding_of(text, now.ids_of(text), add_special_tokens)

    return _made(found, [Encoding.later(make)], None)


def _made(found: dict[str, Any], encodings: list[Encoding], tensors: Any) -> Any:
    kind, is_known = _batch_encoding()
    if tensors is not None or not is_known:
        return kind(found, encodings, tensor_type=tensors, n_sequences=1)
    made = kind.__new__(kind)  # its initializer copies the dict, which takes longer than to encode
    made.__dict__.update(data=found, _encodings=encodings, _n_sequences=1)
    return made


@functools.lru_cache(maxsize=1)
def _batch_encoding() -> tuple[Any, bool]:
    """transformers' BatchEncoding, and whether we know what is in it."""
    from transformers import BatchEncoding

    made = BatchEncoding({"input_ids": [0]}, [], n_sequences=1)
    known = {"data": {"input_ids": [0]}, "_encodings": [], "_n_sequences": 1}
    return BatchEncoding, vars(made) == known


class _Batch(NamedTuple):
    """Texts and their ids, and what is done with them."""

    now: Snapshot
    texts: Any
    ids: IdArray
    ends: npt.NDArray[np.int64]
    add_special_tokens: bool

    @property
    def compiled(self) -> Compiled:
        return self.now.compiled  # type: ignore[return-value]

    @property
    def padding(self) -> Padding | None:
        return self.now.padding

    @property
    def frame(self) -> Frame:
        return self.compiled.frame(self.add_special_tokens)

    @property
    def most(self) -> int:
        """How many ids of a text are kept."""
        truncation = self.now.truncation
        return len(self.ids) if truncation is None else truncation.max_length - self.frame.size

    @property
    def longest(self) -> int:
        """Ids of the longest row, before padding."""
        return min(int(np.diff(self.ends, prepend=0).max()), self.most) + self.frame.size

    @property
    def width(self) -> int:
        """Ids to which rows are filled."""
        longest = self.longest
        return longest if self.padding is None else padded_length(longest, self.padding)

    @property
    def cuts_left(self) -> bool:
        truncation = self.now.truncation
        return truncation is not None and truncation.direction == "left"

    @property
    def pads_left(self) -> bool:
        return self.padding is not None and self.padding.direction == "left"

    def make(self, row: int) -> Encoding:
        """The encoding of a row."""
        first = int(self.ends[row - 1]) if row else 0
        ids = self.ids[first : self.ends[row]].tolist()
        made = self.now.encoding_of(self.texts[row], ids, self.add_special_tokens)
        if self.padding is not None:
            made._pad(self.width, self.padding)
        return made

    def lists(self, has_types: bool, has_mask: bool) -> dict[str, Any] | None:
        """What the call gives without `return_tensors`."""
        frame, padding = self.frame, self.padding
        table = self.compiled.encoding.definition.encoder.table
        width = 0 if padding is None else self.width
        how = self.most, self.cuts_left, width, self.pads_left

        def rows(ids: Any, before: Any, after: Any, filling: int) -> list[list[int]]:
            return list_rows(table, ids, self.ends, before, after, *how, filling)

        filling = 0 if padding is None else padding.pad_id
        found = {"input_ids": rows(self.ids, frame.before, frame.after, filling)}
        if has_types:
            filling = 0 if padding is None else padding.pad_type_id
            types = np.full_like(self.ids, frame.type)
            found["token_type_ids"] = rows(types, frame.before_types, frame.after_types, filling)
        if has_mask and padding is None:
            found["attention_mask"] = [[1] * len(row) for row in found["input_ids"]]
        elif has_mask:
            ones = (1,) * len(frame.before), (1,) * len(frame.after)
            found["attention_mask"] = rows(np.ones_like(self.ids), *ones, 0)
        return found

    def matrices(self, has_types: bool, has_mask: bool) -> dict[str, Any] | None:
        """What it gives with `return_tensors`; None for rows of several lengths."""
        most, width, frame, padding = self.most, self.width, self.frame, self.padding
        shortest = min(int(np.diff(self.ends, prepend=0).min()), most) + frame.size
        if width < self.longest or (padding is None and shortest < width):
            return None
        found = {"input_ids": np.empty((len(self.texts), width), np.int64)}
        if has_types:
            found["token_type_ids"] = self._types(width)
        mask = np.empty_like(found["input_ids"]) if has_mask else None
        if mask is not None:
            found["attention_mask"] = mask
        fill_rows(
            self.ids, self.ends, found["input_ids"], mask, frame.before, frame.after, most,
            self.cuts_left, self.pads_left, padding.pad_id if padding is not None else 0,
        )  # fmt: skip
        return found

    def _types(self, width: int) -> npt.NDArray[np.int64]:
        frame, padding = self.frame, self.padding
        filling = padding.pad_type_id if padding is not None else 0
        types = np.zeros((len(self.texts), width), np.int64)
        if filling or frame.type or any(frame.before_types) or any(frame.after_types):
            inner = np.full_like(self.ids, frame.type)
            fill_rows(
                inner, self.ends, types, None, frame.before_types, frame.after_types, self.most,
                False, self.pads_left, filling,
            )  # fmt: skip
        return types

    def spans(self, encodings: list[Encoding]) -> list[list[tuple[int, int]]]:
        """The offsets of each row; of those that are cut or out of the ordinary, as its encoding
        gives them.
        """
        texts, frame, most = [*self.texts], self.frame, self.most
        made = self.compiled.spans_of(texts, self.ids, self.ends)
        before, after = [(0, 0)] * len(frame.before), [(0, 0)] * len(frame.after)
        width = 0 if self.padding is None else self.width
        for row, spans in enumerate(made):
            if spans is None or len(spans) > most:
                made[row] = encodings[row].offsets
            elif frame.size or width:
                filling = [(0, 0)] * (width - len(spans) - frame.size)
                ends = (filling, []) if self.pads_left else ([], filling)
                made[row] = [*ends[0], *before, *spans, *after, *ends[1]]
        return made  # type: ignore[return-value]


def _flat(now: Snapshot, texts: Any) -> tuple[IdArray, npt.NDArray[np.int64]]:
    """The ids of all texts in a row, and where those of each end."""
    encoding = now.compiled.encoding  # type: ignore[union-attr]
    allowed: Any = NO_SPECIAL if now.encode_special_tokens else ALL
    if len(texts) == 1:
        ids = encoding.encode_to_numpy(texts[0], allowed_special=allowed, disallowed_special=())
        return ids, np.array([len(ids)], np.int64)
    if encoding.definition.texts.cuts is not None:
        matcher = encoding.definition.specials.matcher(allowed, NO_SPECIAL)
        n = min(threads(), sum(map(len, texts)) // _PER_THREAD + 1, len(texts))
        step = -(-len(texts) // n)
        groups = [list(texts[at : at + step]) for at in range(0, len(texts), step)]

        def encoded(group: list[str]) -> Any:
            return encode_documents(encoding.definition.encoder, matcher, group, "strict", -1, -1)

        found = map_in_threads(encoded, groups, len(groups))
        if all(one is not None for one in found):
            places, total = [], 0
            for ids, ends, _ in found:
                places.append(np.array(ends, np.int64) + total)
                total += len(ids)
            return np.concatenate([one[0] for one in found]), np.concatenate(places)
    rows = encoding.encode_batch(
        texts, num_threads=threads(), allowed_special=allowed, disallowed_special=()
    )
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.uint32, sum(map(len, rows)))
    return flat, np.cumsum([len(row) for row in rows], dtype=np.int64)
