"""Signals are handled while a call runs, not when it is over; and such a call changed nothing.

How often the core looks at them depends on the time. Here it is at every occasion, so that the
tests count occasions and ask for no time. Between the instructions of Python, a handler that raises
is put at each of them in turn.
"""

from __future__ import annotations

import collections
import gc
import os
import pickle
import random
import signal
import threading
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamtok
from streamtok import Trainer, files
from streamtok._core._testing import use_every_look
from streamtok._core.encode import ARRAY, WorkList, encode_delimited, spans_in, token_spans
from streamtok.engines import texts as batch
from streamtok.engines.rules import NO_RULES, TextRules
from streamtok.normalizers import Form, Lowercase, Normalizer, Replace, StripAccents
from streamtok.normalizers.step import Step
from streamtok.vocabulary.pieces import Pieces

from ..encodings import make_encoding
from ..long.states.encodings import made
from ..long.states.interrupts import AtInstruction
from ..models.test_pieces import encoding_of
from .test_template import ENCODINGS

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no timers that send signals"
)

TEXT = "The quick brown fox jumps over the lazy dog, 1234 times. " * 150_000
WANTED = 5  # times that the handler runs while the call does


class Stop(Exception):
    pass


@pytest.fixture
def ticks() -> Iterator[list[int]]:
    """A timer's signals, a thousand a second; the fifth during one call of the core raises Stop.

    That is, where Python's frame has not moved meanwhile. Loops are not counted, and what sets the
    timer is not.
    """
    seen: list[int] = []
    places: collections.Counter[tuple[int, int]] = collections.Counter()

    def handle(number: int, frame: types.FrameType | None) -> None:
        assert frame is not None
        seen.append(number)
        if frame.f_code.co_name not in ("<listcomp>", "encode_batch", "interrupted"):
            place = id(frame), frame.f_lasti
            places[place] += 1
            if places[place] == WANTED:
                raise Stop

    before = signal.signal(signal.SIGALRM, handle)
    gc.disable()  # it may call Python, too, and what is raised there is lost
    use_every_look(True)
    try:
        yield seen
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        use_every_look(False)
        gc.enable()
        signal.signal(signal.SIGALRM, before)


def interrupted(call: Callable[[], Any]) -> bool:
    """Whether Stop came out of the call."""
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        call()
    except Stop:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_batches(ticks: list[int], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "usable_cores", lambda: 8)
    enc = CL100K
    texts = [TEXT[i : i + 1_000] for i in range(0, len(TEXT), 1_000)]
    # Where the system lets the others do all of it, this thread is not asked: then once more.
    many = range(20)
    assert any(interrupted(lambda: enc.encode_batch(texts, num_threads=threads)) for _ in many)
    assert enc.encode_batch(texts[:3], num_threads=threads) == [enc.encode(t) for t in texts[:3]]


@pytest.mark.parametrize("threads", [2, 4])
def test_large_texts(ticks: list[int], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "usable_cores", lambda: 8)
    monkeypatch.setattr(batch, "PART", 1 << 13)  # so many that this thread has a few of them
    enc = CL100K
    text = TEXT * 3
    # Where the system lets the others do all of it, this thread is not asked: then once more.
    many = range(20)
    assert any(interrupted(lambda: enc.encode_to_numpy(text, num_threads=threads)) for _ in many)
    assert any(interrupted(lambda: enc.encode_batch([text], num_threads=threads)) for _ in many)
    assert len(ticks) >= 2 * WANTED


# Every long loop of the core, on a text that takes it long.

LONG = {"a": "a" * 1_000_000, "mixed": "e\u0301\u00c4b " * 1_000_000, "spaces": " " * 40_000_000}


def with_specials(rules: TextRules = NO_RULES, pattern: str = r"\s+|\S+") -> streamtok.Encoding:
    """Each place of LONG["a"] may begin a token, for a thousand bytes."""
    return make_encoding(pattern, special={"a" * 1_000 + "b": 256}, rules=rules)


def of_pieces(kind: str, stages: tuple[Any, ...] = ()) -> streamtok.Encoding:
    vocab = {"[UNK]": 0, "a": 1, "a" * 1_000 + "b": 2}
    if kind == "WordPiece":
        pieces = Pieces.of_ids(kind, vocab, 0, prefix="", most_characters=1 << 30)
    elif kind == "WordLevel":
        pieces = Pieces.of_ids(kind, vocab, 0)
    else:
        pieces = Pieces.of_scores([(text, -1.0) for text in vocab], 0, False)
    return encoding_of(pieces.with_stages(stages), r"[\s\S]+" if stages else r"\S+|\s+")


def of_steps(*steps: Step) -> streamtok.Encoding:
    return with_specials(TextRules(normalizer=Normalizer(steps)))


