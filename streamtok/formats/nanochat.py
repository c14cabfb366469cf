"""nanochat's `tokenizer.pkl`, a pickled `tiktoken.Encoding`.

Unpickling can run any code, so this unpickler supports only the opcodes that pickle writes for such
an object. They can name a class, but `find_class` allows a single name and returns a stand-in for
it. The base class is Python's unpickler written in Python: the one in C allocates memory for as
many objects as a file claims to have.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import VocabularyError
from ..patterns.budget import shortened
from .loading import MAX_MESSAGE, make_encoding, shown

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["read_nanochat"]

_FIELDS = {"name": str, "pat_str": str, "mergeable_ranks": dict, "special_tokens": dict}
_MAX_BYTES = 1 << 23  # twice the largest known file; each byte may make an object of 100 bytes
_OPCODES = (
    pickle.PROTO, pickle.FRAME, pickle.GLOBAL, pickle.STACK_GLOBAL, pickle.NEWOBJ, pickle.BUILD,
    pickle.MARK, pickle.SETITEM, pickle.SETITEMS, pickle.EMPTY_TUPLE, pickle.EMPTY_DICT,
    pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.SHORT_BINUNICODE, pickle.BINUNICODE,
    pickle.BININT1, pickle.BININT2, pickle.BININT, pickle.LONG1, pickle.MEMOIZE, pickle.BINPUT,
    pickle.LONG_BINPUT, pickle.BINGET, pickle.LONG_BINGET, pickle.STOP,
)  # fmt: skip


class _Encoding:
    """Stands in for `tiktoken.core.Encoding`."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Any]] = {
        opcode[0]: pickle._Unpickler.dispatch[opcode[0]] for opcode in _OPCODES
    }

    def find_class(self, module: str, name: str) -> type[_Encoding]:
        if (module, name) == ("tiktoken.core", "Encoding"):
            return _Encoding
        raise pickle.UnpicklingError(
            f"expected the class tiktoken.core.Encoding, found {shown(module)}.{shown(name)} "
            "(which was not imported)"
        )


def read_nanochat(data: bytes, source: str, name: str | None) -> Encoding:
    """The encoding of a pickled `tiktoken.Encoding`, whose code is not run. name: replaces the name
    in the file.

    Raises VocabularyError for any other pickle, naming the file and the reason.
    """
    if len(data) > _MAX_BYTES:
        raise VocabularyError(f"{source}: a pickle must not have more than {_MAX_BYTES >> 20} MiB")
    try:
        found = _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # of many types: UnpicklingError, TypeError, UnicodeDecodeError …
        reason = str(error) or type(error).__name__
        if isinstance(error, KeyError):  # raised by `dispatch`
            reason = f"unexpected opcode {reason}"
        raise VocabularyError(
            f"{source}: not a pickled tiktoken.Encoding: {shortened(reason, MAX_MESSAGE)}"
        ) from None
    if not isinstance(found, _Encoding):
        raise VocabularyError(
            f"{source}: not a pickled tiktoken.Encoding, but a pickled {type(found).__name__}"
        )
    state = found.state
    if isinstance(state, str):
        raise VocabularyError(
            f"{source}: the file contains only the name {state!r} of one of tiktoken's own "
            "encodings: use streamtok.get_encoding"
        )
    if not isinstance(state, dict):
        raise VocabularyError(f"{source}: the tiktoken.Encoding has no state")
    for field, kind in _FIELDS.items():
        if not isinstance(state.get(field), kind):
            raise VocabularyError(f"{source}: the field {field!r} must be a {kind.__name__}")
    if extra := state.keys() - _FIELDS.keys():
        raise VocabularyError(f"{source}: unknown field of tiktoken.Encoding: {shown(min(extra))}")
    specials = state["special_tokens"]
    for text, token in specials.items():
        if not isinstance(text, str) or not isinstance(token, int):
            raise VocabularyError(
                f"{source}: a special token must be a str with an int for its id, "
                f"found {shown(text)}: {shown(token)}"
            )
    return make_encoding(
        source,
        name or state["name"],
        pat_str=state["pat_str"],
        mergeable_ranks=state["mergeable_ranks"],
        special_tokens=specials,
    )
