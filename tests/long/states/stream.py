"""The adversary of a `StreamEncoder`: random calls, right and wrong, in any order.

What it knows of a stream is in `model.py`: the bytes that were accepted. Every call is compared
with what the model foresees.
"""

from __future__ import annotations

import collections
import itertools
import pickle
import random
import zlib
from typing import Any, NamedTuple

import streamtok
from streamtok import chunker

from ..calls.subjects import machine_subject
from ..steps import Machine
from .doors import BEHIND, DOORS, new_out, through
from .encodings import TEMPLATES, templated
from .model import Model, Step, completion, damaged
from .texts import HEADS, Chunk, Supply, short

Stream = streamtok.StreamEncoder

SPECIAL = "<|endoftext|>"
# Kinds whose ids are those of the text as it is
PLAIN = ("bundled", "random", "far", "long", "added", "merges", "sequence", "sparse")
NEVER_REACHED = 1 << 26  # of max_pending
GIVEN_LATER: Any = object()
MAX_BYTES = 1 << 20  # of one stream; then it ends and begins again


RULES = {
    "feed": 40, "feed_little": 20, "feed_last": 3, "flush": 2, "check": 3,
    "refuse_utf8": 4, "refuse_special": 4, "refuse_out": 3, "refuse_limit": 3,
    "refuse_much": 0.6, "refuse_text": 2, "refuse_bytes": 2,
    "copy": 3, "switch": 3, "reset": 0.6, "reload": 4, "move": 3, "save": 1.5, "load": 1.5,
    "pickle": 0.5, "damage": 2, "forge": 2,
}  # fmt: skip


class Watched(NamedTuple):
    """A stream, and the model of it."""

    stream: Stream
    model: Model


