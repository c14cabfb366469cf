"""SentencePiece's models: the library, the references and streamtok.

`python -m tests.long random-sentencepieces` tries more.
"""

from __future__ import annotations

import collections
import random
import struct

import pytest

import streamtok
from streamtok.formats.sentencepiece import read_sentencepiece
from streamtok.reference.unigram import sentencepiece_unigram

from ..conftest import stream_ids
from ..long.random_tokenizers.sentencepieces import one_round
from ..sentencepiece_models import BASE, SPACE, charsmap_of, field, model, processor, trained

PLAIN = field(1, b"identity") + field(3, 0) + field(4, 0)


def made(pieces: list[tuple[str, float, int]], has_bytes: bool = False) -> bytes:
    trainer = field(3, 1) + field(35, int(has_bytes))
    return model(pieces, trainer=trainer, normalizer=PLAIN)


def encoding(data: bytes) -> streamtok.Encoding:
    return read_sentencepiece(data, "made", "made")


def test_random_models():
    counts = sum(map(one_round, range(1, 60)), collections.Counter())
    assert counts["equal"] > 40
    assert counts["offsets"] > 20
    assert counts["by reference"] > 60
    for message in counts:
        if message.startswith("refused: "):
            assert "has a space, which is not supported beside a normalizer" in message


def test_sums_are_float32_over_the_whole_text():
    """Where a sum is large, other paths win. It is brought back behind 100,000."""
    pieces = [("<unk>", 0.0, 2)]
    pieces += [("a", -1.1, 1), ("aa", -2.2000002, 1), ("x", -50000.3, 1)]
    data = made(pieces)
    theirs, enc = processor(data), encoding(data)
    for text in (*("x" * count + "aaaa" for count in (0, 1, 2, 3, 40)), "aa" * 9000, "xaa" * 900):
        expected = theirs.encode(text)
        assert enc.encode(text) == expected
        assert [id for id, *_ in sentencepiece_unigram(pieces, text[:400])] == theirs.encode(
            text[:400]
        )
        chunks = [text[at : at + 5] for at in range(0, len(text), 5)]
        assert stream_ids(enc.stream_encoder(), chunks) == expected
    assert enc.encode("aaaa") != enc.encode("xaaaa")[1:]


def test_a_space_that_is_unknown_becomes_the_bytes_of_its_mark():
    data = made([*BASE, ("a", -1.0, 1), ("b", -2.0, 1)], has_bytes=True)
    theirs, enc = processor(data), encoding(data)
    for text in ("a b", "  ", "c d", " " * 5000, "a " * 3000):
        ids = theirs.encode(text)
        assert enc.encode(text) == ids
        assert stream_ids(enc.stream_encoder(), [text[:3], text[3:900], text[900:]]) == ids
        assert enc.decode(ids) == theirs.decode(ids)
    ids, spans = enc.encode_with_offsets("\u00e9 ")
    assert ids.tolist() == theirs.encode("\u00e9 ")
    assert spans.tolist() == [[0, 1]] * 2 + [[1, 2]] * 3


def test_what_waits_in_a_stream():
    enc = encoding(made([("<unk>", 0.0, 2), SPACE, ("a", -1.0, 1), ("ab", -1.5, 1)]))
    stream = enc.stream_encoder()
    for _ in range(50):
        stream.encode(" a" * 1000)
    assert stream.pending <= 2048 + 1  # what is worth trying again
    stream = enc.stream_encoder()
    ids = stream.encode("c" * 5000)
    assert ids == []  # a run is one id, which comes with what follows
    assert [*ids, *stream.encode("a", final=True)] == enc.encode("c" * 5000 + "a")


