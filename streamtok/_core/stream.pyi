from struct import Struct
from typing import Any, final

from typing_extensions import Buffer

from streamtok._core.encoder import Encoder
from streamtok._core.special import SpecialMatcher

STATE: Struct

@final
class Tail:
    errors: str
    note: Any
    def __new__(cls, encoder: Encoder, matcher: SpecialMatcher, errors: str) -> Tail: ...
    @property
    def pending(self) -> int: ...
    @property
    def partial(self) -> bytes: ...
    @property
    def bytes_in(self) -> int: ...
    @property
    def tokens_out(self) -> int: ...
    def reset(self) -> None: ...
    def begin_at(self, offset: int) -> None: ...
    def copy(self) -> Tail: ...
    def encode(
        self,
        chunk: str | Buffer,
        final: bool,
        into: str,
        out: Buffer | None,
        limit: int,
        expected: Any = None,
        note: Any = None,
    ) -> Any: ...
    def getstate(self, expected: Any = None) -> bytes: ...
    def setstate(self, state: bytes, note: Any = None) -> None: ...
