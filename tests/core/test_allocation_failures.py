"""Every allocation fails once: a MemoryError, nothing changed, nothing leaked.

Needs the testing build (STREAMTOK_TESTING=1), without which `conftest.py` does not collect this
file. A door makes an object, acts on it, and looks at it. The n-th allocation of the act fails, for
n = 1, 2, 3 and so on until the act succeeds without a failure; after each, the object must look as
before, and the same act must then give what it gives a twin that nothing disturbed.
"""

from __future__ import annotations

import gc
import importlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import streamtok
from streamtok import Trainer
from streamtok._core import _failing
from streamtok.engines import texts as batch
from streamtok.patterns.dfa import compile_tables
from streamtok.patterns.pattern import Pattern
from streamtok.threads import Helper
from streamtok.training import counting

from ..conftest import LLAMA3_PATTERN

CORE = Path(streamtok.__file__).parent / "_core"
for file in sorted(CORE.glob("*.so")):
    _failing.attach(importlib.import_module(f"streamtok._core.{file.name.split('.')[0]}").__file__)

RANKS = {bytes([i]): i for i in range(256)}
RANKS |= {b"th": 256, b"the": 257, b" the": 258, b"  ": 259, b"ab": 260, b"abab": 261, b"\n\n": 262}
RANKS |= {b" a": 263, "日本".encode(): 264, b"ababab": 270}
SPECIAL = {"<|end|>": 300, "<|end|>x": 301}
TEXT = "the abab  the\n\n日本語 été abababab <|en 12345 " + "ab" * 40 + "x" * 70 + "\n"
LONG = TEXT * 60 + "ab" * 9000 + " the"  # a pre-token that is longer than any window


def encoding(pattern: str = LLAMA3_PATTERN) -> streamtok.Encoding:
    return streamtok.Encoding(
        "failing", pat_str=pattern, mergeable_ranks=RANKS, special_tokens=SPECIAL
    )


class Door(NamedTuple):
    make: Callable[[], Any]
    act: Callable[[Any], Any]
    look: Callable[[Any], Any] = lambda made: None
    python: bool = True  # whether Python's allocations fail, too; not where that breaks others:
    # NumPy's ufuncs crash without memory, and a thread that cannot start is waited for forever
    goes_on: bool = False  # whether a failed act may have done a part, from where it goes on


def stream() -> streamtok.StreamEncoder:
    made = encoding().stream_encoder(allowed_special="all", errors="replace")
    made.encode("the ab" + "ab" * 3000)
    return made


def saved(feed: bytes) -> bytes:
    made = encoding().stream_encoder(allowed_special="all", errors="replace")
    made.encode(feed)
    return made.getstate()


OUT = np.zeros(40_000, np.uint32)


def into(made: streamtok.StreamEncoder) -> int:
    return made.encode_into(LONG, OUT)


def restored(made: streamtok.StreamEncoder) -> None:
    made.setstate(STATE)


def copied(made: streamtok.StreamEncoder) -> bytes:
    return made.copy().getstate()


def decoder() -> streamtok.StreamDecoder:
    made = encoding().stream_decoder()
    made.decode([0x41, 0x42, 0xE6])
    return made


def byte_decoder() -> streamtok.StreamDecoder:
    made = encoding().stream_decoder()
    made.decode_bytes([0x41, 0xE6])
    return made


def trainer() -> Trainer:
    made = Trainer("gpt2", num_threads=1)
    made.update("the the abab 日本 ")
    return made


def ended() -> Trainer:
    made = trainer()
    made.end_document()
    return made


def update(
    data: bytes | str, final: bool = False, begin: int | None = None
) -> Callable[[Trainer], None]:
    """Update from where `bytes_in` says that counting is. begin: where it was before `data`."""
    if begin is None:
        begin = trainer().bytes_in
    rest = data.encode() if isinstance(data, str) else data

    def act(made: Trainer) -> None:
        done = made.bytes_in - begin
        made.update(rest[done:] if done else data, final)

    return act


def other_trainer() -> Trainer:
    made = Trainer("gpt2", num_threads=1)
    made.update_documents([LONG, *(f"word{i}" for i in range(600))])
    return made


def counts(made: Trainer) -> Any:
    return made.pending, made.bytes_in, sorted(made.piece_counts().items())


