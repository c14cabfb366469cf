"""What the guide uses of semchunk: it joins lines while a function says that they fit."""

from __future__ import annotations

from collections.abc import Callable


def chunkerify(count: Callable[[str], int], chunk_size: int) -> Callable[[str], list[str]]:
    """A function that cuts a text at line ends, which are no part of the chunks but the last."""

    def chunks_of(text: str) -> list[str]:
        chunks: list[str] = []
        for line in text.rstrip("\n").split("\n"):
            joined = f"{chunks[-1]}\n{line}" if chunks else line
            if chunks and count(joined) <= chunk_size:
                chunks[-1] = joined
            else:
                chunks.append(line)
        chunks[-1] += text[len(text.rstrip("\n")) :]
        return chunks

    return chunks_of
