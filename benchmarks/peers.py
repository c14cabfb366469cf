"""The contenders: how each installed tokenizer is loaded and called.

Each peer is loaded from streamtok's own packed tables, written by `assets.py` into a temporary
folder in the format that the peer reads, or from the tables it brings along: never from a network.
A model is a vocabulary whose `tokenizer.json` was given; it stands in a folder of its name there.
A mode is a way to call it that its documentation gives: the default one, and the best one for
flat ids (an array or bytes without a Python object per token) and for a list.

Adding a peer: one class below, with its modes; whether its ids are equal is found out, not stated.
What this module imports is loaded before a peer's own import is timed: it takes little.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

ENCODINGS = ("cl100k_base", "o200k_base", "r50k_base")
CHUNKS = {"64 KiB": 65536, "4 KiB": 4096, "256 B": 256}  # of streams
STREAMS = [f"stream, {size}" for size in CHUNKS]  # a new array for each chunk
STREAMS_INTO = [f"stream into one array, {size}" for size in CHUNKS]

# From what `prepare` gives (a str, mostly) to a list[int], a uint32 array, a list of such arrays,
# little-endian uint32 bytes, or only how many ids there are.
Encode = Callable[[Any], Any]
Decode = Callable[[list[int]], "str | bytes"]


def model_file(assets: Path, encoding: str) -> Path | None:
    """The `tokenizer.json` of a model; None for an encoding that streamtok bundles."""
    path = assets / encoding / "tokenizer.json"
    return path if path.exists() else None


class Peer:
    """One tokenizer. `modes` are name → whether the ids come flat; the first one is the default.
    `decoders` are the names of its methods that decode a list of ids.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str]
    encodings: ClassVar[tuple[str, ...]] = ENCODINGS
    reads_models: ClassVar[bool] = False
    names: ClassVar[tuple[str, ...]] = ()  # that the module imports when they are asked for
    modes: ClassVar[dict[str, bool]]
    decoders: ClassVar[tuple[str, ...]] = ("decode",)
    tokenizer: Any

    def __init__(self, encoding: str, assets: Path):
        """Load; imports happen here, so that they are part of the time to load."""
        raise NotImplementedError

    def prepare(self, mode: str, text: str) -> Any:
        """What a mode takes; making it is not timed."""
        return text

    def mode(self, name: str) -> Encode:
        """The function that encodes a str in this mode."""
        raise NotImplementedError

    def call_mode(self, name: str) -> Encode:
        """The same for short texts, which are str."""
        return self.mode(name)

    def decoder(self, name: str) -> Decode:
        return getattr(self.tokenizer, name)

    @classmethod
    def takes(cls, encoding: str) -> bool:
        return encoding in cls.encodings or (cls.reads_models and encoding not in ENCODINGS)

    @classmethod
    def is_installed(cls) -> bool:
        import importlib.util

        try:
            return importlib.util.find_spec(cls.module) is not None
        except ImportError:
            return False

    @classmethod
    def version(cls) -> str:
        import importlib.metadata

        return importlib.metadata.version(cls.package)

    @classmethod
    def default(cls) -> str:
        return next(iter(cls.modes))


