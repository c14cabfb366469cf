"""Counts the pre-tokens of inputs, for training.

The parts of an input are collected in batches, so that the trainer's threads have enough to do.
Documents that arrive whole are counted many at a time; a document that arrives in pieces is counted
as a stream.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .._core.encode import text_bytes
from ..errors import StreamtokError
from .documents import explain
from .sources.inputs import Input
from .sources.splitters import Documents, Part

if TYPE_CHECKING:
    from ..training.trainer import Trainer

BLOCK = 1 << 23  # bytes to count at a time


def count_inputs(
    trainer: Trainer,
    inputs: Sequence[Input],
    is_split: bool,
    advance: Callable[[int, int], None] = lambda read, total: None,
) -> int:
    """Count the texts of the inputs, one after another; return the number of documents.

    is_split: an input may hold several documents. advance: called with the bytes read so far and
    the total size of the inputs (0 if unknown). Raises the errors of the inputs, and a
    StreamtokError that gives the position of invalid text.
    """
    sizes = [one.size for one in inputs]
    total = 0 if None in sizes else sum(size or 0 for size in sizes)
    before = documents = 0
    for source in inputs:
        counter = _DocumentCounter(trainer)
        begin = None if is_split else trainer.bytes_in
        try:
            for parts in _batches(source.groups(None, False)):
                counter.count(parts)
                advance(before + source.read, total)
            trainer.end_document()
        except UnicodeError as error:
            raise StreamtokError(counter.explain(error, source.name, begin)) from None
        before += source.size or 0
        documents += counter.documents
    return documents


def _batches(groups: Iterable[Sequence[Part]]) -> Iterator[list[Part]]:
    """Yield an input's parts in lists of about BLOCK bytes or characters."""
    batch: list[Part] = []
    size = 0
    for group in groups:
        batch += group
        size += sum(len(part[0]) for part in group)
        if size >= BLOCK:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _DocumentCounter:
    """Feeds the documents of an input to a trainer.

    documents: number of documents that have ended. is_open: whether the next part continues a
    document.
    """

    def __init__(self, trainer: Trainer):
        self._trainer = trainer
        self.documents = 0
        self.is_open = False
        self._begin: int | None = None  # offset of the open document in the trainer's text

    def count(self, batch: Iterable[Part]) -> None:
        """Count the parts. Raises the errors of `Trainer.update_documents`.

        After an error, `documents` is the number of documents before the faulty one, and the
        trainer's `bytes_in` tells how much text has been counted.
        """
        whole: list[str | bytes] = []
        for is_piece, run in itertools.groupby(batch, lambda part: part[1] is False):
            if is_piece:  # pieces of a document that does not end with them
                self._count_whole(whole)
                whole = []
                if not self.is_open:
                    self.is_open, self._begin = True, self._trainer.bytes_in
                self._trainer.update(b"".join(part[0] for part in run))  # type: ignore[misc]
                continue
            for part in run:
                if isinstance(part, Documents):
                    whole += part.texts()
                elif self.is_open:
                    self._trainer.update(part[0], final=True)
                    self.is_open = False
                    self.documents += 1
                else:
                    whole.append(part[0])
        self._count_whole(whole)

    def _count_whole(self, texts: list[str | bytes]) -> None:
        if not texts:
            return
        try:
            self._trainer.update_documents(texts)
        except UnicodeError:
            bad = (i for i, one in enumerate(texts) if not self._is_valid(one))
            self.documents += next(bad, 0)
            raise
        self.documents += len(texts)

    def _is_valid(self, text: str | bytes) -> bool:
        try:
            text_bytes(text, self._trainer.errors)
        except UnicodeError:
            return False
        return True

    def explain(self, error: UnicodeError, name: str, start: int | None) -> str:
        """Return a message that gives the error and its position in the input `name`.

        start: offset of the input in the trainer's text, if the input is one document.
        """
        where = name if start is not None else f"{name}: document {self.documents + 1}"
        if start is None:
            start = self._begin if self.is_open else self._trainer.bytes_in
        if isinstance(error, UnicodeDecodeError) and start is not None:
            error.start -= start
        return explain(error, where)
