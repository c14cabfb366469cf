"""Answers calls to transformers' tokenizers directly from the core's ids.

transformers makes an Encoding of each text, reads lists from it, and makes matrices from the lists.
`answer` makes the call's result directly; the encodings in it compute their ids when needed.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import ALL, NO_SPECIAL
from .._core.hf_rows import fill_rows, list_rows
from .backend import threads
from .lazy import Call, Encoding, ids_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray
    from .backend import Tokenizer
    from .lazy import Snapshot

__all__ = ["answer", "is_simple"]

# Known options; transformers handles calls with any others.
_SETTINGS = (
    "padding_strategy", "truncation_strategy", "max_length", "stride", "pad_to_multiple_of",
    "padding_side",
)  # fmt: skip
_UNSUPPORTED = (
    "is_split_into_words", "return_overflowing_tokens", "return_special_tokens_mask",
    "return_length", "sanitize_control_tokens",
)  # fmt: skip
_SIMPLE = {
    "add_special_tokens", "return_token_type_ids", "return_attention_mask", "verbose",
    "return_offsets_mapping", "split_special_tokens",
}  # fmt: skip
_KNOWN = {*_SETTINGS, *_UNSUPPORTED, *_SIMPLE, "return_tensors"}


def is_simple(options: dict[str, Any]) -> bool:
    """Whether a call with these options needs no padding, no truncation and no matrices."""
    return not options or options.keys() <= _SIMPLE


def answer(tokenizer: Any, texts: Any, options: dict[str, Any]) -> Any:
    """BatchEncoding: as transformers' tokenizer returns it; None if transformers has to make it.

    tokenizer: a tokenizer with streamtok's engine. options: those of its `_encode_plus`; if they
    have no settings of padding and truncation, neither is applied.
    """
    is_single = type(texts) is str
    if not is_single and (not isinstance(texts, list | tuple) or not texts):
        return None
    settings, tensors = None, None
    if not is_simple(options):
        if (
            not options.keys() <= _KNOWN
            or any(options.get(name) for name in _UNSUPPORTED)
            or not all(name in options for name in _SETTINGS)
        ):
            return None
        settings = {name: options[name] for name in _SETTINGS}
        tensors = options.get("return_tensors")
    asked = options.get("split_special_tokens")
    encode_special = bool(tokenizer.split_special_tokens if asked is None else asked)
    now = _snapshot_for(tokenizer, settings, encode_special)
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
    if has_types and (
        now.compiled.frame(special).has_types  # type: ignore[union-attr]
        or (now.padding is not None and now.padding.pad_type_id)
    ):
        return None
    verbose = options.get("verbose", True)
    if is_single:
        if is_plain and not has_spans:
            return _answer_one(
                tokenizer, now, texts, special, has_types, has_mask, max_length, verbose
            )
        texts = [texts]
    elif not all(type(text) is str for text in texts):
        return None
    ids, ends = _flat(now, texts)

    def row(number: int) -> list[int]:
        return ids[ends[number - 1] if number else 0 : ends[number]].tolist()  # type: ignore[no-any-return]

    longest = int(np.diff(ends, prepend=0).max())
    call = Call(now, [*texts], row, longest, special)
    found = (_lists if tensors is None else _matrices)(call, ids, ends, has_types, has_mask)
    if found is None:
        return None
    encodings = call.encodings()
    if has_spans:
        found["offset_mapping"] = [one.offsets for one in encodings]
    if max_length is None and max(call.width, call.longest) > tokenizer.model_max_length:
        for made in found["input_ids"]:
            tokenizer._eventual_warn_about_too_long_sequence(made, None, verbose)
    if is_single and tensors is None:
        found = {name: rows[0] for name, rows in found.items()}
    return _result(found, encodings, tensors)


def _snapshot_for(
    tokenizer: Any, settings: dict[str, Any] | None, encode_special: bool
) -> Snapshot:
    """The tokenizer's state with the settings of this call. The tokenizer keeps the settings, as it
    does after a call in transformers. Changes that other threads make in the meantime do not affect
    this call.
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


