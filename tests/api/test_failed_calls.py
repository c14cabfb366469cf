"""What a failed call leaves, what a saved state holds: each of these once went wrong."""

from __future__ import annotations

import numpy as np
import pytest

from streamtok import StateError

from ..conftest import encoding_of


@pytest.mark.parametrize(
    "changes",
    [
        {0: 1 << 40},  # bytes held
        {0: 1},
        {1: 77},  # searched for special tokens
        {2: 0},  # when to look for stable tokens
        {7: 77},  # the scan: start, accept, position, state
        {8: 77},
        {9: 1 << 60},
        {10: 0},
        {10: 1 << 20},
        {12: 3, 17: 1},  # the other hypothesis
        {15: 1 << 20, 17: 1},
    ],
)
def test_a_state_with_wrong_positions_is_refused(changes):
    from streamtok._core.encode import STATE

    stream = encoding_of("cl100k_base").stream_encoder()
    stream.encode("hello wor")
    good = stream._tail.getstate()
    fields = list(STATE.unpack_from(good))
    for index, value in changes.items():
        fields[index] = value
    with pytest.raises(StateError, match="damaged"):
        stream._tail.setstate(STATE.pack(*fields) + good[STATE.size :])
    assert stream._tail.getstate() == good


@pytest.mark.parametrize("held", [b"\xff\xfe r", b"or\xe4", b"\xed\xa0\x80x", b"\x80\x80\x80\x80"])
@pytest.mark.parametrize("offset", [0, 5])
@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
def test_a_state_that_holds_no_text_is_refused(held, offset, errors):
    """Where text is UTF-8. A tail may begin inside a character: its first bytes may be in ids."""
    from streamtok._core.encode import STATE

    def tail():
        return encoding_of("cl100k_base").stream_encoder(errors=errors)._tail

    fields = list(STATE.unpack_from(tail().getstate()))
    fields[0] = fields[1] = len(held)
    fields[4], fields[5] = offset, offset + len(held)
    fields[8] = fields[9] = 0
    state = STATE.pack(*fields)
    if errors == "surrogateescape":
        tail().setstate(state + held)
        return
    with pytest.raises(StateError, match="the bytes that it holds are not UTF-8"):
        tail().setstate(state + held)
    begun = "日本".encode()[1:]
    for good in [b"word", begun] if offset else [b"word"]:
        fields[0] = fields[1] = len(good)
        fields[5] = offset + len(good)
        tail().setstate(STATE.pack(*fields) + good)


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
        ([0] * 100, TypeError, "bytes-like"),
    ],
)
def test_a_buffer_that_does_not_fit_changes_nothing(out, error, message):
    stream = encoding_of("cl100k_base").stream_encoder()
    stream.encode("the")
    state = stream.getstate()
    with pytest.raises(error, match=message):
        stream.encode_into(" 中文字符 hello 😀 world again", out)
    assert stream.getstate() == state


# Work per byte is bounded, whatever the text and the vocabulary. These took minutes, or hours.
