"""What the guide uses of LlamaIndex: a function from a str to a list, kept for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Settings:
    tokenizer: Callable[[str], list[Any]]


Settings = _Settings()