class Streamtok(Peer):
    name = package = module = "streamtok"
    names = ("get_encoding",)
    modes: ClassVar = {
        "encode": False,
        "encode_to_numpy": True,
        "encode_to_numpy of bytes": True,
        **dict.fromkeys(STREAMS + STREAMS_INTO, True),
        "count": True,
    }
    only_for_texts = ("encode_to_numpy of bytes", *STREAMS[1:], *STREAMS_INTO, "count")
    reads_models = True
    decoders = ("decode", "decode_bytes")

    def __init__(self, encoding: str, assets: Path):
        import streamtok

        path = model_file(assets, encoding)
        self.tokenizer = (
            streamtok.load(path, cache=False) if path else streamtok.get_encoding(encoding)
        )

    @classmethod
    def version(cls) -> str:
        import streamtok

        return streamtok.__version__

    def prepare(self, mode: str, text: str) -> Any:
        """Streams get the chunks that a file or socket would give."""
        if mode.startswith("stream"):
            data, size = text.encode(), CHUNKS[mode.partition(", ")[2]]
            chunks = [data[start : start + size] for start in range(0, len(data), size)]
            # There are never more ids than bytes; the array is in memory already.
            return (chunks, np.ones(len(data), np.uint32)) if mode in STREAMS_INTO else chunks
        return text.encode() if mode.endswith("of bytes") else text

    def mode(self, name: str) -> Encode:
        if name.startswith("stream"):
            return self._stream_into if name in STREAMS_INTO else self._stream
        return getattr(self.tokenizer, name.partition(" ")[0])

    def call_mode(self, name: str) -> Encode:
        is_stream = name.startswith("stream")  # one stream that takes text after text
        return self.tokenizer.stream_encoder().encode if is_stream else self.mode(name)

    def _stream(self, chunks: list[bytes]) -> Any:
        stream = self.tokenizer.stream_encoder()
        arrays = [stream.encode_to_numpy(chunk) for chunk in chunks]
        return [*arrays, stream.encode_to_numpy(b"", final=True)]

    def _stream_into(self, given: tuple[list[bytes], Any]) -> Any:
        stream = self.tokenizer.stream_encoder()
        chunks, out = given
        n = 0
        for chunk in chunks:
            n += stream.encode_into(chunk, out, start=n)
        return out[: n + stream.encode_into(b"", out, final=True, start=n)]


class Tiktoken(Peer):
    name = package = module = "tiktoken"
    modes: ClassVar = {"encode": False, "encode_to_numpy": True}
    decoders = ("decode", "decode_bytes")

    def __init__(self, encoding: str, assets: Path):
        os.environ["TIKTOKEN_CACHE_DIR"] = str(assets)
        import tiktoken

        self.tokenizer = tiktoken.get_encoding(encoding)

    def mode(self, name: str) -> Encode:
        return getattr(self.tokenizer, name)


class Gigatoken(Peer):
    name = package = module = "gigatoken"
    modes: ClassVar = {"encode": True, "encode_batch_list": False}
    reads_models = True

    def __init__(self, encoding: str, assets: Path):
        import gigatoken

        if path := model_file(assets, encoding):
            self.tokenizer = gigatoken.Tokenizer(path)
        else:
            self.tokenizer = gigatoken.Tokenizer.from_tiktoken(assets / f"{encoding}.tiktoken")

    def mode(self, name: str) -> Encode:
        if name == "encode":
            return self.tokenizer.encode
        return lambda text: self.tokenizer.encode_batch_list([text], parallel=False)[0]


class Fastokens(Peer):
    name = package = module = "fastokens"
    modes: ClassVar = {"encode().ids": False, "encode_batch_flat": True}
    reads_models = True

    def __init__(self, encoding: str, assets: Path):
        import fastokens

        self.plain = {"add_special_tokens": False}
        if path := model_file(assets, encoding):
            self.tokenizer = fastokens.Tokenizer.from_file(str(path))
            return
        settings: dict[str, Any] = {"encoding": encoding}
        if encoding == "r50k_base":  # not among its presets
            settings = {
                "pattern": json.loads((assets / "patterns.json").read_text())[encoding],
                "special_tokens": {"<|endoftext|>": 50256},
            }
        path = str(assets / f"{encoding}.tiktoken")
        self.tokenizer = fastokens.Tokenizer.from_tiktoken(path, **settings)

    def mode(self, name: str) -> Encode:
        if name == "encode_batch_flat":
            return lambda text: self.tokenizer.encode_batch_flat([text], **self.plain)[0]
        return lambda text: self.tokenizer.encode(text, **self.plain).ids


class Snaptokens(Peer):
    name = package = module = "snaptokens"
    modes: ClassVar = {"encode().ids": False, "encode_batch_flat": True}
    reads_models = True

    def __init__(self, encoding: str, assets: Path):
        import snaptokens

        path = model_file(assets, encoding) or assets / f"{encoding}.json"
        self.tokenizer = snaptokens.Tokenizer.from_file(str(path))

    def mode(self, name: str) -> Encode:
        if name == "encode_batch_flat":
            return lambda text: self.tokenizer.encode_batch_flat([text], add_special_tokens=False)[
                0
            ]
        return lambda text: self.tokenizer.encode(text, add_special_tokens=False).ids


