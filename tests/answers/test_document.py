"""Documents: after any edits, the ids are those of the text."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok import Encoding
from streamtok.answers import document as module
from streamtok.answers.document import Change
from streamtok.answers.text_settings import Settings

from ..encodings import like, make_encoding, space_rules
from .slowly import with_template

GPT2 = streamtok.get_encoding("gpt2")
WORDS = [
    "a", " ", "  ", "\n", "\n\n ", "don't", "12345", "日本", "é", "e\u0301", "🎉", "\ud83d",
    "\ude00",
    "<|endoftext|>", "<|endof", "text|>", "<|", "|>", "....", "no" * 9, " the", "HTTPServer",
]  # fmt: skip


def encodings() -> list[Encoding]:
    names = ["gpt2", "cl100k_base", "o200k_base"]
    without_tables = make_encoding(r"(?<=a)b|.", GPT2.definition.vocabulary, name="look-behind")
    # Clean cuts lie inside these, as long as they are not complete.
    long_specials = like(
        "gpt2",
        name="long specials",
        special={"a  the the": 60_000, " the\n\n a": 60_001, "the a  the a": 60_002},
    )
    spaced = like("gpt2", name="spaced", special={"<s>": 60_002}, rules=space_rules())
    made = [*map(streamtok.get_encoding, names), spaced, without_tables]
    return [*made, with_template(GPT2), long_specials]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 8)


def check(doc: Any, ids: list[int], change: Change, enc: Encoding, **how: Any) -> list[int]:
    """The ids after the change, which must be those of the text."""
    first, removed, added = change
    assert 0 <= first <= first + removed <= len(ids)
    ids = ids[:first] + added + ids[first + removed :]
    assert ids == doc.ids == enc.encode(doc.text, **how)
    assert len(doc) == len(ids)
    return ids


@pytest.mark.parametrize("enc", encodings(), ids=lambda enc: enc.name)
@pytest.mark.parametrize("allowed", ["all", ()])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_edits(enc: Encoding, allowed: Any, data: st.DataObject) -> None:
    how: dict[str, Any] = {"allowed_special": allowed or set(), "disallowed_special": ()}
    how["add_special_tokens"] = True
    text = "".join(data.draw(st.lists(st.sampled_from(WORDS), max_size=12)))
    doc = enc.document(text, **how)
    ids = check(doc, [], Change(0, 0, doc.ids), enc, **how)
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 20)))
        new = "".join(data.draw(st.lists(st.sampled_from(WORDS), max_size=3)))
        text = text[:start] + new + text[stop:]
        ids = check(doc, ids, doc.replace(start, stop, new), enc, **how)
        assert doc.text == text
        if enc.name != "look-behind":
            stable = doc.stable
            for more in ("", "x", " ", "\n", "text|>", "\u0301", "'s", " the", " the the", "\n a"):
                assert enc.encode(text + more, **how)[:stable] == ids[:stable]


def test_special_tokens_over_the_cuts_between_blocks() -> None:
    """One wrong letter of a special token is mended, and one that is unfinished is completed."""
    enc = encodings()[-1]
    allowed: dict[str, Any] = {"allowed_special": "all", "disallowed_special": ()}
    for special in enc.special_tokens_set:
        for pad in range(24):
            before = " word to fill blocks with"[-pad:] if pad else ""
            for at in range(len(special)):
                wrong = before + special[:at] + "x" + special[at + 1 :] + " and more"
                doc = enc.document(wrong, **allowed)
                change = doc.replace(pad + at, pad + at + 1, special[at])
                assert doc.text == before + special + " and more"
                check(doc, enc.encode(wrong, **allowed), change, enc, **allowed)
                doc = enc.document(before + special[:at], **allowed)
                whole = enc.encode(before + special, **allowed)
                assert doc.ids[: doc.stable] == whole[: doc.stable]


def test_an_edit_that_raises_changes_nothing() -> None:
    doc = GPT2.document("some text é <|endof", disallowed_special="all")
    before = doc.text, doc.ids
    with pytest.raises(ValueError, match="at byte 13"):
        doc.append("text|> more")
    with pytest.raises(IndexError, match="the text has 19 characters: there is no 3:20 in it"):
        doc.replace(3, 20, "x")
    for start, stop in ((-1, 2), (5, 4)):
        with pytest.raises(IndexError):
            doc.replace(start, stop, "x")
    with pytest.raises(TypeError, match="takes str, not bytes"):
        doc.append(b"x")
    assert (doc.text, doc.ids) == before
    with pytest.raises(TypeError):
        GPT2.document(b"x")


def test_a_change_is_as_small_as_it_can_be() -> None:
    doc = GPT2.document("one two three four five six seven")
    assert doc.replace(8, 13, "three")[1:] == (0, [])
    assert doc.replace(0, 0, "")[1:] == (0, [])
    assert doc.replace(8, 13, "3") == Change(2, 1, GPT2.encode(" 3"))


def test_stable_ids_stay_when_text_is_appended() -> None:
    doc = GPT2.document("hello")
    assert doc.stable == 0
    doc.append(" world and more")
    assert doc.ids[: doc.stable] == GPT2.encode("hello world and")
    doc = GPT2.document("a b<|endoftext", allowed_special="all")
    assert doc.stable <= 2


def test_a_letter_costs_the_same_in_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    encoded = 0
    whole = Settings.encode

    def counted(settings: Any, text: str, output: Any) -> Any:
        nonlocal encoded
        encoded += len(text)
        return whole(settings, text, output)

    monkeypatch.setattr(Settings, "encode", counted)
    doc = GPT2.document("some words of text, and so on.\n" * 30_000)
    assert 900_000 < encoded < 1_000_000
    encoded = 0
    begin = time.perf_counter()
    for place in range(1000, 900_000, 9000):
        doc.replace(place, place, "x")
    assert encoded < 100 * 4000
    assert time.perf_counter() - begin < 60  # a hang, not a speed
    assert doc.ids == GPT2.encode(doc.text)
