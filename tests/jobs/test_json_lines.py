"""JSON lines that are broken, too long or not UTF-8 are rejected, skipped or repaired."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from streamtok.errors import DocumentError
from streamtok.jobs.sources.json_lines import JsonLines
from streamtok.jobs.sources.splitters import Documents, Part

from ..conftest import chunked


def texts_in(parts: list[Part]) -> list[str | bytes]:
    found: list[str | bytes] = []
    for part in parts:
        if isinstance(part, Documents):
            found += [text.decode() for text in part.texts()]
        else:
            found.append(part[0])
    return found


def read(data: bytes, size: int, **more: Any) -> tuple[list[str | bytes], JsonLines]:
    splitter = JsonLines("t", "rows", **more)
    parts = [texts_in(splitter.split(block)) for block in chunked(data, size)]
    parts.append(texts_in(splitter.finish()))
    assert splitter.consumed == len(data)
    return list(itertools.chain.from_iterable(parts)), splitter


SIZES = [1, 3, 50, 1000, 1 << 16]


# Lines that are too long


@pytest.mark.parametrize("size", SIZES)
def test_a_line_is_too_long_however_it_comes(size):
    """Also where bad lines are skipped. A line of the largest size is not."""
    row = json.dumps({"t": "x" * 80}).encode()
    most = len(row)
    longer = json.dumps({"t": "y" * 81}).encode()
    much = json.dumps({"t": "z" * 5000}).encode()
    skipped = []
    for lines in ([row, longer, row], [longer], [much, longer, row], [row, much], [b"", longer]):
        for end in (b"\n", b""):
            data = b"\n".join(lines) + end
            number = next(i for i, line in enumerate(lines, 1) if len(line) > most)
            message = f"^rows line {number}: more than {most} bytes; a larger --max-pending allows"
            with pytest.raises(DocumentError, match=message):
                read(data, size, max_line=most, on_bad=skipped.append)
    assert skipped == []
    assert read(row + b"\n" + row, size, max_line=most)[0] == ["x" * 80] * 2


# Bytes that are not UTF-8


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bad", [b"\xff", b"\xe4\xb8", b"a\x80b", b"\xed\xa0\x80", b"\xf0\x9f"])
def test_errors_apply_to_json_lines(size, bad):
    """The text is what the field of the decoded line holds."""
    data = b'{"t": "one"}\n{"t": "a ' + bad + b' b", "u": 1}\n{"t": "two"}\n'
    with pytest.raises(DocumentError, match=r"line 2: not UTF-8: byte \d+ .*; --errors replace"):
        read(data, size)
    skipped = []
    found, _ = read(data, size, on_bad=skipped.append)
    assert (found, [one.position for one in skipped]) == (["one", "two"], [{"offset": 13}])
    found, _ = read(data, size, errors="replace", on_bad=skipped.append)
    assert found == ["one", f"a {bad.decode('utf-8', 'replace')} b", "two"]
    assert len(skipped) == 1
    found, _ = read(data, size, errors="surrogateescape")
    assert found == ["one", b"a " + bad + b" b", "two"]


def test_bytes_outside_of_the_text_are_no_json():
    for errors in ("replace", "surrogateescape"):
        with pytest.raises(DocumentError, match="line 1: invalid JSON"):
            read(b'\xff{"t": "one"}\n', 100, errors=errors)
        assert read(b'{"\xff": 1, "t": "one"}\n', 100, errors=errors)[0] == ["one"]
