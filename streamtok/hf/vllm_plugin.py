"""vLLM's plug-in: `STREAMTOK_VLLM=1` in the environment, and vLLM's tokenizers are streamtok's.

vLLM calls every plug-in that is installed, in each of its processes. Without the variable this one
does nothing.
"""

from __future__ import annotations

import os

__all__ = ["register"]

_CACHE = 1 << 28  # bytes for prompts, of each process


def register() -> None:
    """Patch transformers, with a cache of prompts, if the environment asks for it."""
    if os.environ.get("STREAMTOK_VLLM", "") in ("", "0"):
        return
    from . import patch_transformers

    patch_transformers(prompt_cache=_CACHE)
