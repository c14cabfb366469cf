"""`load`: a file, a folder, a name or an object.

A file's contents tell its format. Nothing is guessed. A `.tiktoken` file and GPT-2's pair do not
contain a pre-tokenization pattern: the bundled tables are recognised, and for other tables the
caller must give a pattern.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..errors import VocabularyError
from ..patterns.named import find_pattern
from ..registry import get_encoding, list_encoding_names
from ..vocabulary.ranks_file import loads_tiktoken
from .gpt2 import load_gpt2
from .huggingface import read_huggingface
from .json_value import JsonValue, parse_json
from .load_cache import load_kept
from .loading import read_bytes, shown, stem
from .minbpe import MAGIC, load_minbpe
from .model_folder import CONFIG_FILES, EOS_FILES, read_config, read_eos, with_config
from .nanochat import load_nanochat
from .packed import PACKED_MAGIC, loads_packed
from .sentencepiece import read_sentencepiece
from .tekken import read_tekken
from .tiktoken import load_tiktoken

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["load", "read_together", "recognise"]

_IN_FOLDERS = ("tokenizer.json", "tekken.json", "tokenizer.pkl", "tokenizer.model")  # first wins
_HOW = 'such as FILE@cl100k on the command line and pattern="cl100k" in Python'
_TABLES = ("r50k_base", "p50k_base", "cl100k_base", "o200k_base")
_PAIRS = (("vocab.bpe", "encoder.json"), ("merges.txt", "vocab.json"))
# All files that are read of a model's folder.
_OF_A_MODEL = tuple(dict.fromkeys((*_IN_FOLDERS, *sum(_PAIRS, ()), *CONFIG_FILES, *EOS_FILES)))


def recognise(data: bytes) -> str | None:
    """The format of a file's contents, or None: "tiktoken", "gpt2", "json", "sentencepiece", …

    >>> recognise(b"minbpe v1\\n")
    'minbpe'
    """
    start = data[:4096]
    if start.startswith(PACKED_MAGIC):
        return "streamtok"
    if start.split(b"\n", 1)[0].strip() == MAGIC:
        return "minbpe"
    if start[:1] == b"\x80" and start[1:2] <= b"\x05":
        return "nanochat"
    if start.lstrip()[:1] == b"{":
        return "json"
    if start[:1] == b"\x0a":  # the key of the first field, which is a SentencePiece
        return "sentencepiece"
    line = start.split(b"\n", 1)[0].split()
    if len(line) == 2 and line[1].isdigit() and len(line[0]) % 4 == 0:
        return "tiktoken"
    if start.startswith(b"#version"):
        return "gpt2"
    return None


def read_together(path: str) -> list[str]:
    """The files that `load` may read for a path, which is a file or a folder."""
    folder, file = (path, "") if os.path.isdir(path) else os.path.split(path)
    for pair in _PAIRS:
        if file in pair:
            return [os.path.join(folder, name) for name in pair]
    return [os.path.join(folder, name) for name in ([file] if file else _OF_A_MODEL)]


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

    source: a vocabulary file of any format; a folder with one, whose other files add what it does
    not say (`model_folder.py`); the name "org/model" of a model on Hugging Face's hub, if there is
    no such path; a tokenizer of tokenizers, transformers, tiktoken or sentencepiece; or an
    `Encoding`, which is returned.

    pattern, special_tokens: for `.tiktoken` files, which contain neither. GPT-2's pair of files
    takes a pattern only; all else takes none of the two. revision: for models of the hub. cache:
    whether the packed form of a large file may be kept in the user's cache folder, and read from
    there the next time; see `load_cache.py`. Raises OSError, TypeError for other objects, and
    VocabularyError for an unknown format, naming what the file begins with, and for what the
    format's own loader refuses.
    """
    if not isinstance(source, (str, os.PathLike)):
        if pattern is not None or special_tokens or revision is not None:
            raise ValueError(f"a {type(source).__name__} has its own pattern and special tokens")
        return _load_object(source, name)
    path: Path = source
    options = _Options(pattern, special_tokens, name, cache)
    if os.path.isdir(path):
        return _load_folder(path, options)
    if isinstance(path, str) and not os.path.exists(path):
        from .hub import fetch, is_hub_name

        if is_hub_name(path):
            folder = fetch(path, _OF_A_MODEL, revision)
            return _load_folder(folder, options._replace(name=name or path.rpartition("/")[2]))
        known = "; get_encoding takes this name" if path in list_encoding_names() else ""
        raise FileNotFoundError(
            errno.ENOENT, f"No such file or directory, nor a model's name (org/model){known}", path
        )
    return _load_file(path, options)


class _Options(NamedTuple):
    """What the caller of `load` wants."""

    pattern: str | None
    special_tokens: Mapping[str, int] | None
    name: str | None
    cache: bool


