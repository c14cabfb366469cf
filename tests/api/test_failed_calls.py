"""What a failed call leaves, what a saved state holds: each of these once went wrong."""

from __future__ import annotations

import numpy as np
import pytest

from streamtok import StateError

from ..conftest import encoding_of
from ..saved_streams import changed


@pytest.mark.parametrize(
    "changes",
    [
        {"size": 1 << 40},
        {"size": 1},
        {"searched": 77},
        {"partial_size": 4},
        {"partial_size": 1},
        {"retry_at": 0},
        {"scan.start": 77},
        {"scan.accept": 77},
        {"scan.position": 1 << 60},
        {"scan.state": 0},
        {"scan.state": 1 << 20},
        {"scan.committed": -1},
        {"scan.score": float("nan")},
        {"other.start": 3, "has_other": 1},
        {"other.state": 1 << 20, "has_other": 1},
        {"has_other": 2},
    ],
)
def test_a_state_with_wrong_positions_is_refused(changes):
    stream = encoding_of("cl100k_base").stream_encoder()
    stream.encode("hello wor")
    good = stream._tail.getstate()
    with pytest.raises(StateError, match="damaged"):
        stream._tail.setstate(changed(good, changes))
    assert stream._tail.getstate() == good


@pytest.mark.parametrize("held", [b"\xff\xfe r", b"or\xe4", b"\xed\xa0\x80x", b"\x80\x80\x80\x80"])
@pytest.mark.parametrize("offset", [0, 5])
@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
def test_a_state_that_holds_no_text_is_refused(held, offset, errors):
    """Where text is UTF-8. A tail may begin inside a character: its first bytes may be in ids."""

    def tail():
        return encoding_of("cl100k_base").stream_encoder(errors=errors)._tail

    def holding(held):
        sizes = {"size": len(held), "searched": len(held)}
        places = {"offset": offset, "bytes_in": offset + len(held)}
        return changed(tail().getstate(), sizes | places) + held

    if errors == "surrogateescape":
        tail().setstate(holding(held))
        return
    with pytest.raises(StateError, match="the bytes that it holds are not UTF-8"):
        tail().setstate(holding(held))
    begun = "日本".encode()[1:]
    for good in [b"word", begun] if offset else [b"word"]:
        tail().setstate(holding(good))


GONE = memoryview(bytearray(400)).cast("I")
GONE.release()


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (b"\0" * 400, ValueError, "out must be writable"),
        (np.zeros(100, np.uint32)[::2], ValueError, "one contiguous row"),
        (np.zeros((10, 10), np.uint32), ValueError, "one contiguous row"),
        (np.zeros(100, np.int64), ValueError, "uint16 or uint32"),
        (np.zeros(100, np.float32), ValueError, "uint16 or uint32"),
        (np.zeros(100, ">u4"), ValueError, "uint16 or uint32"),
        (bytearray(400), ValueError, "uint16 or uint32"),
        (np.zeros(1, np.uint32), ValueError, "room for 1 ids, 7 are ready"),
        (np.zeros(9, np.uint16), OverflowError, "does not fit into uint16"),
        (GONE, ValueError, "out must be writable"),
        (np.zeros((), np.uint32), ValueError, "one contiguous row"),
        *((out, TypeError, "bytes-like") for out in ([0] * 100, None, 5, "text")),
    ],
)
def test_a_buffer_that_does_not_fit_changes_nothing(out, error, message):
    stream = encoding_of("cl100k_base").stream_encoder()
    stream.encode("the")
    state = stream.getstate()
    with pytest.raises(error, match=message):
        stream.encode_into(" 中文字符 hello 😀 world again", out)
    assert stream.getstate() == state
