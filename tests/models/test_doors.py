"""Everything that is asked of an encoding, asked of models like BERT's, T5's and ALBERT's."""

from __future__ import annotations

import io
import pickle
import random
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer

import streamtok
from streamtok import formats
from streamtok.cli.main import main
from streamtok.formats.packed import dumps_packed, loads_packed
from streamtok.views.merges import trace_merges

from .trained import MODELS, TEXT, corpus

Made = tuple[streamtok.Encoding, Tokenizer]


@pytest.fixture(params=MODELS)
def made(request: pytest.FixtureRequest) -> Made:
    make: Callable[[], Made] = MODELS[request.param]
    return make()


def test_whole_texts(made: Made) -> None:
    encoding, tokenizer = made
    texts = [*corpus(), TEXT, "", " ", "\n"]
    expected = [found.ids for found in tokenizer.encode_batch(texts, add_special_tokens=False)]
    assert [encoding.encode(text, allowed_special="all") for text in texts] == expected
    assert encoding.encode_batch(texts, allowed_special="all") == expected
    assert [encoding.count(text, allowed_special="all") for text in texts] == [*map(len, expected)]
    around = [tokenizer.encode(text).ids for text in texts]
    again = encoding.encode_batch(texts, allowed_special="all", add_special_tokens=True)
    assert again == around
    found = encoding.encode_to_numpy(TEXT, allowed_special="all")
    assert found.tolist() == tokenizer.encode(TEXT, add_special_tokens=False).ids
    assert encoding.encode_ordinary(TEXT) == encoding.encode(TEXT, disallowed_special=())


def test_decoding(made: Made) -> None:
    encoding, tokenizer = made
    for text in [*corpus()[:200], TEXT]:
        for around in (False, True):
            ids = tokenizer.encode(text, add_special_tokens=around).ids
            for skip in (False, True):
                expected = tokenizer.decode(ids, skip_special_tokens=skip)
                assert skip or encoding.decode(ids) == expected
                stream = encoding.stream_decoder(skip_special_tokens=skip)
                assert "".join([stream.decode([id]) for id in ids]) + stream.flush() == expected


def test_streams_cut_anywhere(made: Made) -> None:
    encoding, _ = made
    ids, spans = encoding.encode_with_offsets(TEXT, allowed_special="all", unit="byte")
    data = TEXT.encode()
    for at in range(len(data) + 1):
        stream = encoding.stream_encoder(allowed_special="all")
        found = stream.encode(data[:at]) + stream.encode(data[at:], final=True)
        assert found == ids.tolist(), at
        followed = encoding.stream_encoder(allowed_special="all")
        first = followed.encode_with_offsets(data[:at], unit="byte")
        last = followed.encode_with_offsets(data[at:], final=True, unit="byte")
        assert np.concatenate([first[1], last[1]]).tolist() == spans.tolist(), at
    stream = encoding.stream_encoder(allowed_special="all")
    found = [id for byte in data for id in stream.encode(bytes([byte]))]
    assert found + stream.flush() == ids.tolist()


def test_offsets(made: Made) -> None:
    encoding, tokenizer = made
    for text in [*corpus()[:200], TEXT]:
        expected = tokenizer.encode(text, add_special_tokens=False)
        ids, spans = encoding.encode_with_offsets(text, allowed_special="all")
        assert ids.tolist() == expected.ids
        if not isinstance(tokenizer.normalizer, BertNormalizer):
            assert [*map(tuple, spans.tolist())] == expected.offsets, text
            continue
        for (start, end), other in zip(spans.tolist(), expected.offsets, strict=True):
            # An accent that is left out goes with its letter here, and is in no span there.
            assert start == other[0], text
            assert end >= other[1], text
            assert all(map(unicodedata.combining, text[other[1] : end])), text


