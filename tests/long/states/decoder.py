"""A `StreamDecoder` and whole decoding, step by step, against the ids that were accepted.

The model is those ids, the bytes that each stands for (from the table that the encoding was made
of), and Python's own UTF-8 decoder.
"""

from __future__ import annotations

import codecs
import functools
import pickle
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import streamtok
from streamtok.errors import StateError, StreamInUseError
from streamtok.vocabulary.table import NO_ID

from ...conftest import encoding_of
from ..calls.subjects import machine_subject
from ..steps import Machine
from .model import damaged

POLICIES = ["replace", "strict", "ignore", "backslashreplace", "surrogateescape", "surrogatepass"]
KINDS = {
    "list": list, "tuple": tuple, "iterator": iter,
    "uint32": lambda ids: np.array(ids, np.uint32), "int64": lambda ids: np.array(ids, np.int64),
    "spread": lambda ids: np.repeat(np.array(ids, np.uint32), 3)[::3],
    "memoryview": lambda ids: memoryview(np.array(ids, np.uint32)),
    "numbers": lambda ids: map(Number, ids),
}  # fmt: skip


class Number:
    """Something that is a number only by its __index__, which may do anything."""

    def __init__(self, value: int, act: Callable[[], Any] = lambda: None) -> None:
        self.value, self.act = value, act

    def __index__(self) -> int:
        self.act()
        return self.value


class Broken(Exception):
    """What a caller's own code raises in the middle of a call."""


@functools.lru_cache(100)
def bytes_by_id(encoding: streamtok.Encoding) -> dict[int, bytes]:
    """Of the tables that the encoding was made of."""
    known = encoding.definition.vocabulary
    table = dict(zip(known.ids.tolist(), known.to_list(), strict=True)) | dict(known.decode_only)
    table.pop(NO_ID, None)
    rules = encoding.definition.rules
    texts = dict(rules.decoded_texts)
    named = [*rules.added_tokens, *encoding._special_tokens.items()]
    return table | {id: texts.get(text, text.encode()) for text, id in named}


RULES = {
    "take_text": 6, "take_bytes": 2, "fail": 3, "call_in_call": 1, "reset": 1, "move": 2,
    "damage": 1,
}  # fmt: skip


