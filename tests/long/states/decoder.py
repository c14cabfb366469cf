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
from streamtok.engines.rules import TextRules
from streamtok.errors import StateError, StreamInUseError

from ...conftest import encoding_of

POLICIES = ["replace", "strict", "ignore", "backslashreplace", "surrogateescape", "surrogatepass"]
KINDS = [
    "list", "list", "tuple", "iterator", "generator", "uint32", "int64", "uint64", "int32",
    "spread", "swapped", "memoryview", "numbers", "read-only",
]  # fmt: skip


class Number:
    """Something that is a number only by its __index__, which may do anything."""

    def __init__(self, value: int, act: Callable[[], Any] = lambda: None) -> None:
        self.value, self.act = value, act

    def __index__(self) -> int:
        self.act()
        return self.value


class Broken(Exception):
    """What a caller's own code raises in the middle of a call."""


@functools.cache
def encodings() -> list[tuple[streamtok.Encoding, dict[int, bytes], bool]]:
    """(encoding, bytes by id, whether decoding drops the first space)."""
    made = [(encoding_of(name), False) for name in ("r50k_base", "cl100k_base", "llama3_style")]
    known = streamtok.get_encoding("r50k_base")
    # A part of its tokens: these are made anew whenever they are pickled.
    some = {data: rank for rank, data in enumerate(known._vocabulary.to_list()[:3_000])}
    for space_first in (True, False):
        rules = TextRules(
            (("<added>", 70_000), ("<b>", 70_001)), normalizer="spaces", space_first=space_first
        )
        one = streamtok.Encoding(
            f"spaces {space_first}",
            pat_str=known.pattern or "",
            mergeable_ranks=some,
            special_tokens={"<s>": 60_000, "é": 60_001},
            rules=rules,
        )
        made.append((one, space_first))
    ranks = {bytes([i]): 3 * i + 1 for i in range(256)} | {"日本".encode(): 999, b"\xf0\x9f": 1_000}
    made.append(
        (
            streamtok.Encoding(
                "sparse",
                pat_str=r"\w+|\W",
                mergeable_ranks=ranks,
                special_tokens={"<|far|>": 0xFFFFFFF0, "<|near|>": 2_000},
            ),
            False,
        )
    )
    result = []
    for encoding, drops in made:
        table = dict(
            zip(encoding._vocabulary.ids.tolist(), encoding._vocabulary.to_list(), strict=True)
        )
        table |= {id: text.encode() for text, id in encoding._rules.added_tokens}
        table |= {id: text.encode() for text, id in encoding._special_tokens.items()}
        result.append((encoding, table, drops))
    return result


@functools.cache
def ids_to_choose(encoding: streamtok.Encoding) -> tuple[list[int], list[int]]:
    """All ids, in order, and those that do not begin with an ASCII character."""
    table = next(table for one, table, _ in encodings() if one is encoding)
    known = sorted(table)
    return known, [id for id in known if table[id][:1] > b"\x7f"]


