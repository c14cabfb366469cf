"""transformers with streamtok's engine: for one tokenizer, or for all that are loaded later."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import tokenizers
from tokenizers import Tokenizer as RealTokenizer

from .backend import Tokenizer
from .id_decoding import DecodeStream
from .matrices import as_matrix

__all__ = ["accelerate", "patch_transformers", "patched_transformers", "unpatch_transformers"]


class _Patch:
    """What was put in place of what: each with the object, the name and the value before."""

    def __init__(self) -> None:
        self.undone: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        self.undone.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def undo(self) -> None:
        for owner, name, value in reversed(self.undone):
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


_MISSING = object()
_patch: _Patch | None = None


def accelerate(tokenizer: Any, *, prompt_cache: int = 0) -> Any:
    """Give a fast transformers tokenizer streamtok's engine; the tokenizer itself.

    One that is not fast, or has streamtok's engine already, is left as it is. prompt_cache: as for
    `Tokenizer`.
    """
    backend = getattr(tokenizer, "_tokenizer", None)
    if type(backend) is RealTokenizer:
        tokenizer._tokenizer = Tokenizer(backend, prompt_cache=prompt_cache)
    return tokenizer


def patch_transformers(*, prompt_cache: int = 0) -> None:
    """Let every fast tokenizer that transformers loads from now on have streamtok's engine.

    `from_pretrained` of the class of fast tokenizers and of all that derive from it gives such
    ones, and `tokenizers.decoders.DecodeStream` is `streamtok.hf.DecodeStream`, also where it was
    imported before. Once is enough. Raises MissingLibraryError without transformers.
    """
    global _patch  # noqa: PLW0603
    if _patch is not None:
        return
    patch = _Patch()
    fast = _fast_class()
    before = fast.from_pretrained

    @functools.wraps(before.__func__)
    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        made = before.__func__(cls, *args, **kwargs)
        if isinstance(made, tuple):
            accelerate(made[0], prompt_cache=prompt_cache)
        else:
            accelerate(made, prompt_cache=prompt_cache)
        return made

    patch.put(fast, "from_pretrained", classmethod(from_pretrained))
    name = "_batch_encode_plus" if hasattr(fast, "_batch_encode_plus") else "_encode_plus"
    patch.put(fast, name, _with_matrices(getattr(fast, name)))
    real = tokenizers.decoders.DecodeStream
    for module in [*sys.modules.values()]:
        names = vars(module) if module is not None and hasattr(module, "__dict__") else {}
        if names.get("DecodeStream") is real and not module.__name__.startswith("streamtok"):
            patch.put(module, "DecodeStream", DecodeStream)
    _patch = patch


def _with_matrices(before: Any) -> Any:
    """transformers' method, except for calls whose matrices streamtok makes."""
    first = [*inspect.signature(before).parameters][1]

    @functools.wraps(before)
    def encode(self: Any, *args: Any, **options: Any) -> Any:
        if len(args) < 2 and type(self._tokenizer) is Tokenizer:
            named = dict(options)
            texts = args[0] if args else named.pop(first, None)
            if named.pop("text_pair", None) is None:
                made = as_matrix(self, texts, named)
                if made is not None:
                    return made
        return before(self, *args, **options)

    return encode


def unpatch_transformers() -> None:
    """Undo `patch_transformers`. Tokenizers that were loaded in between stay as they are."""
    global _patch  # noqa: PLW0603
    if _patch is not None:
        _patch.undo()
        _patch = None


@contextlib.contextmanager
def patched_transformers(*, prompt_cache: int = 0) -> Iterator[None]:
    """`patch_transformers` for a `with` block; if it was in force before, it stays so."""
    was_patched = _patch is not None
    patch_transformers(prompt_cache=prompt_cache)
    try:
        yield
    finally:
        if not was_patched:
            unpatch_transformers()


def _fast_class() -> Any:
    from ..errors import MissingLibraryError

    try:
        import transformers
    except ImportError as error:
        raise MissingLibraryError("patch_transformers needs transformers") from error
    return transformers.PreTrainedTokenizerFast