class DecoderMachine(Machine):
    """One decoder, and the ids that it accepted."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, RULES)
        self.encoding = machine_subject(rng).encoding
        self.table = bytes_by_id(self.encoding)
        self.firsts = dict(self.encoding.definition.rules.first_texts)
        self.errors = rng.choice(POLICIES)
        self.skips = rng.random() < 0.3
        self.settings = f"{self.encoding.name}, {self.errors=}, {self.skips=}"
        self.known = sorted(self.table)
        self.starts = [id for id in self.known if self.table[id][:1] > b"\x7f"]
        self.decoder = self.new()
        self.forget()

    def new(self) -> streamtok.StreamDecoder:
        return self.encoding.stream_decoder(errors=self.errors, skip_special_tokens=self.skips)

    def forget(self) -> None:
        self.accepted: list[int] = []
        self.text_from = 0  # in the bytes of these: what came before left as bytes
        self.text = ""  # what was given out since

    def step(self) -> str:
        rule = super().step()
        with self.told():
            self.check()
        return rule

    def finish(self) -> None:
        """Nothing is lost at the end."""
        with self.told():
            self.take([], final=True, as_text=True)
            self.check()

    def state(self) -> bytes:
        return self.decoder.getstate()

    # The model

    def bytes_of(self, ids: list[int]) -> bytes:
        if self.skips:
            specials = self.encoding.definition.specials.ids
            ids = [id for id in ids if id not in specials]
        rules, parts, is_begun = self.encoding.definition.rules, [], False
        for id in ids:
            data = self.table[id]
            if not is_begun:
                data = data.removeprefix(b" ") if rules.drops_first_space else data
                data = self.firsts[id].encode() if id in self.firsts else data
                is_begun = bool(data) or not rules.drops_first_spaces
            parts.append(data)
        return b"".join(parts)

    def check(self) -> None:
        """What the decoder says of itself."""
        data = self.bytes_of(self.accepted)
        rest = data[self.text_from :]
        text, used = codecs.utf_8_decode(rest, self.errors, False)
        found = self.decoder.tokens_in, self.decoder.bytes_out, self.decoder.pending
        wanted = len(self.accepted), len(data), len(rest) - used
        assert found == wanted, f"tokens_in, bytes_out, pending are {found}, not {wanted}"
        assert self.text == text, f"the text so far is {self.text!r}, not {text!r}"

    # What goes in

    def some_ids(self) -> list[int]:
        rng = self.rng
        size = rng.choice([0, 1, 1, 2, 3, 10, 600])
        if rng.random() < 0.5:
            return rng.choices(self.known, k=size)
        if rng.random() < 0.5 and self.starts:
            return rng.choices(self.starts, k=size)
        text = "".join(rng.choices("aé日🎉\ufffd ", k=min(size, 20)))
        ids = self.encoding.encode(text, disallowed_special=())
        start = rng.randrange(len(ids) + 1)
        return ids[start : start + rng.randrange(6)]

    # The rules

    def take_text(self) -> None:
        self.take(self.some_ids(), final=self.rng.random() < 0.1, as_text=True)

    def take_bytes(self) -> None:
        self.take(self.some_ids(), final=self.rng.random() < 0.1, as_text=False)

    def take(self, ids: list[int], *, final: bool, as_text: bool) -> None:
        kind = self.rng.choice([*KINDS])
        call = f"{'decode' if as_text else 'decode_bytes'}({ids[:20]}…, {final}) {kind}"
        if as_text:
            self.take_given(call, KINDS[kind](ids), ids, final)
            return
        given = KINDS[kind](ids)
        if self.decoder.pending:
            self.refused(call, lambda: self.decoder.decode_bytes(given, final), ValueError)
            return
        before = self.bytes_of(self.accepted)
        found = self.call(call, lambda: self.decoder.decode_bytes(given, final))
        self.accepted += ids
        data = self.bytes_of(self.accepted)
        self.text, self.text_from = "", len(data)
        if final:
            self.forget()
        assert found == data[len(before) :], f"{found!r} came out"

    def take_given(self, call: str, given: Any, ids: list[int], final: bool) -> None:
        """Decode what stands for these ids to text."""
        rest = self.bytes_of(self.accepted + ids)[self.text_from :]
        try:
            whole = codecs.utf_8_decode(rest, self.errors, final)[0]
        except UnicodeDecodeError as error:
            told = self.refused(call, lambda: self.decoder.decode(given, final), type(error))
            where = self.text_from + error.start, self.text_from + error.end
            assert (told.start, told.end) == where, f"{told} is at {where}"
            return
        found = self.call(call, lambda: self.decoder.decode(given, final))
        wanted, self.text = whole[len(self.text) :], whole
        self.accepted += ids
        if final:
            self.forget()
        assert found == wanted, f"{found!r} came out, not {wanted!r}"

    def fail(self) -> None:
        """Ids that cannot be decoded, for every reason, anywhere among others; or no ids at all."""
        rng = self.rng

        def broken() -> Any:
            raise Broken

        unknown = rng.randrange(1 << 32)
        while unknown in self.table:
            unknown = rng.randrange(1 << 32)
        wrong, error = rng.choice(
            [
                (unknown, KeyError), (unknown, KeyError), (-1, OverflowError),
                (1 << 32, OverflowError), (1 << 70, OverflowError), ("a", TypeError),
                (None, TypeError), (1.0, TypeError), (b"a", TypeError), (Number(0, broken), Broken),
            ]
        )  # fmt: skip
        given: Any = rng.choice([list, tuple, iter])([*self.some_ids(), wrong, *self.some_ids()])
        if rng.random() < 0.2:
            given = rng.choice([5, None, "text", np.zeros((2, 2), np.uint32), np.zeros(2)])
            error = TypeError
        name = rng.choice(["decode", "decode_bytes"])
        waits = [ValueError] if name == "decode_bytes" and self.decoder.pending else []
        call = getattr(self.decoder, name)
        final = rng.random() < 0.5
        self.refused(f"{name} with {wrong!r}", lambda: call(given, final), error, *waits)

    def call_in_call(self) -> None:
        """Other calls while one runs, from it or from another thread, are refused."""
        rng, decoder = self.rng, self.decoder
        saved = decoder.getstate()
        refused = 0

        def again() -> None:
            nonlocal refused
            for call in (
                lambda: decoder.decode([1]), lambda: decoder.decode_bytes([1]), decoder.flush,
                decoder.reset, decoder.copy, decoder.getstate, lambda: decoder.setstate(saved),
            ):  # fmt: skip
                try:
                    call()
                except StreamInUseError:
                    refused += 1

        def in_thread() -> None:
            thread = threading.Thread(target=again)
            thread.start()
            thread.join()

        act = again if rng.random() < 0.7 else in_thread
        id = rng.choice(self.known)
        call = f"decode([{id}]), and other calls meanwhile"
        self.take_given(call, [Number(id, act)], [id], False)
        assert refused
        assert refused % 7 == 0, f"{refused} of 7 calls were refused"  # a first id is read twice

    def reset(self) -> None:
        self.call("reset()", self.decoder.reset)
        self.forget()

    def move(self) -> None:
        """Go on in another object, which was in the middle of something else, or the same."""
        how = self.rng.choice(["copy", "pickle", "fresh", "used", "itself"])
        if how == "pickle" and len(self.table) > 5000:  # many tokens in each pickle
            how = "copy"
        self.story.append(f"go on: {how}")
        before = self.decoder
        state = before.getstate()
        if how == "copy":
            self.decoder = before.copy()
        elif how == "pickle":
            self.decoder = pickle.loads(pickle.dumps(before))
        else:
            if how != "itself":
                self.decoder = self.new()
            if how == "used":
                self.decoder.decode(self.encoding.encode("é日", disallowed_special=())[:1])
            self.decoder.setstate(state)
        assert self.decoder.getstate() == state, "the state is another one"
        if self.decoder is not before:
            before.reset()

    def damage(self) -> None:
        """States that were damaged, or are others', are refused."""
        names = [name for name in ("r50k_base", "cl100k_base") if name != self.encoding.name]
        other = encoding_of(self.rng.choice(names))
        foreign = [other.stream_encoder().getstate(), other.stream_decoder().getstate()]
        state = damaged(self.rng, self.decoder.getstate(), foreign)
        call = "setstate of a damaged state"
        self.refused(call, lambda: self.decoder.setstate(state), StateError)
