"""Encodings by name: the vocabulary, the pre-tokenization pattern and the special tokens of each.

Names, models, patterns, special tokens and exceptions are those of tiktoken 0.14. All vocabularies
come with the package: no name needs a network.

tiktoken's plug-ins (`tiktoken_ext`) are not supported: make an `Encoding` instead.
"""

from __future__ import annotations

import functools
import importlib
import sys
from _thread import RLock  # importing `threading` takes longer than this whole file
from typing import TYPE_CHECKING, NamedTuple

# Absolute imports: this file is also imported as `tiktoken.registry` (see its end).
from streamtok.encoding import Encoding
from streamtok.files import shown
from streamtok.patterns.named import CL100K_PATTERN, O200K_PATTERN, R50K_PATTERN
from streamtok.vocabulary.bundled import load_bundled, load_p50k
from streamtok.vocabulary.table import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = [
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
]

ENCODINGS: dict[str, Encoding] = {}  # those loaded in this process
_lock = RLock()


def get_encoding(encoding_name: str) -> Encoding:
    """The encoding with this name, the same object each time.

    Raises `ValueError` for an unknown name, and `VocabularyError` if its vocabulary is damaged. The
    first call for a name takes tens of milliseconds to load the vocabulary.

    >>> get_encoding("r50k_base").name
    'r50k_base'
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"Expected a string in get_encoding, got {type(encoding_name)}")
    if encoding_name in ENCODINGS:
        return ENCODINGS[encoding_name]
    if encoding_name not in SPECS:
        name = shown(encoding_name)
        raise ValueError(f"Unknown encoding {name}: expected one of {', '.join(SPECS)}")
    with _lock:
        if encoding_name not in ENCODINGS:
            spec = SPECS[encoding_name]
            made = Encoding(
                encoding_name,
                pat_str=spec.pat_str,
                mergeable_ranks=_vocabulary(spec.vocabulary),
                special_tokens=dict(spec.special_tokens),
                explicit_n_vocab=spec.explicit_n_vocab,
            )
            made._origin = get_encoding, (encoding_name,)
            ENCODINGS[encoding_name] = made
        return ENCODINGS[encoding_name]


def list_encoding_names() -> list[str]:
    """The names that `get_encoding` accepts.

    >>> "cl100k_base" in list_encoding_names()
    True
    """
    return list(SPECS)


def encoding_name_for_model(model_name: str) -> str:
    """The name of the encoding that an OpenAI model uses.

    A known prefix is enough, so dated and fine-tuned models are recognized. Raises `KeyError` for
    an unknown model.

    >>> encoding_name_for_model("gpt-4o-2024-05-13")
    'o200k_base'
    """
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix, encoding_name in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding_name
    raise KeyError(
        f"Could not automatically map {shown(model_name)} to a tokeniser. "
        "Please use `streamtok.get_encoding` to explicitly get the tokeniser you expect."
    )


def encoding_for_model(model_name: str) -> Encoding:
    """The encoding that an OpenAI model uses. Raises `KeyError` for an unknown model.

    >>> encoding_for_model("gpt-2").name
    'gpt2'
    """
    return get_encoding(encoding_name_for_model(model_name))


class _Spec(NamedTuple):
    vocabulary: str
    pat_str: str
    special_tokens: Mapping[str, int]
    explicit_n_vocab: int | None = None


_GPT2_SPECIAL = {"<|endoftext|>": 50256}
_P50K_EDIT_SPECIAL = {
    "<|endoftext|>": 50256,
    "<|fim_prefix|>": 50281,
    "<|fim_middle|>": 50282,
    "<|fim_suffix|>": 50283,
}
_CL100K_SPECIAL = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}
_O200K_SPECIAL = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
_HARMONY_NAMED = {
    "<|startoftext|>": 199998,
    "<|endoftext|>": 199999,
    "<|return|>": 200002,
    "<|constrain|>": 200003,
    "<|channel|>": 200005,
    "<|start|>": 200006,
    "<|end|>": 200007,
    "<|message|>": 200008,
    "<|call|>": 200012,
}
# Every other id from 200000 on is reserved, even 200018, which is also <|endofprompt|>.
_HARMONY_RESERVED = sorted({*range(200000, 201088)} - {*_HARMONY_NAMED.values()})
_HARMONY_SPECIAL = (
    _O200K_SPECIAL | _HARMONY_NAMED | {f"<|reserved_{i}|>": i for i in _HARMONY_RESERVED}
)

SPECS = {
    "gpt2": _Spec("r50k_base", R50K_PATTERN, _GPT2_SPECIAL, 50257),
    "r50k_base": _Spec("r50k_base", R50K_PATTERN, _GPT2_SPECIAL, 50257),
    "p50k_base": _Spec("p50k_base", R50K_PATTERN, _GPT2_SPECIAL, 50281),
    "p50k_edit": _Spec("p50k_base", R50K_PATTERN, _P50K_EDIT_SPECIAL),
    "cl100k_base": _Spec("cl100k_base", CL100K_PATTERN, _CL100K_SPECIAL),
    "o200k_base": _Spec("o200k_base", O200K_PATTERN, _O200K_SPECIAL),
    "o200k_harmony": _Spec("o200k_base", O200K_PATTERN, _HARMONY_SPECIAL),
}

MODEL_PREFIX_TO_ENCODING = {
    "o1-": "o200k_base",
    "o3-": "o200k_base",
    "o4-mini-": "o200k_base",
    "gpt-5": "o200k_base",
    "gpt-4.5-": "o200k_base",
    "gpt-4.1-": "o200k_base",
    "chatgpt-4o-": "o200k_base",
    "gpt-4o-": "o200k_base",
    "gpt-4-": "cl100k_base",
    "gpt-3.5-turbo-": "cl100k_base",
    "gpt-35-turbo-": "cl100k_base",  # the name in Azure
    "gpt-oss-": "o200k_harmony",
    "ft:gpt-4o": "o200k_base",  # before ft:gpt-4
    "ft:gpt-4": "cl100k_base",
    "ft:gpt-3.5-turbo": "cl100k_base",
    "ft:davinci-002": "cl100k_base",
    "ft:babbage-002": "cl100k_base",
}

MODEL_TO_ENCODING = {
    model: encoding_name
    for encoding_name, models in {
        "o200k_base": "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
        "cl100k_base": (
            "gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002 "
            "text-embedding-ada-002 text-embedding-3-small text-embedding-3-large"
        ),
        "p50k_base": (
            "text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001 "
            "code-cushman-002 code-cushman-001 davinci-codex cushman-codex"
        ),
        "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
        "r50k_base": (
            "text-davinci-001 text-curie-001 text-babbage-001 text-ada-001 "
            "davinci curie babbage ada "
            "text-similarity-davinci-001 text-similarity-curie-001 "
            "text-similarity-babbage-001 text-similarity-ada-001 "
            "text-search-davinci-doc-001 text-search-curie-doc-001 "
            "text-search-babbage-doc-001 text-search-ada-doc-001 "
            "code-search-babbage-code-001 code-search-ada-code-001"
        ),
        "gpt2": "gpt2 gpt-2",
    }.items()
    for model in models.split()
}


# Two encodings with the same table share one `Vocabulary`.
@functools.cache
def _vocabulary(name: str) -> Vocabulary:
    return load_p50k() if name == "p50k_base" else load_bundled(name)


# `sys.modules["tiktoken"] = streamtok; import tiktoken.registry` imports this file a second time,
# but there must be only one registry.
if __name__ != "streamtok.registry":
    sys.modules[__name__] = importlib.import_module("streamtok.registry")
