"""Maps of SentencePiece: clusters, states, damage."""

import random

import pytest
import sentencepiece
from tokenizers import normalizers as hf

from streamtok.normalizers import Normalizer, Precompiled
from streamtok.normalizers.char_sets import ranges_of
from streamtok.normalizers.charsmap import read_charsmap
from streamtok.normalizers.clusters import ON_BORDER, advance

from ..charsmaps import write_charsmap
from ..sentencepiece_models import charsmap_of
from .cuts import check, waits

KINDS = (
    *("control", "extend", "spacing", "prepend", "l", "v", "t", "flag", "picture"),
    *("consonant", "linker", "conjunct"),
)
ALL = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
SMALL = write_charsmap(
    {"a": "A", "e\u0301": "é", "\n": " ", "\r\n": "|", "\u0301": "x", "b\u0301\u0327": "β",
     "\u0600": "P", "\xa9": "", "c": "ccc", "\uff76": "カ", "\u0915": "K", "\u1161": "V"}
)  # fmt: skip


@pytest.fixture(scope="module")
def charsmaps(tmp_path_factory):
    """The maps that come with SentencePiece, by name."""
    folder = tmp_path_factory.mktemp("charsmaps")
    (folder / "text").write_text("a quick brown fox jumps over the lazy dog\n" * 20)
    found = {"small": SMALL}
    for rule in ("nmt_nfkc", "nfkc_cf"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "text"), model_prefix=str(folder / rule), vocab_size=40,
            normalization_rule_name=rule, minloglevel=3, hard_vocab_limit=False,
        )  # fmt: skip
        found[rule] = charsmap_of((folder / f"{rule}.model").read_bytes())
    return found


def joined_of(rng, keys):
    """A text of characters of all kinds, and of keys."""
    odd = ["\r", "\n", "\u200d", "a", "e", "©", "\u0301", "가", "각", "b\u0301\u0327", "\u0600c"]
    text = ""
    for _ in range(rng.randint(1, 8)):
        low, high = rng.choice(ranges_of(f"cluster_{rng.choice(KINDS)}"))
        text += rng.choice([chr(rng.randint(low, high)), rng.choice(odd), rng.choice(keys)])
    return text


@pytest.mark.parametrize("name", ["small", "nmt_nfkc", "nfkc_cf"])
def test_random_clusters_at_random_cuts(name, charsmaps):
    rng = random.Random(name)
    step = Precompiled(charsmaps[name])
    ours, theirs = Normalizer([step]), hf.Precompiled(charsmaps[name])
    keys = list(read_charsmap(charsmaps[name], 5))
    for _ in range(400):
        text = joined_of(rng, keys)
        assert ours.normalize(text) == theirs.normalize_str(text), ascii(text)
        check(ours, text, rng.choices(range(len(text) + 1), k=3))


@pytest.mark.parametrize("name", ["small", "nmt_nfkc"])
@pytest.mark.parametrize("context", ["a{}\u0301 ", "\u0915\u094d{}\u0301 "])
def test_characters_and_their_neighbours(name, context, charsmaps):
    ours, theirs = Normalizer([Precompiled(charsmaps[name])]), hf.Precompiled(charsmaps[name])
    special = {char for name in KINDS for low, high in ranges_of(f"cluster_{name}")
               for char in map(chr, range(low, high + 1))}  # fmt: skip
    known = read_charsmap(charsmaps[name], 5)
    lines = [context.format(char) for char in ALL if char in special or char in known]
    if ours.normalize("".join(lines)) != theirs.normalize_str("".join(lines)):
        assert [x for x in lines if ours.normalize(x) != theirs.normalize_str(x)] == []


def test_what_a_short_cluster_loses():
    ours = Normalizer([Precompiled(SMALL)])
    assert ours.normalize("a\u0301b") == "Ab"
    assert ours.normalize("a\u0301\u0327\u0301") == "Ax\u0327x"  # 7 bytes: one by one


def test_what_waits_is_short():
    ours = Normalizer([Precompiled(SMALL)])
    for text, rest in [
        ("xa", "a"), ("xe", "e"), ("ux", "x"), ("x\n", "\n"), ("xb\u0301", "b\u0301"),
        ("xe\u0301\u0301\u0301", "e\u0301\u0301\u0301"), ("x\u0600", "x\u0600"),
    ]:  # fmt: skip
        assert waits(ours, text) == rest


def test_borders_of_clusters():
    for text, expected in [
        ("\U0001f469\u200d\U0001f467x", 2), ("\U0001f1e6\U0001f1e7\U0001f1e8", 2), ("\r\n", 1),
        ("\u0915\u094d\u0937", 1), ("\u1100\u1161\u11a8가", 2), ("a\u200d©", 2), ("\u0600\n", 2),
    ]:  # fmt: skip
        state, borders = ON_BORDER, 0
        for char in text:
            state, is_border = advance(state, char)
            borders += is_border
        assert borders == expected, ascii(text)


def trie(*units, texts=b"a\0", size=None):
    array = b"".join(unit.to_bytes(4, "little") for unit in units)
    return (len(array) if size is None else size).to_bytes(4, "little") + array + texts


NEXT_BLOCK = 256 << 10  # children 256 places on
HOSTILE = {
    "nothing": (b"", "expected the size"),
    "too large": (trie(0, size=1000), "does not fit"),
    "no trie": (trie(size=0), "does not fit"),
    "children beyond the end": (trie(NEXT_BLOCK), "children are after the end"),
    "ring": (trie(*(i | i << 10 for i in range(256))), "more than"),
    "no UTF-8 in texts": (trie(*[0] * 256, texts=b"\xff\0"), "replacements are not UTF-8"),
    "text beyond the end": (
        trie(0, *[0] * 96, 97 | 1 << 8 | (97 ^ 128) << 10, *[0] * 30, 1 << 31 | 99, *[0] * 127),
        "begins after the end",
    ),
    "inside a character": (
        trie(0, *[0] * 96, 97 | 1 << 8 | (97 ^ 128) << 10, *[0] * 30, 1 << 31 | 1, *[0] * 127,
             texts="é\0".encode()),
        "inside a character",
    ),
    "half a character": (
        trie(0, *[0] * 194, 195 | 1 << 8 | (195 ^ 128) << 10, *[0] * 60, texts=b"a\0"),
        "not UTF-8",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_maps_are_refused(name):
    data, message = HOSTILE[name]
    with pytest.raises(ValueError, match=message):
        Precompiled(data)


def test_damaged_maps_are_refused_or_read(charsmaps):
    rng = random.Random(1)
    data = bytearray(SMALL)
    for _ in range(300):
        damaged = data.copy()
        for _ in range(rng.randint(1, 8)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        damaged = damaged[: rng.choice([len(damaged), rng.randrange(len(damaged))])]
        try:
            Precompiled(bytes(damaged))
        except ValueError:
            continue


def test_writing_and_reading():
    rng = random.Random(2)
    for _ in range(20):
        keys = {"".join(rng.choices("abé日\u0301", k=rng.randint(1, 3))) for _ in range(30)}
        replacements = {key: rng.choice(["", "x", "日本"]) for key in sorted(keys)}
        assert read_charsmap(write_charsmap(replacements), 100) == replacements
