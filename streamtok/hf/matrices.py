"""Padded matrices for `return_tensors`: ids go from the engine into rows, with no list in between.

transformers makes a list of ids for each text, and an array of these lists. Where a call needs
nothing else, `as_matrix` makes what the call returns; the encodings in it are made when they are
looked at.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import ALL, NO_SPECIAL, encode_documents
from .._core.hf_rows import fill_rows
from ..parallel.threads import map_in_threads
from .backend import Tokenizer, is_text, threads
from .lazy import Encoding, padded_length

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray
    from .compiled_tokenizer import Compiled, Frame
    from .lazy import Padding, Truncation

__all__ = ["as_matrix"]

_PER_THREAD = 1 << 17  # characters for which a thread is worth its start
# What a call may ask for. All else, and other values, is transformers' own work.
_SETTINGS = (
    "padding_strategy", "truncation_strategy", "max_length", "stride", "pad_to_multiple_of",
    "padding_side",
)  # fmt: skip
_NEVER = (
    "is_split_into_words", "return_overflowing_tokens", "return_special_tokens_mask",
    "return_offsets_mapping", "return_length", "sanitize_control_tokens",
)  # fmt: skip
_ALSO = {
    "add_special_tokens", "return_tensors", "return_token_type_ids", "return_attention_mask",
    "verbose", "split_special_tokens",
}  # fmt: skip
_KNOWN = {*_SETTINGS, *_NEVER, *_ALSO}


def as_matrix(tokenizer: Any, texts: Any, options: dict[str, Any]) -> Any:
    """BatchEncoding: what transformers' tokenizer gives for these; None: it must answer itself.

    tokenizer: one that has streamtok's engine. options: those of its `_encode_plus`.
    """
    texts = [texts] if isinstance(texts, str) else texts
    if (
        options.get("return_tensors") is None
        or not isinstance(texts, list | tuple)
        or not texts
        or any(options.get(name) for name in _NEVER)
        or not options.keys() <= _KNOWN
        or not all(name in options for name in _SETTINGS)
    ):
        return None
    backend: Tokenizer = tokenizer._tokenizer
    tokenizer.set_truncation_and_padding(**{name: options[name] for name in _SETTINGS})
    split = options.get("split_special_tokens")
    split = tokenizer.split_special_tokens if split is None else split
    if backend.encode_special_tokens != split:
        backend.encode_special_tokens = split
    wanted = {
        name: name in tokenizer.model_input_names if asked is None else asked
        for name, asked in (
            ("token_type_ids", options.get("return_token_type_ids")),
            ("attention_mask", options.get("return_attention_mask")),
        )
    }
    made = _encoded(backend, texts, options.get("add_special_tokens", True), wanted)
    if made is None:
        return None
    matrices, encodings = made
    tokenizer._eventual_warn_about_too_long_sequence(
        matrices["input_ids"][0], options["max_length"], options.get("verbose", True)
    )
    from transformers import BatchEncoding

    return BatchEncoding(matrices, encodings, tensor_type=options["return_tensors"])


class _Batch(NamedTuple):
    """Of what each encoding of a matrix is made."""

    tokenizer: Tokenizer
    compiled: Compiled
    texts: Any
    ids: IdArray
    ends: npt.NDArray[np.int64]
    add_special_tokens: bool
    encode_special_tokens: bool
    truncation: Truncation | None
    padding: Padding | None
    width: int

    def make(self, row: int) -> Encoding:
        """The encoding of a row."""
        first = int(self.ends[row - 1]) if row else 0
        made = self.tokenizer._made(
            self.compiled,
            self.texts[row],
            self.ids[first : self.ends[row]].tolist(),
            self.add_special_tokens,
            self.encode_special_tokens,
            True,
            self.truncation,
        )
        if self.padding is not None:
            made._pad(self.width, self.padding)
        return made


def _encoded(
    backend: Tokenizer, texts: Any, add_special_tokens: bool, wanted: dict[str, bool]
) -> tuple[dict[str, Any], list[Any]] | None:
    compiled = backend._engine()
    if (
        compiled is None
        or backend._is_refused(compiled, add_special_tokens)
        or not all(type(text) is str and is_text(text) for text in texts)
    ):
        return None
    frame = compiled.frame(add_special_tokens)
    encode_special = backend.encode_special_tokens
    truncation, padding = backend._truncation, backend._padding
    ids, ends = _flat(compiled, texts, encode_special)
    sizes = np.diff(ends, prepend=0)
    most = int(sizes.max()) if truncation is None else truncation.max_length - frame.size
    longest = min(int(sizes.max()), most) + frame.size
    if padding is not None:
        width = padded_length(longest, padding)
        if width < longest:  # rows of several lengths
            return None
    elif min(int(sizes.min()), most) + frame.size == longest:
        width = longest
    else:
        return None
    matrices = {"input_ids": np.empty((len(texts), width), np.int64)}
    if wanted["token_type_ids"]:
        matrices["token_type_ids"] = _types(frame, padding, len(texts), width, ids, ends, most)
    mask = np.empty_like(matrices["input_ids"]) if wanted["attention_mask"] else None
    if mask is not None:
        matrices["attention_mask"] = mask
    fill_rows(
        ids,
        ends,
        matrices["input_ids"],
        mask,
        frame.before,
        frame.after,
        most,
        truncation is not None and truncation.direction == "left",
        padding is not None and padding.direction == "left",
        padding.pad_id if padding is not None else 0,
    )
    batch = _Batch(
        backend, compiled, texts, ids, ends, add_special_tokens, encode_special, truncation,
        padding, width,
    )  # fmt: skip
    return matrices, [
        Encoding.later(functools.partial(batch.make, row)) for row in range(len(texts))
    ]


def _types(
    frame: Frame,
    padding: Padding | None,
    n: int,
    width: int,
    ids: IdArray,
    ends: npt.NDArray[np.int64],
    most: int,
) -> npt.NDArray[np.int64]:
    filling = padding.pad_type_id if padding is not None else 0
    types = np.zeros((n, width), np.int64)
    if filling or frame.type or any(frame.before_types) or any(frame.after_types):
        pads_left = padding is not None and padding.direction == "left"
        inner = np.full_like(ids, frame.type)
        fill_rows(
            inner, ends, types, None, frame.before_types, frame.after_types, most, False,
            pads_left, filling,
        )  # fmt: skip
    return types


def _flat(
    compiled: Compiled, texts: Any, encode_special: bool
) -> tuple[IdArray, npt.NDArray[np.int64]]:
    """The ids of all texts in a row, and where those of each end."""
    encoding = compiled.encoding
    allowed: Any = NO_SPECIAL if encode_special else ALL
    if encoding._texts.cuts is not None:
        matcher = encoding._matcher(allowed, NO_SPECIAL)
        n = min(threads(), sum(map(len, texts)) // _PER_THREAD + 1, len(texts))
        step = -(-len(texts) // n)
        groups = [list(texts[at : at + step]) for at in range(0, len(texts), step)]

        def encoded(group: list[str]) -> Any:
            return encode_documents(encoding._encoder, matcher, group, "strict", -1, -1)

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
