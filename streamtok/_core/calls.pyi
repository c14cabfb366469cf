from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import Final, Literal

from typing_extensions import Buffer, disjoint_base

from streamtok._core.encoder import Encoder
from streamtok._core.special import SpecialMatcher

ALL: Final = "all"
NO_SPECIAL: frozenset[str]

@disjoint_base
class QuickCalls:
    def _set_quick(
        self, encoder: Encoder, ordinary: SpecialMatcher, default: SpecialMatcher
    ) -> None: ...
    def encode_ordinary(self, text: str | Buffer, *, errors: str = "strict") -> list[int]: ...
    def encode(
        self,
        text: str | Buffer,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        errors: str = "strict",
    ) -> list[int]: ...