def delimited(enc: streamtok.Encoding) -> Any:
    data = ("a" * 5_000 + "\n").encode() * 200
    rules = enc.definition.texts.rules((), ())
    return encode_delimited(
        enc.definition.encoder, rules, data, b"\n", 200, "strict", -1, -1, False
    )


def documents(enc: streamtok.Encoding) -> Any:
    rules = enc.definition.texts.rules((), ())
    texts = ["a" * 5_000] * 200
    work = WorkList(enc.definition.encoder, rules, texts, "strict", ARRAY, 1, (1 << 18, 1))
    work.work()
    return work.flat()


def cuts(text: str, **where: bool) -> Any:
    matcher = CL100K.definition.specials.ordinary
    return CL100K.definition.texts.cuts.find(text, matcher, 0, len(text), **where)


CL100K = streamtok.get_encoding("cl100k_base")
GPT2 = streamtok.get_encoding("gpt2")
DOORS: dict[str, Callable[[streamtok.Encoding], Any]] = {
    "encode": lambda enc: enc.encode(LONG["a"]),
    "count": lambda enc: enc.count(LONG["a"], allowed_special="all"),
    "batch": lambda enc: enc.encode_batch([LONG["a"]] * 2),
    "stream": lambda enc: enc.stream_encoder(allowed_special="all").encode(LONG["a"], final=True),
    "split": lambda enc: enc.definition.specials.default.split(LONG["a"].encode()),
    "offsets": lambda enc: enc.encode_with_offsets(LONG["a"]),
    "documents": documents,
    "delimited": delimited,
}
# What makes an encoding, and doors; `a*b|a` looks at all of the text that follows a pre-token.
MANY: dict[str, tuple[Callable[[], streamtok.Encoding], list[str]]] = {
    "special tokens": (with_specials, ["encode", "count", "batch", "stream", "split"]),
    "WordPiece": (
        lambda: of_pieces("WordPiece"),
        ["encode", "batch", "stream", "offsets", "documents", "delimited"],
    ),
    "Unigram": (lambda: of_pieces("Unigram"), ["encode", "batch", "stream", "offsets"]),
    "a pattern": (lambda: with_specials(pattern="a*b|a"), ["encode", "batch", "stream"]),
}
# Each makes the call, which is then timed.
LOOPS: dict[str, Callable[[], Callable[[], Any]]] = {
    **{
        f"{kind}, {door}": partial(lambda make, door: partial(DOORS[door], make()), make, door)
        for kind, (make, doors) in MANY.items()
        for door in doors
    },
    **{
        f"{call} of {kind.__name__}": partial(
            lambda call, kind: partial(getattr(CL100K, call), kind(TEXT.encode() * 4)), call, kind
        )
        for call in ("encode", "encode_to_numpy", "count")
        for kind in (bytes.decode, bytes, bytearray)
    },
    # On a busy machine, many of the timer's signals become one.
    "one endless pre-token": lambda: partial(CL100K.encode, "abcdefgh" * 4_000_000),
    "special tokens, changed text": lambda: partial(
        of_steps(Lowercase()).encode, LONG["a"], allowed_special="all"
    ),
    **{
        f"normalizers, {name}": partial(
            lambda steps: partial(of_steps(*steps).encode_to_numpy, LONG["mixed"]), steps
        )
        for name, steps in {
            "NFC": (Form("NFC"),),
            "Replace": (Replace("b ", "c"),),
            "three": (Form("NFD"), StripAccents(), Lowercase()),
        }.items()
    },
    **{
        f"stages, {name}": partial(
            lambda stage, text: partial(of_pieces("WordLevel", (stage,)).count, LONG[text]),
            stage,
            text,
        )
        for name, stage, text in [
            ("one cut", ("Split", r"[\s\S]+", "isolated"), "spaces"),
            ("letters", ("ByteLetters",), "spaces"),
            ("marks", ("MetaspaceText", "\u2581", "never"), "spaces"),
            ("a pattern", ("Split", "a*b|a", "isolated"), "a"),
        ]
    },
    "cuts": lambda: partial(cuts, LONG["spaces"]),
    "cuts from the end": lambda: partial(cuts, LONG["spaces"], from_end=True),
    "count in parts": lambda: partial(CL100K.count, LONG["spaces"]),
    "decode an array": lambda: partial(CL100K.decode, np.full(10_000_000, 1_000, np.uint32)),
    "decode a list": lambda: partial(CL100K.decode_bytes, [1_000] * 10_000_000),
    "offsets": lambda: partial(
        token_spans, np.full(10_000_000, 9, np.uint32), np.full(10, 3, np.uint16),
        np.empty((0, 3), np.int64), 0,
    ),
    "offsets in characters": lambda: partial(
        spans_in, False, np.full((5_000_000, 2), 3, np.int64), ("a\u00e9b" * 5_000_000).encode(),
    ),
    "a list of ids": lambda: partial(GPT2.encode_ordinary, " \n" * 10_000_000),
    "training, counting": lambda: partial(
        Trainer("gpt2", num_threads=1).update, LONG["spaces"], final=True
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_long_loops(ticks: list[int], name: str) -> None:
    call = LOOPS[name]()
    assert interrupted(lambda: call())  # noqa: PLW0108 - a frame that is not that of the loop
    assert CL100K.encode("hello world") == [15339, 1917]


# A handler raises before the n-th instruction of Python, for each n


DENSE = 100  # instructions of a call that are all tried, and then some, ever fewer


def some_instructions() -> Iterator[int]:
    n = 0
    while True:
        yield n
        n += 1 if n < DENSE else random.randint(1, n // 10)


def check_everywhere(
    make: Callable[[], Any], call: Callable[[Any], Any], look: Callable[[Any], Any]
) -> None:
    """Interrupt the call at each instruction: all is then as before it, or as after it.

    make: a new object, always the same. call: does something to it. look: what it is now. It may
    use the object up.
    """
    before = look(make())
    thing = make()
    call(thing)
    outcomes = [before, look(thing)]
    n_threads = threading.active_count()
    for n in some_instructions():
        thing = make()
        handler = AtInstruction(n, Stop)
        try:
            handler(partial(call, thing))
        except Exception:
            assert handler.is_done, "the call failed without a signal"
        if not handler.is_done:
            return
        files._remove_unpublished()  # as at exit
        assert look(thing) in outcomes, f"neither before nor after the call: {handler}"
        assert threading.active_count() == n_threads, f"a thread is left: {handler}"


KINDS = {
    "plain": CL100K,
    "spaces": next(
        enc
        for enc in (made("spaces", i).encoding for i in range(36))
        if enc.definition.rules.drops_first_space
    ),
    "rewriting": made("rewriting", 3).encoding,
    "template": ENCODINGS[1],
}
MIXED = "ab na\u00efve \u2581 <b>ab  x"


def stream_of(kind: str, errors: str, chunk: str = "hello w") -> streamtok.StreamEncoder:
    more = {"add_special_tokens": True} if kind == "template" else {}
    stream = KINDS[kind].stream_encoder(errors=errors, disallowed_special=(), **more)
    stream.encode(chunk)
    return stream


def followed(kind: str, errors: str, chunk: str) -> streamtok.StreamEncoder:
    stream = KINDS[kind].stream_encoder(errors=errors, disallowed_special=())
    if chunk:
        stream.encode_with_offsets(chunk)
    return stream


def of_stream(s: streamtok.StreamEncoder) -> Any:
    seen = s._reserve(), repr(s._trace), s.bytes_in, s.tokens_out, s.pending
    return *seen, s.encode("\u00e9"), s.bytes_in, s.encode("y z", True)


STREAM_CALLS: dict[str, Callable[[streamtok.StreamEncoder], Any]] = {
    "encode": lambda s: s.encode(MIXED),
    "final": lambda s: s.encode(MIXED, final=True),
    "into": lambda s: s.encode_into(MIXED, np.zeros(500, np.uint32)),
    "reset": lambda s: s.reset(),
    "copy": lambda s: s.copy(),
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("call", [*STREAM_CALLS, "setstate"])
def test_streams(kind: str, errors: str, call: str) -> None:
    state = stream_of(kind, errors, "zz yy").getstate()
    act = STREAM_CALLS.get(call, lambda s: s.setstate(state))
    check_everywhere(partial(stream_of, kind, errors), act, of_stream)


@pytest.mark.parametrize("kind", ["plain", "spaces", "rewriting"])
@pytest.mark.parametrize("call", ["first", "offsets", "encode", "setstate"])
def test_streams_with_offsets(kind: str, call: str) -> None:
    state = stream_of(kind, "strict", "zz yy").getstate()
    make = partial(followed, kind, "strict", "" if call == "first" else "hello w")
    acts: dict[str, Callable[[streamtok.StreamEncoder], Any]] = {
        "encode": lambda s: s.encode(MIXED),
        "setstate": lambda s: s.setstate(state),
    }
    act = acts.get(call, lambda s: s.encode_with_offsets(MIXED))
    check_everywhere(make, act, of_stream)


BEGUN = "\u00e9".encode()[:1]
COUNTER_CALLS: dict[str, Callable[[streamtok.Counter], Any]] = {
    "str": lambda c: c.update(MIXED),
    "bytes": lambda c: c.update(MIXED.encode() + BEGUN),
    "estimate": lambda c: c.estimate,
    "finish": lambda c: c.finish(),
    "reset": lambda c: c.reset(),
    "copy": lambda c: c.copy(),
}


@pytest.mark.parametrize("kind", ["plain", "spaces", "rewriting"])
@pytest.mark.parametrize("begun", [b"", BEGUN], ids=["whole", "begun"])
@pytest.mark.parametrize("call", COUNTER_CALLS)
def test_counters(kind: str, begun: bytes, call: str) -> None:
    def make() -> streamtok.Counter:
        counter = KINDS[kind].counter()
        counter.update("h\u00e9llo w".encode() + begun)
        return counter

    def act(counter: streamtok.Counter) -> None:
        if begun and call == "bytes":
            counter.update("\u00e9".encode()[1:] + MIXED.encode() + BEGUN)
        elif not (begun and call in ("str", "finish")):  # these raise
            COUNTER_CALLS[call](counter)

    def look(c: streamtok.Counter) -> Any:
        seen = c._now[0].getstate(), c.total, c.pending, c.estimate
        more = "\u00e9".encode()[1:] if c.pending and begun and call != "reset" else b""
        return *seen, c.copy().estimate, more and c.total

    check_everywhere(make, act, look)


@pytest.mark.parametrize("stop", [(), ["END", "worlds"]], ids=["plain", "stop"])
@pytest.mark.parametrize("call", ["decode", "hold", "final", "flush", "reset", "copy", "setstate"])
def test_decoders(stop: Any, call: str) -> None:
    def make() -> Any:
        decoder = CL100K.stream_decoder(stop=stop)
        decoder.decode(CL100K.encode("hello wor"))
        return decoder

    state = CL100K.stream_decoder().getstate()
    acts: dict[str, Callable[[Any], Any]] = {
        "decode": lambda d: d.decode(CL100K.encode("ld abc END zz")),
        "hold": lambda d: d.decode(CL100K.encode("ld abc EN")),
        "final": lambda d: d.decode(CL100K.encode("ld abc END zz"), True),
        "flush": lambda d: d.flush(),
        "reset": lambda d: d.reset(),
        "copy": lambda d: d.copy(),
        "setstate": lambda d: d.setstate(state),
    }
    check_everywhere(
        make, acts[call], lambda d: (d._reached(), d.pending, d.tokens_in, d.bytes_out)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", ["replace", "append", "stable"])
def test_documents(kind: str, call: str) -> None:
    enc = KINDS[kind]
    acts: dict[str, Callable[[Any], Any]] = {
        "replace": lambda d: d.replace(1500, 2600, "abc \u00e9"),
        "append": lambda d: d.append("abc \u00e9"),
        "stable": lambda d: d.stable,
    }

    def look(d: Any) -> Any:
        assert d.ids == enc.encode(d.text)
        return d.text, len(d), d.n_characters, d.replace(0, 5, "x"), d.stable

    check_everywhere(lambda: enc.document("hello world, this is " * 130), acts[call], look)


TRAINER_CALLS: dict[str, Callable[[Trainer], Any]] = {
    "update": lambda t: t.update(b"\x98\x80w x \xc3" if t.errors == "replace" else "w x \u00e9"),
    "final": lambda t: t.update(b"w x", True),
    "end": lambda t: t.end_document(),
    "merge": lambda t: t.merge(ended(t.errors)),
    "train": lambda t: t.train(258),
    "counts": lambda t: t.piece_counts(),
    "pickle": pickle.dumps,
}


def ended(errors: str) -> Trainer:
    other = Trainer("gpt2", errors=errors, num_threads=1)
    other.update("lower q", final=True)
    return other


def of_trainer(t: Trainer) -> Any:
    sizes = t.bytes_in, t.pending
    return *sizes, t.piece_counts(), pickle.loads(pickle.dumps(t)).pending


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
@pytest.mark.parametrize("call", TRAINER_CALLS)
def test_trainers(errors: str, call: str) -> None:
    def make() -> Trainer:
        trainer = Trainer("gpt2", errors=errors, num_threads=1)
        trainer.update("low low lo")
        if errors == "replace":
            trainer.update(b"\xf0\x9f")
        return trainer

    def look(t: Trainer) -> Any:
        # Training ends the text first, and may then be stopped.
        if call == "train":
            t.end_document()
        return of_trainer(t)

    check_everywhere(make, TRAINER_CALLS[call], look)


def test_saved_counts(tmp_path: Path) -> None:
    def look(trainer: Trainer) -> Any:
        names = os.listdir(tmp_path)
        counts = Trainer.load_counts(tmp_path / "counts").piece_counts() if names else None
        for name in names:
            (tmp_path / name).unlink()
        return names, counts, of_trainer(trainer)

    check_everywhere(lambda: ended("strict"), lambda t: t.save_counts(tmp_path / "counts"), look)
