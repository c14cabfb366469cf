from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal

import numpy.typing as npt
from typing_extensions import Buffer, disjoint_base

from streamtok._core.decoder import Decoder
from streamtok._core.encoder import Encoder
from streamtok._core.special import SpecialMatcher

ALL: Final = "all"
NO_SPECIAL: frozenset[str]

@disjoint_base
class QuickCalls:
    def _set_quick(
        self, encoder: Encoder, ordinary: SpecialMatcher, default: SpecialMatcher
    ) -> None: ...
    def _set_decoder(self, decoder: Decoder, drops_space: bool) -> None: ...
    def encode_ordinary(self, text: str | Buffer, *, errors: str = "strict") -> list[int]: ...
    def encode(
        self,
        text: str | Buffer,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        errors: str = "strict",
    ) -> list[int]: ...
    def decode_bytes(self, tokens: Iterable[int] | npt.NDArray[Any]) -> bytes: ...
    def decode(self, tokens: Iterable[int] | npt.NDArray[Any], errors: str = "replace") -> str: ...
