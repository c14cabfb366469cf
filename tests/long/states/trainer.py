"""A trainer that anything happens to, against the texts that it took in.

The model is a list of documents, each a list of the chunks that were accepted. What must have been
counted follows from these alone: they are joined, decoded and cut by the slow reference.

    machine = TrainerMachine(random.Random(7))
    for _ in range(100):
        machine.step()
    machine.finish()
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import streamtok
from streamtok import Trainer
from streamtok.patterns.sequence import SplitSequence
from streamtok.reference import bpe as reference
from streamtok.reference import bpe_training as reference_trainer
from streamtok.training import counter_inputs, counting, file_blocks, part_counters
from streamtok.training.trainer import PATTERNS

from .model import utf8_of

_failing: Any = None
with contextlib.suppress(ImportError, OSError):  # a build without the hooks of the tests
    from streamtok._core import _failing, encode, train

    for module in encode, train:
        _failing.attach(module.__file__)

Chunk = str | bytes
Document = list[Chunk]

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
HALVES = ["\ud83d", "\ude00", "\ud83d\ude00", "\ud800"]
ESCAPES = ["\udce4", "\udcb8", "\udcad", "\udcff"]
STORY = 12  # calls that a failure tells


class Stop(Exception):
    """What an iterator of the tests raises."""


class TrainerMachine:
    """One trainer, what it took in, and the rules that do something to both."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.source = rng.choice(SOURCES)
        self.errors = rng.choice(["strict", "replace", "surrogateescape"])
        self.settings: dict[str, Any] = {"num_threads": rng.choice([1, 1, 1, 2, 3])}
        # Small, so that small texts are cut into blocks and shared between threads.
        self.sizes = rng.choice([(1 << 25, 1 << 20), (64, 16), (16, 8), (1 << 25, 8)])
        self.documents: list[Document] = []  # those that have ended
        self.open: Document = []
        self.calls: list[str] = []
        self.failed = 0  # calls that had to fail, and did
        self._counts: Counter[bytes] = Counter()  # of the documents that have ended
        self._counted = 0
        self.trainer = Trainer(self._pattern(), errors=self.errors, **self.settings)

    # The model

    def _pattern(self) -> Any:
        return self.source if isinstance(self.source, str) else _composed(self.source)

    def text_of(self, document: Document) -> str:
        """str: what the policy makes of the chunks of a text that has ended."""
        return b"".join(_as_bytes(chunk, self.errors) for chunk in document).decode(
            "utf-8", self.errors
        )

    def bytes_of(self, document: Document) -> bytes:
        """bytes: those of `text_of`."""
        return self.text_of(document).encode("utf-8", "surrogateescape")

    def pieces_of(self, document: Document) -> list[bytes]:
        text = self.text_of(document)
        if isinstance(self.source, str):
            pieces = reference.split(self.source, text)
        else:
            pieces = reference.split_in_turn(self.source, text)
        return [piece.encode("utf-8", "surrogateescape") for piece in pieces]

    def expected(self) -> Counter[bytes]:
        """Counter: pieces of the documents that have ended, in the order of the first times."""
        for document in self.documents[self._counted :]:
            self._counts.update(self.pieces_of(document))
        self._counted = len(self.documents)
        return self._counts

    def failure(self, document: Document, final: bool) -> str:
        """str: why a text cannot be these chunks, or nothing."""
        data = b""
        for chunk in document:
            if (
                isinstance(chunk, str)
                and chunk
                and self.errors != "surrogateescape"
                and _unfinished(data)
            ):
                return "a str after an unfinished character"
            data += _as_bytes(chunk, self.errors)
        if self.errors == "strict":
            try:
                data[: len(data) if final else len(data) - len(_unfinished(data))].decode()
            except UnicodeDecodeError as error:
                return f"byte {error.start} is not UTF-8"
        return ""

    def end(self) -> None:
        """The open text has ended, in the model."""
        if self.open:
            self.documents.append(self.open)
            self.open = []

    # What is compared

    def check(self) -> None:
        """Compare a copy of the trainer, its open text ended, with the model."""
        twin = copy.copy(self.trainer)
        documents, counted = self.documents, self.expected()
        total = counted + Counter()  # a copy in the same order
        if self.failure(self.open, True):
            self._wants(UnicodeDecodeError, twin.end_document, "end_document of a copy")
            self.that(state_of(twin) == state_of(self.trainer), "a refused end changed something")
        else:
            twin.end_document()
            self.that(twin.pending == 0, f"{twin.pending} bytes are pending after the end")
            total.update(self.pieces_of(self.open))
            documents = [*documents, self.open]
            size = sum(len(self.bytes_of(document)) for document in documents)
            self.that(twin.bytes_in == size, f"{twin.bytes_in} bytes in, not {size}")
        self._compare(twin, total)

    def _compare(self, twin: Trainer, total: Counter[bytes]) -> None:
        if self.failure(self.open, True):
            return
        found = twin.piece_counts()
        self.that(list(found.items()) == list(total.items()), _difference(found, total))

    def that(self, is_so: bool, what: str) -> None:
        if not is_so:
            settings = f"{self.source!r}, errors={self.errors!r}, {self.settings}, {self.sizes}"
            story = "\n  ".join(self.calls[-STORY:])
            open_text = shown(self.open)
            raise AssertionError(f"{what}\nTrainer({settings})\n  {story}\nopen text: {open_text}")

    # Rules: each does one thing to the trainer and to the model, and compares

    def step(self) -> str:
        """str: the name of the rule that was followed. AssertionError at a difference."""
        rule = self.rng.choices(RULES, WEIGHTS)[0]
        self.follow(rule, self.rng)
        return rule.__name__

    def follow(self, rule: Callable[[TrainerMachine], None], rng: random.Random) -> None:
        """Follow one rule, which draws from `rng`. AssertionError at a difference."""
        self.rng = rng
        with self._small():
            try:
                rule(self)
            except AssertionError:
                raise
            except Exception as error:
                self.that(False, f"{rule.__name__} met {error!r}")

    def finish(self) -> None:
        """End the open text and compare with all texts counted in one go."""
        with self._small():
            self._finish_character()
            self._call("end_document()", self.trainer.end_document)
            self.end()
            self.check()
            fresh = Trainer(self._pattern(), num_threads=1, errors="surrogateescape")
            fresh.update_documents([self.bytes_of(document) for document in self.documents])
            same = list(fresh.piece_counts().items()) == list(self.trainer.piece_counts().items())
            self.that(same, "the same texts in one go are counted otherwise")

    def update(self) -> None:
        chunk = self._chunk()
        final = self.rng.random() < 0.2
        self._update(chunk, final)

    def update_with_wrong_type(self) -> None:
        wrong = self.rng.choice([None, 5, ["a"], memoryview(b"abcdef")[::2]])
        if self.errors == "replace" and isinstance(wrong, memoryview):
            return  # `bytes` takes it
        error = BufferError if isinstance(wrong, memoryview) else TypeError
        self._refused(f"update({wrong!r})", lambda: self.trainer.update(wrong), error)

    def end_document(self) -> None:
        self._update(b"", True)

    def update_documents(self) -> None:
        """Texts of all kinds, of which one may be no text, and an iterator that may raise."""
        texts: list[Any] = [self._chunk() for _ in range(self.rng.randint(0, 6))]
        raised: type[BaseException] | None = None
        if self.rng.random() < 0.3:
            raised = self.rng.choice([Stop, KeyboardInterrupt])
        wrong = self.rng.random() < 0.1
        taken = 0
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
        if self.failure(self.open, True):
            self._refused(call, lambda: self.trainer.update_documents(read()), UnicodeDecodeError)
            return
        failure: type[BaseException] | None = TypeError if wrong else raised
        for text in texts:
            if self.failure([text], True):
                failure = UnicodeError
                break
            taken += 1
        self._call(call, lambda: self.trainer.update_documents(read()), failure)
        self.end()
        self.documents += [[text] for text in texts[:taken]]
        self.check()

    def update_documents_refused(self) -> None:
        wrong = self.rng.choice(["text", b"text", bytearray(b"text"), None, 5])
        self._refused(
            f"update_documents({wrong!r})", lambda: self.trainer.update_documents(wrong), TypeError
        )

    def call_inside_a_call(self) -> None:
        """An iterator that uses the trainer that reads it."""
        calls = [
            lambda: self.trainer.update("x"),
            lambda: self.trainer.merge(Trainer(self._pattern(), errors=self.errors)),
            lambda: self.trainer.train(256),
            lambda: pickle.dumps(self.trainer),
        ]
        call = self.rng.choice(calls)

        def read() -> Iterator[str]:
            call()
            yield "never"

        if not self.failure(self.open, True):
            self._call(
                "update_documents(an iterator that calls the trainer)",
                lambda: self.trainer.update_documents(read()),
                streamtok.StreamInUseError,
            )
            self.end()
            self.check()

    def merge(self) -> None:
        """Another trainer with texts of its own, which may be open, or of another kind."""
        rng = self.rng
        other = Trainer(self._pattern(), errors=self.errors, num_threads=1)
        documents = [[self._well(rng.randint(0, 30))] for _ in range(rng.randint(0, 3))]
        for document in documents:
            other.update(document[0], True)
        kind = rng.choice(["good"] * 6 + ["open", "pattern", "errors", "self", "type"])
        error: type[BaseException] | None = ValueError
        given: Any = other
        if kind == "good":
            error = UnicodeDecodeError if self.failure(self.open, True) else None
        elif kind == "open":
            parts = {"strict": [b"a", b"\xe4"], "surrogateescape": [b"a"]}
            other.update(rng.choice(parts.get(self.errors, [b"\xe4", "a", "\ud83d"])))
        elif kind == "pattern":
            # As a regular expression, this one has the source of a sequence.
            sources = ["[a-z]+|[^a-z]+"]
            if self.source == SOURCES[-2]:
                sources.append(self._pattern().source)
            given = Trainer(rng.choice(sources), errors=self.errors)
        elif kind == "errors":
            errors = {"strict", "replace", "surrogateescape"} - {self.errors}
            given = Trainer(self._pattern(), errors=rng.choice(sorted(errors)))
        elif kind == "self":
            given = self.trainer
        else:
            given, error = rng.choice([None, self.trainer.piece_counts()]), TypeError
        before = state_of(other)
        call = f"merge(a trainer: {kind}, {shown(documents)})"
        if error:
            self._refused(call, lambda: self.trainer.merge(given), error)
        else:
            self._call(call, lambda: self.trainer.merge(given))
            self.end()
            self.documents += [document for document in documents if document[0]]
            self.check()
        self.that(state_of(other) == before, "merging changed the other trainer")

    def _accept_part(self, chunk: Chunk, size: int) -> None:
        """So many bytes of the open text were taken in, the first of `chunk` among them."""
        whole = [*self.open, chunk]
        if self.errors == "replace":
            taken = self.bytes_of(whole)[:size]
            self.that(not _unfinished(taken), "what was taken in ends inside a character")
            self.open = [taken.decode()]
        else:
            data = b"".join(_as_bytes(part, self.errors) for part in whole)
            rest = self.failure([data[:size], "x"], False)
            is_whole = size == len(data)
            self.that(not rest or is_whole, "what was taken in ends inside a character")
            self.open = [data[:size]]

    def memory_error(self) -> None:
        """An allocation of the core that fails somewhere in a call."""
        if _failing is None:
            return
        chunk = self._well(self.rng.choice([10, 300, 3000]))
        if self.failure([*self.open, chunk], True):
            return
        do = self.rng.choice([self._update_without_memory, self._merge_without_memory])
        try:
            do(chunk, self.rng.randint(1, 4))
        finally:
            _failing.calm()
        self.check()

    def _update_without_memory(self, chunk: str, n: int) -> None:
        base = sum(len(self.bytes_of(document)) for document in self.documents)
        before, state = self.trainer.bytes_in, state_of(self.trainer)
        self.calls.append(f"update({shown(chunk)}), allocation {n} fails")
        _failing.fail_core(n)
        try:
            self.trainer.update(chunk)
            self.open.append(chunk)
        except MemoryError:
            _failing.calm()
            self.failed += 1
            if self.trainer.bytes_in > before:
                self._accept_part(chunk, self.trainer.bytes_in - base)
            else:
                self.that(state_of(self.trainer) == state, "nothing taken in, and yet a change")

    def _merge_without_memory(self, text: str, n: int) -> None:
        other = Trainer(self._pattern(), errors=self.errors, num_threads=1)
        other.update(text, True)
        state = state_of(self.trainer)
        self.calls.append(f"merge(a trainer: {shown(text)}), allocation {n} fails")
        _failing.fail_core(n)
        try:
            self.trainer.merge(other)
            self.end()
            self.documents.append([text])
        except MemoryError:
            _failing.calm()
            self.failed += 1
            self.that(state_of(self.trainer) == state, "a refused merge changed the trainer")

    def copied(self) -> None:
        """Go on with a copy, or with what it was copied from; the other one is used, too."""
        kinds: list[Callable[[Trainer], Trainer]] = [copy.copy, copy.deepcopy]
        twin = self.rng.choice(kinds)(self.trainer)
        self._go_on_with_one(twin, "a copy")

    def pickled(self) -> None:
        self.trainer.notes["n"] = self.rng.random()
        protocol = self.rng.randint(2, pickle.HIGHEST_PROTOCOL)
        twin = pickle.loads(pickle.dumps(self.trainer, protocol))
        self.that(twin.notes == self.trainer.notes, "notes were lost")
        self._go_on_with_one(twin, "a pickle")

    def saved(self) -> None:
        """Save the counts, load them; a damaged file is refused, or what was damaged is nothing."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "counts.npz")
            self.trainer.save_counts(path)
            settings = {k: v for k, v in self.settings.items() if self.rng.random() < 0.9}
            twin = Trainer.load_counts(path, **settings)
            if self.rng.random() < 0.5:
                data = bytearray(path.read_bytes())
                at = self.rng.randrange(len(data))
                if self.rng.random() < 0.8:
                    data[at] ^= 1 << self.rng.randrange(8)
                else:
                    del data[at : at + self.rng.choice([1, 10, 1 << 30])]
                path.write_bytes(data)
                try:
                    damaged = Trainer.load_counts(path)
                except streamtok.StateError:
                    self.failed += 1
                else:
                    same = state_of(damaged) == state_of(self.trainer)
                    self.that(same, f"counts damaged at byte {at} were loaded")
        if settings == self.settings:
            self._go_on_with_one(twin, "saved counts")

    def train(self) -> None:
        """A vocabulary, compared with the slow trainer; the trainer goes on afterwards."""
        rng = self.rng
        if self.failure(self.open, True):
            self._refused("train(300)", lambda: self.trainer.train(300), UnicodeDecodeError)
            return
        n = rng.choice([256, 257, 260, 270])
        tie = rng.choice(["raw", "hf", "first"])
        least = rng.choice([0, 1, 1, 2, 5])
        specials = rng.choice([[], ["<|end|>"]])
        size = n + len(specials)
        call = f"train({size}, tie={tie}, min_frequency={least}, special_tokens={specials})"
        encoding = self._call(
            call,
            lambda: self.trainer.train(
                size,
                tie=tie,
                min_frequency=least,
                special_tokens=specials,
            ),
        )
        self.end()
        self.check()
        counts = self.trainer.piece_counts()
        if sum(len(p) * c for p, c in counts.items()) > 3000:
            return
        pieces = [piece for document in self.documents for piece in self.pieces_of(document)]
        merges = reference_trainer.train_pretokens(pieces, n, min_frequency=least, tie=tie)
        tokens = [bytes([i]) for i in range(256)] + [a + b for a, b in merges]
        ranks = encoding._mergeable_ranks
        self.that(list(ranks) == tokens, "train found other merges")
        self.that(encoding.special_tokens_set == set(specials), "special tokens were lost")
        for document in self.documents[-2:]:
            text = self.bytes_of(document)
            if b"<|" in text:
                continue
            ids = encoding.encode(text, errors="surrogateescape")
            wanted = [
                token
                for piece in self.pieces_of(document)
                for token in reference.encode_pretoken(ranks, piece)
            ]
            self.that(ids == wanted, f"what was trained encodes {shown(text)} otherwise")

    def train_refused(self) -> None:
        wrong: dict[str, Any] = self.rng.choice(
            [
                {"vocab_size": 255},
                {"vocab_size": 300.5},
                {"vocab_size": "300"},
                {"vocab_size": 1 << 40},
                {"tie": "last"},
                {"tie": []},
                {"min_frequency": -1},
                {"min_frequency": 0.5},
                {"special_tokens": ["a", "a"]},
                {"special_tokens": [""]},
                {"special_tokens": [5]},
                {"special_tokens": "text"},
                {"special_tokens": ["\ud800"]},
            ]
        )
        arguments = {"vocab_size": 300} | wrong
        self._refused(
            f"train(**{wrong!r})",
            lambda: self.trainer.train(**arguments),
            (ValueError, TypeError),
        )

    def train_interrupted(self) -> None:
        if self.failure(self.open, True):
            return

        def stop(done: int, of: int) -> None:
            raise Stop

        self._call("train(300), stopped", lambda: self.trainer.train(300, progress=stop), Stop)
        self.end()
        self.check()

    def compare(self) -> None:
        self.check()

    # What rules share

    def _update(self, chunk: Chunk, final: bool) -> None:
        call = f"update({shown(chunk)}, {final})"
        wanted = [*self.open, chunk]
        if self.failure(wanted, final):
            self._refused(call, lambda: self.trainer.update(self._as_kind(chunk), final),
                          UnicodeError)  # fmt: skip
            return
        self._call(call, lambda: self.trainer.update(self._as_kind(chunk), final))
        if chunk:
            self.open = wanted
        if final:
            self.end()
        if self.rng.random() < 0.2:
            self.check()

    def _finish_character(self) -> None:
        for rest in (b"", b"\xa9", b"\xb8", b"\xad", b"\x98\x80", b"\xb8\xad", b"\x90\x80\x80"):
            if not self.failure([*self.open, rest], True):
                self._update(rest, False)
                return

    def _go_on_with_one(self, twin: Trainer, what: str) -> None:
        self.calls.append(f"go on with {what}")
        self.that(state_of(twin) == state_of(self.trainer), f"{what} differs")
        keep, other = self.trainer, twin
        if self.rng.random() < 0.7:
            keep, other = twin, self.trainer
        with contextlib.suppress(UnicodeError):
            other.update(b"not for both\n", True)
            other.notes["n"] = None
        self.trainer = keep
        if self.rng.random() < 0.3:
            self.check()

    def _told(self, call: str, do: Callable[[], Any]) -> Any:
        self.calls.append(call)
        return do()

    def _call(self, call: str, do: Callable[[], Any], error: Any = None) -> Any:
        """Do it; with `error`, it must raise that."""
        if error is not None:
            return self._wants(error, do, call)
        try:
            return self._told(call, do)
        except Exception as caught:
            self.that(False, f"{call} raised {caught!r}")

    def _refused(self, call: str, do: Callable[[], Any], error: Any) -> None:
        """It must raise, and change nothing."""
        before = state_of(self.trainer)
        self._wants(error, do, call)
        self.that(state_of(self.trainer) == before, f"{call} raised, and changed something")

    def _wants(self, error: Any, do: Callable[[], Any], call: str) -> None:
        self.failed += 1
        try:
            self._told(call, do)
        except error:
            return
        except Exception as caught:
            self.that(False, f"{call} raised {caught!r}, not {error}")
        self.that(False, f"{call} did not raise {error}")

    @contextlib.contextmanager
    def _small(self) -> Iterator[None]:
        before = (
            counting.BLOCK,
            part_counters.LARGE,
            counter_inputs._LARGE_STR,
            file_blocks._LEAST,
        )
        counting.BLOCK, part_counters.LARGE = self.sizes
        counter_inputs._LARGE_STR = file_blocks._LEAST = min(self.sizes[1], before[2])
        try:
            yield
        finally:
            (
                counting.BLOCK,
                part_counters.LARGE,
                counter_inputs._LARGE_STR,
                file_blocks._LEAST,
            ) = before

    # Text

    def _well(self, size: int) -> str:
        return "".join(self.rng.choices(ALPHABET, k=size))

    def _chunk(self) -> Chunk:
        """Text cut anywhere: in a character, in a pair; sometimes not text at all."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.25:
            return self._well(rng.choice([0, 1, 2, 5, 20]))
        if kind < 0.35:
            odd = rng.choice([HALVES, ESCAPES])
            words = [*rng.choices(ALPHABET, k=2), *rng.choices(odd, k=rng.randint(1, 2))]
            return "".join(rng.sample(words, len(words)))
        data = self._well(rng.choice([0, 1, 2, 3, 8, 20, 40])).encode()
        if kind > 0.998:
            data *= 5000
        start = rng.choice([0, 0, 0, 1, 2])
        stop = len(data) - rng.choice([0, 0, 1, 2])
        data = data[start:stop] if rng.random() < 0.5 else data[:stop]
        if rng.random() < 0.2:
            at = rng.randint(0, len(data))
            data = data[:at] + rng.choice(BROKEN) + data[at:]
        if self.open and rng.random() < 0.5:  # the rest of what was cut, so that texts get long
            for rest in (b"\xa9", b"\xb8", b"\xad", b"\x98\x80", b"\xb8\xad", b"\x9f\x98\x80"):
                if _unfinished(_last_bytes(self.open)) and not self.failure(
                    [*self.open, rest], True
                ):
                    return rest + data
        return data

    def _as_kind(self, chunk: Chunk) -> Any:
        if isinstance(chunk, str):
            return chunk
        return self.rng.choice([bytes, bytearray, memoryview])(chunk)