MANY = {"num_threads": 3}
WIDE = "".join(f"wörter{i} 日本 " for i in range(6000))  # a str of which the UTF-8 is made first
WORDS = "".join(f"word{i} " for i in range(900))
STATE = saved(b"the <|e")
IDS = encoding().encode(LONG, disallowed_special=())
OTHER = other_trainer()


def call(method: str, *args: Any, **settings: Any) -> Callable[[Any], Any]:
    def act(made: Any) -> Any:
        return getattr(made, method)(*args, **settings)

    return act


def plain(given: Any) -> Any:
    """What can be compared; made of what a door gives when allocations do not fail any more."""
    return given.tolist() if isinstance(given, np.ndarray) else given


FREE: dict[str, Any] = {"disallowed_special": ()}
DOORS = {
    "Encoding": Door(lambda: None, lambda _: encoding().encode("the ab", **FREE), python=False),
    "Pattern": Door(
        lambda: None,
        lambda _: Pattern("", compile_tables(r"a+b?|[^a]")).findall("aab"),
        python=False,
    ),
    "encode": Door(encoding, call("encode", LONG, **FREE)),
    "encode bytes": Door(
        encoding, call("encode", LONG.encode() + b"\xff", errors="replace", **FREE)
    ),
    "encode short": Door(encoding, call("encode", "the ab", **FREE)),
    "encode specials": Door(encoding, call("encode", "a<|end|>xb <|end|>", allowed_special="all")),
    "encode regex": Door(lambda: encoding(r"(?=.*b)a|[^a]|a"), call("encode", TEXT, **FREE)),
    "encode_to_numpy": Door(encoding, call("encode_to_numpy", LONG, **FREE)),
    "count": Door(encoding, call("count", LONG, **FREE)),
    "count short": Door(encoding, call("count", TEXT, **FREE)),
    "encode_batch": Door(encoding, call("encode_batch", [TEXT] * 3, num_threads=1, **FREE)),
    "encode_batch, threads": Door(
        encoding, call("encode_batch", [TEXT, LONG] * 9, num_threads=3, **FREE), python=False
    ),
    "large text, threads": Door(
        encoding, call("encode_to_numpy", LONG, **MANY, **FREE), python=False
    ),
    "large count, threads": Door(encoding, call("count", LONG, **MANY, **FREE), python=False),
    "decode": Door(encoding, call("decode", IDS)),
    "decode array": Door(encoding, call("decode_bytes", np.array(IDS))),
    "decode_with_offsets": Door(encoding, call("decode_with_offsets", IDS[:50])),
    "stream encode": Door(stream, call("encode", LONG), call("getstate")),
    "stream encode bytes": Door(stream, call("encode", LONG.encode() + b"\xe6"), call("getstate")),
    "stream encode_to_numpy": Door(stream, call("encode_to_numpy", LONG), call("getstate")),
    "stream encode_into": Door(stream, into, call("getstate")),
    "stream flush": Door(stream, call("flush"), call("getstate")),
    "stream copy": Door(stream, copied, call("getstate")),
    "stream getstate": Door(stream, call("getstate"), call("getstate")),
    "stream setstate": Door(stream, restored, call("getstate")),
    "stream pickle": Door(stream, lambda s: pickle.loads(pickle.dumps(s)).getstate()),
    "stream reset": Door(stream, call("reset"), call("getstate")),
    "decoder": Door(decoder, call("decode", [0x97, *IDS[:400], 0xE6]), call("getstate")),
    "decoder bytes": Door(byte_decoder, call("decode_bytes", IDS), call("getstate")),
    "decoder flush": Door(decoder, call("flush"), call("getstate")),
    "decoder copy": Door(decoder, lambda d: d.copy().getstate(), call("getstate")),
    "Trainer.update": Door(trainer, update(WORDS), counts, goes_on=True),
    "Trainer.update bytes": Door(trainer, update(LONG.encode()), counts, goes_on=True),
    "Trainer.update wide": Door(trainer, update(WIDE), counts, goes_on=True, python=False),
    "Trainer.update wide, threads": Door(
        lambda: Trainer("gpt2", num_threads=3),
        update(WIDE, begin=0),
        counts,
        goes_on=True,
        python=False,
    ),
    "Trainer.update_documents": Door(
        lambda: Trainer("gpt2", num_threads=1),
        call("update_documents", [TEXT, WIDE[:5000], TEXT.encode(), "\U0001f600"]),
        counts,
        python=False,
    ),
    "Trainer.update final": Door(trainer, update(WORDS, final=True), counts, goes_on=True),
    "Trainer.update, threads": Door(
        lambda: Trainer("gpt2", num_threads=3),
        call("update_documents", [LONG]),
        counts,
        python=False,
    ),
    "Trainer.merge": Door(ended, lambda t: t.merge(OTHER), counts),
    "Trainer.merges": Door(other_trainer, call("merges", 300), counts, python=False),
    "Trainer.train": Door(
        other_trainer, lambda t: t.train(300).encode("the word1"), counts, python=False
    ),
    "Trainer pickle": Door(
        other_trainer, lambda t: counts(pickle.loads(pickle.dumps(t))), python=False
    ),
}


