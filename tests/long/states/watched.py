"""One stream under watch: every call is compared with what the model foresees."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import random
from typing import Any

import streamtok

from .doors import BEHIND, DOORS, new_out, through
from .encodings import TEMPLATES, any_subject, templated
from .model import Model, Step, completion
from .texts import Chunk, short

Stream = streamtok.StreamEncoder
NEVER_REACHED = 1 << 26  # of max_pending
GIVEN_LATER: Any = object()


@dataclasses.dataclass
class Note:
    """A call; `{}` stands for a chunk in it, which is not shown before it is told."""

    call: str
    chunks: tuple[Chunk, ...]
    end: str = ""

    def __str__(self) -> str:
        return self.call.format(*map(short, self.chunks)) + self.end


class Setup:
    """An encoding, the settings of the streams of one machine, and their calls."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        is_templated = rng.random() < 0.08
        self.subject = (
            templated(rng.randrange(len(TEMPLATES))) if is_templated else any_subject(rng)
        )
        self.encoding = self.subject.encoding
        names = sorted(self.encoding.special_tokens_set)
        some = frozenset(rng.sample(names, rng.randint(0, len(names))))
        self.errors = rng.choice(["strict", "replace", "surrogateescape"])
        self.settings: dict[str, Any] = {
            "allowed_special": rng.choice(["all", frozenset(), frozenset(), some, set(some)]),
            "disallowed_special": rng.choice(["all", (), (), some, ["ab<", *some], {"<|eot_id|>"}]),
            "errors": self.errors,
            "add_special_tokens": is_templated,
        }
        self.refuses = bool(self.settings["disallowed_special"])
        self.max_pending = rng.choice([0, 1, 5, 40, 2000]) if rng.random() < 0.08 else None
        self.door = rng.choice([None, None, *DOORS])
        self.story: collections.deque[object] = collections.deque(maxlen=30)
        self.fresh_state = self.new_stream().getstate()
        self.arrays: collections.deque[tuple[Any, list[int]]] = collections.deque(maxlen=4)

    def new_stream(self) -> Stream:
        return self.encoding.stream_encoder(**self.settings, max_pending=self.max_pending)

    def __str__(self) -> str:
        return (
            f"encoding {self.encoding.name!r} of kind {self.subject.kind}, pattern "
            f"{self.encoding._pat_str!r}, settings {self.settings}, max_pending {self.max_pending}"
        )

    def note(self, call: str, *chunks: Chunk) -> Note:
        """For the story."""
        self.story.append(note := Note(call, chunks))
        return note


