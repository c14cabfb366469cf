"""Settings in a model's files that do not affect how text is encoded."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["NO_SETTINGS", "ModelSettings"]


class ModelSettings(NamedTuple):
    """All empty by default. `truncation` and `padding` are JSON values, as in the file."""

    eos: tuple[int, ...] = ()  # the ids that end a text; the first is the tokenizer's own
    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None


NO_SETTINGS = ModelSettings()
