from typing import Any, final

from typing_extensions import Buffer

from streamtok._core.cuts import Cuts
from streamtok._core.encoder import Encoder
from streamtok._core.special import SpecialMatcher

@final
class LargeText:
    n_parts: int
    most_ahead: int
    def __new__(
        cls,
        encoder: Encoder,
        cuts: Cuts,
        matcher: SpecialMatcher,
        text: str | Buffer,
        errors: str,
        into: str,
        part_size: int,
    ) -> LargeText: ...
    def stop(self) -> None: ...
    def work(self) -> None: ...
    def begin_list(self) -> bool: ...
    def fill(self) -> None: ...
    def result(self) -> Any: ...
