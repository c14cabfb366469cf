from typing import final

from streamtok._core.vocab import TokenTable

def use_at_once(wanted: bool) -> None: ...
def use_wide_keys(wanted: bool) -> bool: ...

@final
class Workspace:
    def __new__(cls, table: TokenTable) -> Workspace: ...
