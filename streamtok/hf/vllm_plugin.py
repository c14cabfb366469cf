"""vLLM's plug-in: with `STREAMTOK_VLLM=1` in the environment, vLLM's tokenizers use streamtok.

vLLM calls every installed plug-in in each of its processes. Without the variable, this plug-in does
nothing.
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
