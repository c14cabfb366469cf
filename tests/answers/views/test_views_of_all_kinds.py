"""Views of encodings of all kinds: random, with lists of merges, and those that change text."""

from __future__ import annotations

import random

import pytest

from streamtok.answers.views import vocabulary_view
from streamtok.answers.views.comparison import compare_encodings
from streamtok.answers.views.lanes import Lanes, make_lanes
from streamtok.answers.views.merges import pretokens, trace_merges
from streamtok.answers.views.tokens import show_tokens
from streamtok.errors import UnsupportedPatternError

from ...long.states.encodings import KINDS, Subject, made
from .test_merges import check as check_trace

SUBJECTS = [made(kind, n) for kind in KINDS if kind != "bundled" for n in range(4)]
NAMES = [f"{one.kind}-{at % 4}" for at, one in enumerate(SUBJECTS)]


def texts(subject: Subject) -> list[str]:
    rng = random.Random(9)
    letters = subject.letters + b"a b"
    made = [bytes(rng.choices(letters, k=n)).decode("utf-8", "ignore") for n in (0, 1, 9, 40)]
    return [*made, f"{made[-1]}é東 <|endoftext|> x"]


def check_naive(subject: Subject, lanes: Lanes, data: bytes) -> None:
    """An id is right if the whole text has it at the same place: by spans, not by sizes."""
    enc = subject.encoding
    ids, spans = enc.encode_with_offsets(data, "byte", disallowed_special=())
    known = {*zip(spans[:, 0].tolist(), ids.tolist(), strict=True)}
    for chunk in lanes.chunks:
        for one in chunk.naive:
            if not one.is_wrong:
                assert (one.start, one.token.id) in known
            elif "\ufffd" not in data[chunk.start : chunk.stop].decode("utf-8", "replace"):
                assert (one.start, one.token.id) not in known


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_tokens_lanes_and_merges(subject: Subject) -> None:
    enc = subject.encoding
    for text in texts(subject):
        ids = enc.encode(text, disallowed_special=())
        try:
            shown = show_tokens(enc, text)
        except UnsupportedPatternError:  # text is left out, so nobody knows where ids come from
            with pytest.raises(UnsupportedPatternError):
                make_lanes(enc, text, 5)
            with pytest.raises(UnsupportedPatternError):
                compare_encodings([enc], text)
            continue
        assert shown.ids == ids
        assert compare_encodings([enc, enc], text).differing == 0
        lanes = make_lanes(enc, text, 5)
        assert [one.token.id for chunk in lanes.chunks for one in chunk.exact] == ids
        check_naive(subject, lanes, text.encode())
        if enc.definition.vocabulary.model is not None:
            with pytest.raises(ValueError, match="merges nothing"):
                trace_merges(enc, text[:9])
            continue
        if not (enc.definition.texts.is_plain or enc.pattern is None):
            with pytest.raises(ValueError, match="changes its text"):
                pretokens(enc, text)
            continue
        parts = pretokens(enc, text)
        if not enc.definition.specials.added:
            assert [id for part in parts for id in trace_merges(enc, part).ids] == ids


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_any_bytes_can_be_traced(subject: Subject) -> None:
    enc = subject.encoding
    if enc.definition.vocabulary.model is not None:  # pieces are not merged
        return
    rng = random.Random(4)
    for size in (1, 2, 5, 30):
        data = bytes(rng.choices([*subject.letters, 0xE2, 0xFF], k=size))
        trace = trace_merges(enc, data)
        check_trace(trace)
        assert trace.ids == enc.definition.encoder.encode_pretoken(data)


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_vocabularies(subject: Subject) -> None:
    enc = subject.encoding
    found = {one.token.id: one.ids for one in vocabulary_view.unreachable(enc)}
    for id in vocabulary_view.every_id(enc):
        page = vocabulary_view.token_page(enc, id)
        assert page.token.bytes == enc.decode_single_token_bytes(id)
        if not page.token.is_special:
            data = enc.decode_bytes([id])
            ids = enc.encode(data, disallowed_special=(), errors="surrogateescape")
            assert (id in found) == (ids != [id])
            assert found.get(id, ids) == ids
