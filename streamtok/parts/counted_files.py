"""Counts the documents of files for training, and records how far it has read each.

The record is kept in the trainer's notes, with the counts, so that the two cannot disagree: for
each file its fingerprint, the position of its input after the last batch of documents, and how much
text after that is counted, too. `sources` reads the files and divides them into documents.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._core.encode import text_bytes
from ..errors import StreamtokError
from ..files.named_errors import shown
from ..pipeline.sources import Documents, Input, Part, Reading, fingerprint
from ..stores.urls import is_url
from .counted_documents import DocumentCounter, batches

if TYPE_CHECKING:
    from ..training.trainer import Trainer

_MAY_CHANGE = "skip_bad_lines", "max_bad_lines", "max_pending", "skip_empty"
_NOTHING = {
    "fingerprint": None,
    "position": None,  # of the input, where counting can go on
    "at": 0,  # bytes of text before that position
    "skip": 0,  # bytes of text after it that are counted
    "documents": 0,  # that have ended before it
    "is_open": False,  # whether it is inside a document
    "is_done": False,
}


def count_inputs(
    trainer: Trainer,
    names: Sequence[str],
    open_input: Callable[[str], Input],
    *,
    is_split: bool,
    files: CountedFiles | None = None,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Count the documents of the inputs with these names, all of which are opened at first.

    is_split: whether an input may hold several documents. files: what is counted already, and
    takes a note of what is counted now. advance: called with the bytes that were read so far, and
    those of all inputs, 0 if unknown. Raises StreamtokError that names the input and the place of
    text that is none, and as `CountedFiles`; OSError.
    """
    pairs = [(name, {}) for name in names] if files is None else files.in_order(names)
    sources = [open_input(name) for name, _ in pairs]
    sizes = [source.size or 0 for source in sources if source.size is not None]
    total = sum(sizes) if len(sizes) == len(sources) else 0
    seen = 0
    for source, (name, entry) in zip(sources, pairs, strict=True):
        if files is not None and (source.size is None or is_url(name)):
            raise StreamtokError(f"--save-counts needs regular files: {shown(name)} is not one")
        begin = trainer.bytes_in - entry.get("at", 0) - entry.get("skip", 0)
        counter = DocumentCounter(trainer)
        if files is None:
            found = batches(source.groups(None, False))
        else:
            found = files.batches(source, entry, counter)
        try:
            for batch in found:
                counter.count(batch)
                advance(seen + source.read, total)
            trainer.end_document()
        except UnicodeError as error:
            what = counter.explain(error, source.name, None if is_split else begin)
            raise StreamtokError(what) from None
        seen += source.size or source.read
        advance(seen, total)


class CountedFiles:
    """The files in the counts of a trainer. A file that is given twice is counted twice."""

    def __init__(self, trainer: Trainer, counts: str, reading: Reading):
        """counts: the name of the file of counts, for errors. reading: how its files are read.

        Raises StreamtokError if the trainer's notes do not tell which files it has counted.
        """
        self._trainer = trainer
        self._counts = shown(counts)
        self._entries: Any = trainer.notes.setdefault("files", [])
        self._check_reading(reading)
        try:
            is_known = all(one.keys() == {"path", *_NOTHING} for one in self._entries)
            total = sum(one["at"] + one["skip"] for one in self._entries) if is_known else -1
        except (TypeError, AttributeError):
            total = -1
        if total != trainer.bytes_in:
            raise StreamtokError(
                f"{self._counts} does not record which files it was counted from: "
                "use another file for --save-counts"
            )

    def _check_reading(self, reading: Reading) -> None:
        row = reading.as_json()
        plain = Reading(errors=reading.errors).as_json()
        found = self._trainer.notes.setdefault("reading", row if not self._entries else plain)
        for name, value in row.items():
            if found.get(name) != value and name not in _MAY_CHANGE:
                option = f"--{'no-unpack' if name == 'unpack' else name.replace('_', '-')}"
                raise StreamtokError(
                    f"{self._counts} was counted with another {option}: give the same, or use "
                    "another file for --save-counts"
                )

    def in_order(self, names: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        """Each name with the record of its counted part; a partly counted file comes first.

        Raises StreamtokError if the counts include a file that is not in `names`.
        """
        left = list(self._entries)
        pairs = []
        for name in names:
            path = os.path.realpath(name)
            entry = next((one for one in left if one["path"] == path), None)
            if entry is None:
                entry = {"path": path, **_NOTHING}
            else:
                left.remove(entry)
            pairs.append((name, entry))
        if left:
            more = f" and of {len(left) - 1} more" if len(left) > 1 else ""
            raise StreamtokError(
                f"{self._counts} also has the counts of {shown(left[0]['path'])}{more}: name all "
                "files that are counted there, or use another file for --save-counts"
            )
        return sorted(pairs, key=lambda pair: pair[1] not in self._entries or pair[1]["is_done"])

    def batches(
        self, source: Input, entry: dict[str, Any], counter: DocumentCounter
    ) -> Iterator[list[Part]]:
        """Yield the documents that have not been counted. `counter` must count each batch.

        Raises StreamtokError if the counted text has changed; OSError, ArchiveError, DocumentError.
        """
        path = entry["path"]
        found = list(fingerprint(path))
        if entry["fingerprint"] not in (None, found):
            raise StreamtokError(
                f"{shown(path)} has changed since it was counted in {self._counts}: use another "
                "file for --save-counts"
            )
        if entry["is_done"]:
            return
        entry["fingerprint"] = found
        if not any(one is entry for one in self._entries):
            self._entries.append(entry)
        before = sum(one["at"] for one in self._entries if one is not entry)
        counter.documents, counter.is_open = entry["documents"], entry["is_open"]
        groups = source.groups(entry["position"], counter.is_open)
        for batch in self._uncounted(batches(groups), entry["skip"], counter):
            yield batch
            # In one step, because a signal may come at any time.
            entry.update(
                position=source.position(),
                at=self._trainer.bytes_in - before,
                skip=0,
                documents=counter.documents,
                is_open=counter.is_open,
            )
        self._trainer.end_document()
        entry["is_done"] = True

    def _uncounted(
        self, found: Iterator[list[Part]], size: int, counter: DocumentCounter
    ) -> Iterator[list[Part]]:
        """The batches without their first `size` bytes of text. `counter` is told of those."""
        while size and (batch := next(found, None)) is not None:
            rest: list[Part] = []
            for text, is_end in itertools.chain.from_iterable(map(_single, batch)):
                if not size:
                    rest.append((text, is_end))
                    continue
                data = text if isinstance(text, bytes) else text_bytes(text, self._trainer.errors)
                left = data[size:]
                size -= len(data) - len(left)
                counter.is_open = bool(left) or not is_end
                counter.documents += not counter.is_open
                if left:
                    rest.append((left, is_end))
            if not counter.is_open:
                self._trainer.end_document()
            if rest:
                yield rest
        yield from found

    def note(self) -> None:
        """Record how far the current file has been counted, even in the middle of a batch."""
        for entry in self._entries:
            if not entry["is_done"]:
                entry["skip"] = self._trainer.bytes_in - sum(one["at"] for one in self._entries)


def _single(part: Part) -> Sequence[tuple[str | bytes, bool]]:
    """The texts of a part, each with whether the document ends there."""
    if isinstance(part, Documents):
        return [(text, True) for text in part.texts()]
    return [part]
