"""A vocabulary from one format into another, checked before it is written.

Features that the target cannot express raise an error. The new file is read back, and both
encodings encode a sample, before the file gets its name.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import formats
from ..errors import VocabularyError

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["FORMATS", "convert", "format_of"]


class Format(NamedTuple):
    """How to write a format, and how to read it back for the check."""

    files: tuple[str, ...]  # usual file names; several are written into a folder
    save: Callable[..., None]
    load: Callable[..., Encoding]
    lost: str = ""  # what the format has no room for


def _load_ranks(source: Encoding, path: str) -> Encoding:
    return formats.load_tiktoken(
        path, pattern=source._pat_str, special_tokens=source._special_tokens, name=source.name
    )


def _load_pair(source: Encoding, merges: str, ids: str) -> Encoding:
    return formats.load_gpt2(
        merges,
        ids,
        pattern=source._pat_str,
        special_tokens=list(source._special_tokens),
        name=source.name,
    )


def _plain(load: Callable[..., Encoding]) -> Callable[..., Encoding]:
    return lambda source, path: load(path, name=source.name)


# What these files do not say, their loaders are told.
_LOADS: dict[str, Callable[..., Encoding]] = {"tiktoken": _load_ranks, "gpt2": _load_pair}
FORMATS = {
    name: Format(
        about.files,
        getattr(formats, f"save_{about.of}"),
        _LOADS.get(name) or _plain(getattr(formats, f"load_{about.of}")),
        about.lost,
    )
    for name, about in formats.WRITTEN.items()
}
_READ_ONLY = ("tekken.json", ".model", ".pkl", ".pickle")
_SUFFIXES = {
    ".json": "huggingface",
    ".streamtok": "streamtok",
    ".tiktoken": "tiktoken",
}

_SAMPLE = (
    "The quick brown fox, it's 12345 times jumped: naïve café; don't\n\n  def f(x):\n\treturn x\n"
    "日本語テキスト 한국어 Привет \U0001f469‍\U0001f4bb e\u0301 a\u200db \u2581x    y\r\n====----"
    "<|endoftext|><s>[INST] aaaaaaaaaaaaaaaaaaaaaaaa 0xFF 3.14159 http://example.com/?q=1&r=2#x\n"
)


def format_of(path: str) -> str:
    """The format that the file name `path` stands for. Raises ValueError if there is none."""
    base = os.path.basename(os.path.normpath(path))
    if base.endswith(_READ_ONLY):
        raise ValueError(
            f"{base!r} is the name of a format that is read and not written; keep the original file"
        )
    of_several = False
    for name, format in FORMATS.items():
        if base in format.files and len(format.files) == 1:
            return name
        of_several |= base in format.files
    suffix = os.path.splitext(base)[1]
    if suffix in _SUFFIXES and not of_several:
        return _SUFFIXES[suffix]
    raise ValueError(f"the file name {base!r} does not tell the format")


def convert(source: Encoding, path: str, format: str) -> None:
    """Write `source` to `path`, a folder for a format of several files. Files appear when checked.

    Raises OSError, and VocabularyError if the format cannot express the encoding, or if the result
    encodes the sample differently. Nothing is written then.
    """
    chosen = FORMATS[format]
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.TemporaryDirectory(prefix=".streamtok-", dir=folder) as scratch:
        made = [os.path.join(scratch, name) for name in chosen.files]
        chosen.save(source, *made)
        check(source, chosen.load(source, *made), format)
        if len(made) == 1:
            os.replace(made[0], path)
            return
        os.makedirs(path, exist_ok=True)
        for file in made:
            os.replace(file, os.path.join(path, os.path.basename(file)))


def check(source: Encoding, copy: Encoding, format: str) -> None:
    """Raise VocabularyError unless both encode the samples to the same ids."""
    tokens = source._vocabulary.to_list()
    some = b"".join(tokens[:: max(1, len(tokens) // 4000)])
    samples: list[str | bytes] = [_SAMPLE, _SAMPLE * 3, "".join(source._special_tokens), some, b" "]
    for sample in samples:
        for is_allowed in (False, True):
            settings: dict[str, Any] = {
                "allowed_special": "all" if is_allowed else frozenset(),
                "disallowed_special": (),
                "errors": "surrogateescape" if isinstance(sample, bytes) else "strict",
            }
            ids = source.encode(sample, **settings)
            if copy.encode(sample, **settings) != ids or copy.decode_bytes(
                ids
            ) != source.decode_bytes(ids):
                raise VocabularyError(
                    f"as {format}, {source.name} encodes a sample to other ids: nothing was written"
                )