class Watched:
    """A stream, and the model of it."""

    __slots__ = ("model", "setup", "stream")

    def __init__(self, setup: Setup, stream: Stream, model: Model) -> None:
        self.setup = setup
        self.stream = stream
        self.model = model

    def call(
        self,
        chunk: Chunk,
        final: bool = False,
        *,
        door: str | None = None,
        out: Any = GIVEN_LATER,
        may_raise: tuple[type[BaseException], ...] = (),
    ) -> bool:
        """One call; whether it succeeded. `may_raise`: beyond what the model foresees."""
        stream, model = self.stream, self.model
        door = door or self.setup.door or self.setup.rng.choice(DOORS)
        expected = model.foresee(chunk, final)
        if door.startswith("into") and out is GIVEN_LATER:
            out = new_out(self.setup.rng, self.most_ids(expected) + BEHIND)
            if self.setup.encoding.max_token_value > 0xFFFF and memoryview(out).itemsize == 2:
                may_raise = (*may_raise, OverflowError)
        before = stream.getstate()
        note = self.setup.note(f"{door}({{}}, final={final})", chunk)
        try:
            ids = through(door, stream, chunk, final, out, self.setup.arrays)
        except may_raise as error:
            note.end = f" -> {type(error).__name__}"
            self.unchanged(before)
            return False
        except (UnicodeError, ValueError, streamtok.PendingLimitExceeded) as error:
            note.end = f" -> {type(error).__name__}: {str(error)[:80]}"
            self.check_refusal(error, expected, final)
            self.unchanged(before)
            return False
        self.accepted(expected, ids, final)
        return True

    def most_ids(self, expected: Step) -> int:
        # U+FFFD has three bytes, and a format may put a space before the text.
        grown = 3 if self.setup.errors == "replace" else 1
        kind = self.setup.subject.kind
        # NFKC makes 33 bytes of three; a space may become the bytes of "▁".
        grown *= {"rewriting": 15, "pieces": 4}.get(kind, 1)
        pending = self.stream.pending * (grown if kind in ("rewriting", "pieces") else 1)
        return len(expected.data) * grown + pending + 40

    def accepted(self, expected: Step, ids: list[int], final: bool) -> None:
        """A call succeeded; was it right to?"""
        stream, model = self.stream, self.model
        fault = expected.fault
        # Under "surrogateescape" no byte waits for another one.
        if fault and not (fault.kind.startswith("text") and self.setup.errors == "surrogateescape"):
            assert fault.kind.startswith("bytes"), f"a chunk was accepted in spite of {fault}"
        model.take(expected, ids)
        if final:
            self.compare()
            return
        assert stream.bytes_in == len(model.accepted), (
            f"bytes_in is {stream.bytes_in}, accepted were {len(model.accepted)} bytes"
        )
        assert stream.tokens_out == len(model.given), (
            f"tokens_out is {stream.tokens_out}, given were {len(model.given)} ids"
        )
        assert 0 <= stream.pending <= stream.max_pending, f"{stream.pending} bytes are pending"
        if len(model.accepted) < 500 and self.setup.rng.random() < 0.3:
            self.check_bytes()

    def check_refusal(self, error: Exception, expected: Step, final: bool) -> None:
        """A call failed; was it right to, and does it say why and where?"""
        stream, model = self.stream, self.model
        fault = expected.fault
        if isinstance(error, streamtok.PendingLimitExceeded):
            assert stream.max_pending < NEVER_REACHED, "the limit is not reached"
            assert error.limit == stream.max_pending < error.pending, f"{error.pending=}"
            end = len(model.accepted) + len(expected.data)
            assert self.setup.errors == "replace" or error.offset + error.pending == end, (
                f"{error.offset} + {error.pending} are not the {end} bytes of the stream"
            )
            assert not final, "nothing waits after the last chunk"
        elif isinstance(error, UnicodeDecodeError):
            assert fault is not None, f"refused: {error}"
            if fault.kind == "utf-8":
                assert error.reason == fault.reason, f"{error.reason!r}, Python: {fault.reason!r}"
            places = {(fault.start, fault.end)}
            if self.setup.subject.kind == "spaces":  # there they are those of the repaired text
                grown = len(model.repaired()) - len(model.accepted)
                places.add((fault.start + grown, fault.end + grown))
            assert (error.start, error.end) in places, (
                f"the error is at {error.start}:{error.end}, it says, but at {places}: {fault.kind}"
            )
        else:
            assert self.setup.refuses, f"refused: {error}"
            assert "disallowed special token" in str(error), f"refused: {error}"
            data = bytes(model.accepted) + expected.data
            data = data[: len(data) - len(expected.waiting)] if expected.waiting else data
            if fault is None and not final:
                said = self.whole_raises(data, ValueError)
                assert said, "a stream refuses what the whole text does not"
                if self.setup.errors != "replace":
                    same = str(error).partition("\n")[0] == said.partition("\n")[0]
                    assert same, f"a stream says {str(error)[:90]!r}, the whole text {said[:90]!r}"

    def whole_raises(self, text: Chunk, kind: type[Exception]) -> str:
        try:
            self.setup.encoding.encode(text, **self.setup.settings)
        except ValueError as error:
            return str(error) if isinstance(error, kind) else ""
        return ""

    def unchanged(self, before: bytes) -> None:
        """A call that failed has not happened."""
        stream, model = self.stream, self.model
        assert stream.getstate() == before, "a failed call changed the stream"
        assert stream.bytes_in == len(model.accepted), "a failed call changed bytes_in"
        assert stream.tokens_out == len(model.given), "a failed call changed tokens_out"

    def compare(self) -> None:
        """The stream has ended: its ids are those of the whole, and it is fresh again."""
        stream, model = self.stream, self.model
        data = bytes(model.accepted)
        self.same(model.given, self.whole(data), "a stream and the whole text")
        if model.text and len(model.text) < 5000:
            self.same(model.given, self.whole(model.text), "a stream of str and the whole str")
        for array, ids in self.setup.arrays:
            assert array.tolist() == ids, "an array of ids changed after it was given out"
        if stream.getstate() != self.setup.fresh_state:
            raise AssertionError("the stream is not fresh after its end")
        assert stream.bytes_in == stream.tokens_out == stream.pending == 0, "counters after the end"
        model.begin()

    def whole(self, text: Chunk) -> list[int]:
        return self.setup.encoding.encode(text, **self.setup.settings)

    def same(self, got: list[int], expected: list[int], what: str) -> None:
        if got == expected:
            return
        pairs = enumerate(itertools.zip_longest(got, expected))
        at = next(i for i, (a, b) in pairs if a != b)
        raise AssertionError(
            f"{what} differ at id {at} of {len(got)} and {len(expected)}: "
            f"{got[at : at + 5]} and {expected[at : at + 5]}"
        )

    def check_bytes(self) -> None:
        """The ids given out stand for the bytes that are not pending."""
        stream, model = self.stream, self.model
        is_changed = self.setup.subject.kind in ("spaces", "rewriting", "pieces", "template")
        if is_changed or not self.setup.encoding.pattern.is_total:
            return
        seen = model.repaired()
        given = self.setup.encoding.decode_bytes(model.given)
        assert given == seen[: len(given)], f"the ids stand for {given[-50:]!r}, not {seen[-50:]!r}"
        assert len(given) + stream.pending == len(seen), (
            f"{len(given)} bytes given out, {stream.pending} pending, {len(seen)} in all"
        )

    def check(self, more: bytes) -> None:
        """The ids given out stay if `more` follows."""
        model = self.model
        self.check_bytes()
        if len(model.accepted) > 20_000:
            return
        data = bytes(model.accepted) + (completion(model.waiting) if model.waiting else b"") + more
        self.setup.note("check that no {} changes what was given", data[len(model.accepted) :])
        try:
            ids = self.whole(data)
        except ValueError:
            return
        self.same(model.given, ids[: len(model.given)], "ids given out and the whole text")
