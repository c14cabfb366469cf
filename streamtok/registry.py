"""Encodings by name: which vocabulary, split pattern and special tokens belong to each.

Names, models, patterns, special tokens and exceptions are those of tiktoken 0.14. Three
vocabularies are packed into the package and need no network; that of p50k_base and p50k_edit is
looked for in tiktoken's cache folder and else downloaded into it.

Not here: tiktoken's plug-ins (`tiktoken_ext`). Make an `Encoding` of your own instead.
"""

from __future__ import annotations

import contextlib
import functools
import os
from _thread import RLock  # importing `threading` takes longer than this whole file
from typing import TYPE_CHECKING, NamedTuple

from .encoding import Encoding
from .errors import VocabularyError
from .files.part_file import write_whole
from .patterns.named import CL100K_PATTERN, O200K_PATTERN, R50K_PATTERN
from .vocabulary.bundled import PACKED_NAMES, load_packed
from .vocabulary.ranks_file import loads_tiktoken
from .vocabulary.table import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = [
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
]

ENCODINGS: dict[str, Encoding] = {}  # those made so far in this process
_lock = RLock()


def get_encoding(encoding_name: str) -> Encoding:
    """Give the encoding of that name, the same object each time.

    Raises `ValueError` for an unknown name, and `VocabularyError` if its vocabulary cannot be had.

    >>> get_encoding("r50k_base").name
    'r50k_base'
    """
    if not isinstance(encoding_name, str):
        raise ValueError(f"Expected a string in get_encoding, got {type(encoding_name)}")
    if encoding_name in ENCODINGS:
        return ENCODINGS[encoding_name]
    if encoding_name not in _SPECS:
        raise ValueError(f"Unknown encoding {encoding_name}: there are {', '.join(_SPECS)}")
    with _lock:
        if encoding_name not in ENCODINGS:
            spec = _SPECS[encoding_name]
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
    """Give the names that `get_encoding` knows.

    >>> "cl100k_base" in list_encoding_names()
    True
    """
    return list(_SPECS)


def encoding_name_for_model(model_name: str) -> str:
    """Give the name of the encoding that a model of OpenAI uses.

    Raises `KeyError` for an unknown model. A known beginning of a name is enough, so that dated
    and fine-tuned models are found.

    >>> encoding_name_for_model("gpt-4o-2024-05-13")
    'o200k_base'
    """
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix, encoding_name in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding_name
    raise KeyError(
        f"Could not automatically map {model_name} to a tokeniser. "
        "Please use `streamtok.get_encoding` to explicitly get the tokeniser you expect."
    )


def encoding_for_model(model_name: str) -> Encoding:
    """Give the encoding that a model of OpenAI uses; `KeyError` for an unknown model.

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
# Every other id from 200000 on is reserved; 200018 is so beside being <|endofprompt|>.
_HARMONY_RESERVED = sorted({*range(200000, 201088)} - {*_HARMONY_NAMED.values()})
_HARMONY_SPECIAL = (
    _O200K_SPECIAL | _HARMONY_NAMED | {f"<|reserved_{i}|>": i for i in _HARMONY_RESERVED}
)

_SPECS = {
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


# Vocabularies, packed or published. Two encodings with one table share one `Vocabulary`.


class _Published(NamedTuple):
    url: str
    sha256: str


_PUBLISHED = {
    "p50k_base": _Published(
        "https://openaipublic.blob.core.windows.net/encodings/p50k_base.tiktoken",
        "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
    ),
}
_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
_DOWNLOAD_TIMEOUT = 30.0  # seconds without a byte


@functools.cache
def _vocabulary(name: str) -> Vocabulary:
    if name in PACKED_NAMES:
        return load_packed(name)
    published = _PUBLISHED[name]
    return loads_tiktoken(_read_cached(published), published.url)


def _read_cached(published: _Published) -> bytes:
    """Read a published file from tiktoken's cache folder, downloading it if need be.

    As in tiktoken: the folder is in an environment variable (empty: no cache) or in the folder
    for temporary files, a file is named by the SHA-1 of its URL, a damaged one is fetched again,
    and only a folder that the user has chosen must be writable.
    """
    import hashlib

    key = hashlib.sha1(published.url.encode(), usedforsecurity=False).hexdigest()
    folder, is_chosen = _cache_folder()
    if not folder:
        return _download(
            published,
            "the cache is switched off by an empty environment variable; set TIKTOKEN_CACHE_DIR "
            f"to a folder and put the file there under the name {key}",
        )
    path = os.path.join(folder, key)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        with open(path, "rb") as file:
            data = file.read()
        if _is_intact(data, published):
            return data
        with contextlib.suppress(OSError):
            os.remove(path)
    data = _download(
        published,
        f"put the file at {os.path.abspath(path)}",
    )
    try:
        os.makedirs(folder, exist_ok=True)
        write_whole(path, data)
    except OSError:
        if is_chosen:
            raise
    return data


def _cache_folder() -> tuple[str, bool]:
    """Say where tiktoken keeps its files, and whether the user has said so."""
    for variable in _CACHE_VARIABLES:
        if variable in os.environ:
            return os.environ[variable], True
    import tempfile

    return os.path.join(tempfile.gettempdir(), "data-gym-cache"), False


def _download(published: _Published, advice: str) -> bytes:
    """Fetch a published file; `advice` says what to do where there is no network."""
    import http.client
    import urllib.request

    try:
        with urllib.request.urlopen(published.url, timeout=_DOWNLOAD_TIMEOUT) as response:
            data: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise VocabularyError(
            f"{published.url} cannot be downloaded: {error}\n"
            f"without a network, {advice}\n"
            f"its SHA-256 is {published.sha256}, its name there is the SHA-1 of the URL, and the "
            "environment variable TIKTOKEN_CACHE_DIR chooses another folder"
        ) from error
    if not _is_intact(data, published):
        raise VocabularyError(
            f"what came from {published.url} is damaged: {len(data)} bytes whose SHA-256 is not "
            f"{published.sha256}; nothing was kept, please try again"
        )
    return data


def _is_intact(data: bytes, published: _Published) -> bool:
    import hashlib

    return hashlib.sha256(data).hexdigest() == published.sha256