def _answer_one(
    tokenizer: Any,
    now: Snapshot,
    text: str,
    add_special_tokens: bool,
    has_types: bool,
    has_mask: bool,
    max_length: int | None,
    verbose: bool,
) -> Any:
    """The result of `answer` for one text that is neither padded nor truncated."""
    ids = ids_of(now, text)
    frame = now.compiled.frame(add_special_tokens)  # type: ignore[union-attr]
    n = len(ids)
    if frame.size:
        ids = [*frame.before, *ids, *frame.after]
    if max_length is None and len(ids) > tokenizer.model_max_length:
        tokenizer._eventual_warn_about_too_long_sequence(ids, None, verbose)
    found = {"input_ids": ids}
    if has_types:
        found["token_type_ids"] = [0] * len(ids)
    if has_mask:
        found["attention_mask"] = [1] * len(ids)

    # The call does not keep the list of ids, because its caller may change it.
    call = Call(now, [text], None, n, add_special_tokens)
    return _result(found, [Encoding(call, 0)], None)


def _result(found: dict[str, Any], encodings: list[Encoding], tensors: Any) -> Any:
    kind, is_known = _batch_encoding()
    if tensors is not None or not is_known:
        return kind(found, encodings, tensor_type=tensors, n_sequences=1)
    made = kind.__new__(kind)  # its initializer copies the dict, which takes longer than encoding
    made.data, made._encodings, made._n_sequences = found, encodings, 1
    return made


@functools.lru_cache(maxsize=1)
def _batch_encoding() -> tuple[Any, bool]:
    """transformers' BatchEncoding, and whether its attributes are the expected ones."""
    from transformers import BatchEncoding

    made = BatchEncoding({"input_ids": [0]}, [], n_sequences=1)
    known = {"data": {"input_ids": [0]}, "_encodings": [], "_n_sequences": 1}
    return BatchEncoding, vars(made) == known


def _lists(
    call: Call, ids: IdArray, ends: npt.NDArray[np.int64], has_types: bool, has_mask: bool
) -> dict[str, Any]:
    """The result without `return_tensors`: lists."""
    table = call.compiled.encoding.definition.encoder.table
    frame, how = call.frame, (call.most, call.cuts_left, call.width, call.pads_left)

    def rows(ids: Any, before: Any, after: Any, filling: int) -> list[list[int]]:
        return list_rows(table, ids, ends, before, after, *how, filling)

    found = {"input_ids": rows(ids, frame.before, frame.after, call.pad_id)}
    if has_types:
        found["token_type_ids"] = [[0] * len(row) for row in found["input_ids"]]
    if has_mask and not call.width:
        found["attention_mask"] = [[1] * len(row) for row in found["input_ids"]]
    elif has_mask:
        ones = (1,) * len(frame.before), (1,) * len(frame.after)
        found["attention_mask"] = rows(np.ones_like(ids), *ones, 0)
    return found


def _matrices(
    call: Call, ids: IdArray, ends: npt.NDArray[np.int64], has_types: bool, has_mask: bool
) -> dict[str, Any] | None:
    """The result with `return_tensors`: matrices; None if rows differ in length."""
    width, frame, most = call.width or call.longest, call.frame, call.most
    shortest = min(int(np.diff(ends, prepend=0).min()), most) + frame.size
    if width < call.longest or (not call.width and shortest < width):
        return None
    found = {"input_ids": np.empty((len(ends), width), np.int64)}
    if has_types:
        found["token_type_ids"] = np.zeros((len(ends), width), np.int64)
    mask = np.empty_like(found["input_ids"]) if has_mask else None
    if mask is not None:
        found["attention_mask"] = mask
    fill_rows(
        ids, ends, found["input_ids"], mask, frame.before, frame.after, most, call.cuts_left,
        call.pads_left, call.pad_id,
    )  # fmt: skip
    return found


def _flat(now: Snapshot, texts: Any) -> tuple[IdArray, npt.NDArray[np.int64]]:
    """(ids, ends): the ids of all texts in one array, and the position in it where each text's ids
    end.
    """
    encoding = now.compiled.encoding  # type: ignore[union-attr]
    allowed: Any = NO_SPECIAL if now.encode_special_tokens else ALL
    if len(texts) == 1:
        ids = encoding.encode_to_numpy(texts[0], allowed_special=allowed, disallowed_special=())
        return ids, np.array([len(ids)], np.int64)
    definition = encoding.definition
    matcher = definition.specials.matcher(allowed, ())
    return definition.texts.encode_flat(texts, matcher, "strict", threads())
