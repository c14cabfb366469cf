"""The packed form: equal encodings, any damage is found, nothing that is forged does harm."""

from __future__ import annotations

import pickle
import random
from typing import Any

import msgspec
import numpy as np
import pytest

import streamtok
from streamtok import VocabularyError, formats
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.formats.packed import PACKED_MAGIC, dumps_packed, loads_packed, save_packed
from streamtok.normalizers import Normalizer, Replace
from streamtok.patterns.sequence import SplitSequence
from streamtok.vocabulary.sealed import seal
from streamtok.vocabulary.table import NO_ID

from ..conftest import stream_ids
from ..encodings import SINGLES, from_merges, make_encoding
from ..long.loader_fuzz import small_encoding
from ..oracles import PLAIN
from ..packed_files import as_array, closed, opened
from .test_formats_ranks import DATA

TEXT = PLAIN[0] + " \u2581 tea  12345 日本語 naïve\r\n\n<|end|><x>"


RANKS = SINGLES | {b"ab": 256, b"abc": 258, b" a": 300}
RULES = TextRules(
    (("<x>", 400), ("\ue000y", 401)),
    normalizer=Normalizer([Replace("--", "\u2014")]),
    token_flags=(("<x>", TokenFlags(lstrip=True)),),
)
MERGES = from_merges(
    SINGLES | {b"ab": 700, b"bc": 300, b"abc": 301, b"xyz": 302},
    [(b"b", b"c"), (b"ab", b"c"), (b"a", b"bc"), (b"a", b"b")],
    ignore_merges=False,
)
ENCODINGS = {
    "gpt2": lambda: streamtok.get_encoding("gpt2"),
    "small": small_encoding,
    "sentencepiece": lambda: formats.load(DATA / "tokenizer.model.v1"),
    "rules": lambda: make_encoding(r"\p{L}+|\s+|[^\p{L}\s]", RANKS, rules=RULES),
    "sequence": lambda: make_encoding(SplitSequence([r"\p{N}{1,3}", r" ?\p{L}+"]), RANKS),
    "no tables": lambda: make_encoding(r"(\w)\1|[\s\S]", RANKS),
    "merges": lambda: make_encoding(r"\s+|\S+", MERGES, {"<|end|>": 703, "\ue000": 704}),
}


def all_ids(enc, chunks):
    return stream_ids(enc.stream_encoder(allowed_special="all"), chunks)


@pytest.mark.parametrize("which", ENCODINGS)
def test_a_packed_encoding_is_the_same(which, tmp_path):
    enc = ENCODINGS[which]()
    save_packed(enc, tmp_path / "x.streamtok")
    made = formats.load(tmp_path / "x.streamtok")
    assert made.name == enc.name
    assert made.digest == enc.digest
    assert made.definition.rules == enc.definition.rules
    assert made.definition.vocabulary == enc.definition.vocabulary
    assert made.special_tokens_set == enc.special_tokens_set
    assert made.max_token_value == enc.max_token_value
    assert (made.definition.table.lefts() == enc.definition.table.lefts()).all()
    for text in (*PLAIN, TEXT):
        ids = enc.encode(text, allowed_special="all")
        assert made.encode(text, allowed_special="all") == ids
        assert made.decode_bytes(ids) == enc.decode_bytes(ids)
    assert dumps_packed(made) == dumps_packed(enc)
    assert formats.load(tmp_path / "x.streamtok", name="other").name == "other"
    if enc.pattern is None:
        assert made.pattern is None
        return
    assert type(made.pattern) is type(enc.pattern)
    for name in ("source", "is_total"):
        assert getattr(made.pattern, name) == getattr(enc.pattern, name)
    windows = [one.pattern.windows for one in (made, enc)]
    assert windows == [None] * 2 or windows[0].to_bytes() == windows[1].to_bytes()
    cut = [TEXT[i : i + 3] for i in range(0, len(TEXT), 3)]
    assert all_ids(made, cut) == all_ids(enc, cut)
    assert pickle.loads(pickle.dumps(made)).digest == enc.digest


