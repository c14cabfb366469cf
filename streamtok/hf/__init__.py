"""streamtok inside programs that call Hugging Face's tokenizers: transformers, vLLM or SGLang.

`Tokenizer` has the interface of `tokenizers.Tokenizer`. It uses streamtok's engine wherever the
result is the same, and the real tokenizer everywhere else. This package needs the library
`tokenizers` (the extra "hf").
"""

from __future__ import annotations

from ..errors import MissingLibraryError

try:
    import tokenizers as _tokenizers
except ImportError as error:
    raise MissingLibraryError(
        "streamtok.hf needs tokenizers: pip install 'streamtok[hf]'"
    ) from error

if not hasattr(_tokenizers.Tokenizer, "to_str"):  # 1.0 has another interface
    raise MissingLibraryError(
        f"streamtok.hf needs tokenizers below 1.0, as transformers does, not "
        f"{_tokenizers.__version__}: pip install 'streamtok[hf]'"
    )

from .backend import Tokenizer
from .chat import encode_chat
from .id_decoding import DecodeStream
from .lazy import Encoding
from .patching import accelerate, patch_transformers, patched_transformers, unpatch_transformers

del _tokenizers

__all__ = [
    "DecodeStream",
    "Encoding",
    "Tokenizer",
    "accelerate",
    "encode_chat",
    "patch_transformers",
    "patched_transformers",
    "unpatch_transformers",
]