def test_budgets_and_documents(made: Made) -> None:
    encoding, _ = made
    text = "\n".join(corpus()[:60])
    n_tokens = encoding.count(text, disallowed_special=())
    assert encoding.fits(text, n_tokens, disallowed_special=())
    assert not encoding.fits(text, n_tokens - 1, disallowed_special=())
    cut = encoding.truncate(text, 40, disallowed_special=())
    assert text.startswith(cut.text)
    assert encoding.count(cut.text, disallowed_special=()) == cut.n_tokens <= 40
    end = encoding.truncate(text, 40, side="left", disallowed_special=())
    assert text.endswith(end.text)
    assert encoding.count(end.text, disallowed_special=()) == end.n_tokens <= 40
    chunks = list(encoding.split(text, 50, overlap=5, disallowed_special=()))
    assert chunks[0].start == 0
    assert chunks[-1].stop == len(text)
    for chunk, other in pairwise(chunks):
        assert other.start <= chunk.stop
    for chunk in chunks:
        assert text[chunk.start : chunk.stop] == chunk.text
        assert encoding.count(chunk.text, disallowed_special=()) == chunk.n_tokens <= 50
    counter = encoding.counter(disallowed_special=())
    for at in range(0, len(text), 99):
        counter.update(text[at : at + 99])
    assert counter.finish() == n_tokens
    ids = encoding.encode(text, disallowed_special=())
    assert encoding.encode(text, disallowed_special=(), max_tokens=7) == ids[:7]
    parts = list(encoding.iterencode([text[:500], text[500:]], disallowed_special=()))
    assert np.concatenate(parts).tolist() == ids


def test_a_document(made: Made) -> None:
    encoding, _ = made
    rng = random.Random(8)
    text = "\n".join(corpus()[:30])[:900]
    document = encoding.document(text)
    for _ in range(40):
        start = rng.randrange(len(text))
        stop = min(len(text), start + rng.choice([0, 1, 5, 60]))
        new = rng.choice(["", "a", " streams", "\u0301", "\n\n", "un", "xyz" * 9])
        document.replace(start, stop, new)
        text = text[:start] + new + text[stop:]
        assert document.ids == encoding.encode(text, disallowed_special=())


def test_saving(made: Made, tmp_path: Path) -> None:
    encoding, tokenizer = made
    texts = [*corpus()[:50], TEXT]
    ids = encoding.encode_batch(texts, allowed_special="all")
    packed = loads_packed(dumps_packed(encoding))
    pickled = pickle.loads(pickle.dumps(encoding))
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    for other in (packed, pickled, streamtok.load(path), streamtok.load(path)):  # one is cached
        assert other.encode_batch(texts, allowed_special="all") == ids
        assert other.decode(ids[-1]) == encoding.decode(ids[-1])
        assert other.digest == encoding.digest
    with pytest.raises(streamtok.VocabularyError, match="ranks"):
        formats.save_tiktoken(encoding, tmp_path / "out")


def test_the_object_of_the_tokenizer(made: Made) -> None:
    encoding, tokenizer = made
    assert streamtok.load(tokenizer).encode(TEXT, allowed_special="all") == encoding.encode(
        TEXT, allowed_special="all"
    )


def test_what_such_models_do_not_have(made: Made) -> None:
    encoding, _ = made
    with pytest.raises(ValueError, match="merges nothing"):
        trace_merges(encoding, "hello")
    with pytest.raises(ValueError, match="encode_with_unstable"):
        encoding.encode_with_unstable("hello")


def test_command_line(made: Made, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    encoding, tokenizer = made
    path, text = tmp_path / "tokenizer.json", tmp_path / "text.txt"
    tokenizer.save(str(path))
    text.write_text("\n".join(corpus()[:40]), "utf-8")
    ids = encoding.encode(text.read_text("utf-8"), disallowed_special=())
    assert main(["encode", "-e", str(path), str(text)]) == 0
    assert [*map(int, capfd.readouterr().out.split())] == ids
    assert main(["count", "-e", str(path), str(text)]) == 0
    assert int(capfd.readouterr().out.split()[0]) == len(ids)
    packed = tmp_path / "model.streamtok"
    assert main(["convert", str(path), str(packed)]) == 0
    assert streamtok.load(packed).encode(io.StringIO("x").read()) == encoding.encode("x")
