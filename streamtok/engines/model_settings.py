"""What a model's files say about its ids beyond how text becomes them."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["NO_SETTINGS", "ModelSettings"]


class ModelSettings(NamedTuple):
    """Nothing by default. `truncation` and `padding` are values of JSON, as in the file."""

    eos: tuple[int, ...] = ()  # the ids that end a text; the first is the tokenizer's own
    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None


NO_SETTINGS = ModelSettings()
