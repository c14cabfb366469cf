"""What is only there for speed gives what the slow way gives: windows, registers, threads."""

from __future__ import annotations

import functools
import gc
import itertools
import pickle
import random

import numpy as np
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtok
from streamtok._core._testing import (
    kernels,
    last_marks,
    levels,
    marks,
    use_tier,
)
from streamtok._core.encode import TokenTable
from streamtok.patterns.pattern import Pattern
from streamtok.patterns.tables import Windows
from streamtok.patterns.windows import UNDECIDED
from streamtok.reference import bpe as reference
from streamtok.vocabulary.bundled import load_bundled
from streamtok.vocabulary.table import NO_ID

from ..api.test_chunker import KINDS, endless
from ..api.test_laws import PATTERNS
from ..conftest import LLAMA3_PATTERN, PACKED, encoding_of, scanner_of, stream_ids
from ..encodings import SINGLES, make_encoding
from ..oracles import cut

SPLITS = [
    *(streamtok.get_encoding(name)._pat_str for name in PACKED),
    LLAMA3_PATTERN,
    *PATTERNS,
    r"'s|[^\S\n]+(?!\S)|\n+|\p{L}{1,4}|\d\d?|.",
    r"(?:'[a-c])+|[a-z']+?|[^a-z']",
    r"\p{L}+|\d{1,7}|'[a-c]{2}|[^\p{L}\d]",
    # more classes than the small tables of windows have rows
    r"[as]+v?|[vl]+d?|[dS]+A?|\d+[.,]?|\s+|[^\s\dasvldS]",
]
# In each, something ends rows, follows a trigger, or nearly does.
ROWS = [
    r"\s*[\r\n]+|\s+(?!\S)|\s+|'(?i:[sdmt]|ll|ve|re)|\w+|[^\w\s]",
    r"a+b|a+(?!c)|a|b|c|[^abc]",
    r"a{3}b|a|b|[^ab]",
    r"(?:aa)+b|a|b|[^ab]",
    r"(?:aa)+b|(?:aaa)+c|a|b|c|[^abc]",
    r"a{1,4}b|c?a+(?!d)|a|[^a]",
    r"b\s+c|\s+(?=c)|\s+|[a-c]|[^a-c\s]",
    r" ?'[st]|'t|\w+|\s|[^\w\s]",
    r"\.'s|\.'|'[st]?|[a-z]+|[^a-z]",
    r"'s'|'s|'[a-z]|[a-z]+|[^a-z']",
    r"x'[st]|[a-z]+|'|[^a-z']",
    r"n\s+bc|n|\s+|[a-z]|[^a-z\s]",  # b does not end a row for sure
    r"n\s{3}b|n|\s+|[a-z]|[^a-z\s]",  # only after some lengths
    r"n\s{4}b|n|\s+|[a-z]|[^a-z\s]",
]
# 13 classes: more pairs of them than AVX2 looks up at once
MANY_CLASSES = r"[as]+v?|[vl]+d?|[dS]+A?|/+1?|'+s?|\d+,?|\s+|[^\s\dasvldS/']"
PIECES = [
    *"aAsSdlv'1 9\n\r\t/.,é日ſ",
    *("'s", "'ll", "'RE", "  ", "\n\n", "   x", "123", "don't", "://", "\n    ", "x'", "'x"),
    *("\n" + " " * 62, " " * 130 + "y", "\n" + "\t" * 66 + "'s", " 's", "s's", "('ll"),
    *("12345678", "1" * 70, "٣", "1٣", "'ſ", "'é日", "''", "'1"),
]


LEVELS = levels()


def text_of(rng: random.Random, size: int) -> str:
    return "".join(rng.choices(PIECES, k=size))


def rows_of(rng: random.Random, pattern: Pattern) -> str:
    """Few letters: rows and triggers, with what comes before and behind them."""
    letters = " \nae'stx1.b/(cdn"
    kinds = {pattern.class_of(ord(char)): char for char in reversed(letters)}
    some = rng.choices([*kinds.values()], k=rng.choice([1, 2, 3, 6])) + rng.choices(letters, k=2)
    return "".join(char * rng.choice([1, 1, 1, 2, 3, 6]) for char in rng.choices(some, k=200))


compiled = functools.cache(Pattern.compile)


