"""Several threads produce the same ids, ends, counts and errors as one."""

from __future__ import annotations

import os
import select
import threading
import time

import numpy as np
import pytest

import streamtok
from streamtok.cli.main import main
from streamtok.jobs import documents
from streamtok.jobs.documents import DocumentEncoder
from streamtok.jobs.ordered_pool import OrderedPool
from streamtok.jobs.sources.records import Positions

CL100K = streamtok.get_encoding("cl100k_base")
NAMED = Positions("this one {}".format)
THREADS = [1, 2, 4]


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "TASK", 300)
    monkeypatch.setattr(documents, "SPREAD_FROM", 64)


def add_all(encoder: DocumentEncoder, parts: list[bytes]) -> None:
    """One document; what could be encoded before an error is taken before it is raised."""
    for part in [*parts, b""]:
        try:
            encoder.add([(part, part == b"")], NAMED)
        except ValueError:
            take_all(encoder)
            raise
        while encoder.is_ahead:
            encoder.take()
    take_all(encoder)


def take_all(encoder: DocumentEncoder) -> None:
    while encoder.n_tasks:
        encoder.take()


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("group", [100, 1_000, 100_000])
def test_errors_say_where_whoever_meets_them(threads, group):
    text = b"word and " * 1_000
    for bad, place, error, match in (
        (b"\xff", 4_512, UnicodeDecodeError, "invalid start byte"),
        (b"<|endoftext|>", 7_001, ValueError, "at byte 7001"),
    ):
        data = text[:place] + bad + text[place:]
        stream = CL100K.stream_encoder()
        encoder = DocumentEncoder(stream, num_threads=threads)
        encoder.encode([(b"fine", True), (b"fine", True)])
        with pytest.raises(error, match=match) as caught:
            add_all(encoder, [data[at : at + group] for at in range(0, len(data), group)])
        if isinstance(caught.value, UnicodeDecodeError):
            assert caught.value.start == place
        assert encoder.failed_position == "this one 1"
        assert encoder.documents == 2
        encoder.release()


@pytest.mark.parametrize("threads", THREADS)
def test_an_odd_document_among_others(threads):
    enc = CL100K
    encoder = DocumentEncoder(enc.stream_encoder(), append=9, num_threads=threads)
    fine = [f"text {i} \U0001f389" for i in range(13)]
    fine[6] = "a lone \ud800 surrogate"
    ids, ends = encoder.encode([(text, True) for text in fine])
    expected = [[*enc.encode(text), 9] for text in fine]
    assert ids.tolist() == [i for row in expected for i in row]
    assert list(ends) == np.cumsum([len(row) for row in expected]).tolist()
    encoder.add([(text, True) for text in [*fine, "<|endoftext|>", "never"]], NAMED)
    with pytest.raises(ValueError, match="endoftext"):
        take_all(encoder)
    assert encoder.documents == 26
    assert encoder.failed_position == "this one 14"
    encoder.release()


def test_ids_leave_before_a_pipe_is_waited_for(tmp_path):
    """Two lines into a FIFO, far apart: the ids of the first come out before the second goes in."""
    fifo, out = tmp_path / "in", tmp_path / "out"
    os.mkfifo(fifo)
    os.mkfifo(out)
    args = ["encode", str(fifo), "--lines", "-o", str(out), "--format", "text", "--threads", "3"]
    thread = threading.Thread(target=main, args=([*args, "-q"],), daemon=True)
    thread.start()
    with out.open("rb", buffering=0) as ids, fifo.open("wb", buffering=0) as feed:
        feed.write(b"hello world\n")
        first = b""
        while first.count(b"\n") < 2:
            assert select.select([ids], [], [], 60)[0], "nothing comes out"
            first += ids.read(100)
        feed.write(b"hello\n")
        feed.close()
        rest = ids.read(100)
    thread.join()
    expected = CL100K.encode("hello world"), CL100K.encode("hello")
    assert [int(x) for x in (first + rest).split()] == [*expected[0], *expected[1]]


class TestSpread:
    @pytest.mark.parametrize("threads", [1, 2, 5])
    def test_results_come_in_order(self, threads):
        spread = OrderedPool(threads)
        seen = set()

        def task(i):
            def work():
                seen.add(threading.get_ident())
                time.sleep(0.002 * (i % 3))
                return i

            return work

        found = []
        for i in range(60):
            spread.add(task(i), None) if i % 7 else spread.add_done(i, None)
            while len(spread) > 10:
                found.append(spread.take())
        while len(spread):
            found.append(spread.take())
        assert found == list(range(60))
        assert (len(seen) > 1) == (threads > 1)
        spread.close()

    def test_an_error_comes_in_its_turn(self):
        spread = OrderedPool(3)
        spread.add(lambda: 1, None)
        spread.add(lambda: 1 // 0, None)
        spread.add(lambda: 3, None)
        assert spread.take() == 1
        with pytest.raises(ZeroDivisionError):
            spread.take()
        assert spread.take() == 3
        spread.close()

    def test_it_ends_its_threads_and_goes_on(self):
        spread = OrderedPool(4)
        for _ in range(2):
            for i in range(20):
                spread.add(lambda i=i: i, None)
            assert spread.take() == 0
            assert len(spread._helpers) == 3
            spread.close()
            assert not spread._helpers
            assert len(spread) == 0
        with pytest.raises(ValueError, match="positive"):
            OrderedPool(0)
