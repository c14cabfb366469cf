"""The contenders: how each installed tokenizer is loaded and called.

Each peer is loaded from streamtok's own packed tables, written by `write_assets` into a temporary
folder in the format that the peer reads, or from the tables it brings along: never from a network.
A mode is a way to call it that its documentation gives: the default one, and the best one for
flat ids (an array or bytes without a Python object per token) and for a list.

Adding a peer: one class below, with its modes; whether its ids are equal is found out, not stated.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

ENCODINGS = ("cl100k_base", "o200k_base", "r50k_base")
_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"  # names a cached file

Encode = Callable[[str], Any]  # gives a list[int], a uint32 array or little-endian uint32 bytes


class Peer:
    """One tokenizer. `modes` are name → whether the ids come flat; the first one is the default."""

    name: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str]
    encodings: ClassVar[tuple[str, ...]] = ENCODINGS
    modes: ClassVar[dict[str, bool]]

    def __init__(self, encoding: str, assets: Path):
        """Load; imports happen here, so that they are part of the time to load."""
        raise NotImplementedError

    def mode(self, name: str) -> Encode:
        """The function that encodes a str in this mode."""
        raise NotImplementedError

    def call_mode(self, name: str) -> Encode:
        """The same for short texts."""
        return self.mode(name)

    @classmethod
    def is_installed(cls) -> bool:
        try:
            return importlib.util.find_spec(cls.module) is not None
        except ImportError:
            return False

    @classmethod
    def version(cls) -> str:
        return importlib.metadata.version(cls.package)

    @classmethod
    def default(cls) -> str:
        return next(iter(cls.modes))


class Streamtok(Peer):
    name = package = module = "streamtok"
    modes: ClassVar = {
        "encode": False,
        "encode_to_numpy": True,
        "stream, 64 KiB": True,
        "stream, 4 KiB": True,
    }

    def __init__(self, encoding: str, assets: Path):
        import streamtok

        self.encoding = streamtok.get_encoding(encoding)

    @classmethod
    def version(cls) -> str:
        import streamtok

        return streamtok.__version__

    def mode(self, name: str) -> Encode:
        if name.startswith("stream"):
            return self._stream({"64": 65536, "4": 4096}[name.split()[1]])
        return getattr(self.encoding, name)

    def call_mode(self, name: str) -> Encode:
        is_stream = name.startswith("stream")  # one stream that takes text after text
        return self.encoding.stream_encoder().encode if is_stream else self.mode(name)

    def _stream(self, size: int) -> Encode:
        def encode(text: str) -> Any:
            data = memoryview(text.encode())
            stream = self.encoding.stream_encoder()
            parts = [
                stream.encode_to_numpy(data[start : start + size])
                for start in range(0, len(data), size)
            ]
            return np.concatenate([*parts, stream.encode_to_numpy(b"", final=True)])

        return encode


class Tiktoken(Peer):
    name = package = module = "tiktoken"
    modes: ClassVar = {"encode": False, "encode_to_numpy": True}

    def __init__(self, encoding: str, assets: Path):
        os.environ["TIKTOKEN_CACHE_DIR"] = str(assets)
        import tiktoken

        self.encoding = tiktoken.get_encoding(encoding)

    def mode(self, name: str) -> Encode:
        return getattr(self.encoding, name)


class Gigatoken(Peer):
    name = package = module = "gigatoken"
    modes: ClassVar = {"encode": True, "as_tiktoken().encode": False, "encode_batch_list": False}

    def __init__(self, encoding: str, assets: Path):
        import gigatoken

        self.tokenizer = gigatoken.Tokenizer.from_tiktoken(assets / f"{encoding}.tiktoken")

    def mode(self, name: str) -> Encode:
        if name == "encode":
            return self.tokenizer.encode
        if name == "encode_batch_list":
            return lambda text: self.tokenizer.encode_batch_list([text], parallel=False)[0]
        return self.tokenizer.as_tiktoken().encode


class Fastokens(Peer):
    name = package = module = "fastokens"
    modes: ClassVar = {"encode().ids": False, "encode_batch_flat": True}

    def __init__(self, encoding: str, assets: Path):
        import fastokens

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
            return lambda text: self.tokenizer.encode_batch_flat([text])[0]
        return lambda text: self.tokenizer.encode(text).ids


class Splintr(Peer):
    name, package, module = "splintr", "splintr-rs", "splintr"
    modes: ClassVar = {"encode": False, "encode_flat": True}

    def __init__(self, encoding: str, assets: Path):
        import splintr

        if encoding == "r50k_base":  # not among those it brings along
            data = (assets / f"{encoding}.tiktoken").read_bytes()
            special = {"<|endoftext|>": 50256}
            self.tokenizer: Any = splintr.Tokenizer.from_bytes(data, splintr.GPT2_PATTERN, special)
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

    def __init__(self, encoding: str, assets: Path):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(str(assets / f"{encoding}.json"))

    def mode(self, name: str) -> Encode:
        if name == "encode_batch_fast":
            return lambda text: self.tokenizer.encode_batch_fast([text])[0].ids
        return lambda text: self.tokenizer.encode(text).ids


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


def as_array(ids: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """uint32 [n], whatever a mode gives."""
    if isinstance(ids, bytes):
        return np.frombuffer(ids, "<u4").astype(np.uint32)
    return np.asarray(ids, np.uint32)


# The files that peers are loaded from.


def write_assets(folder: Path, encodings: tuple[str, ...] | list[str]) -> None:
    """Write the vocabularies as `.tiktoken` files, also under tiktoken's names for cached
    downloads, and as `tokenizer.json`; and the split patterns."""
    import streamtok
    from streamtok.vocabulary import dumps_tiktoken

    patterns = {}
    for name in encodings:
        encoding = streamtok.get_encoding(name)
        data = dumps_tiktoken(encoding._vocabulary)
        (folder / f"{name}.tiktoken").write_bytes(data)
        cached = hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest()
        (folder / cached).write_bytes(data)
        patterns[name] = _plain_pattern(encoding._pat_str)
        if Tokenizers.is_installed():
            text = _tokenizer_json(encoding, patterns[name])
            (folder / f"{name}.json").write_text(text, "utf-8")
    (folder / "patterns.json").write_text(json.dumps(patterns))


def _plain_pattern(pattern: str) -> str:
    """The pattern without what other engines read otherwise: `$` and possessive quantifiers.

    The latter only save a backtracking engine work: nothing they would give back could match on.
    """
    rewrites = (("++", "+"), ("?+", "?"), ("*+", "*"), ("{1,3}+", "{1,3}"), ("$", r"\z"))
    for possessive, plain in rewrites:
        pattern = pattern.replace(possessive, plain)
    return pattern


def _tokenizer_json(encoding: Any, pattern: str) -> str:
    """A Hugging Face `tokenizer.json`: every pair of tokens that makes a token is a merge."""
    symbols = _byte_symbols()
    ranks = encoding._mergeable_ranks
    spelled = {token: "".join(map(symbols.__getitem__, token)) for token in ranks}
    merges = []
    for token in ranks:  # in order of rank
        pairs = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
        found = [pair for pair in pairs if pair[0] in ranks and pair[1] in ranks]
        found.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [[spelled[left], spelled[right]] for left, right in found]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    specials = encoding._special_tokens.items()
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": i, "content": text, "special": True, **plain} for text, i in specials
            ],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [
                    {
                        "type": "Split",
                        "pattern": {"Regex": pattern},
                        "behavior": "Isolated",
                        "invert": False,
                    },
                    {
                        "type": "ByteLevel",
                        "add_prefix_space": False,
                        "trim_offsets": True,
                        "use_regex": False,
                    },
                ],
            },
            "post_processor": None,
            "decoder": {
                "type": "ByteLevel",
                "add_prefix_space": True,
                "trim_offsets": True,
                "use_regex": True,
            },
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": True,
                "vocab": {spelled[token]: rank for token, rank in ranks.items()},
                "merges": merges,
            },
        }
    )


def _byte_symbols() -> list[str]:
    """The printable character that stands for each byte, as in GPT-2's vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