@functools.cache
def starts_of(source: str, text: str) -> np.ndarray:
    """bool [bytes]: where pieces begin, by the slow walk, which is the same for all tiers.

    A character that is skipped counts as a piece, see `Automaton.closed`.
    """
    starts = np.zeros(len(text.encode()) + 1, bool)
    at = 0
    pattern = compiled(source)
    for piece in (pattern.closed or pattern).findall(text):
        starts[at] = True
        at += len(piece.encode())
    return starts


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("source", [*SPLITS, MANY_CLASSES, *ROWS])
def test_windows_never_say_what_is_not_so(source: str, level: int) -> None:
    pattern = compiled(source)
    if pattern.windows is None:
        assert not pattern.is_total or source in PATTERNS
        return
    scanner = scanner_of(pattern)
    use_tier(scanner, level)
    rng = random.Random(source)
    decided = 0
    for number in range(50):
        text = rows_of(rng, pattern) if number % 3 else text_of(rng, 400)
        data = text.encode()
        blocks = (len(data) - 9) // 64
        begins, is_open = (
            np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
            for words in marks(scanner, data, 8, blocks, number % 2 == 1)
        )
        truth = starts_of(source, text)[8 : 8 + 64 * blocks]
        assert not (begins & is_open).any()
        assert (begins == truth)[~is_open].all(), text
        decided += int((~is_open).sum())
    assert decided


