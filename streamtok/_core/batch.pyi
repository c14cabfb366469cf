from typing import Any, final

from streamtok._core.encoder import Encoder
from streamtok._core.special import SpecialMatcher

@final
class Batch:
    size: int
    large: list[int]
    def __new__(
        cls,
        encoder: Encoder,
        matcher: SpecialMatcher,
        texts: list[Any],
        errors: str,
        limit: int,
    ) -> Batch: ...
    def share(self, n_threads: int) -> None: ...
    def stop(self) -> None: ...
    def work(self) -> None: ...
    def lists(self) -> list[list[int] | None]: ...

def encode_documents(
    encoder: Encoder,
    matcher: SpecialMatcher,
    texts: list[Any],
    errors: str,
    prepend: int,
    append: int,
) -> tuple[Any, list[int], int] | None: ...
