"""Surrogates in a str: tiktoken's rule for whole texts, and the same for a text in chunks.

A pair of surrogates becomes its character, one without the other half U+FFFD. Under
"surrogateescape" nothing is repaired: U+DC80 to U+DCFF are bytes, and any other surrogate is an
error.
"""

from __future__ import annotations


def repair(text: str) -> str:
    """str: `text` without surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def repair_chunk(half: str, chunk: object, final: bool) -> tuple[str, str]:
    """(text, half): a repaired chunk of a text, and the first half of a pair that ends it.

    half: what the chunk before gave. The half at the end of the text is repaired, too. Raises
    UnicodeEncodeError for bytes after a half, which has no UTF-8 that could stand before them.
    """
    if isinstance(chunk, str):
        text, half = half + chunk, ""
    elif memoryview(chunk):  # type: ignore[arg-type]
        raise UnicodeEncodeError(
            "utf-8", half, 0, 1, "bytes follow the first half of a surrogate pair"
        )
    else:
        text, half = half, ""
    if not final and "\ud800" <= text[-1:] <= "\udbff":
        text, half = text[:-1], text[-1]
    return repair(text), half