@pytest.fixture(autouse=True)
def many_cores_and_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "usable_cores", lambda: 4)
    monkeypatch.setattr(batch, "LARGE", 500)
    start = Helper.start

    def start_and_wait(helper: Helper) -> bool:
        """Each call has all its threads, so the workspaces that are kept are as many each time."""
        if not start(helper):
            return False
        with helper._begun:
            return True

    monkeypatch.setattr(Helper, "start", start_and_wait)
    monkeypatch.setattr(batch, "PART", 100)
    monkeypatch.setattr(batch, "PER_THREAD", 50)
    monkeypatch.setattr(counting, "LARGE", 50_000)  # that of WIDE, not of LONG


@pytest.mark.parametrize("keeps_failing", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("name", DOORS)
def test_core(name: str, keeps_failing: bool) -> None:
    door = DOORS[name]
    undisturbed(door)
    gc.collect()
    live = _failing.live_blocks()
    expected = undisturbed(door)
    for n in range(1, 500):
        if not fails_cleanly(door, _failing.fail_core, n, keeps_failing, expected):
            break
    else:
        pytest.fail("the call has no end of allocations")
    gc.collect()
    assert _failing.live_blocks() == live, "blocks were leaked"


def test_longer_text_needs_no_other_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """The UTF-8 of a str that is not ASCII uses the whole of its block, which is huge pages."""
    monkeypatch.setattr(batch, "LARGE", 1 << 30)  # in parts, a longer text has more runs, too
    enc = encoding()
    asked = []
    for times in (120_000, 120_000, 130_000):  # 1.4 to 1.6 MB, in 2 MiB
        _failing.fail_core(0)  # none fails
        enc.count("日本語 " * times)
        asked.append(_failing.allocations())
    assert asked[2] == asked[1]


@pytest.mark.parametrize("name", [name for name, door in DOORS.items() if door.python])
def test_python(name: str) -> None:
    """Leaks are not looked for: CPython itself loses the arguments of a call without a frame."""
    door = DOORS[name]
    expected = undisturbed(door)
    n = 1
    while fails_cleanly(door, _failing.fail_python, n, False, expected, Exception):
        n += 1 + n // 64  # all of the first 64, and then fewer and fewer of the thousands


def undisturbed(door: Door) -> tuple[Any, Any, Any]:
    """What a look gives before the act, what the act gives, and what a look gives after it."""
    made = door.make()
    return door.look(made), plain(door.act(made)), door.look(made)


def fails_cleanly(
    door: Door,
    fail: Callable[[int, bool], None],
    n: int,
    keeps_failing: bool,
    expected: tuple[Any, Any, Any],
    error: type[Exception] = MemoryError,  # of others' code, too: what pickle or NumPy make of it
) -> bool:
    """Whether an allocation did fail; the next ones may be tried then."""
    before, given, after = expected
    made = door.make()
    refused = False
    gc.disable()  # a collection would allocate, at a place that differs each time
    fail(n, keeps_failing)
    try:
        found = door.act(made)
    except error:
        refused = True
    finally:
        failed = _failing.calm()
        gc.enable()
    if refused:
        assert failed, "an error without a failed allocation"
        if not door.goes_on:
            assert door.look(made) == before, f"allocation {n} failed, and the object changed"
        found = door.act(made)
    assert plain(found) == given, f"allocation {n} failed: another result"
    assert door.look(made) == after
    return bool(failed)
