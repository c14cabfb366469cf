"""What no caller should pass: the core raises, in time, and never ends the process."""

from __future__ import annotations

import contextlib
import faulthandler
import inspect
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import streamtok
from streamtok._core import encode, train
from streamtok.normalizers import Form, Normalizer, Replace
from streamtok.normalizers.elements import Elements

WRONG: list[Any] = [
    None, -1, 0, 1 << 64, 1.5, float("nan"), True, "", "ab", b"", b"ab", (), [],
    [None], {}, {"a": b""}, frozenset(), object(), np.zeros(3, np.uint32), np.zeros((2, 2)),
    bytearray(4),
]  # fmt: skip
CALLS = [  # each ended the process once, or would with another layout of memory
    "none.encode('a b', r, 'strict', encode.LIST)",
    "encode.Tail(none, m, 'strict')",
    "encode.Workspace(None)",
    "encode.WorkList(e, r, ['a b' * 99], 'strict', encode.LIST, 2, (0, 1), cuts)",
    "encode.WorkList(e, r, ['a b' * 99] * 2, 'strict', encode.LIST, 2, (16, 1), cuts)",
    "encode.WorkList(none, r, ['a'], 'strict', encode.LIST, 2, (9, 9))",
    "encode.WorkList(e, r, None, 'strict', encode.LIST, 2, (9, 9))",
    "encode.WorkList(e, r, [], 'strict', encode.ID_SPANS, 2, (9, 9))",
    "encode.WorkList(e, r, ['a'], 'strict', encode.LIST, 2, (9, 9)).lists()",
    "encode.WorkList(e, r, ['a'], 'strict', encode.ARRAY, 2, (9, 9)).lists()",
    "b.work() or b.lists() and b.lists()",
    "b.work() or b.work() or b.flat()",
    "encode.gather_tokens(None, None, None)",
    "m.split(None)",
    "table.find(None)",
    "t.setstate(None)",
    "t.encode('a', True, None, 9)",
]
TRIES = 40  # calls of each function with each number of arguments


def made() -> list[Any]:
    """An object of each class of the core that there is a way to."""
    enc = streamtok.get_encoding("gpt2")
    stream, trainer = enc.stream_encoder(), streamtok.Trainer("gpt2")
    engine: Any = enc.definition.engine
    table, encoder = enc.definition.encoder.table, enc.definition.encoder
    cuts: Any = enc.definition.texts.cuts
    ordinary = enc.definition.specials.ordinary
    plain = enc.definition.engine.rules(ordinary)
    return [
        enc, stream, enc.stream_decoder(), stream._tail, table, encoder, encoder.scanner,
        ordinary, enc.definition.decoder, cuts, trainer._counting.counter,
        trainer._counting.counter.table,
        encode.Workspace(table), engine,
        encode.WorkList(encoder, plain, ["a"], "strict", encode.ARRAY, 1, (9, 9)),
        encode.WorkList(
            encoder, plain, ["a b " * 99], "strict", encode.LIST, 2, (16, 1), cuts
        ),
        *changing_parts(),
        enc.counter(), trainer,
    ]  # fmt: skip


def changing_parts() -> list[Any]:
    """What changes text before it is encoded."""
    encoder = streamtok.get_encoding("gpt2").definition.encoder
    table = encode.ElementTable(Elements(Normalizer([Form("NFC"), Replace("ab", "b")])))
    matcher = encode.SpecialMatcher([("<a>", 7)], {"<a>"}, ())
    rules = encode.ChangeRules(encode.TokenSet(matcher, [1], None), table)
    tail = encode.Tail(encoder, matcher, "strict", rules=rules)
    return [table, rules, tail, tail.changer]


def functions() -> Iterator[tuple[str, Callable[..., Any], int]]:
    """All that can be called, by name, and with how many arguments."""
    for module in encode, train:
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__ or name.startswith("__pyx"):
                continue
            if not callable(value) or (name.startswith("__") and name != "__init__"):
                continue
            if isinstance(value, type):
                yield f"{name}", value, 8
                yield from _methods(f"{name}.__new__", lambda value=value: value.__new__(value))
            else:
                yield name, value, len(inspect.signature(value).parameters)
    for thing in made():
        kind = type(thing).__name__
        if type(thing).__module__.startswith("streamtok._core"):
            yield from _methods(kind, lambda thing=thing: thing)


def _methods(name: str, make: Callable[[], Any]) -> Iterator[tuple[str, Callable[..., Any], int]]:
    try:
        thing = make()
    except TypeError:
        return
    for method in dir(type(thing)):
        if method.startswith("__") and method not in ("__len__", "__init__"):
            continue
        attribute = getattr(type(thing), method, None)
        if callable(attribute):
            count = 8
            with contextlib.suppress(ValueError):
                count = len(inspect.signature(attribute).parameters) - 1
            yield f"{name}.{method}", getattr(thing, method), count
        else:
            yield f"{name}.{method}", lambda thing=thing, method=method: getattr(thing, method), 0


def call_all(place: str) -> None:
    """Call each function with random arguments, right and wrong; first write which to a file."""
    faulthandler.enable()
    file = os.open(place, os.O_WRONLY | os.O_CREAT)
    rng = random.Random(1)
    done = 0
    arguments = [*WRONG, *made(), "strict", encode.LIST, 7, b"text", np.arange(9, dtype=np.uint32)]
    enc = streamtok.get_encoding("gpt2")
    ordinary, encoder = enc.definition.specials.ordinary, enc.definition.encoder
    plain = enc.definition.engine.rules(ordinary)
    names = {
        "e": encoder, "m": ordinary, "r": plain, "table": encoder.table,
        "cuts": enc.definition.texts.cuts,
        "t": enc.stream_encoder()._tail, "none": encode.Encoder(encoder.table, None),
        "b": encode.WorkList(encoder, plain, ["a"] * 9, "strict", encode.LIST, 1, (9, 9)),
        "encode": encode,
    }  # fmt: skip
    for call in CALLS:
        os.pwrite(file, call.ljust(999).encode(), 0)
        try:
            eval(call, names)
        except (TypeError, ValueError):
            continue
        raise AssertionError(f"{call} raised nothing")
    for name, function, most in functions():
        for size in range(most + 1):
            for _ in range(TRIES if size else 1):
                given = rng.choices(arguments, k=size)
                os.pwrite(file, f"{name}{given!r}"[:999].ljust(999).encode("utf-8", "replace"), 0)
                try:
                    function(*given)
                except SystemError as error:
                    raise AssertionError(f"{name}{given!r}") from error
                except Exception:
                    pass
                done += 1
    print(done)


def test_the_core_outlives_wrong_arguments(tmp_path: Path) -> None:
    place = tmp_path / "call"
    code = f"from {__name__} import call_all; call_all({str(place)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=300, check=False
    )
    last = place.read_text("utf-8", "replace").strip()
    assert done.returncode == 0, f"{last}: {done.stderr.decode()[-2000:]}"
    assert int(done.stdout) > 5000
