"""What the guide uses of litellm: how it counts with a tokenizer that is given."""

from __future__ import annotations

from typing import Any


def token_counter(model: str, custom_tokenizer: dict[str, Any], text: str) -> int:
    """The number of tokens in a text."""
    if custom_tokenizer["type"] != "huggingface_tokenizer":
        raise ValueError("Unsupported tokenizer type")
    return len(custom_tokenizer["tokenizer"].encode_batch_fast([text])[0])
