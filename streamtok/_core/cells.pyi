from typing import final

from streamtok._core.vocab import TokenTable

@final
class Workspace:
    def __new__(cls, table: TokenTable) -> Workspace: ...
