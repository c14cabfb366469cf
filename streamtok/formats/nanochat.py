"""nanochat's `tokenizer.pkl`, a pickled `tiktoken.Encoding`.

Unpickling can run any code. So the opcodes are checked first: only those may occur that pickle
writes for this object. They can name a class, and `find_class` allows one name, for which it gives
a stand-in. The number of opcodes bounds the memory.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

from ..errors import VocabularyError
from ..patterns.budget import shortened
from .loading import MAX_MESSAGE, make_encoding, shown

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["read_nanochat"]

_FIELDS = {"name": str, "pat_str": str, "mergeable_ranks": dict, "special_tokens": dict}
_MAX_OPCODES = 1 << 22  # a token takes three; each may make an object of a hundred bytes
_OPCODE_NAMES = (
    "PROTO FRAME GLOBAL STACK_GLOBAL NEWOBJ BUILD MARK SETITEM SETITEMS EMPTY_TUPLE EMPTY_DICT "
    "SHORT_BINBYTES BINBYTES BINBYTES8 SHORT_BINUNICODE BINUNICODE BINUNICODE8 BININT1 BININT2 "
    "BININT LONG1 MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET STOP"
)
_OPCODES = frozenset(_OPCODE_NAMES.split())


def read_nanochat(data: bytes, source: str, name: str | None) -> Encoding:
    """The encoding of a pickled `tiktoken.Encoding`, which is not run; name: in place of its own.

    Raises VocabularyError naming the file and what is wrong for any other pickle.
    """
    state = _read_pickled(data, source)
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


class _Encoding:
    """Stands in for `tiktoken.core.Encoding`."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type[_Encoding]:
        if (module, name) == ("tiktoken.core", "Encoding"):
            return _Encoding
        raise pickle.UnpicklingError(
            f"expected the class tiktoken.core.Encoding, found {shown(module)}.{shown(name)} "
            "(which was not imported)"
        )


def _read_pickled(data: bytes, source: str) -> dict[str, Any]:
    """The fields of the pickled `tiktoken.Encoding`, of any types."""
    _check_opcodes(data, source)
    try:
        found = _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # damage has many: UnpicklingError, TypeError, UnicodeDecodeError …
        raise VocabularyError(f"{source}: {shortened(str(error), MAX_MESSAGE)}") from None
    if not isinstance(found, _Encoding):
        raise VocabularyError(
            f"{source}: expected a tiktoken.Encoding, found a pickled {type(found).__name__}"
        )
    if isinstance(found.state, str):
        raise VocabularyError(
            f"{source}: the file contains only the name {found.state!r} of one of tiktoken's own "
            "encodings: use streamtok.get_encoding"
        )
    if not isinstance(found.state, dict):
        raise VocabularyError(f"{source}: the tiktoken.Encoding has no state")
    return found.state


def _check_opcodes(data: bytes, source: str) -> None:
    """Raise VocabularyError for opcodes that a pickled `tiktoken.Encoding` does not have."""
    import pickletools

    try:
        for count, (opcode, value, at) in enumerate(pickletools.genops(data)):
            if opcode.name not in _OPCODES:
                raise VocabularyError(
                    f"{source}, byte {at}: unexpected opcode {opcode.name}: a pickled "
                    "tiktoken.Encoding has none"
                )
            # The memo is an array, which is as long as its greatest index.
            if count == _MAX_OPCODES or (
                "PUT" in opcode.name and isinstance(value, int) and value > _MAX_OPCODES
            ):
                raise VocabularyError(f"{source}, byte {at}: more than {_MAX_OPCODES} opcodes")
    except (ValueError, UnicodeDecodeError) as error:
        if isinstance(error, VocabularyError):
            raise
        what = shortened(str(error), MAX_MESSAGE)
        raise VocabularyError(f"{source}: not a complete pickle: {what}") from None