def test_flipped_bytes_and_cuts_are_found() -> None:
    data = dumps_packed(small_encoding())
    rng = random.Random(3)
    for at in [*range(400), *rng.sample(range(len(data)), 400)]:
        damaged = bytearray(data)
        damaged[at] ^= 1 << rng.randrange(8)
        with pytest.raises(VocabularyError, match=r"x\.streamtok is "):
            loads_packed(bytes(damaged), "x.streamtok")
    for size in [*range(0, 900, 7), *range(900, len(data), 501)]:
        with pytest.raises(VocabularyError, match=r"x\.streamtok is "):
            loads_packed(data[:size], "x.streamtok")


WRONG = [
    ("", {}, "missing required field `name`"),
    ("", {"more": 1}, "unknown field `more`"),
    ("", {"special_tokens": {"a": "b"}}, r"Expected `int`, got `str` - at `..special_tokens"),
    ("", {"eos": [-1]}, ">= 0"),
    ("rules", {"new": 1}, "unknown field `new`"),
    ("rules", {"normalizer": [["Symbols", ["a"]]]}, "unknown step 'Symbols'"),
    ("rules", {"normalizer": [5]}, "is not iterable - at `..rules.normalizer"),
    ("vocabulary", {"offsets": b"abc"}, "an array of 97 - at `..vocabulary.offsets"),
    ("vocabulary", {"offsets": ["<u4", [1], b"abc"]}, "multiple of element size"),
    ("vocabulary", {"offsets": ["|O", [1], b"abc"]}, "an array of '.O'"),
    ("vocabulary", {"offsets": as_array(b"abc", np.uint8)}, "a flat uint32 array, found uint8"),
    ("vocabulary", {"ids": ["<u4", [2, 130], bytes(1040)]}, "found uint32 of shape .2, 130."),
    ("vocabulary", {"tokens": b"abc"}, "the offsets do not fit"),
    ("vocabulary", {"parts": [as_array(b""), as_array(b"")]}, "the parts do not fit"),
    ("vocabulary", {"model": {}}, "at `..vocabulary.model"),
    ("pattern", {"class_pages": as_array(b"\xff" * 2 * 8704, np.uint16)}, "tables of the pattern"),
    ("pattern", {"class_pages": as_array(bytes(4 * 8704))}, "the tables of the pattern"),
    ("pattern", {"transitions": ["<u2", [2, 7], b"abc"]}, "multiple of element size"),
    ("pattern", {"windows": b"abc"}, "3 bytes instead of 900"),
    ("pattern", {"windows": b"\xff" * 900}, "windows of the pattern do not fit"),
]


@pytest.mark.parametrize(("part", "changes", "message"), WRONG)
def test_errors_say_what_is_wrong(part: str, changes: dict[str, Any], message: str) -> None:
    fields = opened(dumps_packed(small_encoding()))
    changed = fields[part] if part else fields
    if changes:
        changed |= changes
    else:
        del changed["name"]
    with pytest.raises(VocabularyError, match=f"x.streamtok is damaged: .*{message}"):
        loads_packed(closed(fields), "x.streamtok")


def test_nesting_is_limited() -> None:
    with pytest.raises(VocabularyError, match="is damaged: maximum recursion depth"):
        loads_packed(seal(PACKED_MAGIC, msgspec.Raw(b"\x81\xa7padding\x81\xa1x" + b"\x91" * 9999)))


def forged_parts(enc: streamtok.Encoding, rng: random.Random) -> bytes:
    """The packed form, in which a few tokens are made of two others, as long as their own parts."""
    fields = opened(dumps_packed(enc))
    lefts, rights = enc.definition.table.parts()
    lefts = lefts.copy()
    sizes = np.diff(enc.definition.vocabulary.offsets)
    for token in rng.sample(np.flatnonzero(lefts != NO_ID).tolist(), 3):
        same = np.flatnonzero(sizes == sizes[lefts[token]])
        lefts[token] = rng.choice([other for other in same.tolist() if other != lefts[token]])
    fields["vocabulary"]["parts"] = lefts, rights
    return closed(fields)


@pytest.mark.parametrize("seed", range(4))
def test_tokens_are_what_their_parts_are(seed: int) -> None:
    """Or else what merges is longer or shorter than its text, and there is no room for its ids."""
    enc = streamtok.get_encoding("r50k_base")
    with pytest.raises(VocabularyError, match=r"token .* is not made of two tokens"):
        loads_packed(forged_parts(enc, random.Random(seed)))
