"""A trainer that anything happens to, against the texts that it took in.

The model is a list of documents, each a list of the chunks that were accepted. What must have been
counted follows from these alone: they are joined, decoded and cut by the slow reference.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import pickle
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import streamtok
from streamtok import Trainer
from streamtok.patterns.named import PATTERNS
from streamtok.patterns.sequence import SplitSequence
from streamtok.reference import bpe as reference
from streamtok.reference import bpe_training as reference_trainer
from streamtok.training import counting, part_counters

from .model import Model, completion

Chunk = str | bytes

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
ALPHABET = ["a", "b", "ab", "x", " ", "  ", "\n", "1", "23", "'s", "é", "中", "\U0001f600", "low "]
BROKEN = [b"\xff", b"\xe4", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xc3", b"\xed\xa0\x80", b"\x80"]
SURROGATES = ["\ud83d", "\ude00", "\ud83d\ude00", "\ud800", "\udce4", "\udcb8", "\udcff"]
POLICIES = ["strict", "replace", "surrogateescape"]
STORY = 12  # calls that a failure tells


class Stop(Exception):
    """What an iterator of the tests raises."""


class TrainerMachine:
    """One trainer, what it took in, and the rules that do something to both."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.source = rng.choice(SOURCES)
        self.errors = rng.choice(POLICIES)
        self.num_threads = rng.choice([1, 1, 1, 2, 3])
        # Small, so that small texts are cut into blocks and shared between threads.
        self.sizes = rng.choice([(1 << 25, 1 << 20), (64, 16), (16, 8), (1 << 25, 8)])
        self.documents: list[bytes] = []  # those that have ended, as they were accepted
        self.open = Model(self.errors)
        self.calls: list[str] = []
        self._counts: Counter[bytes] = Counter()  # of the documents that have ended
        self._counted = 0
        self.trainer = self.new(self.errors, self.num_threads)

    def new(self, errors: str, num_threads: int = 1) -> Trainer:
        return Trainer(pattern_of(self.source), errors=errors, num_threads=num_threads)

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

    def expected(self) -> Counter[bytes]:
        """Pieces of the documents that have ended, in the order of the first times."""
        for document in self.documents[self._counted :]:
            self._counts.update(self.pieces_of(document))
        self._counted = len(self.documents)
        return self._counts

    def fails(self, text: Model, chunk: Chunk = b"", final: bool = True) -> bool:
        """Whether a text cannot go on so: no UTF-8, or a str inside a character."""
        fault = text.foresee(chunk, final).fault
        return fault is not None and (fault.kind == "utf-8" or self.errors != "surrogateescape")

    def end(self) -> None:
        """The open text has ended, in the model."""
        if self.open.accepted:
            self.documents.append(bytes(self.open.accepted))
        self.open.begin()

    # What is compared

    def compare(self) -> None:
        """Compare a copy of the trainer, its open text ended, with the model."""
        twin = copy.copy(self.trainer)
        total = self.expected() + Counter()  # a copy in the same order
        if self.fails(self.open):
            self.refused("end_document() of a copy", twin.end_document, UnicodeDecodeError)
            return
        twin.end_document()
        self.that(twin.pending == 0, f"{twin.pending} bytes are pending after the end")
        total.update(self.pieces_of(self.open.accepted))
        size = sum(map(len, map(self.bytes_of, [*self.documents, self.open.accepted])))
        self.that(twin.bytes_in == size, f"{twin.bytes_in} bytes in, not {size}")
        found = twin.piece_counts()
        self.that(
            list(found.items()) == list(total.items()),
            f"counted are {shown(found)}, not {shown(dict(total))}",
        )

    def that(self, is_so: bool, what: str) -> None:
        if not is_so:
            settings = f"{self.source!r}, errors={self.errors!r}, num_threads={self.num_threads}"
            story = "\n  ".join(self.calls[-STORY:])
            raise AssertionError(
                f"{what}\nTrainer({settings}), blocks of {self.sizes}\n  {story}\n"
                f"open text: {shown(bytes(self.open.accepted))}"
            )

    # Rules: each does one thing to the trainer and to the model, and compares

    def step(self) -> str:
        rule = self.rng.choices(list(RULES), list(RULES.values()))[0]
        with self.small_blocks():
            try:
                getattr(self, rule)()
            except AssertionError:
                raise
            except Exception as error:
                self.that(False, f"{rule} met {error!r}")
        return rule

    def finish(self) -> None:
        """End the open text and compare with all texts counted in one go."""
        with self.small_blocks():
            if self.open.waiting:
                self._update(completion(self.open.waiting), False)
            self.call("end_document()", self.trainer.end_document)
            self.end()
            self.compare()
            fresh = self.new("surrogateescape")
            fresh.update_documents([self.bytes_of(document) for document in self.documents])
            same = list(fresh.piece_counts().items()) == list(self.trainer.piece_counts().items())
            self.that(same, "the same texts in one go are counted otherwise")

    def update(self) -> None:
        self._update(self._chunk(), self.rng.random() < 0.2)

    def end_document(self) -> None:
        self._update(b"", True)

    def _update(self, chunk: Chunk, final: bool) -> None:
        call = f"update({shown(chunk)}, {final})"
        if self.fails(self.open, chunk, final):
            self.refused(
                call, lambda: self.trainer.update(self._as_kind(chunk), final), UnicodeError
            )
            return
        self.call(call, lambda: self.trainer.update(self._as_kind(chunk), final))
        self.open.take(self.open.foresee(chunk, final), [])
        if final:
            self.end()
        if self.rng.random() < 0.2:
            self.compare()

    def update_documents(self) -> None:
        """Texts of all kinds, of which one may be no text, and an iterator that may raise."""
        texts: list[Any] = [self._chunk() for _ in range(self.rng.randint(0, 6))]
        raised = self.rng.choice([Stop, KeyboardInterrupt]) if self.rng.random() < 0.3 else None
        wrong = self.rng.random() < 0.1
        reuse = bytearray()

        def read() -> Iterator[Any]:
            for text in texts:
                if isinstance(text, bytes) and len(text) < 100 and self.rng.random() < 0.3:
                    reuse[:] = text  # as a reader that uses one buffer again and again
                    yield reuse
                else:
                    yield self._as_kind(text)
            if wrong:
                yield 5
            if raised:
                raise raised

        call = f"update_documents({shown(texts)}, wrong={wrong}, raises={raised})"
        if self.fails(self.open):
            self.refused(call, lambda: self.trainer.update_documents(read()), UnicodeDecodeError)
            return
        failure: type[BaseException] | None = TypeError if wrong else raised
        one = Model(self.errors)
        taken = next((i for i, text in enumerate(texts) if self.fails(one, text)), None)
        if taken is not None:
            failure = UnicodeError
        self.call(call, lambda: self.trainer.update_documents(read()), failure)
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

        def read() -> Iterator[str]:
            call()
            yield "never"

        if not self.fails(self.open):
            self.call(
                "update_documents(an iterator that calls the trainer)",
                lambda: self.trainer.update_documents(read()),
                streamtok.StreamInUseError,
            )
            self.end()
            self.compare()

    def merge(self) -> None:
        """Another trainer with texts of its own, which may be open, or of another kind."""
        rng = self.rng
        other = self.new(self.errors)
        documents = [self._well(rng.randint(0, 30)) for _ in range(rng.randint(0, 3))]
        for document in documents:
            other.update(document, True)
        kind = rng.choice(["good"] * 6 + ["open", "pattern", "errors", "itself", "no trainer"])
        error: type[BaseException] | None = ValueError
        given: Any = other
        if kind == "good":
            error = UnicodeDecodeError if self.fails(self.open) else None
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
            given, error = rng.choice([None, self.trainer.piece_counts()]), TypeError
        before = state_of(other)
        call = f"merge(a trainer: {kind}, {shown(documents)})"
        if error:
            self.refused(call, lambda: self.trainer.merge(given), error)
        else:
            self.call(call, lambda: self.trainer.merge(given))
            self.end()
            self.documents += [document.encode() for document in documents if document]
            self.compare()
        self.that(state_of(other) == before, "merging changed the other trainer")

    def move(self) -> None:
        """Go on with a copy, or with what it was copied from; the other one is used, too."""
        how = self.rng.choice([copy.copy, copy.deepcopy, pickled, saved])
        twin = how(self.trainer, self.num_threads) if how is saved else how(self.trainer)
        self.calls.append(f"go on: {how.__name__}")
        self.that(state_of(twin) == state_of(self.trainer), f"{how.__name__} differs")
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
        trained = self.call(
            f"train({size}, {settings})", lambda: self.trainer.train(size, **settings)
        )
        self.end()
        self.compare()
        if sum(len(p) * c for p, c in self.trainer.piece_counts().items()) > 3000:
            return
        pieces = [piece for document in self.documents for piece in self.pieces_of(document)]
        merges = reference_trainer.train_pretokens(pieces, size, **settings)
        tokens = [bytes([i]) for i in range(256)] + [a + b for a, b in merges]
        self.that(list(trained._mergeable_ranks) == tokens, "train found other merges")

    # What rules share

    def call(self, call: str, do: Callable[[], Any], error: Any = None) -> Any:
        """Do it; with `error`, it must raise that."""
        self.calls.append(call)
        try:
            result = do()
        except BaseException as caught:
            if error is None or not isinstance(caught, error):
                self.that(False, f"{call} raised {caught!r}, not {error}")
            return None
        self.that(error is None, f"{call} did not raise {error}")
        return result

    def refused(self, call: str, do: Callable[[], Any], error: Any) -> None:
        """It must raise, and change nothing."""
        before = state_of(self.trainer)
        self.call(call, do, error)
        self.that(state_of(self.trainer) == before, f"{call} raised, and changed something")

    @contextlib.contextmanager
    def small_blocks(self) -> Iterator[None]:
        before = counting.BLOCK, part_counters.LARGE, counting._LARGE_STR
        counting.BLOCK, part_counters.LARGE = self.sizes
        counting._LARGE_STR = min(self.sizes[1], before[2])
        try:
            yield
        finally:
            counting.BLOCK, part_counters.LARGE, counting._LARGE_STR = before

    # Text

    def _well(self, size: int) -> str:
        return "".join(self.rng.choices(ALPHABET, k=size))

    def _chunk(self) -> Chunk:
        """Text cut anywhere, in a character, too; sometimes not text at all."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.25:
            return self._well(rng.choice([0, 1, 2, 5, 20]))
        if kind < 0.3:
            return "".join(rng.choices([*ALPHABET, *SURROGATES], k=3))
        data = self._well(rng.choice([0, 1, 2, 3, 8, 20, 40])).encode()
        if kind > 0.998:
            data *= 5000
        start = rng.choice([0, 0, 0, 1, 2])
        stop = len(data) - rng.choice([0, 0, 1, 2])
        data = data[start:stop] if rng.random() < 0.5 else data[:stop]
        if rng.random() < 0.2:
            at = rng.randint(0, len(data))
            data = data[:at] + rng.choice(BROKEN) + data[at:]
        waiting = self.open.waiting
        if waiting and rng.random() < 0.5:  # what was cut goes on, so that texts get long
            data = completion(waiting) + data
        return data

    def _as_kind(self, chunk: Chunk) -> Any:
        if isinstance(chunk, str):
            return chunk
        return self.rng.choice([bytes, bytearray, memoryview])(chunk)


RULES = {
    "update": 40, "end_document": 6, "update_documents": 10, "merge": 10, "move": 10, "train": 4,
    "compare": 4, "call_inside_a_call": 1,
}  # fmt: skip


@functools.cache
def pattern_of(source: str | tuple[str, ...]) -> Any:
    return source if isinstance(source, str) else SplitSequence(source)


def pickled(trainer: Trainer) -> Trainer:
    twin: Trainer = pickle.loads(pickle.dumps(trainer))
    return twin


def saved(trainer: Trainer, num_threads: int) -> Trainer:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "counts.npz")
        trainer.save_counts(path)
        return Trainer.load_counts(path, num_threads=num_threads)


def state_of(trainer: Trainer) -> tuple[Any, ...]:
    """All that a caller can find out, and what a pickle holds."""
    place, arrays = trainer._counting.getstate()
    numbers = trainer.bytes_in, trainer.pending, trainer.n_pieces
    counts = sorted(trainer.piece_counts().items())
    return place, counts, sorted(arrays[3].tolist()), numbers


def shown(value: Any, limit: int = 300) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]} and so on, {len(text)} characters"
