"""Counts the documents of files for training, span by span.

Texts are cut where no pre-token lies across, so the counts of spans are together those of the text.
They are merged in the order of the text, because one way to break ties asks which pair came first.
After each span, the trainer's notes say which files are counted and how far, so that they can be
saved with the counts at any moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ...errors import StreamtokError
from ...files import shown
from ...training.trainer import Trainer
from ..option_fields import difference
from ..rows import Row
from ..skip_log import SkipLog
from ..sources import Input, OnBad, Reading, check_file, fingerprint
from ..sources.unit_ends import CleanCuts, FindCut, cuts_behind
from ..span_encoder import Span
from ..spans import inside, spans_after
from ..stores.urls import is_url
from .counted_documents import DocumentCounter, batches

OpenInput: TypeAlias = Callable[[str, Span, OnBad], Input]


class FileCounts:
    """A trainer, and the files that it has counted or will; one that is given twice counts twice.

    skipped: records without a text, in this process.
    """

    def __init__(
        self, trainer: Trainer, names: Sequence[str], reading: Reading, saved: str | None = None
    ):
        """saved: the name of the file of counts that `trainer` comes from or goes to, if any.

        Raises StreamtokError if the notes of the trainer do not tell which files it has counted, or
        one is not in `names` or has changed; OSError.
        """
        self.trainer = trainer
        self.skipped = 0
        self._reading = reading
        self._saved = saved
        self._names = list(names)
        self._row = Row()
        if saved is not None:
            self._continue(shown(saved))
        self._sizes = [check_file(name) if name != "-" else None for name in self._names]

    def _continue(self, saved: str) -> None:
        """Put the files that are counted first, and find out where to go on."""
        row = self._reading.as_json()
        notes: Any = self.trainer.notes
        if not self.trainer.bytes_in and not notes:
            notes |= {"reading": row, "files": [], "position": None}
        try:
            counted = [(str(path), list(found)) for path, found in notes["files"]]
            position, before = notes["position"], notes["reading"]
        except (TypeError, ValueError, LookupError):
            raise StreamtokError(
                f"{saved} does not record which files it was counted from: use another file for "
                "--save-counts"
            ) from None
        if (differs := difference(self._reading, before)) is not None:
            raise StreamtokError(
                f"{saved} was counted {differs[0]}, not {differs[1]}: give the same, or "
                "use another file for --save-counts"
            )
        names = []
        for path, found in counted:
            known = [one for one in self._names if os.path.realpath(one) == path]
            if not known:
                raise StreamtokError(
                    f"{saved} also has the counts of {shown(path)}: name all files that are "
                    "counted there, or use another file for --save-counts"
                )
            if list(fingerprint(path)) != found:
                raise StreamtokError(
                    f"{shown(path)} has changed since it was counted in {saved}: use another file "
                    "for --save-counts"
                )
            self._names.remove(known[0])
            names.append(known[0])
        self._names = names + self._names
        self._row = Row(input=len(names) - (position is not None), position=position)

    def count(
        self,
        open_input: OpenInput,
        *,
        num_threads: int | None = 1,
        advance: Callable[[int, int], None] = lambda read, total: None,
    ) -> None:
        """Count all that is left.

        open_input: opens an input, for a span. advance: called with the bytes that
        are counted so far, and those of all files, 0 if unknown. Raises StreamtokError that names
        the place of text that is none; OSError.
        """
        total = 0 if None in self._sizes else sum(size or 0 for size in self._sizes)
        for span in self._spans():
            trainer = self.trainer
            if self._saved is not None:  # only counts of whole spans may be saved
                trainer = Trainer(trainer.pattern, errors=trainer.errors, num_threads=num_threads)
            skip_log = SkipLog()
            position = span.position
            for number in range(span.first, span.last):
                source = open_input(self._names[number], span, skip_log)
                read = sum(size or 0 for size in self._sizes[:number])
                for _ in self._counted(trainer, source, position):
                    advance(read + source.read, total)
                position = None
            self._add(trainer, span, skip_log.skipped)

    def _counted(
        self, trainer: Trainer, source: Input, position: dict[str, Any] | None
    ) -> Iterator[None]:
        """Count an input, or what a span has of it; yields now and then."""
        counter = DocumentCounter(trainer)
        at = position["at"] if position else 0
        begin = None if self._reading.is_split else trainer.bytes_in - at
        try:
            for parts in batches(source.groups(position, False)):
                counter.count(parts)
                yield
            trainer.end_document()
        except UnicodeError as error:
            where = f"{source.name}, after byte {at}" if at and begin is None else source.name
            raise StreamtokError(counter.explain(error, where, begin)) from None

    def _spans(self) -> Iterator[Span]:
        reading = self._reading
        find: FindCut | None = None
        if reading.end is not None:
            find = cuts_behind(reading.end) if reading.can_cut else None
        elif not reading.is_split:
            encoding = Trainer(self.trainer.pattern).train(256)
            find = CleanCuts(encoding.stream_encoder(disallowed_special=())).find
        return spans_after(self._row, reading, self._names, self._sizes, find)

    def _add(self, trainer: Trainer, span: Span, skipped: int) -> None:
        """Merge the counts of a span, and note which files are counted, and how far."""
        self.skipped += skipped
        limit = self._reading.max_bad_lines
        if limit is not None and self.skipped > limit:
            raise StreamtokError(
                f"{self.skipped:,} lines or rows without a text were skipped, and --max-bad-lines "
                f"allows {limit:,}"
            )
        if self._saved is None:
            return
        self.trainer.merge(trainer)
        files: Any = self.trainer.notes["files"]
        for name in self._names[len(files) : span.last]:
            if is_url(name) or not os.path.isfile(name):
                raise StreamtokError(f"--save-counts needs regular files: {shown(name)} is not one")
            files.append([os.path.realpath(name), list(fingerprint(name))])
        self.trainer.notes["position"] = None if span.stop is None else inside(span.stop)
