"""What all loaders share: reading a file within limits, and making an `Encoding` from its parts.

A damaged or hostile file raises `VocabularyError`, which names the file and the position. A file is
read whole and may have up to 128 MiB; the largest known vocabulary has 35 MB.
"""

from __future__ import annotations

import codecs
import contextlib
import gc
import os
import reprlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import PatternError, VocabularyError
from ..patterns.budget import shortened

if TYPE_CHECKING:
    from ..encoding import Encoding

    Path = str | os.PathLike[str]

__all__ = [
    "BYTE_TEXTS",
    "check_total",
    "decode_utf8",
    "errors_at",
    "make_encoding",
    "read_bytes",
    "shown",
    "stem",
    "without_collection",
]

MAX_FILE_BYTES = 1 << 27
MAX_MESSAGE = 500  # characters, because a message may quote a value of megabytes
BYTE_TEXTS = {f"<0x{byte:02X}>": byte for byte in range(256)}  # tokens of single bytes
_BLOCK = 1 << 20  # bytes read at a time where the size is unknown
_MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
MAX_SPECIAL_BYTES = 1 << 24  # of all special and added tokens, from which a tree is built


def read_bytes(path: Path) -> bytes:
    """The contents of a whole file.

    Raises OSError, and VocabularyError if the file is too large or begins with a byte order mark,
    which no format has.
    """
    with open(path, "rb") as file:
        # read(n) allocates n bytes first, so ask for no more than the file seems to have.
        expected = min(os.fstat(file.fileno()).st_size, MAX_FILE_BYTES)
        data = file.read(expected + 1)
        if len(data) > expected:  # a pipe, or a file that grows
            parts, left = [data], MAX_FILE_BYTES + 1 - len(data)
            while left > 0 and (part := file.read(min(left, _BLOCK))):
                parts.append(part)
                left -= len(part)
            data = b"".join(parts)
    if len(data) > MAX_FILE_BYTES:
        raise VocabularyError(
            f"{os.fspath(path)}: a vocabulary file must not have more than "
            f"{MAX_FILE_BYTES >> 20} MiB"
        )
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            raise VocabularyError(
                f"{os.fspath(path)}: the file begins with a byte order mark, of {encoding}; save "
                "it as UTF-8 without one"
            )
    return data


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Disable the garbage collector while a large file is read.

    Each new list or dict may start a collection, which walks all of them. That would take a quarter
    of the time of a load and free nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def decode_utf8(data: bytes, source: str) -> str:
    """The text of a file. Raises VocabularyError with the offset of the first invalid byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise VocabularyError(f"{source}, byte {error.start}: not UTF-8") from None


def stem(path: Path) -> str:
    """The file's name up to the first dot: the default name of its encoding."""
    return os.path.basename(os.fspath(path)).partition(".")[0] or "loaded"


def shown(value: object) -> str:
    """`value` for use in a message, shortened to 80 characters."""
    text = repr(value[:60]) if isinstance(value, (str, bytes)) else reprlib.repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


def check_total(texts: Collection[str], source: str) -> None:
    """Raise VocabularyError if the total length of special and added tokens is too large."""
    if sum(map(len, texts)) > MAX_SPECIAL_BYTES:
        raise VocabularyError(
            f"{source}: the {len(texts)} special and added tokens have more than "
            f"{MAX_SPECIAL_BYTES >> 20} MiB"
        )


@contextlib.contextmanager
def errors_at(position: str) -> Iterator[None]:
    """Turn errors in parts of a file into VocabularyErrors that name the position."""
    try:
        yield
    except PatternError as error:
        raise VocabularyError(f"{position}: {shortened(str(error), MAX_MESSAGE)}") from error
    except (TypeError, ValueError) as error:
        raise VocabularyError(f"{position}: {shortened(str(error), MAX_MESSAGE)}") from None


def make_encoding(source: str, name: str, **parts: Any) -> Encoding:
    """`Encoding(name, **parts)`. Errors in the parts become VocabularyErrors that name the file."""
    from ..encoding import Encoding

    added = parts["rules"].added_tokens if "rules" in parts else ()
    check_total([*parts["special_tokens"], *dict(added)], source)
    with errors_at(source):
        return Encoding(name, **parts)
