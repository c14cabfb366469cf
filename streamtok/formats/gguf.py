"""The vocabulary in a GGUF file, which holds a model for llama.cpp: BPE, WordPiece or Unigram.

Its keys hold the tokens, their types and scores, the merges, and the name of the pre-tokenizer
(`gguf_patterns.py`). They are passed to the reader of the format that they came from: "gpt2" (BPE
of bytes), "gemma4" (BPE of characters) and "bert" (WordPiece) as a tokenizer.json, "llama" (BPE by
scores) and "t5" (Unigram) as SentencePiece's pieces. Any other model raises an error that names it.

Ids are those of llama.cpp when it does not parse special tokens: control tokens and the unknown
token are special tokens here, and user-defined tokens are always found. `add_special_tokens=True`
adds the ids that the file puts around a text. For "t5", llama.cpp adds up scores as float64, but
SentencePiece and this reader as float32, so they may cut a text differently where two ways have
nearly equal scores. (github.com/ggml-org/llama.cpp, MIT)
"""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np

from ..encoding import Encoding, changed
from ..engines.rules import MARK
from ..engines.template import Template
from ..errors import VocabularyError
from .gguf_patterns import LOOKED_UP, PRE_TOKENIZERS
from .huggingface import read_huggingface
from .json_value import JsonValue
from .loading import MAX_FILE_BYTES, shown, without_collection
from .sentencepiece import BPE, CONTROL, NORMAL, UNIGRAM, UNKNOWN, UNUSED, USER_DEFINED
from .sentencepiece import encoding_of_pieces as of_pieces
from .sentencepiece_normalizer import CHARSMAP, DUMMY, EXTRA

if TYPE_CHECKING:
    from .protobuf import Value

__all__ = ["GGUF_MAGIC", "read_gguf"]

