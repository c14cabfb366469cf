"""The packed form: equal encodings, any damage is found, nothing that is forged does harm."""

from __future__ import annotations

import io
import pickle
import random
import zipfile

import numpy as np
import pytest

import streamtok
from streamtok import VocabularyError, formats
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.formats import conversion, opening
from streamtok.formats.packed import (
    dumps_packed,
    join_members,
    loads_packed,
    members_of,
    save_packed,
)
from streamtok.normalizers import Normalizer, Replace
from streamtok.patterns.sequence import SplitSequence
from streamtok.vocabulary.table import NO_ID

from ..conftest import stream_ids
from ..encodings import SINGLES, from_merges, make_encoding
from ..long.loader_fuzz import small_encoding
from ..oracles import PLAIN
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


def test_flipped_bytes_and_cuts_change_nothing_unseen():
    """What is not found out is in the archive's own fields, such as dates."""
    sound = small_encoding()
    data = dumps_packed(sound)
    rng = random.Random(3)
    n_refused = 0
    for at in [*range(400), *rng.sample(range(len(data)), 400)]:
        damaged = bytearray(data)
        damaged[at] ^= 1 << rng.randrange(8)
        try:
            made = loads_packed(bytes(damaged), "x.streamtok")
        except VocabularyError:
            n_refused += 1
        else:
            assert dumps_packed(made) == data
    assert n_refused > 600
    for size in [*range(0, 900, 7), *range(900, len(data), 501)]:
        with pytest.raises(VocabularyError, match=r"x\.streamtok is "):
            loads_packed(data[:size], "x.streamtok")


def test_errors_say_what_is_wrong():
    data = dumps_packed(small_encoding())
    members = members_of(data)
    about = members["about.json"]

    def refused(message, **changed):
        names = {"about": "about.json"}
        more = {names.get(name, f"{name}.npy"): value for name, value in changed.items()}
        with pytest.raises(VocabularyError, match=message):
            loads_packed(join_members({**members, **more}), "x.streamtok")

    with pytest.raises(VocabularyError, match="not a packed encoding"):
        loads_packed(b"{}", "x.streamtok")
    refused("has form 7 .* expected 1: convert", about=about.replace(b'"form": 1', b'"form": 7'))
    refused("'about.json': ", about=b"{}")
    refused("'about.json': ", about=b"[" * 100_000)
    refused("'offsets.npy': ", offsets=b"abc")
    refused("'offsets.npy': expected uint32, found uint8", offsets=array(b"abc"))
    refused("'offsets.npy': expected one axis", offsets=array(np.zeros((2, 2), np.uint32)))
    refused("'ids.npy': ", ids=members["ids.npy"].replace(b"'shape': (", b"'shape': (9"))
    refused("'tokens.npy': the offsets do not fit", tokens=array(b"abc"))
    pages = np.full(8704, 0xFFFF, np.uint16)
    refused("'transitions.npy': the tables of the pattern", class_pages=array(pages))
    refused("'windows.npy': 3 bytes instead of 900", windows=array(b"abc"))
    refused("windows of the pattern do not fit", windows=array(b"\xff" * 900))
    refused("the parts do not fit", left_parts=array(np.zeros(0, np.uint32)))
    refused(
        "x.streamtok: the text rule 'new' is not known: update streamtok",
        about=about.replace(b'"rules": {}', b'"rules": {"new": 1}'),
    )
    old = b'"rules": {"normalizer": {"normalizer": [["Symbols", ["a"]]]}}'
    refused(
        "x.streamtok: the step 'Symbols' of the normalizer is not known .*: load or convert",
        about=about.replace(b'"rules": {}', old),
    )
    del members["ids.npy"]
    refused("x.streamtok is damaged: the member 'ids.npy': it is missing")


def test_archives_that_are_not_ours_are_refused():
    contents = io.BytesIO()
    with zipfile.ZipFile(contents, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.json", b" " * 10_000_000)
    with pytest.raises(VocabularyError, match=r"damaged: 1 members with 10000000 bytes in"):
        loads_packed(contents.getvalue())
    with pytest.raises(VocabularyError, match="100 members"):
        loads_packed(join_members({str(i): b"" for i in range(100)}))


def array(values):
    """The member of an array, or of bytes."""
    file = io.BytesIO()
    np.save(file, np.frombuffer(values, np.uint8) if isinstance(values, bytes) else values)
    return file.getvalue()


def forged_parts(enc, rng):
    """The packed form, in which a few tokens are made of two others, as long as their own parts."""
    members = members_of(dumps_packed(enc))
    lefts, rights = enc.definition.table.parts()
    lefts = lefts.copy()
    sizes = np.diff(enc.definition.vocabulary.offsets)
    for token in rng.sample(np.flatnonzero(lefts != NO_ID).tolist(), 3):
        same = np.flatnonzero(sizes == sizes[lefts[token]])
        lefts[token] = rng.choice([other for other in same.tolist() if other != lefts[token]])
    return join_members(
        members | {"left_parts.npy": array(lefts), "right_parts.npy": array(rights)}
    )


@pytest.mark.parametrize("seed", range(4))
def test_tokens_are_what_their_parts_are(seed):
    """Or else what merges is longer or shorter than its text, and there is no room for its ids."""
    enc = streamtok.get_encoding("r50k_base")
    with pytest.raises(VocabularyError, match=r"token .* is made of something"):
        loads_packed(forged_parts(enc, random.Random(seed)))


def test_convert(tmp_path):
    path = tmp_path / "x.streamtok"
    assert conversion.format_of(str(path)) == "streamtok"
    conversion.convert(small_encoding(), str(path), "streamtok")
    assert opening.open_encoding(str(path)).digest == small_encoding().digest
    assert formats.detection.recognise(path.read_bytes()) == "streamtok"
    with pytest.raises(VocabularyError, match="has its own pattern"):
        formats.load(path, pattern="gpt2")
