"""A trainer that anything happens to, against the texts that it took in.

The model is a list of documents, each the bytes that were accepted. What must have been counted
follows from these alone: they are decoded and cut by the slow reference.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import pickle
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import streamtok
from streamtok import Trainer
from streamtok.patterns.named import PATTERNS
from streamtok.patterns.sequence import SplitSequence
from streamtok.reference import bpe as reference
from streamtok.reference import bpe_training as reference_trainer
from streamtok.training import counting

from ..steps import Machine
from .model import Model, completion
from .texts import Chunk, Supply, any_bytes, short

SOURCES: list[str | tuple[str, ...]] = [
    PATTERNS["gpt2"],
    PATTERNS["cl100k"],
    r"[\s\S]+",
    r"\w+",  # leaves characters out
    r"(?:ab)+|a|[^a]",  # looks one character ahead
    r"xa*b|x|a+|[^xa]",  # looks ahead as far as you like
    (r"\d", r"\p{L}+"),
    (r"\s+", r"\d{1,3}", PATTERNS["gpt2"]),
]
POLICIES = ["strict", "replace", "surrogateescape"]
COMPARED = 4000  # bytes that the slow trainer sees at most


class Stop(Exception):
    """What an iterator of the tests raises."""


RULES = {
    "update": 40, "end_document": 6, "update_documents": 10, "merge": 10, "move": 10,
    "train": 4, "compare": 4, "call_inside_a_call": 1,
}  # fmt: skip


class TrainerMachine(Machine):
    """One trainer, what it took in, and the rules that do something to both."""

    def __init__(self, rng: random.Random):
        super().__init__(rng, RULES)
        self.source = rng.choice(SOURCES)
        self.errors = rng.choice(POLICIES)
        threads = rng.choice([1, 1, 1, 2, 3])
        # Small, so that small texts are cut into blocks and shared between threads.
        self.sizes = rng.choice([(1 << 25, 1 << 20), (64, 16), (16, 8), (1 << 25, 8)])
        self.settings = f"{self.source!r}, {self.errors=}, {threads=}, blocks of {self.sizes}"
        is_clean = self.errors == "strict" and rng.random() < 0.7
        self.supply = Supply(rng, b"ab x1\n'slow", is_clean, 0.002)
        self.documents: list[bytes] = []  # those that have ended, as they were accepted
        self.open = Model(self.errors)
        self._counts: Counter[bytes] = Counter()  # of the documents that have ended
        self._counted = 0
        self.trainer = self.new(self.errors, threads)

    def new(self, errors: str, num_threads: int = 1) -> Trainer:
        return Trainer(pattern_of(self.source), errors=errors, num_threads=num_threads)

    def step(self) -> str:
        with self.small_blocks():
            return super().step()

    def finish(self) -> None:
        """End the open text and compare with all texts counted in one go."""
        with self.small_blocks(), self.told():
            if self.open.waiting:
                self._update(completion(self.open.waiting), False)
            self._update(b"", True)
            self.compare()
            fresh = self.new("surrogateescape")
            fresh.update_documents([self.bytes_of(document) for document in self.documents])
            same = list(fresh.piece_counts().items()) == list(self.trainer.piece_counts().items())
            assert same, "the same texts in one go are counted otherwise"

    def state(self) -> Any:
        return state_of(self.trainer)

    # The model

    def bytes_of(self, document: bytes | bytearray) -> bytes:
        """What the policy makes of a text that has ended."""
        return document.decode("utf-8", self.errors).encode("utf-8", "surrogateescape")

    def pieces_of(self, document: bytes | bytearray) -> list[bytes]:
        text = document.decode("utf-8", self.errors)
        if isinstance(self.source, str):
            pieces = reference.split(self.source, text)
        else:
            pieces = reference.split_in_turn(self.source, text)
        return [piece.encode("utf-8", "surrogateescape") for piece in pieces]

    def fails(self, text: Model, chunk: Chunk = b"", final: bool = True) -> bool:
        """Whether a text cannot go on so: no UTF-8, or a str inside a character."""
        fault = text.foresee(chunk, final).fault
        return fault is not None and (fault.kind == "utf-8" or self.errors != "surrogateescape")

    def end(self) -> None:
        """The open text has ended, in the model."""
        if self.open.accepted:
            self.documents.append(bytes(self.open.accepted))
        self.open.begin()

    def compare(self) -> None:
        """Compare a copy of the trainer, its open text ended, with the model."""
        for document in self.documents[self._counted :]:
            self._counts.update(self.pieces_of(document))
        self._counted = len(self.documents)
        twin = copy.copy(self.trainer)
        if self.fails(self.open):
            self.refused("end_document() of a copy", twin.end_document, UnicodeDecodeError)
            return
        twin.end_document()
        assert twin.pending == 0, f"{twin.pending} bytes are pending after the end"
        size = sum(map(len, map(self.bytes_of, [*self.documents, self.open.accepted])))
        assert twin.bytes_in == size, f"{twin.bytes_in} bytes in, not {size}"
        total = self._counts.copy()  # in the order of the first times
        total.update(self.pieces_of(self.open.accepted))
        found = list(twin.piece_counts().items())
        assert found == list(total.items()), f"counted are {short(found)}, not {short(total)}"

    # Rules: each does one thing to the trainer and to the model, and compares

    def update(self) -> None:
        self._update(self._chunk(), self.rng.random() < 0.2)

    def end_document(self) -> None:
        self._update(b"", True)

    def _update(self, chunk: Chunk, final: bool) -> None:
        call = f"update({short(chunk)}, {final})"
        if self.fails(self.open, chunk, final):
            self.refused(call, lambda: self.trainer.update(chunk, final), UnicodeError)
            self.supply.restart(self.open.waiting)
            return
        self.call(call, lambda: self.trainer.update(chunk, final))
        self.open.take(self.open.foresee(chunk, final), [])
        if final:
            self.end()
        if self.rng.random() < 0.2:
            self.compare()

    def update_documents(self) -> None:
        """Texts of all kinds, of which one may be no text, and an iterator that may raise."""
        texts = [self._chunk() for _ in range(self.rng.randint(0, 6))]
        raised = self.rng.choice([Stop, KeyboardInterrupt]) if self.rng.random() < 0.3 else None
        wrong = self.rng.random() < 0.1
        reuse = bytearray()

        def read() -> Iterator[Any]:
            for text in texts:
                if isinstance(text, bytes) and self.rng.random() < 0.3:
                    reuse[:] = text  # as a reader that uses one buffer again and again
                    yield reuse
                else:
                    yield text
            if wrong:
                yield 5
            if raised:
                raise raised

        call = f"update_documents({short(texts)}, {wrong=}, {raised=})"
        if self.fails(self.open):
            self.refused(call, lambda: self.trainer.update_documents(read()), UnicodeDecodeError)
            return
        errors: list[type[BaseException]] = [TypeError] if wrong else [raised] if raised else []
        one = Model(self.errors)
        taken = next((i for i, text in enumerate(texts) if self.fails(one, text)), None)
        if taken is not None:
            errors = [UnicodeError]
        self.call(call, lambda: self.trainer.update_documents(read()), *errors)
        self.end()
        self.documents += [one.foresee(text, True).data for text in texts[:taken]]
        self.compare()

    def call_inside_a_call(self) -> None:
        """An iterator that uses the trainer that reads it."""
        calls = [
            lambda: self.trainer.update("x"),
            lambda: self.trainer.merge(self.new(self.errors)),
            lambda: self.trainer.train(256),
            lambda: pickle.dumps(self.trainer),
        ]
        call = self.rng.choice(calls)
        if not self.fails(self.open):
            self.call(
                "update_documents(an iterator that calls the trainer)",
                lambda: self.trainer.update_documents(call() for _ in "x"),
                streamtok.StreamInUseError,
            )
            self.end()
            self.compare()

    def merge(self) -> None:
        """Another trainer with texts of its own, which may be open, or of another kind."""
        rng = self.rng
        other = self.new(self.errors)
        documents = [self.supply.take(rng.randint(0, 30)) for _ in range(rng.randint(0, 3))]
        documents = [one.decode("utf-8", "ignore").encode() for one in documents]
        other.update_documents(documents)
        kind = rng.choice(["good"] * 6 + ["open", "pattern", "errors", "itself", "no trainer"])
        errors: list[type[BaseException]] = [ValueError]
        given: Any = other
        if kind == "good":
            errors = [UnicodeDecodeError] if self.fails(self.open) else []
        elif kind == "open":
            other.update("a")
        elif kind == "pattern":
            # As a regular expression, this one has the source of a sequence.
            sources = ["[a-z]+|[^a-z]+"]
            if self.source == SOURCES[-2]:
                sources.append(pattern_of(self.source).source)
            given = Trainer(rng.choice(sources), errors=self.errors)
        elif kind == "errors":
            given = self.new(rng.choice([one for one in POLICIES if one != self.errors]))
        elif kind == "itself":
            given = self.trainer
        else:
            given, errors = rng.choice([None, self.trainer.piece_counts()]), [TypeError]
        before = state_of(other)
        call = f"merge(a trainer: {kind}, {short(documents)})"
        if errors:
            self.refused(call, lambda: self.trainer.merge(given), *errors)
        else:
            self.call(call, lambda: self.trainer.merge(given))
            self.end()
            self.documents += filter(None, documents)
            self.compare()
        assert state_of(other) == before, "merging changed the other trainer"

    def move(self) -> None:
        """Go on with a copy, or with what it was copied from; the other one is used, too."""
        how = self.rng.choice([copy.copy, copy.deepcopy, pickled, saved])
        twin = self.call(f"go on: {how.__name__}", lambda: how(self.trainer))
        assert state_of(twin) == self.state(), f"{how.__name__} differs"
        keep, other = self.trainer, twin
        if self.rng.random() < 0.7:
            keep, other = twin, self.trainer
        with contextlib.suppress(UnicodeError):
            other.update(b"not for both\n", True)
        self.trainer = keep
        self.compare()

    def train(self) -> None:
        """A vocabulary, compared with the slow trainer; the trainer goes on afterwards."""
        rng = self.rng
        if self.fails(self.open):
            self.refused("train(300)", lambda: self.trainer.train(300), UnicodeDecodeError)
            return
        if rng.random() < 0.2:

            def stop(done: int, of: int) -> None:
                raise Stop

            self.call("train(300), stopped", lambda: self.trainer.train(300, progress=stop), Stop)
            self.end()
            self.compare()
            return
        size, tie = rng.choice([256, 257, 260, 270]), rng.choice(["raw", "hf", "first"])
        settings = {"tie": tie, "min_frequency": rng.choice([0, 1, 1, 2, 5])}
        call = f"train({size}, {settings})"
        trained = self.call(call, lambda: self.trainer.train(size, **settings))
        self.end()
        self.compare()
        if sum(map(len, self.documents)) > COMPARED:
            return
        pieces = [piece for document in self.documents for piece in self.pieces_of(document)]
        merges = reference_trainer.train_pretokens(pieces, size, **settings)
        tokens = [bytes([i]) for i in range(256)] + [a + b for a, b in merges]
        assert list(trained._mergeable_ranks) == tokens, "train found other merges"

    # What rules share

    @contextlib.contextmanager
    def small_blocks(self) -> Iterator[None]:
        before = counting.BLOCK, counting.LARGE, counting._LARGE_STR
        counting.BLOCK, counting.LARGE = self.sizes
        counting._LARGE_STR = min(self.sizes[1], before[2])
        try:
            yield
        finally:
            counting.BLOCK, counting.LARGE, counting._LARGE_STR = before

    def _chunk(self) -> Chunk:
        """Text cut anywhere, in a character, too; sometimes not text at all."""
        size = min(self.supply.size(), 300)
        if self.rng.random() < 0.25:
            return self.supply.chunk(size, is_text=True, errors=self.errors)
        return any_bytes(self.rng, self.supply.take(size))


@functools.cache
def pattern_of(source: str | tuple[str, ...]) -> Any:
    return source if isinstance(source, str) else SplitSequence(source)


def pickled(trainer: Trainer) -> Trainer:
    twin: Trainer = pickle.loads(pickle.dumps(trainer))
    return twin


def saved(trainer: Trainer) -> Trainer:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "saved.counts")
        trainer.save_counts(path)
        return Trainer.load_counts(path, num_threads=2)


def state_of(trainer: Trainer) -> tuple[Any, ...]:
    """All that a caller can find out, and what a pickle holds."""
    place, arrays = trainer._counting.getstate()
    numbers = trainer.bytes_in, trainer.pending, trainer.n_pieces
    counts = sorted(trainer.piece_counts().items())
    return place, counts, sorted(arrays[3].tolist()), numbers
