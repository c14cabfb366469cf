"""The names of `tiktoken.core`, for programs that use streamtok in its place."""

from typing import NoReturn

from streamtok.encoding import Encoding

__all__ = ["Encoding", "raise_disallowed_special_token"]


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Raise ValueError for the text of a disallowed special token."""
    raise ValueError(
        f"Encountered text corresponding to disallowed special token {token!r}.\n"
        f"To encode it as a special token, pass allowed_special={{{token!r}, ...}}.\n"
        "To encode it as plain text, pass disallowed_special=()."
    )
