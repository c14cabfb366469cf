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

from ..errors import MissingLibraryError, StreamtokError
from ..formats.tokenizer_objects import from_object
from .backend import Tokenizer, log_once
from .batches import answer, is_simple
from .id_decoding import DecodeStream

__all__ = ["accelerate", "patch_transformers", "patched_transformers", "unpatch_transformers"]


# What undoes the changes of `patch_transformers`, and those of `_answer_calls`.
_patch: contextlib.ExitStack | None = None
_answers: contextlib.ExitStack | None = None


def _put(patch: contextlib.ExitStack, owner: Any, name: str, value: Any) -> None:
    """Replace an attribute until `patch` is closed."""
    if name in vars(owner):
        patch.callback(setattr, owner, name, vars(owner)[name])
    else:
        patch.callback(delattr, owner, name)
    setattr(owner, name, value)


def accelerate(tokenizer: Any) -> Any:
    """Give a transformers tokenizer streamtok's engine, and return the tokenizer.

    In a fast tokenizer, the engine then encodes and decodes. A tokenizer that is written in Python
    and holds a `tiktoken.Encoding`, such as Kimi's, gets a `streamtok.Encoding` in its place. All
    other tokenizers, and those that already have streamtok's engine, are not changed. Until
    `unpatch_transformers`, matrices for `return_tensors` are made without lists.
    """
    backend = getattr(tokenizer, "_tokenizer", None)
    if type(backend) is RealTokenizer:
        tokenizer._tokenizer = Tokenizer(backend)
        _answer_calls()
        return tokenizer
    for name, held in [*vars(tokenizer).items()]:
        kind = type(held)
        if (kind.__module__.partition(".")[0], kind.__name__) == ("tiktoken", "Encoding"):
            try:
                vars(tokenizer)[name] = from_object(held, held.name)
            except StreamtokError as error:
                log_once(str(error))
    return tokenizer


def patch_transformers() -> None:
    """Give streamtok's engine to every tokenizer that transformers loads from now on.

    `accelerate` is applied to each tokenizer that `from_pretrained` of any class returns or that a
    fast class makes. Calls of these tokenizers are answered directly, without an Encoding of each
    text. `tokenizers.decoders.DecodeStream` becomes `streamtok.hf.DecodeStream`, even where it has
    been imported before. Further calls do nothing. Raises MissingLibraryError if transformers is
    missing.
    """
    global _patch  # noqa: PLW0603
    if _patch is not None:
        return
    patch = contextlib.ExitStack()
    fast, slow = _classes()
    for kind in (fast, slow):
        _put(patch, kind, "from_pretrained", _loading(kind.from_pretrained))
    _put(patch, fast, "__init__", _making(fast.__init__))
    _answer_calls()
    real = tokenizers.decoders.DecodeStream
    for module in [*sys.modules.values()]:
        names = vars(module) if module is not None and hasattr(module, "__dict__") else {}
        if names.get("DecodeStream") is real and not module.__name__.startswith("streamtok"):
            _put(patch, module, "DecodeStream", DecodeStream)
    _patch = patch


def _answer_calls() -> None:
    """Let tokenizers with streamtok's engine answer calls themselves, in place of transformers.
    `accelerate` needs this, too.
    """
    global _answers  # noqa: PLW0603
    if _answers is None and "transformers" in sys.modules:
        fast, _ = _classes()
        name = "_batch_encode_plus" if hasattr(fast, "_batch_encode_plus") else "_encode_plus"
        encode = _answering(getattr(fast, name))
        _answers = contextlib.ExitStack()
        _put(_answers, fast, name, encode)
        _put(_answers, fast, "__call__", _calling(fast.__call__, name, encode))
        _put(_answers, fast, "decode", _decoding(fast.decode))


def _loading(before: Any) -> Any:
    """The class method `from_pretrained`, followed by `accelerate`."""

    @functools.wraps(before.__func__)
    def from_pretrained(cls: Any, *args: Any, **kwargs: Any) -> Any:
        found = before.__func__(cls, *args, **kwargs)
        made = found[0] if isinstance(found, tuple) else found
        backend = getattr(made, "_tokenizer", None)
        if type(backend) is Tokenizer:  # no caller holds parts from loading any more
            made._tokenizer = Tokenizer(backend)
        accelerate(made)
        return found

    return classmethod(from_pretrained)


def _making(before: Any) -> Any:
    """`__init__` of fast tokenizers, followed by `accelerate`."""

    @functools.wraps(before)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        before(self, *args, **kwargs)
        accelerate(self)

    return __init__


def _answering(before: Any) -> Any:
    """transformers' method, except for calls that streamtok answers."""
    first = [*inspect.signature(before).parameters][1]

    @functools.wraps(before)
    def encode(self: Any, *args: Any, **options: Any) -> Any:
        if len(args) < 2 and type(self._tokenizer) is Tokenizer:
            named = dict(options)
            texts = args[0] if args else named.pop(first, None)
            if named.pop("text_pair", None) is None:
                made = answer(self, texts, named)
                if made is not None:
                    return made
        return before(self, *args, **options)

    return encode


def _calling(before: Any, name: str, encode: Any) -> Any:
    """transformers' `__call__`, except for simple calls of classes that inherit `encode`."""

    @functools.wraps(before)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        if (
            len(args) == 1
            and is_simple(options)
            and getattr(type(self), name) is encode
            and type(self._tokenizer) is Tokenizer
            and not hasattr(type(self), "_switch_to_input_mode")
        ):
            made = answer(self, args[0], options)
            if made is not None:
                return made
        return before(self, *args, **options)

    return call


def _decoding(before: Any) -> Any:
    """transformers' `decode`, without its slow check of each id where all ids are int."""

    @functools.wraps(before)
    def decode(self: Any, *args: Any, **options: Any) -> Any:
        if (
            len(args) == 1
            and type(args[0]) is list
            and type(self._tokenizer) is Tokenizer
            and {*map(type, args[0])} == {int}
        ):
            return self._decode(
                token_ids=args[0],
                skip_special_tokens=options.pop("skip_special_tokens", False),
                **options,
            )
        return before(self, *args, **options)

    return decode


def unpatch_transformers() -> None:
    """Undo `patch_transformers`. Tokenizers that were loaded in the meantime are not changed."""
    global _patch, _answers  # noqa: PLW0603
    for patch in (_patch, _answers):
        if patch is not None:
            patch.close()
    _patch = _answers = None


@contextlib.contextmanager
def patched_transformers() -> Iterator[None]:
    """Patch transformers in a `with` block. If it was patched before, it stays so afterwards."""
    was_patched = _patch is not None
    patch_transformers()
    try:
        yield
    finally:
        if not was_patched:
            unpatch_transformers()


def _classes() -> tuple[Any, Any]:
    """The base classes of fast tokenizers and of tokenizers written in Python."""
    try:
        import transformers
    except ImportError as error:
        raise MissingLibraryError("patch_transformers needs transformers") from error
    return transformers.PreTrainedTokenizerFast, transformers.PreTrainedTokenizer
