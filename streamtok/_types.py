"""Types that signatures share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .prompts import Prompt

    IdArray: TypeAlias = npt.NDArray[np.uint32]

Text: TypeAlias = "str | bytes | bytearray | memoryview"
AllowedSpecial: TypeAlias = "Literal['all'] | AbstractSet[str]"
DisallowedSpecial: TypeAlias = "Literal['all'] | Collection[str] | None"


AnyText: TypeAlias = "Text | Prompt | Iterable[Text | Prompt] | SupportsRead"  # whole, or in chunks


class SupportsRead(Protocol):
    """A file object, or a stream reader whose `read` is a coroutine."""

    def read(self, size: int, /) -> Any: ...
