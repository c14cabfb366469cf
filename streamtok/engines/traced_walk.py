"""A walk through the stages whose blocks are the same however the text was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.encode import utf8_size
from .block_map import TOKEN, Block, marked, pieces_of
from .chunk_text import characters_of
from .stretches import RefusedToken, Walk

if TYPE_CHECKING:
    from .._types import Text
    from .stretches import Stages

__all__ = ["TracedWalk", "take_pieces"]


def take_pieces(stages: Stages, note: Any, chunk: Text, final: bool, errors: str) -> Any:
    """As `RewritingChain._slowly`, with a walk whose blocks any cut makes the same."""
    taken, text = characters_of(note.taken, chunk, final, errors)
    walk = TracedWalk(stages._replace(first_table=None, second_table=None), note.place)
    pieces = pieces_of(text, (stages.normalizer, stages.second))
    for number, piece in enumerate([*pieces, ""] if final else pieces):
        try:
            walk.feed_piece(piece, final and number == len(pieces))
        except RefusedToken as refused:
            behind = sum([utf8_size(part, stages.has_escapes) for part in pieces[number + 1 :]])
            return taken.end - refused.rest - behind - len(taken.partial), refused.text
    return taken, walk


class TracedWalk(Walk):
    """A walk whose blocks are kept as `BlockMap` has them."""

    def feed_piece(self, text: str, final: bool) -> None:
        """Take a piece in. Raises RefusedToken."""
        if not hasattr(self, "marked_blocks"):
            self.marked_blocks: tuple[list[Block], list[Block]] = [], []
        tokens = len(self.tokens)
        known = len(self.first_blocks), len(self.second_blocks)
        self.feed(text, final)
        for which, blocks in enumerate((self.first_blocks, self.second_blocks)):
            at = known[which]
            for taken, number, is_first in [*self.tokens[tokens:], ("", len(blocks), not which)]:
                if is_first == (not which):
                    stop = number - bool(taken)
                    new: list[Any] = blocks[at:stop]
                    self.marked_blocks[which].extend(marked(new))
                    if taken:
                        self.marked_blocks[which].append(("", taken, TOKEN))
                    at = number