WEIGHED: list[tuple[Callable[[TrainerMachine], None], int]] = [
    (TrainerMachine.update, 40),
    (TrainerMachine.end_document, 6),
    (TrainerMachine.update_documents, 10),
    (TrainerMachine.merge, 10),
    (TrainerMachine.copied, 6),
    (TrainerMachine.pickled, 2),
    (TrainerMachine.saved, 2),
    (TrainerMachine.train, 3),
    (TrainerMachine.compare, 4),
    (TrainerMachine.update_with_wrong_type, 2),
    (TrainerMachine.update_documents_refused, 2),
    (TrainerMachine.call_inside_a_call, 1),
    (TrainerMachine.memory_error, 2),
    (TrainerMachine.train_refused, 2),
    (TrainerMachine.train_interrupted, 1),
]
RULES = [rule for rule, _ in WEIGHED]
WEIGHTS = [weight for _, weight in WEIGHED]

_SEQUENCES: dict[tuple[str, ...], SplitSequence] = {}


def state_of(trainer: Trainer) -> tuple[Any, ...]:
    """All that a caller can find out, and what a pickle holds."""
    place, arrays = trainer._counting.getstate()
    numbers = trainer.bytes_in, trainer.pending, trainer.n_pieces
    counts = sorted(trainer.piece_counts().items())
    return place, counts, sorted(arrays[3].tolist()), numbers


def shown(value: Any, limit: int = 300) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]} and so on, {len(text)} characters"


def _composed(patterns: tuple[str, ...]) -> SplitSequence:
    if patterns not in _SEQUENCES:
        _SEQUENCES[patterns] = SplitSequence(patterns)
    return _SEQUENCES[patterns]


def _as_bytes(chunk: Chunk, errors: str) -> bytes:
    return utf8_of(chunk, errors) if isinstance(chunk, str) else chunk


def _last_bytes(document: Document) -> bytes:
    return document[-1] if document and isinstance(document[-1], bytes) else b""


def _unfinished(data: bytes) -> bytes:
    """bytes: those at the end that more bytes could make a character of."""
    for size in range(min(3, len(data)), 0, -1):
        end = data[-size:]
        try:
            end.decode()
        except UnicodeDecodeError as error:
            if error.start == 0 and error.reason == "unexpected end of data":
                return end
    return b""


def _difference(found: dict[bytes, int], wanted: Counter[bytes]) -> str:
    for piece in [*wanted, *found]:
        if found.get(piece, 0) != wanted[piece]:
            return f"{shown(piece)} is counted {found.get(piece, 0)} times, not {wanted[piece]}"
    return "the pieces are in another order"
