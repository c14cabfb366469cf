"""`load` reads the vocabulary of a file, a folder, a model on the hub or a tokenizer object.

A file's format is recognized by its contents; only GPT-2's merges without the line "#version" are
recognized by the file's name. A `.tiktoken` file and GPT-2's pair do not contain a pre-tokenization
pattern: the bundled tables are recognized, and for other tables the caller must give a pattern.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..errors import VocabularyError
from ..registry import list_encoding_names
from .gguf import GGUF_MAGIC, read_gguf
from .gpt2 import read_gpt2
from .huggingface import read_huggingface
from .json_value import JsonValue, parse_json
from .load_cache import find_kept, keep
from .loading import read_bytes, shown, stem
from .minbpe import MAGIC, read_minbpe
from .model_folder import CONFIG_FILES, EOS_FILES, read_config, read_eos, with_config
from .nanochat import read_nanochat
from .packed import PACKED_MAGIC, loads_packed
from .sentencepiece import read_sentencepiece
from .tekken import read_tekken
from .tiktoken import read_tiktoken

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load", "read_json", "read_together"]

_START = 4096  # bytes of a file by which its format is recognized
# Of these files, the first one that a folder contains is read.
_IN_FOLDERS = ("tokenizer.json", "tekken.json", "tokenizer.pkl", "tokenizer.model")
_PAIRS = {"vocab.bpe": "encoder.json", "merges.txt": "vocab.json"}
# All files that may be read from a model's folder.
_MODEL_FILES = tuple(
    dict.fromkeys((*_IN_FOLDERS, *sum(_PAIRS.items(), ()), *CONFIG_FILES, *EOS_FILES))
)


def recognize(data: bytes) -> str | None:
    """The format of a file's contents, such as "tiktoken" or "json"; None if it is unknown.

    >>> recognize(b"minbpe v1\\n")
    'minbpe'
    """
    start = data[:_START]
    if start.startswith(GGUF_MAGIC):
        return "gguf"
    if start.startswith(PACKED_MAGIC):
        return "streamtok"
    if start.split(b"\n", 1)[0].strip() == MAGIC:
        return "minbpe"
    if start[:1] == b"\x80" and start[1:2] <= b"\x05":
        return "nanochat"
    if start.lstrip()[:1] == b"{":
        return "json"
    if start[:1] == b"\x0a":  # the key of the first field: a SentencePiece model
        return "sentencepiece"
    line = start.split(b"\n", 1)[0].split()
    if len(line) == 2 and line[1].isdigit() and len(line[0]) % 4 == 0:
        return "tiktoken"
    if start.startswith(b"#version"):
        return "gpt2"
    return None


def read_together(path: str) -> list[str]:
    """The files that `load` may read if it is given this file or folder."""
    folder, file = (path, "") if os.path.isdir(path) else os.path.split(path)
    for pair in _PAIRS.items():
        if file in pair:
            return [os.path.join(folder, name) for name in pair]
    return [os.path.join(folder, name) for name in ([file] if file else _MODEL_FILES)]


def load(
    source: Path | object,
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    name: str | None = None,
    revision: str | None = None,
    cache: bool = True,
) -> Encoding:
    """The encoding of a file, a model's folder or name, or a tokenizer object.

    source: a vocabulary file of any format; a folder that contains such a file and others that add
    what it lacks (`model_folder.py`); the name "org/model" of a model on Hugging Face's hub, if
    there is no such path; a tokenizer of tokenizers, transformers, tiktoken or sentencepiece; or an
    `Encoding`, which is returned unchanged.

    pattern, special_tokens: only for `.tiktoken` files and GPT-2's pair, which do not contain them.
    pattern: a name in `formats.PATTERNS` ("gpt2", "cl100k_base", "llama3", …), or a regular
    expression. special_tokens: ids by text; for GPT-2's pair they must be in its file of ids, and
    the default is "<|endoftext|>". name: the encoding's name; by default, it is taken from the
    source. revision: only for models on the hub. cache: whether the packed form of a large file may
    be kept in the user's cache folder for the next time; see `load_cache.py`. Raises OSError;
    TypeError for other objects; ValueError for an option that an object does not take; and
    VocabularyError for a file of unknown format, whose start it quotes, or a file that the loader
    of its format refuses.
    """
    if not isinstance(source, (str, os.PathLike)):
        if pattern is not None or special_tokens or revision is not None:
            raise ValueError(f"a {type(source).__name__} has its own pattern and special tokens")
        from ..encoding import Encoding
        from .tokenizer_objects import from_object

        made = source if isinstance(source, Encoding) else from_object(source, name)
        if made is None:
            raise TypeError(
                f"{type(source).__name__} cannot be loaded: expected a path, the name of a "
                "model (org/model), an Encoding, or a tokenizer of tokenizers, transformers, "
                "tiktoken or sentencepiece"
            )
        return made
    path: Path = source
    options = _Options(pattern, special_tokens, name, cache)
    if os.path.isdir(path):
        return _load_folder(path, options)
    if isinstance(path, str) and not os.path.exists(path):
        from .hub import fetch, is_hub_name

        if is_hub_name(path):
            folder = fetch(path, _MODEL_FILES, revision)
            return _load_folder(folder, options._replace(name=name or path.rpartition("/")[2]))
        known = "; get_encoding takes this name" if path in list_encoding_names() else ""
        raise FileNotFoundError(
            errno.ENOENT, f"No such file or directory, nor a model's name (org/model){known}", path
        )
    return _load_file(path, options)


class _Options(NamedTuple):
    """The options of `load`."""

    pattern: str | None
    special_tokens: Mapping[str, int] | None
    name: str | None
    cache: bool


def _load_file(path: Path, options: _Options) -> Encoding:
    pattern, special_tokens, name, cache = options
    source = os.fspath(path)
    start = b""
    if os.path.isfile(path):  # a pipe can be read only once
        with open(path, "rb") as file:
            start = file.read(_START)
    if cache and recognize(start) in _READERS and pattern is None and not special_tokens:
        kept = find_kept(source, name or stem(path))
        if kept is not None:
            return kept
    # A GGUF file contains the whole model, so it is not read here: `read_gguf` reads its start.
    data = start if start.startswith(GGUF_MAGIC) else read_bytes(path)
    format = recognize(data)
    if format is None and os.path.basename(source) in _PAIRS:
        format = "gpt2"  # without the line "#version"
    if format == "tiktoken":
        return read_tiktoken(data, source, name, pattern, special_tokens)
    if format == "gpt2":
        folder, file_name = os.path.split(source)
        ids = os.path.join(folder, _PAIRS.get(file_name, ""))
        if not os.path.isfile(ids):
            raise VocabularyError(
                f"{source}: merges without their ids: expected vocab.bpe beside encoder.json, or "
                "merges.txt beside vocab.json"
            )
        return read_gpt2(source, ids, name, pattern, special_tokens)
    if format is None:
        begin = f"begins with {shown(data[:20])}" if data else "is empty"
        raise VocabularyError(
            f"{source}: unknown format: the file {begin}; expected a tokenizer.json, tekken.json, "
            ".tiktoken, .model, .pkl, .gguf, .streamtok or GPT-2's merges"
        )
    if pattern is not None or special_tokens:
        raise VocabularyError(
            f"{source}: a file of this format ({format}) has its own pattern and special tokens: "
            "give neither"
        )
    if format == "nanochat":
        return read_nanochat(data, source, name)
    if format == "streamtok":
        return loads_packed(data, source, name)
    name = name or stem(path)
    if format == "gguf":
        return read_gguf(source, name)
    made = _READERS[format](data, source, name)
    if cache:
        keep(data, made)
    return made


def read_json(data: bytes, source: str, name: str) -> Encoding:
    """The encoding in a JSON file: a tokenizer.json or a tekken.json."""
    file = JsonValue(parse_json(data, source), source)
    keys = file.as_dict().keys()
    if {"model", "added_tokens"} <= keys or "pre_tokenizer" in keys:
        return read_huggingface(file, name)
    if {"config", "vocab"} <= keys:
        return read_tekken(file, name)
    raise VocabularyError(
        f"{source}: unknown JSON format: expected a tokenizer.json or a tekken.json, found an "
        f"object with the keys {shown(sorted(keys)[:5])}"
    )


def _load_folder(path: Path, options: _Options) -> Encoding:
    """The encoding of a model's main file, completed by the files beside it."""
    folder = os.fspath(path)
    mains = (*_IN_FOLDERS, *_PAIRS)
    file = next((one for one in mains if os.path.isfile(os.path.join(folder, one))), None)
    if file is None:
        raise VocabularyError(
            f"{folder}: no vocabulary in this folder: expected one of {', '.join(mains)}"
        )
    config = read_config(folder) if file in ("tokenizer.model", "merges.txt") else None
    if config is not None and file == "merges.txt" and options.pattern is None:
        raise VocabularyError(
            f"{folder}: merges.txt has no pre-tokenization pattern, and {CONFIG_FILES[0]} is not "
            "read for one: give a pattern, or let transformers write a tokenizer.json "
            "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder))"
        )
    made = _load_file(os.path.join(folder, file), options)
    if config is not None and made.definition.rules.normalizer is not None:
        made = with_config(made, config)  # SentencePiece; minbpe's model is complete by itself
    eos = read_eos(folder, made)
    made.definition.model_settings = made.definition.model_settings._replace(eos=eos)
    return made


# Readers of the formats whose encodings the load cache keeps.
_READERS = {"json": read_json, "minbpe": read_minbpe, "sentencepiece": read_sentencepiece}