GGUF_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_PREFIX = "tokenizer.ggml."
# The types of numbers.
_NUMBERS = {
    0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8",
    11: "<i8", 12: "<f8",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
_LINES = (r"[^\n]+|\n+",)
_NO_LIMIT = 1 << 62  # characters of a word


@without_collection()
def read_gguf(source: str, name: str) -> Encoding:
    """The encoding in a GGUF file.

    Raises OSError, and VocabularyError naming the file and the damage or the unsupported feature.
    """
    with open(source, "rb") as file:
        keys = JsonValue(_read_keys(file, source), f"{source}: {_PREFIX[:-1]}")
    model = keys["model"].as_str()
    texts = [text or f"[EMPTY_{id}]" for id, text in enumerate(_list(keys["tokens"], str))]
    types = _list(keys["token_type"], int) or [NORMAL] * len(texts)
    if len(types) != len(texts):
        keys.fail(f"there are {len(texts)} tokens and {len(types)} types of tokens")
    if model in ("llama", "t5"):
        made = _from_pieces(keys, model, texts, types, source, name)
    elif model in ("gpt2", "gemma4", "bert"):
        made = _from_json(keys, model, texts, types, source, name)
    else:
        keys.fail(
            f"the tokenizer model {shown(model)} is not supported: expected gpt2, gemma4, llama, "
            "bert or t5"
        )

    def ids(*names: str) -> tuple[int, ...]:
        """The ids in these keys; as in llama.cpp, numbers that are not ids are ignored."""
        return tuple(keys[key].as_int() for key in names if keys[key].value in range(len(texts)))

    is_words = model == "bert"
    is_begun = model == "llama" or is_words or keys["pre"].value in LOOKED_UP  # by default
    before = ids("bos_token_id") or ids(*["cls_token_id"] * is_words)
    after = ids("seperator_token_id" if is_words else "eos_token_id")  # sic
    if not keys["add_bos_token"].as_bool(is_begun):
        before = ()
    if not (is_words or keys["add_eos_token"].as_bool(model == "t5")):
        after = ()
    encoding = changed(made, template=Template(before, after))
    settings = encoding.definition.model_settings
    ends = dict.fromkeys(ids("eos_token_id", "eot_token_id", "eom_token_id"))
    encoding.definition.model_settings = settings._replace(eos=tuple(ends))
    return encoding


def _read_keys(file: BinaryIO, source: str) -> dict[str, Any]:
    """The values of the keys `tokenizer.ggml.…`, which precede the tensors."""
    left = min(os.fstat(file.fileno()).st_size, MAX_FILE_BYTES)

    def fail(what: str) -> NoReturn:
        raise VocabularyError(f"{source}: a damaged GGUF file, before byte {file.tell()}: {what}")

    def take(size: int) -> bytes:
        nonlocal left
        left -= size
        data = file.read(size) if left >= 0 else b""
        if len(data) < size:
            fail(f"expected {size} more bytes, within the first {MAX_FILE_BYTES >> 20} MiB")
        return data

    def number(size: int) -> int:
        return int.from_bytes(take(size), "little")

    def text() -> str:
        try:
            return take(number(8)).decode()
        except UnicodeDecodeError as error:
            fail(str(error))

    def values(kind: int, count: int) -> list[Any]:
        if kind == _STRING:
            return [text() for _ in range(count)]
        if kind not in _NUMBERS:
            fail(f"a value of type {kind}")
        dtype = np.dtype(_NUMBERS[kind])
        numbers: list[Any] = np.frombuffer(take(count * dtype.itemsize), dtype).tolist()
        return numbers

    take(len(GGUF_MAGIC))
    version = number(4)
    if version not in _VERSIONS:
        raise VocabularyError(
            f"{source}: version {version} of GGUF is not supported: expected 2, 3"
        )
    number(8)  # the number of tensors
    found: dict[str, Any] = {}
    for _ in range(number(8)):
        key, kind = text(), number(4)
        if kind == _ARRAY:
            kind = number(4)
            value = values(kind, number(8))
        else:
            value = values(kind, 1)[0]
        if key.startswith(_PREFIX):
            found[key.removeprefix(_PREFIX)] = value
    return found


def _list(field: JsonValue, kind: type) -> list[Any]:
    """The values of an array, which must be of the type `kind`; an empty list if it is missing."""
    values = [] if field.value is None else field.as_list()
    if values and type(values[0]) is not kind:
        field.fail(f"expected values of type {kind.__name__}, found {shown(values[0])}")
    return values


def _from_pieces(
    keys: JsonValue, model: str, texts: list[str], types: list[int], source: str, name: str
) -> Encoding:
    """The encoding of a SentencePiece model. With BPE, unused pieces are treated as normal ones."""
    scores = _list(keys["scores"], float)
    if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
        keys.fail(
            f"there are {len(texts)} tokens and {len(scores)} scores, which must all be finite"
        )
    if model == "llama":
        types = [NORMAL if type == UNUSED else type for type in types]
    charsmap = np.array(_list(keys["precompiled_charsmap"], int), np.int64)
    normalizer: dict[int, Value] = {
        DUMMY: keys["add_space_prefix"].as_bool(True),
        EXTRA: keys["remove_extra_whitespaces"].as_bool(model == "t5"),
        CHARSMAP: charsmap.astype(np.uint8).tobytes(),
    }
    kind = BPE if model == "llama" else UNIGRAM
    pieces = [*zip(texts, scores, types, strict=True)]
    return of_pieces(pieces, kind, "<0x00>" in texts, normalizer, source, name)


def _from_json(
    keys: JsonValue, model: str, texts: list[str], types: list[int], source: str, name: str
) -> Encoding:
    """The encoding of any other model, read as a tokenizer.json. Raises VocabularyError for a text
    with two ids.
    """
    is_special = {text: type in (CONTROL, UNKNOWN) for text, type in zip(texts, types, strict=True)}
    if len(is_special) < len(texts):
        twice = next(text for text, count in Counter(texts).items() if count > 1)
        keys.fail(f"the token {shown(twice)} is given twice")
    added = [
        {"id": id, "content": text, "special": is_special[text], "normalized": False}
        for id, (text, type) in enumerate(zip(texts, types, strict=True))
        if is_special[text] or type == USER_DEFINED
    ]
    parts = _words(keys, texts, is_special) if model == "bert" else _merges(keys, model, texts)
    return read_huggingface(JsonValue({"added_tokens": added, **parts}, source), name)


def _merges(keys: JsonValue, model: str, texts: list[str]) -> dict[str, Any]:
    pre = model
    if model == "gpt2":
        pre = "default" if keys["pre"].value is None else keys["pre"].as_str()
    is_byte_level = model == "gpt2" and pre not in ("gemma4", "granite-embed-multi-311m")
    patterns = PRE_TOKENIZERS.get(pre) if is_byte_level else _LINES
    if patterns is None:
        keys["pre"].fail(f"the pre-tokenizer {shown(pre)} is not supported")
    cuts: list[dict[str, Any]] = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
        for pattern in patterns
    ]
    marks = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
    spaces = {"type": "Replace", "pattern": {"String": MARK}, "content": " "}
    from_bytes = {
        "type": "Sequence", "decoders": [spaces, {"type": "ByteFallback"}, {"type": "Fuse"}],
    }  # fmt: skip
    return {
        "normalizer": None if is_byte_level else marks,
        "pre_tokenizer": {
            "type": "Sequence", "pretokenizers": [*cuts, _BYTE_LEVEL] if is_byte_level else cuts,
        },
        "decoder": _BYTE_LEVEL if is_byte_level else from_bytes,
        "model": {
            "type": "BPE", "byte_fallback": not is_byte_level, "ignore_merges": pre in LOOKED_UP,
            "vocab": {text: id for id, text in enumerate(texts)},
            "merges": _list(keys["merges"], str),
        },
    }  # fmt: skip


def _words(keys: JsonValue, texts: list[str], is_special: dict[str, bool]) -> dict[str, Any]:
    """The parts of BERT's tokenizer.json. A GGUF file writes "▁" before tokens that begin a word;
    BERT writes "##" before all others.
    """
    vocab: dict[str, int] = {}
    for id, text in enumerate(texts):
        if not is_special[text]:
            text = text[1:] if text.startswith(MARK) else f"##{text}"
        vocab.setdefault(text, id)
    lowercase = keys["normalizer.lowercase"].as_bool(True)
    unknown = 100 if keys["unknown_token_id"].value is None else keys["unknown_token_id"].as_int()
    return {
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
            "strip_accents": keys["normalizer.strip_accents"].as_bool(lowercase),
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": _NO_LIMIT, "vocab": vocab,
            "unk_token": texts[unknown] if unknown in range(len(texts)) else "",
        },
    }  # fmt: skip
