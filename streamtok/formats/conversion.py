"""A vocabulary from one format into another, checked before it is written.

Features that the target cannot express raise an error. The new file is read back, and both
encodings encode a sample, before the file gets its name.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import formats
from ..errors import VocabularyError
from . import WRITTEN

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["convert", "format_of"]

_READ_ONLY = ("tekken.json", ".model", ".pkl", ".pickle", ".gguf")
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
    single = {about.files[0]: name for name, about in WRITTEN.items() if len(about.files) == 1}
    in_folders = {file for about in WRITTEN.values() for file in about.files} - single.keys()
    for file, name in single.items():
        if base not in in_folders and os.path.splitext(base)[1] == os.path.splitext(file)[1]:
            return name
    raise ValueError(f"the file name {base!r} does not tell the format")


def convert(source: Encoding, path: str, format: str) -> None:
    """Write `source` to `path`, a folder for a format of several files. Files appear when checked.

    Raises OSError, and VocabularyError if the format cannot express the encoding, or if the result
    encodes the sample differently. Nothing is written then.
    """
    about = WRITTEN[format]
    save: Callable[..., None] = getattr(formats, f"save_{about.of}")
    told: dict[str, Any] = {}
    if format in ("tiktoken", "gpt2"):  # these files do not say
        told = {
            "pattern": source.definition.pat_str,
            "special_tokens": source.definition.specials.special,
        }
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.TemporaryDirectory(prefix=".streamtok-", dir=folder) as scratch:
        made = [os.path.join(scratch, name) for name in about.files]
        save(source, *made)
        check(source, formats.load(made[0], cache=False, **told), format)
        if len(made) == 1:
            os.replace(made[0], path)
            return
        os.makedirs(path, exist_ok=True)
        for file in made:
            os.replace(file, os.path.join(path, os.path.basename(file)))


def check(source: Encoding, copy: Encoding, format: str) -> None:
    """Raise VocabularyError unless both encode the samples to the same ids."""
    tokens = source.definition.vocabulary.to_list()
    some = b"".join(tokens[:: max(1, len(tokens) // 4000)])
    samples: list[str | bytes] = [
        _SAMPLE,
        _SAMPLE * 3,
        "".join(source.definition.specials.special),
        some,
        b" ",
    ]
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
