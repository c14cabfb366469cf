from types import TracebackType
from typing import Literal, final

@final
class Guard:
    def __enter__(self) -> Guard: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
