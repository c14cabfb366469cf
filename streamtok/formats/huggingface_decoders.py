"""The `decoder` of a tokenizer.json.

Decoding returns the bytes of the tokens, so only what a decoder does beyond that is read: whether
"▁" becomes a space, whether the space before the text is removed again, and how WordPiece joins
tokens. A decoder that loses bytes, such as one without ByteFallback, is not imitated.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from ..engines.rules import MARK
from ..normalizers import ByteLetters, Normalizer
from ..vocabulary.byte_alphabet import to_bytes
from .huggingface_splits import metaspace_scheme
from .json_value import JsonValue
from .loading import BYTE_TEXTS, shown

__all__ = [
    "Decoding", "Marks", "WordPieces", "decoded_bytes", "decoded_texts", "first_texts",
    "read_decoder",
]  # fmt: skip

# The replacements of WordPiece's `cleanup`, in this order.
_CLEANED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"),
    (" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


_CLEANED_STARTS = {found[:2] for found, _ in _CLEANED}


class WordPieces(NamedTuple):
    """The decoder WordPiece: tokens after the first lose their prefix or get a space."""

    prefix: str | None  # None: no token has a prefix, as without a decoder
    cleans: bool

    def decoded(self, tokens: Sequence[str], *, is_first: bool) -> list[str]:
        """The text of each token, as the first of a text or after others."""
        texts, prefix = list(tokens), self.prefix
        if not is_first and prefix is None:
            texts = [" " + token for token in tokens]
        elif not is_first and prefix is not None:
            size = len(prefix)
            texts = [t[size:] if t.startswith(prefix) else " " + t for t in tokens]
        if self.cleans:
            for at, text in enumerate(texts):
                if text[:2] in _CLEANED_STARTS or " " in text[1:]:
                    for found, content in _CLEANED:
                        text = text.replace(found, content)
                    texts[at] = text
        return texts


class Marks(NamedTuple):
    """The decoder Metaspace: "▁" becomes a space, and is removed from the first token."""

    def decoded(self, tokens: Sequence[str], *, is_first: bool) -> list[str]:
        """The text of each token, as the first of a text or after others."""
        return [token.replace(MARK, "" if is_first else " ") for token in tokens]


class Decoding(NamedTuple):
    """What a decoder does beyond returning the bytes of the tokens."""

    marks_are_spaces: bool = False  # a "▁" stands for a space
    drops_first_space: bool = False
    replaces_marks: bool = False
    joins_bytes: bool = False  # an added token <0x41> decodes to that byte
    word_end: str = ""  # becomes a space in each token
    is_byte_level: bool = False  # tokens are in the byte alphabet
    words: WordPieces | Marks | None = None  # if set, it is the whole decoder


def decoded_bytes(
    text: str, decoding: Decoding, is_byte_level: bool = False, has_bytes: bool = True
) -> bytes:
    """The bytes of a token when it follows others.

    is_byte_level: tokens are in the byte alphabet. has_bytes: <0x00> … <0xFF> stand for bytes.
    """
    if decoding.words is not None:
        return decoding.words.decoded([text], is_first=False)[0].encode()
    if decoding.word_end:
        text = text.replace(decoding.word_end, " ")
    if decoding.replaces_marks:
        text = text.replace(MARK, " ")
    if decoding.is_byte_level or (is_byte_level and not decoding.word_end):
        data = to_bytes(text)
        return text.encode() if data is None else data
    byte = BYTE_TEXTS.get(text) if has_bytes else None
    return text.encode() if byte is None else bytes([byte])


def decoded_texts(
    found_texts: dict[str, str],
    decoding: Decoding,
    normalizer: Normalizer,
    made: Container[str] = (),
) -> tuple[tuple[str, bytes], ...]:
    """(text, bytes) of each special or added token that does not decode to its own text.

    found_texts: the text by which each token is found, from `huggingface_added_tokens.found_texts`.
    made: tokens in the byte alphabet that merges also make, from other text.

    Hugging Face's decoder ByteLevel reads all tokens in the byte alphabet, even those found as
    text, such as "õ" (github.com/huggingface/tokenizers/issues/1996). In this reader, such tokens
    decode to their text.
    """
    has_bytes, as_text = decoding.joins_bytes, decoding._replace(is_byte_level=False)
    writes_letters = ByteLetters().spec in normalizer.spec
    decoded = {}
    for text, found in found_texts.items():
        if text in made:
            decoded[text] = decoded_bytes(text, decoding, True, has_bytes)
        else:
            is_letters = writes_letters and found != text
            how = decoding if is_letters else as_text
            decoded[text] = decoded_bytes(found, how, has_bytes=has_bytes)
    return tuple((text, data) for text, data in decoded.items() if data != text.encode())


def first_texts(
    texts: Mapping[int, str], words: WordPieces | Marks
) -> tuple[tuple[tuple[int, str], ...], bool]:
    """The values of `TextRules.first_texts` and `.drops_first_space`. texts: the tokens' texts by
    id.
    """
    tokens = list(texts.values())
    after = words.decoded(tokens, is_first=False)
    rows = list(zip(texts, words.decoded(tokens, is_first=True), after, strict=True))
    few = [(id, first) for id, first, text in rows if first != text.removeprefix(" ")]
    if few:
        return tuple(sorted(few)), True
    return tuple(sorted((id, first) for id, first, text in rows if first != text)), False


def read_decoder(field: JsonValue) -> Decoding:
    """The decoder in this field. Raises VocabularyError for decoders that are not supported."""
    if field.value is None:
        return Decoding(marks_are_spaces=True)
    marks = drops = is_joined = joins_bytes = is_byte_level = False
    word_end = ""
    parts = field.flat("decoders")
    for part in parts:
        kind = part["type"].as_str()
        if kind == "Replace":
            part.allow_only("type", "pattern", "content")
            if part["pattern"].value != {"String": MARK} or part["content"].value != " ":
                part.fail(f"the decoder Replace is supported for {MARK!r} and a space")
            marks = True
        elif kind == "Metaspace":
            marks = True
            drops = metaspace_scheme(part) != "never"
            if part["replacement"].value != MARK:
                part.fail(f"the decoder Metaspace is supported with {MARK!r} alone")
        elif kind == "Strip":
            part.allow_only("type", "content", "start", "stop")
            numbers = part["start"].as_int(), part["stop"].as_int()
            if part["content"].value != " " or numbers != (1, 0) or not is_joined:
                part.fail(
                    "the decoder Strip is supported after Fuse, and for one space at the start"
                )
            drops = True
        elif kind == "Fuse":
            is_joined = True
        elif kind == "ByteFallback":
            joins_bytes = True
        elif kind == "ByteLevel":
            is_byte_level = True
        elif kind == "BPEDecoder":
            part.allow_only("type", "suffix")
            word_end = part["suffix"].as_str()
        elif kind == "WordPiece":
            part.allow_only("type", "prefix", "cleanup")
            if len(parts) > 1:
                part.fail("the decoder WordPiece is supported as the only decoder")
            words = WordPieces(part["prefix"].as_str(), part["cleanup"].as_bool())
            return Decoding(words=words)
        else:
            part.fail(f"the decoder {shown(kind)} is not supported")
    return Decoding(marks, drops, marks, joins_bytes, word_end, is_byte_level)
