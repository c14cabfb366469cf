"""What the guide uses of LangChain's package of this name: how it calls its splitters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable


class TextSplitter(ABC):
    """The base class: it keeps the settings and asks for `split_text`."""

    def __init__(
        self,
        chunk_size: int = 4000,
        chunk_overlap: int = 200,
        length_function: Callable[[str], int] = len,
    ) -> None:
        if chunk_overlap > chunk_size:
            raise ValueError("the overlap is larger than a chunk")
        self._chunk_size = chunk_size
        self._chunk_overlap = chunk_overlap
        self._length_function = length_function

    @abstractmethod
    def split_text(self, text: str) -> list[str]:
        """The chunks of a text."""


class RecursiveCharacterTextSplitter(TextSplitter):
    """Joins paragraphs as long as the sum of their lengths, and of what is between, allows it."""

    def split_text(self, text: str) -> list[str]:
        """The chunks of a text."""
        chunks: list[str] = []
        for part in text.split("\n\n"):
            pieces = [*(chunks[-1] if chunks else "").split("\n\n"), part]
            length = sum(map(self._length_function, pieces))
            length += self._length_function("\n\n") * (len(pieces) - 1)
            if chunks and length <= self._chunk_size:
                chunks[-1] += "\n\n" + part
            else:
                chunks.append(part)
        return chunks