class Splintr(Peer):
    name, package, module = "splintr", "splintr-rs", "splintr"
    modes: ClassVar = {"encode": False, "encode_flat": True}
    decoders = ("decode", "decode_bytes")

    def __init__(self, encoding: str, assets: Path):
        import splintr

        if encoding == "r50k_base":  # not among those it brings along
            data = (assets / f"{encoding}.tiktoken").read_bytes()
            special = {"<|endoftext|>": 50256}
            self.tokenizer = splintr.Tokenizer.from_bytes(data, splintr.GPT2_PATTERN, special)
        else:
            self.tokenizer = splintr.Tokenizer.from_pretrained(encoding)

    def mode(self, name: str) -> Encode:
        return getattr(self.tokenizer, name)


class RsBpe(Peer):
    name, package, module = "rs-bpe", "rs-bpe", "rs_bpe"
    encodings = ("cl100k_base", "o200k_base")  # those it brings along
    modes: ClassVar = {"encode": False}

    def __init__(self, encoding: str, assets: Path):
        from rs_bpe.bpe import openai

        self.tokenizer = getattr(openai, encoding)()

    def mode(self, name: str) -> Encode:
        return self.tokenizer.encode


class Tokenizers(Peer):
    name = package = module = "tokenizers"
    modes: ClassVar = {"encode().ids": False, "encode_batch_fast": False}
    reads_models = True

    def __init__(self, encoding: str, assets: Path):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import tokenizers

        path = model_file(assets, encoding) or assets / f"{encoding}.json"
        self.tokenizer = tokenizers.Tokenizer.from_file(str(path))

    def mode(self, name: str) -> Encode:
        plain = {"add_special_tokens": False}
        if name == "encode_batch_fast":
            return lambda text: self.tokenizer.encode_batch_fast([text], **plain)[0].ids
        return lambda text: self.tokenizer.encode(text, **plain).ids


class Iree(Peer):
    name, package, module = "iree-tokenizer", "iree-tokenizer", "iree.tokenizer"
    modes: ClassVar = {"encode": False, "encode_to_array": True, "encode_stream": False}

    def __init__(self, encoding: str, assets: Path):
        from iree.tokenizer import Tokenizer

        path = str(assets / f"{encoding}.tiktoken")
        self.tokenizer = Tokenizer.from_tiktoken(path, encoding=encoding)

    def mode(self, name: str) -> Encode:
        if name != "encode_stream":
            return getattr(self.tokenizer, name)

        def encode(text: str) -> list[int]:
            ids: list[int] = []
            with self.tokenizer.encode_stream() as stream:
                for start in range(0, len(text), 1000):
                    ids += stream.feed(text[start : start + 1000])
                return ids + list(stream.finalize())

        return encode


PEERS: tuple[type[Peer], ...] = (
    Streamtok,
    Tiktoken,
    Gigatoken,
    Fastokens,
    Snaptokens,
    Splintr,
    RsBpe,
    Tokenizers,
    Iree,
)


def installed() -> list[type[Peer]]:
    """The peers that can be imported here, streamtok first."""
    return [peer for peer in PEERS if peer.is_installed()]


def by_name(name: str) -> type[Peer]:
    return next(peer for peer in PEERS if peer.name == name)


def in_order(names: Container[str]) -> list[str]:
    """Names of peers as they stand in PEERS."""
    return [peer.name for peer in PEERS if peer.name in names]


def is_flat(who: tuple[str, str]) -> bool:
    """Whether a (peer, mode) gives ids without a Python object for each."""
    return by_name(who[0]).modes[who[1]]


def as_array(ids: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """uint32 [n], whatever a mode gives (but for a count)."""
    if isinstance(ids, bytes):
        return np.frombuffer(ids, "<u4").astype(np.uint32)
    if isinstance(ids, list) and ids and isinstance(ids[0], np.ndarray):
        return np.concatenate(ids)
    return np.asarray(ids, np.uint32)
