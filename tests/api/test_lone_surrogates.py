"""A str with lone surrogates has one meaning in every call: that of the bytes it becomes.

A pair is its character and any other surrogate U+FFFD, as in tiktoken. Under "surrogateescape",
U+DC80 to U+DCFF are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import streamtok
from streamtok import Encoding
from streamtok.engines import texts
from streamtok.engines.rules import TextRules
from streamtok.normalizers import Form, Normalizer

from ..doors import COUNTS, IDS
from ..encodings import make_encoding

LONE = ["\ud83d", "\ude00", "\udc80", "\ud83d\ude00", "\ud83d\udc80"]
WORDS = "naïve words, 漢字 and <|endoftext of 😀. "


def placed(lone: str, words: str) -> Iterator[str]:
    """The surrogates at the start, inside and at the end."""
    yield from (lone + words, words + lone + words, words + lone)


def as_bytes(text: str, errors: str) -> bytes:
    """What `text` is, by CPython's codecs alone."""
    if errors != "surrogateescape":
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text.encode()
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return b"".join(
        "\ufffd".encode() if "\ud800" <= one <= "\udfff" and not "\udc80" <= one <= "\udcff"
        else one.encode("utf-8", "surrogateescape")
        for one in joined
    )  # fmt: skip


def rewriting() -> Encoding:
    """An encoding that changes its text: characters are made before the core has bytes."""
    return make_encoding(rules=TextRules(normalizer=Normalizer([Form("NFC")])))


KINDS = {"gpt2": lambda: streamtok.get_encoding("gpt2"), "nfc": rewriting}


@pytest.fixture(scope="module", params=KINDS)
def enc(request: pytest.FixtureRequest) -> Encoding:
    return KINDS[request.param]()


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
@pytest.mark.parametrize("lone", LONE, ids=ascii)
def test_every_call_has_one_answer(
    enc: Encoding, lone: str, errors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"errors": errors}
    monkeypatch.setattr(texts, "usable_cores", lambda: 4)
    monkeypatch.setattr(texts, "PER_THREAD", 50)
    monkeypatch.setattr(texts, "LARGE", 500)  # so that threads share the longer text
    for words in (WORDS, WORDS * 90):  # more than the fast path takes
        for text in placed(lone, words):
            wanted = enc.encode(as_bytes(text, errors), **more)
            for name, call in IDS.items():
                assert call(enc, text, more) == wanted, name
            for name, call in COUNTS.items():
                assert call(enc, text, more) == len(wanted), name
            assert enc.fits(text, len(wanted), **more)
            assert not enc.fits(text, len(wanted) - 1, **more)


@pytest.mark.parametrize("lone", LONE, ids=ascii)
def test_with_unstable(lone: str) -> None:
    enc = streamtok.get_encoding("gpt2")
    for text in placed(lone, WORDS):
        text += " ab"  # the last pre-token is not stable
        data = as_bytes(text, "strict")
        stable, completions = enc.encode_with_unstable(text)
        assert stable == enc.encode(data)[:-1]
        assert (stable, completions) == enc.encode_with_unstable(data)


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
@pytest.mark.parametrize("make", KINDS.values(), ids=list(KINDS))
def test_a_pair_that_chunks_divide_is_two_lone_surrogates(
    make: Callable[[], Encoding], errors: str
) -> None:
    enc = make()
    stream, counter = enc.stream_encoder(errors=errors), enc.counter(errors=errors)
    wanted = enc.encode("a \ufffd\ufffd b")
    for chunk in ("a \ud83d", "\ude00 b"):
        counter.update(chunk)
    assert stream.encode("a \ud83d") + stream.encode("\ude00 b", True) == wanted
    assert counter.finish() == len(wanted)
    document = enc.document("a \ud83d", errors=errors)
    document.append("\ude00 b")
    assert document.ids == enc.encode(document.text, errors=errors)


@pytest.mark.parametrize("errors", ["strict", "replace", "surrogateescape"])
def test_training(errors: str) -> None:
    for text in (*LONE, "\u6f22 " * 600_000 + " a".join(LONE)):  # and one that is cut into blocks
        found, wanted, documents = (streamtok.Trainer("gpt2", errors=errors) for _ in range(3))
        found.update(text, final=True)
        wanted.update(as_bytes(text, errors), final=True)
        documents.update_documents([text])
        assert found.piece_counts() == wanted.piece_counts() == documents.piece_counts()


def test_hugging_face_and_the_service() -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("starlette")
    from ..hf.test_tokenizer import pair_of
    from ..serve.test_http import served

    ours, _ = pair_of("gpt2")
    wanted = ours.encode("a\ufffd").ids
    assert ours.encode("a\ud83d").ids == wanted
    assert [one.ids for one in ours.encode_batch(["a\ud83d", "a\ufffd"])] == [wanted, wanted]
    with served() as client:
        said = client.post("/tokenize", content=b'{"prompt": "a\\ud83d"}').json()
        assert said["tokens"] == streamtok.get_encoding("gpt2").encode("a\ufffd")


def test_whole_texts_of_a_pattern_without_tables() -> None:
    enc = make_encoding(r"(?<=a)b|.")
    for errors in ("strict", "replace", "surrogateescape"):
        for lone in LONE:
            data = as_bytes("ab" + lone, errors)
            assert enc.encode("ab" + lone, errors=errors) == list(data)


def test_offsets_count_the_characters_of_the_str() -> None:
    enc = streamtok.get_encoding("gpt2")
    _, spans = enc.encode_with_offsets("a\ud83d\ude00b\ud83dc")
    assert sorted(map(tuple, spans.tolist())) == [(0, 1), (1, 3), (1, 3), (3, 4), (4, 5), (5, 6)]
    assert [chunk.text for chunk in enc.split("a\ud83d\ude00b\ud83d", 1 << 20)] == ["a😀b\ufffd"]
