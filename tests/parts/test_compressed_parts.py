"""Parts of plain and of compressed inputs are together what one process makes of the text."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

import streamtok
from streamtok import PlanError, Trainer, commit, plan, run_part
from streamtok.parts.counted_parts import count_in_parts

from ..frames import MAKERS, bgzf, pieces
from .test_run_part import ENC, KINDS, ids_of, texts

FORMS = ["bgzf", "zstd"]  # seekable zstd is in frames, too, and only in stores read differently
OPTIONS: dict[str, Any] = {"special": "plain", "append": 50256, "prepend": 0}


def put(path: Path, kind: str, data: bytes, size: int) -> int:
    """Write the data, in frames of `size` bytes or plain; the size for as many parts."""
    path.write_bytes(data if kind == "plain" else MAKERS[kind](pieces(data, size)))
    return size if kind == "plain" else 1


@pytest.mark.parametrize("kind", ["plain", *FORMS])
@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("size", [1, 64, 1000])
def test_a_document_in_parts(tmp_path: Path, kind: str, number: int, size: int) -> None:
    """Parts or frames of any size, which end anywhere: in a character, a word, a run of blanks."""
    text = texts()[number][: size * 20].decode("utf-8", "ignore").encode()
    path = tmp_path / "in"
    part_size = put(path, kind, text, size)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=part_size, **OPTIONS)
    assert len(made) >= len(pieces(text, size))
    assert ids_of(made) == [0, *ENC.encode(text, disallowed_special=()), 50256]


def lines(kind: str) -> bytes:
    rng = random.Random(3)
    documents = ["".join(rng.choices("ab \tcé日-x", k=rng.randrange(30))) for _ in range(16)]
    documents[9] = "-x" * 90
    if kind == "jsonl":
        return ("\n".join(json.dumps({"text": one}) for one in documents) + "\n").encode()
    return {"lines": "\n", "delimiter": "--x"}[kind].join(documents).encode()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("form", "format"),
    [
        *((form, "jsonl") for form in ("plain", *FORMS)),
        *(("plain", format) for format in ("u16", "npy", "megatron", "text", "datatrove")),
    ],
)
@pytest.mark.parametrize("size", [11, 64, 5000])
def test_documents_in_parts(tmp_path: Path, kind: str, form: str, format: str, size: int) -> None:
    data = lines(kind)
    path, plain = tmp_path / "in", tmp_path / "plain"
    part_size = put(path, form, data, size)
    plain.write_bytes(data)
    options = KINDS[kind] | {"append": 50256, "encoding": "gpt2", "format": format}
    whole = plan(plain, tmp_path / "whole", **options)
    expected = run_part(whole, 0)
    if form != "plain" and size >= 60:
        part_size = 150
    made = plan(path, tmp_path / "out", part_size=part_size, **options)
    numbers = list(range(len(made)))
    random.Random(5).shuffle(numbers)
    for number in numbers:
        run_part(made, number)
    totals = commit(made)
    assert totals.documents == expected.documents
    assert (totals.tokens, totals.bytes) == (expected.tokens, expected.bytes)
    if format in ("jsonl", "u16", "text"):
        joined = b"".join(Path(made.path(i)).read_bytes() for i in range(len(made)))
        assert joined == Path(whole.path(0)).read_bytes()


@pytest.mark.parametrize("errors", ["replace", "surrogateescape"])
@pytest.mark.parametrize("kind", ["plain", *FORMS])
def test_bytes_that_are_not_utf8(tmp_path: Path, kind: str, errors: str) -> None:
    data = random.Random(1).randbytes(900) + b"\xed\xa0x \xf0\x9f\n" * 60
    path = tmp_path / "in"
    put(path, kind, data, 31)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=97, errors=errors)
    assert ids_of(made) == ENC.encode(data, errors=errors, disallowed_special=())


@pytest.mark.parametrize("kind", ["plain", "bgzf"])
@pytest.mark.parametrize("special", ["allow", "plain"])
def test_no_cut_lies_inside_a_special_token(tmp_path: Path, special: str, kind: str) -> None:
    text = "a <|endoftext|> b<|endoftext|><|endoftext|>.\n" * 12
    path = tmp_path / "in"
    part_size = put(path, kind, text.encode(), 11)
    made = plan(
        path, tmp_path / "out", encoding="gpt2", part_size=part_size, special=special
    )  # fmt: skip
    assert len(made) > 40
    allowed = "all" if special == "allow" else ()
    assert ids_of(made) == ENC.encode(text, allowed_special=allowed, disallowed_special=())


@pytest.mark.parametrize("strip", [False, True])
def test_a_byte_order_mark(tmp_path: Path, strip: bool) -> None:
    text = "\ufeffa text\ufeff with marks\n" * 3
    path = tmp_path / "in"
    path.write_bytes(bgzf(pieces(text.encode(), 2)))
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=1, strip_bom=strip)
    assert ids_of(made) == ENC.encode(text[1:] if strip else text)


def test_several_inputs_of_several_kinds(tmp_path: Path) -> None:
    texts = [f"text of the file {i}, " * 100 for i in range(4)]
    forms = [MAKERS["zstd"], bgzf, gzip.compress, bytes]
    paths = [tmp_path / f"in{i}" for i in range(4)]
    for path, text, form in zip(paths, texts, forms, strict=True):
        is_whole = form is gzip.compress or form is bytes
        path.write_bytes(form(text.encode() if is_whole else pieces(text.encode(), 200)))  # type: ignore[operator]
    made = plan(paths, tmp_path / "out", encoding="gpt2", part_size=150, append=50256)
    counts = [sum(part.input.path == str(path) for part in made) for path in paths]
    assert counts[2] == 1
    assert min(counts[0], counts[1], counts[3]) > 2
    assert ids_of(made) == [one for text in texts for one in [*ENC.encode(text), 50256]]


def test_without_unpacking_it_is_only_bytes(tmp_path: Path) -> None:
    data = MAKERS["zstd"](pieces(b"some text, " * 100, 50))
    path = tmp_path / "in"
    path.write_bytes(data)
    made = plan(path, tmp_path / "out", encoding="gpt2", part_size=100, errors="replace",
                unpack=False)  # fmt: skip
    assert len(made) == -(-len(data) // 100)
    assert ids_of(made) == ENC.encode(data, errors="replace", disallowed_special=())


@pytest.mark.parametrize("pattern", ["gpt2", r"\S+|\s+"])
@pytest.mark.parametrize("kind", MAKERS)
def test_counts_for_training(tmp_path: Path, kind: str, pattern: str) -> None:
    text = ("low lower newest 日本語 don't 2026\n\n. " * 200).encode()
    path = tmp_path / "in"
    path.write_bytes(MAKERS[kind](pieces(text, 77)))
    sizes: list[int] = []
    made = count_in_parts(
        [str(path)], pattern, 2, part_size=500, advance=lambda size, _: sizes.append(size)
    )
    one = Trainer(pattern)
    one.update(text)
    one.end_document()
    assert list(made.piece_counts().items()) == list(one.piece_counts().items())
    assert len(sizes) > 3
    assert sum(sizes) == path.stat().st_size


class TestErrors:
    def damaged(
        self, tmp_path: Path, text: bytes, size: int, at: int = 0
    ) -> tuple[streamtok.Plan, list[int]]:
        """A plan for frames of `size` bytes of text; byte `at` of the file is damaged."""
        data = bytearray(bgzf(pieces(text, size)))
        if at:
            data[at] ^= 0xFF
        path = tmp_path / "in"
        path.write_bytes(data)
        made = plan(path, tmp_path / "out", encoding="gpt2", part_size=1)
        return made, [part.start for part in made]

    def test_bad_text_names_its_place(self, tmp_path: Path) -> None:
        made, starts = self.damaged(
            tmp_path, b"good text, " * 50 + b"\xff " + b"good text, " * 50, 100
        )
        failed = []
        for number in range(len(made)):
            try:
                run_part(made, number)
            except PlanError as error:
                failed.append(number)
                message = str(error)
        # Byte 550 of the text is byte 50 of the frame with number 5.
        assert failed == [5]
        assert f"part 5 (bytes {starts[5]} … {starts[6]}): byte 50 after the frame" in message
        assert f"the frame at byte {starts[5]} is not UTF-8" in message
        with pytest.raises(PlanError, match=f"byte 50 after the frame at byte {starts[5]} is not"):
            count_in_parts([made[0].input.path], "gpt2", 1, part_size=1)

    def test_damaged_data_names_its_place(self, tmp_path: Path) -> None:
        text = random.Random(3).randbytes(300_000).hex().encode()
        made, starts = self.damaged(tmp_path, text, 70_000)
        made, again = self.damaged(tmp_path, text, 70_000, starts[5] + 40)
        assert again == starts
        for number in (4, 5):  # the one before needs the beginning of the next frame
            with pytest.raises(PlanError, match=f"member that begins at byte {starts[5]}"):
                run_part(made, number)
        for number in range(len(made)):
            if number not in (4, 5):
                run_part(made, number)
        with pytest.raises(PlanError, match="these parts are missing: 4, 5"):
            commit(made)

    def test_broken_lines(self, tmp_path: Path) -> None:
        good, bad = b'{"text": "some text"}\n', b'{"text": broken}\n'
        path = tmp_path / "in"
        path.write_bytes(bgzf(pieces(good * 30 + bad + good * 30, 50)))
        options: dict[str, Any] = {"encoding": "gpt2", "part_size": 1, "jsonl": "text"}
        made = plan(path, tmp_path / "out", **options)
        failed = []
        for number in range(len(made)):
            try:
                run_part(made, number)
            except PlanError as error:
                failed.append(str(error))
        assert len(failed) == 1
        assert "invalid JSON" in failed[0]
        made = plan(path, tmp_path / "skipped", skip_bad_lines=True, **options)
        records = [run_part(made, number) for number in range(len(made))]
        assert sum(record.skipped for record in records) == 1
        assert sum(record.documents for record in records) == 60
