"""Surrogates in a str: tiktoken's rule for whole texts, and the same for a text in chunks.

A pair of surrogates becomes its character, one without the other half U+FFFD. Under
"surrogateescape", U+DC80 to U+DCFF that belong to no pair stay: they stand for bytes.
"""

from __future__ import annotations

import re

from ._core.encode import unfinished_size

_PAIR_OR_LOST = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udc7f\udd00-\udfff]")


def repair(text: str, errors: str) -> str:
    """str: `text` without surrogates but those that `errors` gives a meaning.

    Whatever methods a subclass of str has instead of str's.
    """
    if str.isascii(text):
        return str.__str__(text)
    if errors != "surrogateescape":
        return str.encode(text, "utf-16", "surrogatepass").decode("utf-16", "replace")
    return _PAIR_OR_LOST.sub(
        lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace"), text
    )


def repair_chunk(half: str, chunk: object, final: bool, errors: str) -> tuple[str, str]:
    """(text, half): a repaired chunk of a text, and the first half of a pair that ends it.

    half: what the chunk before gave. The half at the end of the text is repaired, too. Raises
    UnicodeEncodeError for bytes after half a pair: it has no UTF-8 that could stand before them.
    """
    if isinstance(chunk, str):
        text, half = half + str.__str__(chunk), ""
    elif memoryview(chunk).nbytes:  # type: ignore[arg-type]
        raise UnicodeEncodeError(
            "utf-8", half, 0, 1, "bytes follow the first half of a surrogate pair"
        )
    else:
        text, half = half, ""
    if not final and "\ud800" <= text[-1:] <= "\udbff":
        text, half = text[:-1], text[-1]
    return repair(text, errors), half


def decode_begun(data: bytes, final: bool, errors: str) -> tuple[str, bytes]:
    """(text, rest): `data.decode("utf-8", errors)` of what is decided, and the beginning of a
    character that ends the data, unless it is final. Raises UnicodeDecodeError.
    """
    end = len(data) - (0 if final else unfinished_size(data))
    try:
        return str(memoryview(data)[:end], "utf-8", errors), data[end:]
    except UnicodeDecodeError:
        data.decode("utf-8", errors)  # the whole text's reason: it may need the bytes cut off
        raise
