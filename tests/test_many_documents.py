"""Documents in parts: the fast way through the core gives what one stream after the other gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import streamtok
from streamtok.pipeline import DocumentEncoder
from streamtok.sources import Part

GPT2 = streamtok.get_encoding("gpt2")
CL100K = streamtok.get_encoding("cl100k_base")
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", " ", "\n", "hello world", "<|endoftext|>", "<|endof", "naïve 日本語", "\ud83d"]
    ),
)
BYTES = st.one_of(
    TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=8),
    st.just(b"x" * 5000),
)
PARTS = st.one_of(
    st.lists(st.tuples(BYTES, st.sampled_from([True, True, True, False])), max_size=12),
    st.lists(st.tuples(TEXTS, st.just(True)), max_size=300),
)


def outcome(encoder: DocumentEncoder, groups: list[list[Part]], is_fast: bool) -> Any:
    """All that can be seen of it: ids, ends, counters, and the error with its place."""
    encoder._has_batches = is_fast
    rows: list[Any] = []
    try:
        for group in groups:
            ids, ends = encoder.encode(group)
            rows.append((ids.tolist(), ends, encoder.getstate()))
    except (ValueError, UnicodeError) as error:
        rows.append((type(error), str(error), getattr(error, "args", None)))
    return rows, encoder.documents, encoder.bytes, encoder.is_open


@given(
    parts=PARTS,
    cut=st.integers(0, 12),
    frame=st.sampled_from([(None, None), (7, None), (None, 0), (7, 9)]),
    skip_empty=st.booleans(),
    errors=st.sampled_from(["strict", "replace", "surrogateescape"]),
    special=st.sampled_from([{}, {"allowed_special": "all"}, {"disallowed_special": ()}]),
)
@example([(b"a", True), (b"\xff", True)], 0, (7, 9), False, "strict", {})
@example([("ok", True), ("<|endoftext|>", True), ("\ud83d", True)], 1, (7, 9), False, "strict", {})
def test_many_at_once_are_one_after_the_other(
    parts: list[Part],
    cut: int,
    frame: tuple[int | None, int | None],
    skip_empty: bool,
    errors: str,
    special: dict[str, Any],
) -> None:
    def made() -> DocumentEncoder:
        return DocumentEncoder(
            CL100K.stream_encoder(errors=errors, **special),
            prepend=frame[0],
            append=frame[1],
            skip_empty=skip_empty,
        )

    groups = [parts[:cut], parts[cut:]]
    assert outcome(made(), groups, True) == outcome(made(), groups, False)


@pytest.mark.parametrize("count", [1, 2, 127, 128, 129, 1000])
def test_ids_and_ends_of_many(count: int) -> None:
    texts = [f"line {i} of {count}" * (i % 3) for i in range(count)]
    encoder = DocumentEncoder(GPT2.stream_encoder(), append=GPT2.eot_token)
    ids, ends = encoder.encode([(text, True) for text in texts])
    expected = [[*GPT2.encode(text), GPT2.eot_token] for text in texts]
    starts = [0, *ends[:-1]]
    assert [ids[a:b].tolist() for a, b in zip(starts, ends, strict=True)] == expected
    assert len(ids) == ends[-1]
    assert encoder.documents == count
    assert encoder.bytes == sum(map(len, texts))


def test_the_document_that_is_refused_is_counted() -> None:
    parts: list[Part] = [("fine", True)] * 5 + [("bad <|endoftext|>", True), ("fine", True)]
    encoder = DocumentEncoder(GPT2.stream_encoder())
    with pytest.raises(ValueError, match=r"<\|endoftext\|>' at byte 4"):
        encoder.encode(parts)
    assert encoder.documents == 5
