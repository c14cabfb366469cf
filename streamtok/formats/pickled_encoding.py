"""The state of a pickled `tiktoken.Encoding`, read without unpickling.

To unpickle a file is to run it. This module walks over its opcodes instead, and they can only make
what such a file contains: one `tiktoken.core.Encoding`, made by `__new__` without arguments, and a
dictionary of its name, pattern, ranks and special tokens. Any other global, any call and any other
opcode raise an error with the name and the place; nothing is imported. The size of the file and the
number of opcodes bound the memory. (Format: CPython's `Lib/pickletools.py`.)
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NoReturn

from ..errors import VocabularyError
from .loading import shown

__all__ = ["read_pickled"]

_PROTOCOLS = range(3, 6)  # before protocol 3, bytes were pickled as calls
_MAX_OPCODES = 1 << 22  # a token takes three; each may make an object of a hundred bytes


class _Class:
    """Stands for the only class that a file may name."""


class _Object:
    """Stands for the only object that a file may make."""

    state: Any = None


_ENCODING = _Class()


def read_pickled(data: bytes, source: str) -> dict[str, Any]:
    """The state of the pickled `tiktoken.core.Encoding`: a dictionary of its fields.

    The types of the fields are not checked. Raises VocabularyError naming `source` and the offset.
    """
    found = _OpcodeWalker(data, source).run()
    if not isinstance(found, _Object):
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


class _OpcodeWalker:
    """A stack machine for the few opcodes that such a file uses."""

    def __init__(self, data: bytes, source: str) -> None:
        self.data = data
        self.source = source
        self.at = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.handlers: dict[bytes, Callable[[], object]] = {
            pickle.PROTO: self.protocol,
            pickle.FRAME: lambda: self.take(8),
            pickle.GLOBAL: self.named,
            pickle.STACK_GLOBAL: self.stack_global,
            pickle.EMPTY_TUPLE: lambda: self.push(()),
            pickle.EMPTY_DICT: lambda: self.push({}),
            pickle.NEWOBJ: self.new_object,
            pickle.BUILD: self.build,
            pickle.MARK: lambda: self.marks.append(len(self.stack)),
            pickle.SETITEM: lambda: self.set_items(len(self.stack) - 2),
            pickle.SETITEMS: lambda: self.set_items(self.last_mark()),
            pickle.SHORT_BINBYTES: lambda: self.push(self.take(self.number(1))),
            pickle.BINBYTES: lambda: self.push(self.take(self.number(4))),
            pickle.BINBYTES8: lambda: self.push(self.take(self.number(8))),
            pickle.SHORT_BINUNICODE: lambda: self.push(self.text(1)),
            pickle.BINUNICODE: lambda: self.push(self.text(4)),
            pickle.BINUNICODE8: lambda: self.push(self.text(8)),
            pickle.BININT1: lambda: self.push(self.number(1)),
            pickle.BININT2: lambda: self.push(self.number(2)),
            pickle.BININT: lambda: self.push(int.from_bytes(self.take(4), "little", signed=True)),
            pickle.LONG1: self.long1,
            pickle.MEMOIZE: lambda: self.remember(len(self.memo)),
            pickle.BINPUT: lambda: self.remember(self.number(1)),
            pickle.LONG_BINPUT: lambda: self.remember(self.number(4)),
            pickle.BINGET: lambda: self.recall(self.number(1)),
            pickle.LONG_BINGET: lambda: self.recall(self.number(4)),
        }

    def run(self) -> Any:
        handlers = self.handlers
        for _ in range(_MAX_OPCODES):
            start = self.at
            code = self.take(1)
            if code == pickle.STOP:
                break
            handler = handlers.get(code)
            if handler is None:
                self.fail(
                    f"unexpected opcode {_name(code)}: a pickled tiktoken.Encoding has none", start
                )
            handler()
        else:
            self.fail(f"more than {_MAX_OPCODES} opcodes")
        if len(self.stack) != 1 or self.marks:
            self.fail(f"expected one value at the end, found {len(self.stack)}", start)
        return self.stack[0]

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        place = self.at if at is None else at
        raise VocabularyError(f"{self.source}, byte {place}: {message}")

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            self.fail(f"expected {size} bytes, but the file ends after {len(self.data) - self.at}")
        part = self.data[self.at : end]
        self.at = end
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def text(self, size: int) -> str:
        start = self.at
        try:
            return self.take(self.number(size)).decode("utf-8")
        except UnicodeDecodeError:
            self.fail("a string is not UTF-8", start)

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            self.fail("a value is missing")
        return self.stack.pop()

    def protocol(self) -> None:
        version = self.number(1)
        if version not in _PROTOCOLS or self.at != 2:
            self.fail(f"expected protocol 3, 4 or 5 at the start, found protocol {version} here")

    def named(self) -> None:
        start = self.at
        lines = []
        for _ in range(2):
            end = self.data.find(b"\n", self.at, self.at + 256)
            if end < 0:
                self.fail("the name of a global does not end", start)
            lines.append(self.data[self.at : end].decode("ascii", "backslashreplace"))
            self.at = end + 1
        self.admit(lines[0], lines[1], start)

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        self.admit(module, name, self.at - 1)

    def admit(self, module: Any, name: Any, at: int) -> None:
        if (module, name) != ("tiktoken.core", "Encoding"):
            self.fail(
                f"expected the class tiktoken.core.Encoding, found {shown(module)}.{shown(name)} "
                "(which was not imported)",
                at,
            )
        self.push(_ENCODING)

    def new_object(self) -> None:
        args, made = self.pop(), self.pop()
        if made is not _ENCODING or args != () or type(args) is not tuple:
            self.fail("expected a tiktoken.Encoding made without arguments", self.at - 1)
        self.push(_Object())

    def build(self) -> None:
        state, target = self.pop(), self.pop()
        if not isinstance(target, _Object) or target.state is not None:
            self.fail("only a new tiktoken.Encoding may get a state", self.at - 1)
        target.state = state
        self.push(target)

    def last_mark(self) -> int:
        if not self.marks:
            self.fail("a mark is missing", self.at - 1)
        return self.marks.pop()

    def set_items(self, start: int) -> None:
        items = self.stack[max(start, 0) :]
        if start < 1 or len(items) % 2 or (self.marks and start < self.marks[-1] + 1):
            self.fail("keys and values do not pair up", self.at - 1)
        del self.stack[start:]
        target = self.stack[-1]
        if type(target) is not dict:
            self.fail("items can only be added to a dictionary", self.at - 1)
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, (str, bytes)):
                self.fail(f"a key must be str or bytes, not {shown(key)}", self.at - 1)
            if key in target:
                self.fail(f"the key {shown(key)} is given twice", self.at - 1)
            target[key] = value

    def long1(self) -> None:
        self.push(int.from_bytes(self.take(self.number(1)), "little", signed=True))

    def remember(self, place: int) -> None:
        if not self.stack:
            self.fail("the stack is empty: nothing to remember", self.at - 1)
        self.memo[place] = self.stack[-1]

    def recall(self, place: int) -> None:
        if place not in self.memo:
            self.fail(f"nothing is remembered as {place}", self.at - 1)
        self.push(self.memo[place])


def _name(code: bytes) -> str:
    import pickletools

    known = {entry.code: entry.name for entry in pickletools.opcodes}
    return known.get(code.decode("latin-1"), repr(code))
