"""Reading files of ids: at every cut, and with one clear error for damaged ones."""

from __future__ import annotations

import io
import json
import random
import warnings

import numpy as np
import pytest

import streamtok
from streamtok.jobs.sinks import id_reader
from streamtok.jobs.sinks.format_table import read_ids

from ..cli.test_cli import fails, run
from ..conftest import chunked

IDS = [0, 7, 12, 100_276, 65_536, 3] * 20


def read(data: bytes, chosen: str, size: int = 1 << 16) -> list[int]:
    return [int(one) for ids in read_ids(iter(chunked(data, size)), chosen) for one in ids]


def npy(header: str, version: int = 1) -> bytes:
    text = header.encode("latin-1").ljust(117) + b"\n"
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + b"\1\0\0\0" * 2


GOOD = "{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }"


def test_npy_of_numpy_and_of_others():
    for dtype in ("<u2", "<u4", ">u4", "<i8", "|u1", ">i2"):
        file = io.BytesIO()
        np.save(file, np.array([1, 2, 120], dtype))
        assert read(file.getvalue(), "npy", 5) == [1, 2, 120]
    for header in (GOOD, GOOD.replace(" ", ""), GOOD.replace("'", '"')):
        for version in (1, 2):
            assert read(npy(header, version), "npy") == [1, 1]


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<u4', 'fortran_order':(False, 'shape': (2,), }",
        "{'descr': '<u4', 'fortran_order': False, 'shape': (2L,), }",
        "{'descr': '<u4', 'fortran_order': False, 'shape': (-2,), }",
        "{'descr': '<u4', 'shape': (2,), }",
        "{'descr': '<u3', 'fortran_order': False, 'shape': (2,), }",
        "{[]: 1}", "((((((((", '"""', "\\", "\x00", "", "1e999", "-" * 110, "[" * 110,
        "__import__('os').getcwd()",
    ],
)  # fmt: skip
def test_a_damaged_npy_header_is_a_value_error(header):
    with pytest.raises(ValueError, match=r"the npy header says|its header is damaged"):
        read(npy(header), "npy")


@pytest.mark.parametrize(
    ("descr", "shape"),
    [
        ("'<f4'", "(2,)"),
        ("'<u4'", "(2, 1)"),
        ("'<u4'", "()"),
        ("'|O'", "(2,)"),
        ("[('a', '<u4')]", "(2,)"),
        ("'<u4,<u4'", "(2,)"),
        ("'<M8[ns]'", "(2,)"),
    ],
)
def test_npy_that_is_no_row_of_ids(descr, shape):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    with pytest.raises(ValueError, match="one-dimensional array of integers"):
        read(npy(header), "npy")


def test_every_damaged_byte_of_an_npy_header():
    """Any change gives ids or a ValueError, without a warning."""
    rng = random.Random(26)
    good = npy(GOOD)
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3000):
            data = bytearray(good)
            for _ in range(rng.choice([1, 1, 2, 5])):
                data[rng.randrange(70)] = rng.choice([rng.randrange(256), *b"(){}[]',:\\\"#"])
            try:
                read(bytes(data), "npy")
            except ValueError:
                refused += 1
    assert refused > 2000


# JSON lines


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 16])
def test_json_lines_of_ids(size):
    rows = [IDS, [], [5], [], IDS[:3]]
    expected = [one for row in rows for one in row]
    plain = "".join(json.dumps({"input_ids": row}) + "\n" for row in rows)
    dense = "\n".join(json.dumps({"input_ids": row}, separators=(",", ":")) for row in rows)
    for text in (plain, dense, f"\n \r\n{plain}\n\n", ""):
        assert read(text.encode(), "jsonl", size) == expected * bool(text)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"input_ids": [1, 2}', "line 1: JSON is malformed"),
        (b'{"input_ids": [1,]}', "line 1: JSON is malformed"),
        (b'{"input_ids": [1, "x"]}', r"line 1: Expected `int`, got `str` - at `\$.input_ids"),
        (b'{"input_ids": [1, -1]}', "line 1: Expected `int` >= 0"),
        (b'{"input_ids": [1.5]}', "line 1: Expected `int`, got `float`"),
        (b'{"input_ids": [' + b"1" * 21 + b"]}", "line 1: Expected `int`"),
        (b'{"text": "x"}', "line 1: Object missing required field `input_ids`"),
        (b'{"input_ids": [1]}\n\nhello', "line 3: JSON is malformed"),
        (b'{"input_ids": [1, 2', "line 1: Input data was truncated"),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1 << 16])
def test_damaged_json_lines_of_ids(data, message, size):
    with pytest.raises(ValueError, match=message):
        read(data, "jsonl", size)


def test_json_lines_through_a_pipe():
    text = "hello world\nnaïve 日本語\n".encode()
    for args in ([], ["--lines"]):
        rows = run("encode", "-q", "--format", "jsonl", *args, stdin=text).stdout
        expected = text.replace(b"\n", b"") if args else text
        for more in ([], ["--format", "jsonl"]):
            done = run("decode", *more, stdin=rows)
            assert (done.returncode, done.stdout) == (0, expected), done
    out = run("encode", "-q", "-e", "gpt2", "--format", "jsonl", stdin=text).stdout
    assert run("decode", "-e", "gpt2", stdin=b"\n" + out).stdout == text


def test_a_line_has_a_limit(monkeypatch):
    monkeypatch.setattr(id_reader, "_LONGEST_ROW", 1 << 20)
    with pytest.raises(ValueError, match="line 2 has more than 1 MiB"):
        read(b'{"input_ids": []}\n' + b" " * (1 << 20) + b" ", "jsonl")


# Text


def test_text_that_is_none_says_what_is_expected(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("hello world")
    error = fails("decode", str(path))
    assert error == (
        f"{path}: byte 0: expected a decimal id, found b'h'; if the input is not text, "
        "give its --format"
    )
    assert "byte 2: expected a decimal id, found b'\\xff'" in fails("decode", stdin=b"1 \xff")
    assert streamtok.get_encoding("gpt2").name == "gpt2"
