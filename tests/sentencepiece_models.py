"""SentencePiece models that tests train, and such that they write."""

from __future__ import annotations

import functools
import io
import struct

import sentencepiece as spm

from streamtok.formats.protobuf import BYTES, FLOAT, VARINT, fields

from .oracles import PLAIN, corpus_texts


def field(number: int, value: bytes | float) -> bytes:
    """A field on the wire: an int as VARINT, a float as FLOAT, bytes as BYTES."""
    if isinstance(value, bytes):
        return _varint_bytes(number << 3 | BYTES) + _varint_bytes(len(value)) + value
    if isinstance(value, float):
        return _varint_bytes(number << 3 | FLOAT) + struct.pack("<f", value)
    return _varint_bytes(number << 3 | VARINT) + _varint_bytes(value & (1 << 64) - 1)


def _varint_bytes(value: int) -> bytes:
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def processor(data: bytes) -> spm.SentencePieceProcessor:
    theirs = spm.SentencePieceProcessor()
    theirs.LoadFromSerializedProto(data)
    return theirs


@functools.lru_cache
def trained(**settings) -> bytes:
    writer = io.BytesIO()
    lines = [line for text in (*PLAIN, *corpus_texts()) for line in text.split("\n") if line]
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([line[:1000] for line in lines[:600]]),
        model_writer=writer,
        **{
            "model_type": "bpe",
            "vocab_size": 1200,
            "byte_fallback": True,
            "character_coverage": 0.98,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
            "hard_vocab_limit": False,
            "minloglevel": 2,
            **settings,
        },
    )
    return writer.getvalue()


def charsmap_of(data: bytes) -> bytes:
    """The map of a model's normalizer; b"" if it has none."""
    for _, value, place in fields(data, 0, len(data), {3: BYTES}, "model", ""):
        for _, found, _ in fields(data, place, place + len(value), {2: BYTES}, "map", ""):
            return bytes(found)
    return b""


def model(
    pieces: list[tuple[str, float, int]],
    dummy: bool = True,
    trainer: bytes = b"",
    more: bytes = b"",
    normalizer: bytes | None = b"",
) -> bytes:
    parts = [
        field(1, field(1, text.encode()) + field(2, score) + field(3, kind))
        for text, score, kind in pieces
    ]
    parts.append(field(2, trainer or field(3, 2) + field(35, 1)))
    if normalizer is not None:
        identity = field(1, b"identity") + field(3, int(dummy)) + field(4, 0)
        parts.append(field(3, (normalizer or identity) + more))
    return b"".join(parts)


BASE = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
BASE += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
SPACE = ("\u2581", -50.0, 1)