def large(count: int) -> bytes:
    """A model with as many pieces, like mT5's."""
    settings = trained(model_type="unigram", vocab_size=700, normalization_rule_name="nmt_nfkc")
    pieces = [("<pad>", 0.0, 3), ("</s>", 0.0, 3), ("[MASK]", 0.0, 4), *BASE[:1], *BASE[3:]]
    rng = random.Random(count)
    letters = "etaoinshrdlu\u00e4\u00f6\u65e5\u672c\u8a9e\u30c6"
    made = dict.fromkeys(["\u2581", *letters])
    while len(made) < count - len(pieces):
        mark = "\u2581" * (rng.random() < 0.4)
        made[mark + "".join(rng.choices(letters, k=rng.randint(2, 6)))] = None
    trainer = field(3, 1) + field(35, 1) + field(45, b"<unk>")
    steps = field(1, b"nmt_nfkc") + field(2, charsmap_of(settings)) + field(3, 1) + field(4, 1)
    rows = [model(pieces, trainer=trainer, normalizer=steps)]
    for text in made:  # as `field` would write them, in a tenth of the time
        data = text.encode()
        row = b"\n%c%b\x15%b" % (len(data), data, struct.pack("<f", -rng.uniform(5, 20)))
        rows.append(b"\n%c%b" % (len(row), row))
    return b"".join(rows)


def test_a_model_of_many_pieces() -> None:
    count = 70_000
    data = large(count)
    theirs, enc = processor(data), encoding(data)
    assert enc.n_vocab == theirs.vocab_size() == count
    rng = random.Random(7)
    known = [theirs.id_to_piece(rng.randrange(300, count)) for _ in range(1000)]
    highest = 0
    for _ in range(20):
        parts = rng.choices([*known, " ", "\u00e9", "\ufb01 ", "[MASK]", "\u3000", "x\u00bd"], k=25)
        text = "".join(parts)
        ids = theirs.encode(text)
        highest = max(highest, *ids)
        assert enc.encode(text) == ids
        assert enc.decode(ids) == theirs.decode(ids)
    assert highest > 1 << 16
    for id in rng.sample(range(300, count), 500):
        piece = theirs.id_to_piece(id).replace("\u2581", " ").encode()
        assert enc.decode_single_token_bytes(id) == piece
    with pytest.raises(KeyError, match=str(count)):
        enc.decode([count])


SYMBOLS = ["\u2581under", "score", "\u2581\u2581", "_", "__", "\u0120", "\u010a", "\u2581"]


@pytest.mark.parametrize("removes", [False, True])
@pytest.mark.parametrize("puts", [False, True])
@pytest.mark.parametrize("kind", [1, 2])
def test_decoding_of_symbols_and_first_spaces(kind: int, puts: bool, removes: bool) -> None:
    """Where extra spaces are removed, each id loses one space until there is text."""
    rng = random.Random(kind)
    parts = [*SYMBOLS, " under", " ", "  ", "a", "\u00e9", "\n", "un", "</s>"]
    for has_bytes in (False, True):
        symbols = [text for text in rng.sample(SYMBOLS, 5) if not removes or "\u2581" not in text]
        pieces = BASE if has_bytes else BASE[:3]
        pieces = [*pieces, *((text, 0.0, 4) for text in symbols)]
        pieces += [
            (text, -1.0 - number, 1)
            for number, text in enumerate(["\u2581", "a", "u", "n", "un", "\u2581a", "e", "_"])
            if text not in symbols
        ]
        pieces += [("\u2581\u2581a", -9.0, 1)]
        steps = field(1, b"identity") + field(3, int(puts)) + field(4, int(removes))
        trainer = field(3, kind) + field(35, int(has_bytes))
        if kind == 2 and "\u2581" in symbols:
            continue  # such a model is refused
        data = model(pieces, trainer=trainer, normalizer=steps)
        theirs, enc = processor(data), encoding(data)
        some = [id for id in range(3, len(pieces)) if id != 3 + 0x20 or not has_bytes]
        for _ in range(60):
            text = "".join(rng.choices(parts, k=rng.randint(1, 7)))
            ids = theirs.encode(text)
            assert enc.encode(text, disallowed_special=()) == ids
            for row in (ids, rng.choices(some, k=4), [theirs.piece_to_id("\u2581")] * 3 + ids):
                expected = theirs.decode(row)
                if "\ufffd" in expected:
                    continue
                assert enc.decode(row).replace("<unk>", " \u2047 ") == expected, (text, row)
                stream = enc.stream_decoder()
                streamed = "".join(stream.decode([id]) for id in row) + stream.flush()
                assert streamed == enc.decode(row)
                assert enc.decode_with_offsets(row)[0] == streamed
                assert enc.decode_batch([row])[0] == streamed