CONTINUATIONS = ["", "a", "s", "'", "'s", " ", "\n", "1", "12", "é", "日", "/", "S", "  \n", "ſ"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("source", SPLITS)
def test_the_end_of_a_text_is_told_only_as_far_as_it_is_certain(source: str, level: int) -> None:
    """What the windows decide of the last bytes is so whatever follows them.

    At the beginning of a text, too, where they see a margin instead of what comes before.
    """
    pattern = compiled(source)
    if pattern.windows is None:
        return
    scanner = scanner_of(pattern)
    use_tier(scanner, level)
    rng = random.Random(source)
    decided = 0
    margins = 0
    for number in range(200):
        data = text_of(rng, rng.randrange(12, 170)).encode()[:320]
        text = data.decode("utf-8", "ignore")
        data = text.encode()
        start = (8, 1)[number % 2]
        if len(data) <= start or (words := last_marks(scanner, data, start)) is None:
            continue
        size = len(data) - start
        begins, is_open = (
            np.unpackbits(np.array(row, np.uint64).view(np.uint8), bitorder="little").astype(bool)
            for row in words
        )
        assert is_open[size:].all()
        for more in rng.sample(CONTINUATIONS, 5):
            truth = starts_of(source, text + more)[start : start + size]
            assert (begins[:size] == truth)[~is_open[:size]].all(), (number, text, more)
        decided += int((~is_open).sum())
        margins += start == 1
    assert margins or source not in SPLITS[:4]
    assert decided or source not in SPLITS[:4]


@settings(max_examples=40)
@given(
    source=st.sampled_from(SPLITS),
    seed=st.integers(0, 2**32),
    level=st.sampled_from(LEVELS),
    errors=st.sampled_from(["replace", "surrogateescape"]),
)
def test_texts_of_any_size_equal_the_reference(
    source: str, seed: int, level: int, errors: str
) -> None:
    """In each tier, also where all that is longer than a few bytes is marked."""
    rng = random.Random(seed)
    tokens = {text_of(rng, rng.randint(1, 4)).encode() for _ in range(120)}
    pairs = {token[i : i + 2] for token in tokens for i in range(len(token) - 1)}
    order = [*SINGLES, *sorted(t for t in pairs | tokens if len(t) > 1)]
    ranks = {token: rank for rank, token in enumerate(order)}
    enc = make_encoding(source, ranks)
    if compiled(source).windows is not None:
        use_tier(enc.definition.encoder.scanner, level, rng.choice([None, 10]))
    for size in (3, 10, 30, 60, 300):
        data = bytearray(text_of(rng, size).encode())
        for _ in range(rng.choice([0, 0, 1, 5])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        expected = reference.encode_ordinary(ranks, source, bytes(data), errors)
        with kernels(level):
            assert enc.encode(bytes(data), errors=errors) == expected
            if enc.pattern is not None:
                chunks = cut(rng, bytes(data), rng.choice([5, 20, 80]))
                assert stream_ids(enc.stream_encoder(errors=errors), chunks) == expected


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_rows_of_blanks_and_quotes_are_told(name: str, level: int) -> None:
    """However a block of 64 cuts them: in code, next to nothing is left to the walk."""
    scanner = scanner_of(encoding_of(name).pattern)
    use_tier(scanner, level)
    for indent in [*range(2, 9), 63, 64, 65, 127, 128, 130, 200]:
        lines = [f"x = ('s', 'd')\n{' ' * indent}return 'tis\n" for _ in range(60)]
        data = "".join(lines).encode()
        blocks = (len(data) - 9) // 64
        _, is_open = marks(scanner, data, 8, blocks)
        # A row that ends behind the last block stays open.
        assert sum(int(word).bit_count() for word in is_open) <= 1, indent


@pytest.mark.parametrize("name", PACKED)
def test_windows_decide_nearly_all_of_plain_text(name: str) -> None:
    windows = streamtok.get_encoding(name).pattern.windows
    assert isinstance(windows, Windows)
    assert chr(windows.trigger) == "'"
    assert windows.run == (0 if name == "r50k_base" else 3)
    used = windows.decisions[: windows.lefts.max() + 1, : windows.rights.max() + 1]
    assert (used == UNDECIDED).mean() < 0.25


def long_piece(rng: random.Random, letters: str, size: int) -> str:
    """Letters at random, runs of one, and a few of them again and again."""
    parts, made = [], 0
    while made < size:
        count = rng.choice([1, 20, 100, 1000, 3000])
        unit = "".join(rng.choices(letters, k=rng.choice([1, 2, 3, 5, 47, 64, 65])))
        is_random = rng.random() < 0.5
        part = "".join(rng.choices(letters, k=count)) if is_random else unit * (count // len(unit))
        parts.append(part)
        made += len(part)
    return "".join(parts)


def few_letters(rng: random.Random) -> tuple[str, dict[bytes, int], list[str]]:
    """A pattern, ranks of tokens of a few letters, many of them long, so that segments often
    disagree; and texts of pre-tokens of every size: new ones of up to 64 bytes wait for others.
    """
    letters = rng.choice(["a", "ab", "abc", "日本é", "a日", "abcé日"])
    tokens = {letter * 2**k for letter in letters for k in range(1, rng.choice([2, 4, 7, 9]))}
    while len(tokens) < 100 and len(letters) > 1:
        if rng.random() < 0.5:
            tokens.add("".join(rng.choices(letters, k=rng.choice([2, 2, 3, 4, 7]))))
        else:  # long ones: what is cut by few tokens
            tokens.add("".join(rng.choices(sorted({*letters, *tokens}), k=rng.randint(2, 6)))[:40])
    data = {token.encode() for token in tokens}
    if rng.random() < 0.5:  # each is made of others
        data |= {token[:end] for token in data for end in range(2, len(token))}
    order = sorted(data, key=len) if rng.random() < 0.3 else rng.sample(sorted(data), len(data))
    step = rng.choice([1, 3])  # ids in a row, or not
    more = (token for token in order if token not in SINGLES)
    ranks = SINGLES | {token: 256 + step * i for i, token in enumerate(more)}
    words = [long_piece(rng, letters, n)[:n] for n in [*range(1, 300, 3), *range(225, 262)] * 2]
    rng.shuffle(words)
    texts = [long_piece(rng, letters, size) for size in (1, 65, 70, 130, 250, 500, 1100, 30_000)]
    for share in (1, 0.03, 0):  # of long words: some batches have many, some few, some none
        chosen = [word for word in words if len(word.encode()) <= 15 or rng.random() < share]
        texts.append(" ".join(chosen * (1 if share == 1 else 4)) + " ")
    short = [word for word in words if len(word) < rng.choice([4, 17, 71])]
    # Sixteen go side by side, and four such groups at a time.
    for count in [*range(1, 30), 60, 64, 65, 81, 130, 200]:
        text = " ".join(rng.choices(short, k=count))
        texts.append(text[: rng.randint(1, 140)] if rng.random() < 0.5 else text)
    # The second leaves blanks out.
    return rng.choice([r"[^ ]+| ", r"[^ ]+", r" ?\w+|\s+|[^\w\s]+"]), ranks, texts


def of_a_bundled_one(rng: random.Random, name: str) -> tuple[str, dict[bytes, int], list[str]]:
    """Words among others and alone, and pre-tokens that are long."""
    enc = encoding_of(name)
    words = ["".join(rng.choices("etaoinsh日本ё", k=rng.randint(1, 40))) for _ in range(1000)]
    texts = [" ".join(words), *(endless(kind, 20_000).decode() for kind in KINDS), "=-" * 10_000]
    texts += ["".join(rng.choice("=-#*") * rng.randint(1, 200) for _ in range(200))]
    texts += ["".join(map(chr, rng.choices(range(0x4E00, 0x9FA0), k=7000)))]
    for size in range(1, 71):
        texts += [
            "".join(rng.choices(some, k=size)) for some in ("etaoinshrdl", "日本語のё", "=-#")
        ]
    return enc._pat_str, enc._mergeable_ranks, texts


def no_break_spaces(width: int) -> tuple[str, dict[bytes, int], list[str]]:
    """Lines of them: a segment may agree beyond the place where the next one begins."""
    lines = 8 * ("\r\n" + width * "\u00a0")
    sizes = range(150, len(lines) - 4, 13)
    texts = [lines[start : start + size] for start in range(4) for size in sizes]
    return r"\s+", streamtok.get_encoding("r50k_base")._mergeable_ranks, texts


MERGES = {
    **{f"few letters {seed}": few_letters for seed in range(12)},
    **{name: functools.partial(of_a_bundled_one, name=name) for name in PACKED},
    **{f"lines of {n}": lambda rng, n=n: no_break_spaces(n) for n in range(56, 68)},
}
CALLS = [
    lambda enc, text, rng: enc.encode_ordinary(text),
    lambda enc, text, rng: enc.encode(text.encode()),
    lambda enc, text, rng: enc.encode_to_numpy(text).tolist(),
    lambda enc, text, rng: stream_ids(enc.stream_encoder(), cut(rng, text, len(text) // 5 + 1)),
]


@pytest.mark.parametrize("name", MERGES)
def test_every_tier_merges_as_tiktoken_does(name: str) -> None:
    rng = random.Random(name)
    pattern, ranks, texts = MERGES[name](rng)
    enc = make_encoding(pattern, ranks)
    twin = tiktoken.Encoding("t", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    expected = [twin.encode_ordinary(text) for text in texts]
    for level in LEVELS:
        with kernels(level):
            for number, (text, ids) in enumerate(zip(texts, expected, strict=True)):
                if len(ranks) < 5000 or not number:  # a large cache takes a while to make
                    enc.definition.encoder.release()
                for call in rng.sample(CALLS, 2):  # for one of them all is new, then it is known
                    assert call(enc, text, rng) == ids, (number, text[:100])
                assert enc.count(text) == len(ids)
                if " " not in text and len(text) < 2000:
                    piece = enc.definition.encoder.encode_pretoken(text.encode())
                    assert len(enc.pattern.findall(text)) != 1 or piece == ids


@pytest.mark.parametrize("name", PACKED)
def test_packed_parts_are_those_that_the_core_finds(name: str) -> None:
    table = load_bundled(name)
    assert table.lefts is None
    assert table.is_rank_table
    arrays = table.tokens, table.offsets, table.ids
    found = TokenTable(*arrays)
    known = TokenTable(*arrays, parts=table.parts)
    np.testing.assert_array_equal(known.lefts(), found.lefts())
    assert known.longest_unreachable == found.longest_unreachable
    assert known.longest == found.longest
    lefts, rights = table.parts
    made = lefts != NO_ID
    assert made.sum() == len(table) - 256
    tokens = table.to_list()
    pairs = zip(lefts.tolist(), rights.tolist(), strict=True)
    assert all(
        token == (tokens[left] + tokens[right] if is_made else token)
        for token, (left, right), is_made in zip(tokens, pairs, made, strict=True)
    )


def test_arrays_own_their_memory() -> None:
    enc = streamtok.get_encoding("gpt2")
    text = "one two three " * 20_000
    first = enc.encode_to_numpy(text)
    expected = first.copy()
    second = enc.encode_to_numpy("another text " * 20_000)
    assert first.dtype == np.uint32
    assert first.flags.writeable
    np.testing.assert_array_equal(first, expected)
    second[:] = 0
    np.testing.assert_array_equal(enc.encode_to_numpy(text), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)), expected)
    part = first[5:10]
    del first, second, enc
    gc.collect()
    np.testing.assert_array_equal(part, expected[5:10])


@pytest.mark.parametrize("level", LEVELS)
def test_str_of_every_width_becomes_its_utf8(level: int) -> None:
    enc = streamtok.get_encoding("gpt2")
    rng = random.Random(1)
    kinds = [range(0x80), range(0x100), [*range(0xD800), *range(0xE000, 0x10000)]]
    kinds.append(range(0x10000, 0x110000))
    for kind, size, share in itertools.product(range(4), [*range(40), 100, 1000], [0.02, 0.5, 1]):
        some = [rng.randint(0, kind) if rng.random() < share else 0 for _ in range(size)]
        text = "".join(chr(rng.choice(kinds[one])) for one in some)
        text = str(text.encode(), "utf-8")  # a new one, without UTF-8 of its own
        with kernels(level):
            assert enc.decode_bytes(enc.encode_ordinary(text)) == text.encode()
