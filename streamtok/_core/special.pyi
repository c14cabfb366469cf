from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, final

@final
class SpecialMatcher:
    specials: tuple[str, ...]
    allowed: frozenset[str]
    is_empty: bool
    def __new__(
        cls,
        specials: Sequence[tuple[str, int]],
        allowed: AbstractSet[str],
        disallowed: Collection[str],
    ) -> SpecialMatcher: ...
    @property
    def reach(self) -> int: ...
    def split(self, data: bytes) -> list[tuple[int, int, int | None]]: ...

def use_wide_search(wanted: bool) -> None: ...
def plant(root: dict[Any, Any], text: str) -> dict[Any, Any]: ...
def flatten(root: dict[Any, Any], byte: int, sibling: int, flat: list[list[Any]]) -> int: ...
