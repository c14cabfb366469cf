"""Tokenizers of other libraries, given as objects that a program already has.

These are tokenizers' `Tokenizer`, transformers' fast tokenizers, which wrap such an object,
`tiktoken.Encoding`, and sentencepiece's processor. They are recognized by their attributes: none of
these libraries is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import VocabularyError
from .huggingface import read_huggingface
from .json_value import JsonValue, parse_json
from .loading import make_encoding
from .sentencepiece import read_sentencepiece

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["from_object"]


def from_object(given: Any, name: str | None) -> Encoding | None:
    """The encoding of another library's tokenizer; None if `given` is no such object.

    Raises VocabularyError if a file of the same tokenizer would be refused, or if the tokenizer is
    written in Python.
    """
    source = f"<{type(given).__module__.partition('.')[0]}.{type(given).__qualname__}>"
    if isinstance(given, type):
        return None
    if _is_tokenizers_object(given):
        return _from_tokenizers(given, source, name, False)
    if callable(getattr(given, "serialized_model_proto", None)):
        model: bytes = given.serialized_model_proto()
        return read_sentencepiece(model, source, name or "sentencepiece")
    if hasattr(given, "_mergeable_ranks") and hasattr(given, "_pat_str"):
        special = given._special_tokens.items()  # keys may be members of a str enum
        return make_encoding(
            source,
            name or str(given.name),
            pat_str=given._pat_str,
            mergeable_ranks=given._mergeable_ranks,
            special_tokens={str.__str__(text): number for text, number in special},
        )
    backend = getattr(given, "backend_tokenizer", None)
    if backend is not None and _is_tokenizers_object(backend):
        made = _from_tokenizers(backend, source, name or _name_of(given), True)
        eos = getattr(given, "eos_token_id", None)
        if type(eos) is int:
            made.definition.model_settings = made.definition.model_settings._replace(eos=(eos,))
        return made
    if hasattr(given, "convert_tokens_to_ids"):
        raise VocabularyError(
            f"{source}: a tokenizer that is written in Python has no rules that can be read: give "
            "its fast variant (AutoTokenizer gives it), or the model's folder"
        )
    return None


def _is_tokenizers_object(given: Any) -> bool:
    return callable(getattr(given, "to_str", None)) and hasattr(given, "token_to_id")


def _name_of(given: Any) -> str | None:
    """The last part of a transformers tokenizer's `name_or_path`."""
    path = getattr(given, "name_or_path", None)
    return path.rstrip("/").rpartition("/")[2] or None if isinstance(path, str) else None


def _from_tokenizers(given: Any, source: str, name: str | None, is_wrapped: bool) -> Encoding:
    text: str = given.to_str()
    value = parse_json(text.encode(), source, float)  # exact floats, not as tokenizers reads them
    if is_wrapped:  # these two are left over from the latest call
        value |= {"truncation": None, "padding": None}
    return read_huggingface(JsonValue(value, source), name or "tokenizer")
