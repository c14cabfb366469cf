from typing import Any

from typing_extensions import Buffer

from streamtok._core.encoder import Encoder
from streamtok._core.special import SpecialMatcher

def find_documents(data: Buffer, delimiter: bytes, start: int, wanted: int) -> tuple[int, int]: ...
def encode_delimited(
    encoder: Encoder,
    matcher: SpecialMatcher,
    data: Buffer,
    delimiter: bytes,
    count: int,
    errors: str,
    prepend: int,
    append: int,
    skip_empty: bool,
) -> tuple[Any, Any] | None: ...