class StreamMachine(Machine):
    """One encoding, one choice of settings, up to four streams, and the states they saved."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, RULES)
        is_templated = rng.random() < 0.08
        self.subject = (
            templated(rng.randrange(len(TEMPLATES))) if is_templated else machine_subject(rng)
        )
        self.encoding = self.subject.encoding
        names = sorted(self.encoding.special_tokens_set)
        some = frozenset(rng.sample(names, rng.randint(0, len(names))))
        self.errors = rng.choice(["strict", "replace", "surrogateescape"])
        self.how: dict[str, Any] = {
            "allowed_special": rng.choice(["all", frozenset(), frozenset(), some, set(some)]),
            "disallowed_special": rng.choice(["all", (), (), some, ["ab<", *some], {"<|eot_id|>"}]),
            "errors": self.errors,
            "add_special_tokens": is_templated,
        }
        self.refuses = bool(self.how["disallowed_special"])
        self.max_pending = rng.choice([0, 1, 5, 40, 2000]) if rng.random() < 0.08 else None
        self.door = rng.choice([None, None, *DOORS])
        self.fresh_state = self.new_stream().getstate()
        self.arrays: collections.deque[tuple[Any, list[int]]] = collections.deque(maxlen=4)
        is_clean = self.errors == "strict" or self.refuses
        big_share = 0.2 if self.subject.kind == "far" else 0.025
        big_share *= self.subject.is_linear
        self.supply = Supply(rng, self.subject.letters, is_clean, big_share)
        self.text_share = rng.choice([0.0, 0.05, 0.3, 0.9])
        self.after_each = rng.choice([None] * 7 + ["reload", "move"])
        self.settings = (
            f"encoding {self.encoding.name!r} of kind {self.subject.kind}, pattern "
            f"{self.encoding._pat_str!r}, {self.how}, max_pending {self.max_pending}, "
            f"after each step: {self.after_each}"
        )
        self.now = Watched(self.new_stream(), Model(self.errors))
        self.others: list[Watched] = []
        self.saved: list[tuple[bytes, Model]] = []
        self.rules = {rule: weight * rng.choice([0.2, 1, 1, 4]) for rule, weight in RULES.items()}

    def new_stream(self) -> Stream:
        return self.encoding.stream_encoder(**self.how, max_pending=self.max_pending)

    def step(self) -> str:
        rule = super().step()
        if self.after_each:
            with self.told():
                getattr(self, self.after_each)()
        return rule

    def finish(self) -> None:
        """End all streams and compare."""
        with self.told():
            for kept in [*self.others, self.now]:
                self.now = kept
                self.end()

    # Calls that may succeed

    def take(self, chunk: Chunk, final: bool = False, **more: Any) -> None:
        if not self.give(chunk, final, **more):
            self.supply.restart(self.now.model.waiting)
        elif len(self.now.model.accepted) > (MAX_BYTES if self.subject.is_linear else 20_000):
            self.end()

    def any_chunk(self, size: int | None = None) -> Chunk:
        model, errors = self.now.model, self.errors
        is_text = self.rng.random() < self.text_share
        if model.waiting and errors != "surrogateescape":
            is_text = False  # that is for `refuse_text`
        size = self.supply.size() if size is None else size
        return self.supply.chunk(size, is_text=is_text, errors=errors)

    def feed(self) -> None:
        self.take(self.any_chunk())

    def feed_little(self) -> None:
        self.take(self.any_chunk(self.rng.randint(0, 6)))

    def feed_last(self) -> None:
        self.take(self.any_chunk(), final=True)

    def flush(self) -> None:
        self.take(b"", final=True)

    def end(self) -> None:
        """End the stream, whatever it waits for."""
        model = self.now.model
        last = completion(model.waiting) if model.waiting else b""
        if not self.give(last, final=True):
            self.reset()

    # Calls that fail

    def refuse_utf8(self) -> None:
        """Bytes that are no UTF-8, behind others that are. (Refused by "strict" only.)"""
        size = self.supply.size()
        if self.supply.is_big and self.rng.random() < 0.5:
            size = self.rng.choice([70_000, 100_000, 200_000])
        data = self.supply.take(size) if self.rng.random() < 0.5 else b"d" * size
        much = b"\xff" * self.rng.choice([2, 40, 65_536 if self.rng.random() < 0.1 else 400])
        self.take(data + self.rng.choice([b"\xff", b"\xe4b", much, b"\xc0\x80"]))

    def refuse_special(self) -> None:
        """Text with a special token. (Refused where it is not allowed.)"""
        chunk = self.any_chunk()
        name = self.rng.choice([SPECIAL, SPECIAL[:5], SPECIAL[5:], "<|eot_id|>\n", "ab<", "x"])
        if isinstance(chunk, str):
            self.take(chunk + name + "xy" * self.rng.randint(0, 1))
        else:
            self.take(bytes(chunk) + name.encode() + b"xy" * self.rng.randint(0, 1))

    def refuse_out(self) -> None:
        """A buffer with too little room for the ids."""
        chunk, final = self.any_chunk(), self.rng.random() < 0.2
        if count := self.room(chunk, final):
            room = self.rng.choice([0, count // 2, count - 1])
            out = memoryview(bytearray(4 * room + 4)).cast("I")[:room]
            taken = self.give(chunk, final, door="into", out=out, may_raise=(ValueError,))
            assert not taken, f"{count} ids went to a buffer of {room}"
        self.take(chunk, final)

    def refuse_limit(self) -> None:
        """A limit that the call may reach, and then the same call without it."""
        stream = self.now.stream
        before = stream.max_pending
        stream.max_pending = self.rng.choice([0, 1, stream.pending, stream.pending + 3])
        chunk = self.any_chunk()
        try:
            done = self.give(chunk)
        finally:
            stream.max_pending = before
        if not done:
            self.take(chunk)

    def refuse_much(self) -> None:
        """Much is held, and then a large call fails that would have let it go."""
        if not self.subject.is_linear or self.now.model.waiting:
            return
        letters, size = self.subject.letters, self.rng.choice([66_000, 300_000, 700_000])
        head = self.rng.choice([letters[:1], self.rng.choice(HEADS)])
        self.take(head + bytes([self.rng.choice(letters)]) * size)
        rest = self.rng.choice([b"c", b"\n", b""]) + b"d" * self.rng.choice([70_000, 140_000])
        if self.rng.random() < 0.5:
            self.take(rest + self.rng.choice([b"\xff", SPECIAL.encode()]))
        else:
            assert not self.give(rest, door="into", out=bytes(9), may_raise=(ValueError,))
        self.take(rest[:1])

    def refuse_text(self) -> None:
        """A str, wherever the stream is; also inside a character, where it is refused."""
        text = self.rng.choice(["", "x", "é", "\ud83d", "\udc4d", "a" * 5000, "\udcff"])
        self.take(text, self.rng.random() < 0.1)

    def refuse_bytes(self) -> None:
        self.take(self.rng.choice([b"x", b"", b"\xe4", b"\xb8\xad", b"\xed\xa0\xbd"]))

    # States

    def copy(self) -> None:
        """Two streams from now on; one of them goes on later."""
        before = self.now.stream.getstate()
        twin = Watched(self.now.stream.copy(), self.now.model.copy())
        self.story.append("copy()")
        self.others = [*self.others[-2:], self.now]
        self.now = twin
        self.unchanged(before)

    def switch(self) -> None:
        if self.others:
            self.others.append(self.now)
            self.now = self.others.pop(self.rng.randrange(len(self.others) - 1))
            self.story.append("another stream goes on")

    def reset(self) -> None:
        self.story.append("reset()")
        self.now.stream.reset()
        self.now.model.begin()
        assert self.now.stream.getstate() == self.fresh_state, "not fresh after reset()"

    def reload(self) -> None:
        """A state, into the stream that it is of."""
        self.story.append("setstate(getstate())")
        state = self.now.stream.getstate()
        self.now.stream.setstate(state)
        self.unchanged(state)

    def move(self) -> None:
        """A state, into a new stream."""
        self.story.append("the state goes to a new stream")
        self.load_into(self.new_stream(), self.now.stream.getstate(), self.now.model)

    def save(self) -> None:
        self.story.append(f"state {len(self.saved)} is saved")
        self.saved.append((self.now.stream.getstate(), self.now.model.copy()))

    def load(self) -> None:
        """A saved state, into a stream that is in the middle of something else."""
        if not self.saved:
            return
        number = self.rng.randrange(len(self.saved))
        self.story.append(f"state {number} is loaded")
        state, model = self.saved[number]
        self.load_into(self.now.stream, state, model.copy())

    def load_into(self, stream: Stream, state: bytes, model: Model) -> None:
        stream.setstate(state)
        self.now = Watched(stream, model)
        self.unchanged(state)

    def pickle(self) -> None:
        if self.encoding.name == "llama3_style":  # 100 000 tokens in each pickle
            return self.move()
        self.story.append("pickle.loads(pickle.dumps(...))")
        stream = pickle.loads(pickle.dumps(self.now.stream))
        assert stream.max_pending == self.now.stream.max_pending, "max_pending is lost"
        self.load_into(stream, self.now.stream.getstate(), self.now.model)

    def damage(self) -> None:
        """A state that lost or changed some bytes, or is of something else."""
        stream, state = self.now.stream, self.now.stream.getstate()
        other = {**self.how, "allowed_special": {"<|nobody|>"}}
        foreign = [self.encoding.stream_encoder(**other).getstate()]
        foreign.append(self.encoding.stream_decoder().getstate())
        bad = damaged(self.rng, state, foreign)
        self.story.append(f"setstate({short(bad)})")
        try:
            stream.setstate(bad)
        except streamtok.StateError:
            self.unchanged(state)
        else:
            raise AssertionError("a damaged state was accepted")

    def forge(self) -> None:
        """A damaged state whose checksum is right: refused, or it gives nonsense, but no crash."""
        state = bytearray(self.now.stream.getstate())
        start = len(chunker._STATE_MAGIC) + 4
        for _ in range(self.rng.randint(1, 3)):
            at = min(start + 32 + int(self.rng.expovariate(1 / 60)), len(state) - 1)
            state[at] = self.rng.choice([0, 1, 255, state[at] ^ 1, self.rng.randrange(256)])
        if self.rng.random() < 0.1:
            del state[self.rng.randrange(start, len(state)) :]
        state[start - 4 : start] = zlib.crc32(state[start:]).to_bytes(4, "little")
        self.story.append(f"a new stream: setstate({short(bytes(state))})")
        victim = self.new_stream()
        victim.max_pending = 1 << 26
        try:
            victim.setstate(bytes(state))
        except streamtok.StateError:
            assert victim.getstate() == self.fresh_state, "a refused state was taken in part"
            return
        for final in [False, False, True]:
            chunk = self.supply.take(self.rng.choice([1, 30, 3000]))
            self.story.append(f"  its encode({short(chunk)}, final={final})")
            try:
                pickle.loads(pickle.dumps(victim.getstate()))
                victim.encode(chunk, final)
            except (ValueError, OverflowError, streamtok.PendingLimitExceeded):
                pass

    # One call, and what must be so after it

    def give(
        self,
        chunk: Chunk,
        final: bool = False,
        *,
        door: str | None = None,
        out: Any = GIVEN_LATER,
        may_raise: tuple[type[BaseException], ...] = (),
    ) -> bool:
        """One call; whether it succeeded. `may_raise`: beyond what the model foresees."""
        stream, model = self.now
        door = door or self.door or self.rng.choice(DOORS)
        expected = model.foresee(chunk, final)
        if door.startswith("into") and out is GIVEN_LATER:
            out = new_out(self.rng, self.room(chunk, final) + BEHIND)
            if self.encoding.max_token_value > 0xFFFF and memoryview(out).itemsize == 2:
                may_raise = (*may_raise, OverflowError)
        before = stream.getstate()
        self.story.append(f"{door}({short(chunk)}, final={final})")
        try:
            ids = through(door, stream, chunk, final, out, self.arrays)
        except may_raise as error:
            self.story[-1] += f" -> {type(error).__name__}"
            self.unchanged(before)
            return False
        except (UnicodeError, ValueError, streamtok.PendingLimitExceeded) as error:
            self.story[-1] += f" -> {type(error).__name__}: {str(error)[:80]}"
            self.check_refusal(error, expected, final)
            self.unchanged(before)
            return False
        self.accepted(expected, ids, final)
        return True

    def room(self, chunk: Chunk, final: bool) -> int:
        """How many ids the call will give; 0 where it fails."""
        twin = self.now.stream.copy()
        twin.max_pending = self.now.stream.max_pending
        try:
            return len(twin.encode(chunk, final))
        except (ValueError, streamtok.PendingLimitExceeded):
            return 0

    def accepted(self, expected: Step, ids: list[int], final: bool) -> None:
        """A call succeeded; was it right to?"""
        stream, model = self.now
        fault = expected.fault
        # Under "surrogateescape" no byte waits for another one.
        if fault and not (fault.kind.startswith("text") and self.errors == "surrogateescape"):
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
        if len(model.accepted) < 500 and self.rng.random() < 0.3:
            self.check_bytes()

    def check_refusal(self, error: Exception, expected: Step, final: bool) -> None:
        """A call failed; was it right to, and does it say why and where?"""
        stream, model = self.now
        fault = expected.fault
        if isinstance(error, streamtok.PendingLimitExceeded):
            assert stream.max_pending < NEVER_REACHED, "the limit is not reached"
            assert error.limit == stream.max_pending < error.pending, f"{error.pending=}"
            end = len(model.accepted) + len(expected.data)
            assert self.errors == "replace" or error.offset + error.pending == end, (
                f"{error.offset} + {error.pending} are not the {end} bytes of the stream"
            )
            assert not final, "nothing waits after the last chunk"
        elif isinstance(error, UnicodeDecodeError):
            assert fault is not None, f"refused: {error}"
            if fault.kind == "utf-8":
                assert error.reason == fault.reason, f"{error.reason!r}, Python: {fault.reason!r}"
            places = {(fault.start, fault.end)}
            if self.subject.kind == "spaces":  # there they are those of the repaired text
                grown = len(model.repaired()) - len(model.accepted)
                places.add((fault.start + grown, fault.end + grown))
            assert (error.start, error.end) in places, (
                f"the error is at {error.start}:{error.end}, it says, but at {places}: {fault.kind}"
            )
        else:
            assert self.refuses, f"refused: {error}"
            assert "disallowed special token" in str(error), f"refused: {error}"
            data = bytes(model.accepted) + expected.data
            data = data[: len(data) - len(expected.waiting)] if expected.waiting else data
            if fault is None and not final:
                said = self.whole_raises(data, ValueError)
                assert said, "a stream refuses what the whole text does not"
                if self.errors != "replace":
                    same = str(error).partition("\n")[0] == said.partition("\n")[0]
                    assert same, f"a stream says {str(error)[:90]!r}, the whole text {said[:90]!r}"

    def whole_raises(self, text: Chunk, kind: type[Exception]) -> str:
        try:
            self.encoding.encode(text, **self.how)
        except ValueError as error:
            return str(error) if isinstance(error, kind) else ""
        return ""

    def unchanged(self, before: bytes) -> None:
        """A call that failed has not happened."""
        stream, model = self.now
        assert stream.getstate() == before, "a failed call changed the stream"
        assert stream.bytes_in == len(model.accepted), "a failed call changed bytes_in"
        assert stream.tokens_out == len(model.given), "a failed call changed tokens_out"

    def compare(self) -> None:
        """The stream has ended: its ids are those of the whole, and it is fresh again."""
        stream, model = self.now
        data = bytes(model.accepted)
        self.same(model.given, self.whole(data), "a stream and the whole text")
        if model.text and len(model.text) < 5000:
            self.same(model.given, self.whole(model.text), "a stream of str and the whole str")
        for array, ids in self.arrays:
            assert array.tolist() == ids, "an array of ids changed after it was given out"
        if stream.getstate() != self.fresh_state:
            raise AssertionError("the stream is not fresh after its end")
        assert stream.bytes_in == stream.tokens_out == stream.pending == 0, "counters after the end"
        model.begin()

    def whole(self, text: Chunk) -> list[int]:
        return self.encoding.encode(text, **self.how)

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
        stream, model = self.now
        if self.subject.kind not in PLAIN or not self.encoding.pattern.is_total:
            return
        seen = model.repaired()
        given = self.encoding.decode_bytes(model.given)
        assert given == seen[: len(given)], f"the ids stand for {given[-50:]!r}, not {seen[-50:]!r}"
        assert len(given) + stream.pending == len(seen), (
            f"{len(given)} bytes given out, {stream.pending} pending, {len(seen)} in all"
        )

    def check(self) -> None:
        """The ids given out stay whatever follows."""
        more = self.supply.take(self.rng.randint(0, 8))
        model = self.now.model
        self.check_bytes()
        if len(model.accepted) > 20_000:
            return
        data = bytes(model.accepted) + (completion(model.waiting) if model.waiting else b"") + more
        self.story.append(f"check that {short(data[len(model.accepted) :])} changes nothing given")
        try:
            ids = self.whole(data)
        except ValueError:
            return
        self.same(model.given, ids[: len(model.given)], "ids given out and the whole text")