class DecoderMachine:
    """One decoder, and the ids that it accepted."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.encoding, self.table, self.drops = rng.choice(encodings())
        self.errors = rng.choice(POLICIES)
        self.skips = rng.random() < 0.3
        self.known, self.starts = ids_to_choose(self.encoding)
        self.decoder = self.new()
        self.story: list[str] = []
        self.forget()

    def new(self) -> streamtok.StreamDecoder:
        return self.encoding.stream_decoder(errors=self.errors, skip_special_tokens=self.skips)

    def forget(self) -> None:
        self.accepted: list[int] = []
        self.text_from = 0  # in the bytes of these: what came before left as bytes
        self.text = ""  # what was given out since

    # The model

    def bytes_of(self, ids: list[int], *, skips: bool = True) -> bytes:
        if skips and self.skips:
            specials = self.encoding._specials.ids
            ids = [id for id in ids if id not in specials]
        data = b"".join(map(self.table.__getitem__, ids))
        return data.removeprefix(b" ") if self.drops else data

    def check(self) -> None:
        """What the decoder says of itself."""
        data = self.bytes_of(self.accepted)
        rest = data[self.text_from :]
        text, used = codecs.utf_8_decode(rest, self.errors, False)
        found = self.decoder.tokens_in, self.decoder.bytes_out, self.decoder.pending
        wanted = len(self.accepted), len(data), len(rest) - used
        self.require(found == wanted, f"tokens_in, bytes_out, pending are {found}, not {wanted}")
        self.require(self.text == text, f"the text so far is {self.text!r}, not {text!r}")

    def require(self, holds: bool, message: str) -> None:
        if not holds:
            story = "\n  ".join(self.story[-12:])
            raise AssertionError(
                f"{message}\n{self.encoding.name}, errors={self.errors!r}, "
                f"skip_special_tokens={self.skips}; the last steps:\n  {story}"
            )

    def fails(self, call: Callable[[], Any], *wanted: type[BaseException]) -> BaseException:
        """The exception that a call raises, which must leave the decoder as it was."""
        before = self.decoder.getstate()
        try:
            result = call()
        except wanted as error:
            self.require(self.decoder.getstate() == before, f"{error!r} changed the decoder")
            self.check()
            return error
        self.require(False, f"a call gave {result!r} and should have raised one of {wanted}")
        raise NotImplementedError

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

    def as_kind(self, ids: list[int], kind: str) -> Any:
        array = np.array(ids, np.uint32)
        if kind == "int32" and (not ids or max(ids) < 1 << 31):
            return array.astype(np.int32)
        makers: dict[str, Callable[[], Any]] = {
            "list": lambda: list(ids),
            "tuple": lambda: tuple(ids),
            "iterator": lambda: iter(ids),
            "generator": lambda: (id for id in ids),
            "int64": lambda: array.astype(np.int64),
            "uint64": lambda: array.astype(np.uint64),
            "spread": lambda: np.repeat(array, 3)[::3],
            "swapped": lambda: array.astype(array.dtype.newbyteorder()),
            "memoryview": lambda: memoryview(array),
            "numbers": lambda: [Number(id) for id in ids],
            "read-only": lambda: np.frombuffer(array.tobytes(), np.uint32),
        }
        return makers.get(kind, lambda: array)()

    # The rules

    def step(self) -> str:
        name = self.rng.choice(RULES)
        getattr(self, name)()
        self.check()
        return name

    def take_text(self) -> None:
        self.take(self.some_ids(), final=self.rng.random() < 0.1, as_text=True)

    def take_bytes(self) -> None:
        self.take(self.some_ids(), final=self.rng.random() < 0.1, as_text=False)

    def flush(self) -> None:
        self.take([], final=True, as_text=True)

    def take(self, ids: list[int], *, final: bool, as_text: bool) -> None:
        kind = self.rng.choice(KINDS)
        self.story.append(f"{'decode' if as_text else 'decode_bytes'}({ids[:20]}…, {final}) {kind}")
        given = self.as_kind(ids, kind)
        before = self.bytes_of(self.accepted)
        data = self.bytes_of(self.accepted + ids)
        rest = data[self.text_from :]
        if not as_text:
            if self.decoder.pending:
                self.fails(lambda: self.decoder.decode_bytes(given, final), ValueError)
                return
            found: Any = self.decoder.decode_bytes(given, final)
            wanted: Any = data[len(before) :]
            self.text, self.text_from = "", len(data)
        else:
            try:
                whole = codecs.utf_8_decode(rest, self.errors, final)[0]
            except UnicodeDecodeError as error:
                told = self.fails(lambda: self.decoder.decode(given, final), UnicodeDecodeError)
                assert isinstance(told, UnicodeDecodeError)
                where = self.text_from + error.start, self.text_from + error.end
                self.require((told.start, told.end) == where, f"{told} is at {where}")
                return
            found, wanted = self.decoder.decode(given, final), whole[len(self.text) :]
            self.text = whole
        self.accepted += ids
        if final:
            self.forget()
        self.require(found == wanted, f"{found!r} came out, not {wanted!r}")

    def fail(self) -> None:
        """Ids that cannot be decoded, for every reason, anywhere among others."""
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
        ids: list[Any] = [*self.some_ids(), wrong, *self.some_ids()]
        given: Any = rng.choice([list, tuple, iter])(ids)
        call = rng.choice([self.decoder.decode, self.decoder.decode_bytes])
        self.story.append(f"{call.__name__} with {wrong!r}, {error.__name__}")
        self.fails(lambda: call(given, rng.random() < 0.5), error, *self.waits(call))

    def fail_whole(self) -> None:
        """What are no ids at all, and an iterable that breaks off."""

        def breaks_off() -> Any:
            yield from self.some_ids()
            raise Broken

        wrong, error = self.rng.choice(
            [
                (5, TypeError), (None, TypeError), ("text", TypeError), (breaks_off(), Broken),
                (np.zeros((2, 2), np.uint32), TypeError), (np.zeros(()), TypeError),
                (np.zeros(2), TypeError), (np.array(["a"]), TypeError), (object(), TypeError),
            ]
        )  # fmt: skip
        call = self.rng.choice([self.decoder.decode, self.decoder.decode_bytes])
        self.story.append(f"{call.__name__} of {wrong!r}")
        self.fails(lambda: call(wrong), error, *self.waits(call))

    def waits(self, call: Any) -> list[type[BaseException]]:
        return [ValueError] if call.__name__ == "decode_bytes" and self.decoder.pending else []

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
        self.story.append(f"decode([{id}]), and other calls meanwhile")
        given = [Number(id, act)]
        data = self.bytes_of([*self.accepted, id])
        try:
            whole = codecs.utf_8_decode(data[self.text_from :], self.errors, False)[0]
        except UnicodeDecodeError as error:
            self.fails(lambda: decoder.decode(given), type(error))
        else:
            found, wanted = decoder.decode(given), whole[len(self.text) :]
            self.text = whole
            self.accepted.append(id)
            self.require(found == wanted, f"{found!r} came out, not {wanted!r}")
        self.require(refused == 7, f"{refused} of 7 calls were refused")

    def reset(self) -> None:
        self.story.append("reset()")
        self.decoder.reset()
        self.forget()

    def move(self) -> None:
        """Go on in another object, which was in the middle of something else, or the same."""
        how = self.rng.choice(["copy", "pickle", "fresh", "used", "itself"])
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
        self.require(self.decoder.getstate() == state, "the state is another one")
        if self.decoder is not before:
            before.reset()

    def damage(self) -> None:
        """States that were damaged, or are others', are refused."""
        rng = self.rng
        state = bytearray(self.decoder.getstate())
        how = rng.choice(["flip", "cut", "grow", "other", "empty"])
        self.story.append(f"setstate of a state that is damaged: {how}")
        if how == "flip":
            state[rng.randrange(len(state))] ^= 1 << rng.randrange(8)
        elif how == "cut":
            del state[rng.randrange(len(state)) :]
        elif how == "grow":
            state += bytes([rng.randrange(256)])
        elif how == "other":
            others = [one for one, _, _ in encodings() if one is not self.encoding]
            other = rng.choice(others)
            made = other.stream_encoder() if rng.random() < 0.5 else other.stream_decoder()
            state = bytearray(made.getstate())
        else:
            state = bytearray()
        self.fails(lambda: self.decoder.setstate(bytes(state)), StateError)

    def whole(self) -> None:
        """`decode`, `decode_bytes` and batches of them."""
        encoding, rng = self.encoding, self.rng
        rows = [self.some_ids() for _ in range(rng.randint(1, 4))]
        self.story.append(f"whole rows {[row[:10] for row in rows]}")
        wanted = [self.bytes_of(row, skips=False) for row in rows]
        given = [self.as_kind(row, rng.choice(KINDS)) for row in rows]
        for row, data in zip(given, wanted, strict=True):
            self.require(encoding.decode_bytes(row) == data, "decode_bytes gives others")
        texts = [data.decode("utf-8", "replace") for data in wanted]
        threads = rng.randint(1, 8)
        for i, row in enumerate(rows):
            found = encoding.decode(self.as_kind(row, rng.choice(KINDS)))
            self.require(found == texts[i], f"decode gives {found!r}, not {texts[i]!r}")
        self.require(encoding.decode_batch(rows, num_threads=threads) == texts, "decode_batch")
        self.require(
            encoding.decode_bytes_batch(rows, num_threads=threads) == wanted, "decode_bytes_batch"
        )

    def finish(self) -> None:
        """Nothing is lost at the end."""
        self.flush()
        self.check()


RULES = [
    *["take_text"] * 6, *["take_bytes"] * 2, "flush", "fail", "fail", "fail_whole", "call_in_call",
    "reset", "move", "move", "damage", "whole",
]  # fmt: skip
machine = DecoderMachine