def _load_object(given: object, name: str | None) -> Encoding:
    from ..encoding import Encoding
    from .tokenizer_objects import from_object

    if isinstance(given, Encoding):
        return given
    made = from_object(given, name)
    if made is None:
        raise TypeError(
            f"{type(given).__name__} cannot be loaded: expected a path, the name of a "
            "model (org/model), an Encoding, or a tokenizer of tokenizers, transformers, tiktoken "
            "or sentencepiece"
        )
    return made


def _load_file(path: Path, options: _Options) -> Encoding:
    pattern, special_tokens, name, cache = options
    source = os.fspath(path)
    data = read_bytes(path)
    format = recognise(data)
    if format == "tiktoken":
        if pattern is None:
            return _load_bundled_table(data, source, name)
        return load_tiktoken(path, pattern=pattern, special_tokens=special_tokens, name=name)
    if format == "gpt2":
        return _load_pair(path, pattern, name)
    if format is not None and (pattern is not None or special_tokens):
        raise VocabularyError(
            f"{source}: a file of this format ({format}) has its own pattern and special tokens: "
            "give neither"
        )
    if format == "minbpe":
        return load_minbpe(path, name=name)
    if format == "nanochat":
        return load_nanochat(path, name=name)
    if format == "streamtok":
        return loads_packed(data, source, name)
    if format in ("sentencepiece", "json"):
        read = _read_json if format == "json" else read_sentencepiece
        own_name = name or stem(path)

        def make() -> Encoding:
            return read(data, source, own_name)

        return load_kept(data, source, own_name, make) if cache else make()
    if not data:
        raise VocabularyError(f"{source}: unknown format: the file is empty")
    raise VocabularyError(
        f"{source}: unknown format: the file begins with {shown(data[:20])}; expected a "
        "tokenizer.json, tekken.json, .tiktoken, .model, .pkl, .streamtok or GPT-2's merges"
    )


def _read_json(data: bytes, source: str, name: str) -> Encoding:
    """The encoding in a JSON file, a tokenizer.json or a tekken.json."""
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
    """The encoding of a model's main file, with what the files beside it add."""
    folder = os.fspath(path)
    mains = (*_IN_FOLDERS, *(merges for merges, _ in _PAIRS))
    file = next((one for one in mains if os.path.isfile(os.path.join(folder, one))), None)
    if file is None:
        raise VocabularyError(
            f"{folder}: no vocabulary in this folder: expected one of {', '.join(mains)}"
        )
    config = read_config(folder) if file in ("tokenizer.model", "merges.txt") else None
    if config is not None and file == "merges.txt" and options.pattern is None:
        raise VocabularyError(
            f"{folder}: merges.txt has no pre-tokenization pattern, and what {CONFIG_FILES[0]} "
            "says of it is not read: give a pattern, or let transformers write a tokenizer.json "
            "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder))"
        )
    made = _load_file(os.path.join(folder, file), options)
    if config is not None and made.definition.rules.normalizer is not None:
        made = with_config(made, config)  # of a SentencePiece model: minbpe's says all itself
    eos = read_eos(folder, made)
    made.definition.model_settings = made.definition.model_settings._replace(eos=eos)
    return made


def _load_pair(merges_path: Path, pattern: str | None, name: str | None) -> Encoding:
    source = os.fspath(merges_path)
    folder, file = os.path.split(source)
    ids_file = dict(_PAIRS).get(file)
    if ids_file is None or not os.path.isfile(os.path.join(folder, ids_file)):
        raise VocabularyError(
            f"{source}: merges without their ids: expected vocab.bpe beside encoder.json, or "
            "merges.txt beside vocab.json"
        )
    made = load_gpt2(
        source, os.path.join(folder, ids_file), pattern=pattern or "gpt2", name=name or "gpt2"
    )
    if (
        pattern is None
        and made.definition.vocabulary != get_encoding("r50k_base").definition.vocabulary
    ):
        raise VocabularyError(
            f"{source}: files of merges have no pre-tokenization pattern, and these merges are not "
            f"GPT-2's: give a pattern, {_HOW}"
        )
    return made


def _load_bundled_table(data: bytes, source: str, name: str | None) -> Encoding:
    """The encoding of a `.tiktoken` file whose table is one of the bundled ones."""
    from ..encoding import Encoding

    vocabulary = loads_tiktoken(data, source)
    for bundled in _TABLES:
        encoding = get_encoding(bundled)
        if encoding.definition.vocabulary == vocabulary:
            return Encoding(
                name or bundled,
                pat_str=find_pattern(bundled),
                mergeable_ranks=vocabulary,
                special_tokens=encoding.definition.specials.special,
            )
    raise VocabularyError(
        f"{source}: a .tiktoken file has no pre-tokenization pattern, and this table is not one of "
        f"{', '.join(_TABLES)}: give a pattern, {_HOW}"
    )
