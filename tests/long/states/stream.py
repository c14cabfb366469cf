"""The adversary of a `StreamEncoder`: random calls, right and wrong, in any order.

What it knows of a stream is in `model.py`: the bytes that were accepted. What must be so is in
`watched.py`. Here is what is done to streams.
"""

from __future__ import annotations

import pickle
import random
import zlib
from typing import Any

import streamtok
from streamtok import chunker

from ..steps import Machine
from .model import Model, completion, damaged
from .texts import HEADS, Chunk, Supply
from .watched import Setup, Stream, Watched

SPECIAL = "<|endoftext|>"
MAX_BYTES = 1 << 20  # of one stream; then it ends and begins again


RULES = {
    "feed": 40, "feed_little": 20, "feed_last": 3, "flush": 2, "check": 3,
    "refuse_utf8": 4, "refuse_special": 4, "refuse_out": 3, "refuse_limit": 3,
    "refuse_much": 0.6, "refuse_text": 2, "refuse_bytes": 2,
    "copy": 3, "switch": 3, "reset": 0.6, "reload": 4, "move": 3, "save": 1.5, "load": 1.5,
    "pickle": 0.5, "damage": 2, "forge": 2,
}  # fmt: skip


class StreamMachine(Machine):
    """One encoding, one choice of settings, up to four streams, and the states they saved."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, RULES)
        self.setup = setup = Setup(rng)
        self.story = setup.story
        is_clean = setup.errors == "strict" or setup.refuses
        big_share = 0.2 if setup.subject.kind == "far" else 0.025
        big_share *= setup.subject.is_linear
        self.supply = Supply(rng, setup.subject.letters, is_clean, big_share)
        self.text_share = rng.choice([0.0, 0.05, 0.3, 0.9])
        self.after_each = rng.choice([None] * 7 + ["reload", "move"])
        self.settings = f"{setup}, after each of them: {self.after_each}"
        self.now = Watched(setup, setup.new_stream(), Model(setup.errors))
        self.others: list[Watched] = []
        self.saved: list[tuple[bytes, Model]] = []
        self.rules = {rule: weight * rng.choice([0.2, 1, 1, 4]) for rule, weight in RULES.items()}

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
        if not self.now.call(chunk, final, **more):
            self.supply.restart(self.now.model.waiting)
        elif len(self.now.model.accepted) > (MAX_BYTES if self.setup.subject.is_linear else 20_000):
            self.end()

    def any_chunk(self, size: int | None = None) -> Chunk:
        model, errors = self.now.model, self.setup.errors
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
        if not self.now.call(last, final=True):
            self.reset()

    def check(self) -> None:
        self.now.check(self.supply.take(self.rng.randint(0, 8)))

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
        twin = self.now.stream.copy()
        twin.max_pending = self.now.stream.max_pending
        try:
            count = len(twin.encode(chunk, final))
        except (ValueError, streamtok.PendingLimitExceeded):
            return self.take(chunk, final)
        if count:
            room = self.rng.choice([0, count // 2, count - 1])
            out = memoryview(bytearray(4 * room + 4)).cast("I")[:room]
            taken = self.now.call(chunk, final, door="into", out=out, may_raise=(ValueError,))
            assert not taken, f"{count} ids went to a buffer of {room}"
        self.take(chunk, final)

    def refuse_limit(self) -> None:
        """A limit that the call may reach, and then the same call without it."""
        stream = self.now.stream
        before = stream.max_pending
        stream.max_pending = self.rng.choice([0, 1, stream.pending, stream.pending + 3])
        chunk = self.any_chunk()
        try:
            done = self.now.call(chunk)
        finally:
            stream.max_pending = before
        if not done:
            self.take(chunk)

    def refuse_much(self) -> None:
        """Much is held, and then a large call fails that would have let it go."""
        if not self.setup.subject.is_linear or self.now.model.waiting:
            return
        letters, size = self.setup.subject.letters, self.rng.choice([66_000, 300_000, 700_000])
        head = self.rng.choice([letters[:1], self.rng.choice(HEADS)])
        self.take(head + bytes([self.rng.choice(letters)]) * size)
        rest = self.rng.choice([b"c", b"\n", b""]) + b"d" * self.rng.choice([70_000, 140_000])
        if self.rng.random() < 0.5:
            self.take(rest + self.rng.choice([b"\xff", SPECIAL.encode()]))
        else:
            assert not self.now.call(rest, door="into", out=bytes(9), may_raise=(ValueError,))
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
        twin = Watched(self.setup, self.now.stream.copy(), self.now.model.copy())
        self.setup.note("copy()")
        twin.unchanged(self.now.stream.getstate())
        self.others = [*self.others[-2:], self.now]
        self.now = twin

    def switch(self) -> None:
        if self.others:
            self.others.append(self.now)
            self.now = self.others.pop(self.rng.randrange(len(self.others) - 1))
            self.setup.note("another stream goes on")

    def reset(self) -> None:
        self.setup.note("reset()")
        self.now.stream.reset()
        self.now.model.begin()
        assert self.now.stream.getstate() == self.setup.fresh_state, "not fresh after reset()"

    def reload(self) -> None:
        """A state, into the stream that it is of."""
        self.setup.note("setstate(getstate())")
        state = self.now.stream.getstate()
        self.now.stream.setstate(state)
        self.now.unchanged(state)

    def move(self) -> None:
        """A state, into a new stream."""
        self.setup.note("the state goes to a new stream")
        self.now = self.loaded(self.setup.new_stream(), self.now.stream.getstate(), self.now.model)

    def save(self) -> None:
        self.setup.note(f"state {len(self.saved)} is saved")
        self.saved.append((self.now.stream.getstate(), self.now.model.copy()))

    def load(self) -> None:
        """A saved state, into a stream that is in the middle of something else."""
        if not self.saved:
            return
        number = self.rng.randrange(len(self.saved))
        self.setup.note(f"state {number} is loaded")
        state, model = self.saved[number]
        self.now = self.loaded(self.now.stream, state, model.copy())

    def loaded(self, stream: Stream, state: bytes, model: Model) -> Watched:
        stream.setstate(state)
        kept = Watched(self.setup, stream, model)
        kept.unchanged(state)
        return kept

    def pickle(self) -> None:
        if self.setup.encoding.name == "llama3_style":  # 100 000 tokens in each pickle
            return self.move()
        self.setup.note("pickle.loads(pickle.dumps(...))")
        stream = pickle.loads(pickle.dumps(self.now.stream))
        assert stream.max_pending == self.now.stream.max_pending, "max_pending is lost"
        self.now = self.loaded(stream, self.now.stream.getstate(), self.now.model)

    def damage(self) -> None:
        """A state that lost or changed some bytes, or is of something else."""
        stream, state = self.now.stream, self.now.stream.getstate()
        other = {**self.setup.settings, "allowed_special": {"<|nobody|>"}}
        foreign = [self.setup.encoding.stream_encoder(**other).getstate()]
        foreign.append(self.setup.encoding.stream_decoder().getstate())
        bad = damaged(self.rng, state, foreign)
        self.setup.note("setstate({})", bad)
        try:
            stream.setstate(bad)
        except streamtok.StateError:
            self.now.unchanged(state)
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
        self.setup.note("a new stream: setstate({})", bytes(state))
        victim = self.setup.new_stream()
        victim.max_pending = 1 << 26
        try:
            victim.setstate(bytes(state))
        except streamtok.StateError:
            assert victim.getstate() == self.setup.fresh_state, "a refused state was taken in part"
            return
        for final in [False, False, True]:
            chunk = self.supply.take(self.rng.choice([1, 30, 3000]))
            self.setup.note(f"  its encode({{}}, final={final})", chunk)
            try:
                pickle.loads(pickle.dumps(victim.getstate()))
                victim.encode(chunk, final)
            except (ValueError, OverflowError, streamtok.PendingLimitExceeded):
                pass
