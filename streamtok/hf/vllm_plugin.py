"""vLLM's plug-in: `STREAMTOK_VLLM=1` in the environment, and vLLM's tokenizers are streamtok's.

vLLM calls every plug-in that is installed, in each of its processes. Without the variable this one
does nothing.
"""

from __future__ import annotations

import os

__all__ = ["register"]


def register() -> None:
    """Patch transformers if the environment asks for it."""
    if os.environ.get("STREAMTOK_VLLM", "") in ("", "0"):
        return
    from . import patch_transformers

    patch_transformers()
