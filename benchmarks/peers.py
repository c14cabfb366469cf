"""The contenders: how each installed tokenizer is loaded and called.

Each peer is loaded from streamtok's own packed tables, written by `write_assets` into a temporary
folder in the format that the peer reads, or from its bundled tables, but never from a network. A
model is a vocabulary with a given `tokenizer.json`, which is copied into a folder with the model's
name there. A mode is a way to call a peer that its documentation describes: the default one, and
the best ones for flat ids (an array or bytes without a Python object per token) and for a list.

To add a peer, add one row to PEERS. Whether its ids are equal is tested, not declared.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ENCODINGS = ("cl100k_base", "o200k_base", "r50k_base")
CHUNKS = {"64 KiB": 65536, "4 KiB": 4096, "256 B": 256}  # of streams
STREAMS = [f"stream, {size}" for size in CHUNKS]
_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"  # names cached files
_PLAIN: dict[str, Any] = {"add_special_tokens": False}

# From a result of `prepare` (mostly a str) to a list[int], a uint32 array, a list of such arrays,
# little-endian uint32 bytes, or only the number of ids.
Encode = Callable[[Any], Any]
Who = tuple[str, str]  # peer, mode


class Mode(NamedTuple):
    """flat: whether there is no Python object per id; of: makes the call from a tokenizer."""

    flat: bool
    of: Callable[[Any], Encode]


def _method(name: str, flat: bool = False) -> dict[str, Mode]:
    return {name: Mode(flat, lambda tokenizer: getattr(tokenizer, name))}


_ENCODE = _method("encode")
# `pip install --no-deps --pre --target build/tokenizers-1 tokenizers` puts a version here that
# cannot be installed next to the one that transformers needs.
_TOKENIZERS_1 = Path(__file__).resolve().parents[1] / "build" / "tokenizers-1"
# As first published, for engines without possessive quantifiers, and for tokenizers 1.0, which
# knows these spellings but has no engine for other patterns with look-ahead.
_PATTERNS = {
    "cl100k_base": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "r50k_base": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
}


def _texts(flat: bool, name: str, call: Callable[[Any, str], Any]) -> dict[str, Mode]:
    return {name: Mode(flat, lambda tokenizer: partial(call, tokenizer))}


_IDS = _texts(False, "encode().ids", lambda t, s: t.encode(s, **_PLAIN).ids)
_IDS_ARRAY = _texts(True, "encode().ids_array", lambda t, s: t.encode(s, **_PLAIN).ids_array)
_FLAT_BATCH = _texts(True, "encode_batch_flat", lambda t, s: t.encode_batch_flat([s], **_PLAIN)[0])
_FAST_BATCH = _texts(
    False, "encode_batch_fast", lambda t, s: t.encode_batch_fast([s], **_PLAIN)[0].ids
)
_GIGATOKEN_MODES = _method("encode", flat=True) | _texts(
    False, "encode_batch_list", lambda t, s: t.encode_batch_list([s], parallel=False)[0]
)


class Peer(NamedTuple):
    """One tokenizer. The first of its modes is the default.

    load: gets the name of an encoding or the path of a model's file, and the folder of assets.
    folder: where it is installed, if Python's packages have a different version.
    """

    name: str
    load: Callable[[str | Path, Path], Any]
    modes: dict[str, Mode]
    package: str = ""
    module: str = ""
    encodings: tuple[str, ...] = ENCODINGS
    reads_models: bool = False
    folder: Path | None = None

    def __call__(self, encoding: str, assets: Path) -> Loaded:
        if self.folder:
            sys.path.insert(0, str(self.folder))
        return Loaded(self, self.load(model_file(assets, encoding) or encoding, assets))

    def takes(self, encoding: str) -> bool:
        return encoding in self.encodings or (self.reads_models and encoding not in ENCODINGS)

    def is_installed(self) -> bool:
        from importlib.util import find_spec

        if self.folder:
            return (self.folder / self.module).is_dir()
        try:
            return find_spec(self.module or self.name) is not None
        except ImportError:
            return False

    def version(self) -> str:
        if self.name == "streamtok":  # a checkout has no metadata
            return str(importlib.import_module(self.name).__version__)
        from importlib.metadata import distributions

        path = [str(self.folder)] if self.folder else sys.path
        return next(iter(distributions(name=self.package or self.name, path=path))).version

    def default(self) -> str:
        return next(iter(self.modes))


class Loaded(NamedTuple):
    """A peer with its tokenizer."""

    peer: Peer
    tokenizer: Any

    def prepare(self, mode: str, text: str) -> Any:
        """The input of a mode; making it is not timed. Streams get chunks, as from a file."""
        if mode in STREAMS:
            data, size = text.encode(), CHUNKS[mode.partition(", ")[2]]
            return [data[start : start + size] for start in range(0, len(data), size)]
        return text.encode() if mode.endswith("of bytes") else text

    def mode(self, name: str) -> Encode:
        """The function that encodes the prepared input of this mode."""
        return self.peer.modes[name].of(self.tokenizer)

    def call_mode(self, name: str) -> Encode:
        """As `mode`, for short texts as str: one stream encodes text after text."""
        is_stream = name.startswith("stream")
        return self.tokenizer.stream_encoder().encode if is_stream else self.mode(name)


# Loaders, from the name of an encoding or the path of a model's file.


def _streamtok(given: str | Path, assets: Path) -> Any:
    import streamtok

    is_model = isinstance(given, Path)
    return streamtok.load(given, cache=False) if is_model else streamtok.get_encoding(given)


def _tiktoken(given: str | Path, assets: Path) -> Any:
    os.environ["TIKTOKEN_CACHE_DIR"] = str(assets)
    import tiktoken

    return tiktoken.get_encoding(str(given))


def _gigatoken(given: str | Path, assets: Path) -> Any:
    from gigatoken import Tokenizer

    is_model = isinstance(given, Path)
    return Tokenizer(given) if is_model else Tokenizer.from_tiktoken(assets / f"{given}.tiktoken")


def _fastokens(given: str | Path, assets: Path) -> Any:
    from fastokens import Tokenizer

    if isinstance(given, Path):
        return Tokenizer.from_file(str(given))
    settings: dict[str, Any] = {"encoding": given}
    if given == "r50k_base":  # not among its presets
        settings = {"pattern": _PATTERNS[given], "special_tokens": {"<|endoftext|>": 50256}}
    return Tokenizer.from_tiktoken(str(assets / f"{given}.tiktoken"), **settings)


def _from_json(module: str) -> Callable[[str | Path, Path], Any]:
    def load(given: str | Path, assets: Path) -> Any:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        path = given if isinstance(given, Path) else assets / f"{given}.json"
        return importlib.import_module(module).Tokenizer.from_file(str(path))

    return load


def _splintr(given: str | Path, assets: Path) -> Any:
    import splintr

    if given == "r50k_base":  # not bundled with it
        data = (assets / f"{given}.tiktoken").read_bytes()
        special = {"<|endoftext|>": 50256}
        return splintr.Tokenizer.from_bytes(data, splintr.GPT2_PATTERN, special)
    return splintr.Tokenizer.from_pretrained(given)


def _rs_bpe(given: str | Path, assets: Path) -> Any:
    from rs_bpe.bpe import openai

    return getattr(openai, str(given))()


def _iree(given: str | Path, assets: Path) -> Any:
    from iree.tokenizer import Tokenizer

    return Tokenizer.from_tiktoken(str(assets / f"{given}.tiktoken"), encoding=given)


# Modes of more than one call.


def _stream(tokenizer: Any, chunks: list[bytes]) -> Any:
    stream = tokenizer.stream_encoder()
    arrays = [stream.encode_to_numpy(chunk) for chunk in chunks]
    return [*arrays, stream.encode_to_numpy(b"", final=True)]


_STREAMTOK_MODES = {
    **_ENCODE,
    **_method("encode_to_numpy", flat=True),
    "encode_to_numpy of bytes": Mode(True, lambda t: t.encode_to_numpy),
    **dict.fromkeys(STREAMS, Mode(True, lambda t: partial(_stream, t))),
    **_method("count", flat=True),
}
ONLY_FOR_TEXTS = ("encode_to_numpy of bytes", *STREAMS[1:], "count")

PEERS: tuple[Peer, ...] = (
    Peer("streamtok", _streamtok, _STREAMTOK_MODES, reads_models=True),
    Peer("tiktoken", _tiktoken, _ENCODE | _method("encode_to_numpy", flat=True)),
    Peer("gigatoken", _gigatoken, _GIGATOKEN_MODES, reads_models=True),
    Peer("fastokens", _fastokens, _IDS | _FLAT_BATCH, reads_models=True),
    Peer("snaptokens", _from_json("snaptokens"), _IDS | _FLAT_BATCH, reads_models=True),
    Peer("splintr", _splintr, _ENCODE | _method("encode_flat", flat=True), package="splintr-rs"),
    Peer("rs-bpe", _rs_bpe, _ENCODE, module="rs_bpe", encodings=("cl100k_base", "o200k_base")),
    Peer("tokenizers", _from_json("tokenizers"), _IDS | _FAST_BATCH, reads_models=True),
    Peer(
        "tokenizers 1.0", _from_json("tokenizers"), _IDS | _IDS_ARRAY,
        package="tokenizers", module="tokenizers", reads_models=True, folder=_TOKENIZERS_1,
    ),
    Peer(
        "iree-tokenizer", _iree, _ENCODE | _method("encode_to_array", flat=True),
        module="iree.tokenizer",
    ),
)  # fmt: skip


def installed() -> list[Peer]:
    """The peers that can be imported here, streamtok first."""
    return [peer for peer in PEERS if peer.is_installed()]


def by_name(name: str) -> Peer:
    return next(peer for peer in PEERS if peer.name == name)


def is_flat(who: Who) -> bool:
    """Whether a (peer, mode) gives ids without a Python object for each."""
    return by_name(who[0]).modes[who[1]].flat


def as_array(ids: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """uint32 [n] from the result of any mode, except for a count."""
    if isinstance(ids, bytes):
        return np.frombuffer(ids, "<u4").astype(np.uint32)
    if isinstance(ids, list) and ids and isinstance(ids[0], np.ndarray):
        return np.concatenate(ids)
    return np.asarray(ids, np.uint32)


# The files that peers load: streamtok's bundled tables in their formats.


def write_assets(folder: Path, encodings: tuple[str, ...] | list[str]) -> None:
    """Write the vocabularies as `.tiktoken` files (some copies have tiktoken's names for cached
    downloads) and as `tokenizer.json`.
    """
    import hashlib

    import streamtok
    from streamtok.vocabulary.ranks_file import dumps_tiktoken

    for name in encodings:
        encoding = streamtok.get_encoding(name)
        cached = hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest()
        for file in (f"{name}.tiktoken", cached):
            (folder / file).write_bytes(dumps_tiktoken(encoding.definition.vocabulary))
        if any(by_name(peer).is_installed() for peer in ("tokenizers", "snaptokens")):
            pattern = _PATTERNS.get(name, encoding._pat_str)
            write_tokenizer_json(folder / f"{name}.json", encoding, pattern)


def model_file(assets: Path, encoding: str) -> Path | None:
    """The `tokenizer.json` of a model; None for an encoding that streamtok bundles."""
    path = assets / encoding / "tokenizer.json"
    return path if path.exists() else None


def copy_models(folder: Path, files: dict[str, Path]) -> None:
    """Put each model's `tokenizer.json` where peers look for it."""
    import shutil

    for name, file in files.items():
        (folder / name).mkdir()
        shutil.copyfile(file, folder / name / "tokenizer.json")


def models(given: list[Path]) -> dict[str, Path]:
    """Name → `tokenizer.json`, from files and folders with one; the folder is the name. Raises
    FileNotFoundError.
    """
    found = {}
    for path in given:
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.is_file():
            raise FileNotFoundError(f"{file} does not exist; give a tokenizer.json")
        found[file.resolve().parent.name] = file
    return found


def write_tokenizer_json(path: Path, encoding: Any, pattern: str) -> None:
    """Write a Hugging Face `tokenizer.json` with a different but equivalent pattern."""
    import streamtok
    from streamtok.formats import save_huggingface

    same = streamtok.Encoding(
        encoding.name,
        pat_str=pattern,
        mergeable_ranks=encoding.definition.vocabulary,
        special_tokens=encoding._special_tokens,
    )
    save_huggingface(same, path)
    data = json.loads(path.read_text("utf-8"))
    for added in data["added_tokens"]:  # not required, and snaptokens forbids gaps
        data["model"]["vocab"].pop(added["content"], None)
    path.write_text(json.dumps(data), "utf-8")
