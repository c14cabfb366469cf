"""tokenizer.json against Hugging Face's tokenizers: ids, refused features, round trips."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors
from tokenizers import pre_tokenizers as pre
from tokenizers.trainers import BpeTrainer

import streamtok
from streamtok import formats
from streamtok.formats import huggingface
from streamtok.formats.json_value import JsonValue
from streamtok.hf import Tokenizer as Compiling
from streamtok.patterns.sequence import SplitSequence
from streamtok.vocabulary.byte_alphabet import to_bytes, to_text

from ..conftest import stream_ids
from ..oracles import PLAIN, assert_same, cut, refuses, texts, write
from .families import DEEPSEEK, family, ids_of

GPT2 = streamtok.get_encoding("gpt2")


def loaded(tokenizer: Tokenizer, tmp_path) -> streamtok.Encoding:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    return formats.load_huggingface(path)


@pytest.mark.parametrize(
    "patterns",
    [
        # DeepSeek LLM's and V2's, with fewer letters, and Coder's.
        [
            "[\\r\\n]",
            r"\s?[A-Za-zµÀ-ÖØ-öø-ƺ]+",
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$",
            "[一-龥가-퟿]+",
        ],
        ["[\\r\\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥가-퟿]+"],
        [r"a$|\s+", r"\p{L}+$|\n"],
    ],
)
def test_ends_of_lines(patterns: list[str], tmp_path) -> None:
    theirs = family("DeepSeek")
    splits = [pre.Split(Regex(pattern), "isolated") for pattern in patterns]
    theirs.pre_tokenizer = pre.Sequence(
        [*splits, pre.Digits(True), pre.ByteLevel(False, use_regex=False)]
    )
    enc = loaded(theirs, tmp_path)
    rng = random.Random(4)
    parts = [
        "a",
        "b ",
        " ",
        "  ",
        "\n",
        "\r",
        "\t",
        "é",
        "日",
        "。",
        "!",
        "12",
        "\u3000",
        "한",
        "¬",
    ]
    for text in [*texts(), *("".join(rng.choices(parts, k=9)) for _ in range(300))]:
        ids = ids_of(theirs)(text)
        assert enc.encode(text, allowed_special="all") == ids
        stream = enc.stream_encoder(allowed_special="all")
        assert stream_ids(stream, [text[at : at + 3] for at in range(0, len(text), 3)]) == ids


@pytest.mark.parametrize("name", ["gpt2", "cl100k_base"])
def test_openais_vocabularies(name, tmp_path):
    enc = streamtok.get_encoding(name)
    formats.save_huggingface(enc, tmp_path / "tokenizer.json")
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    again = formats.load_huggingface(tmp_path)
    assert (
        again.definition.vocabulary == enc.definition.vocabulary
    )  # it became the plain rank table again
    assert_same(again, ids_of(theirs), allowed_special="all")
    for text in PLAIN:
        assert enc.encode(text) == again.encode(text)


def llama3(as_strings: bool) -> str:
    """Like Llama 3's: each cut of a token is a merge, and pre-tokens are looked up first."""
    ranks = {
        t: r for t, r in streamtok.get_encoding("cl100k_base")._mergeable_ranks.items() if r < 9000
    }
    ranks[b" unreachable by merges"] = 9000
    merges = []
    for token in ranks:
        ways = [(token[:i], token[i:]) for i in range(1, len(token))]
        ways = [way for way in ways if way[0] in ranks and way[1] in ranks]
        merges += sorted(ways, key=lambda way: (ranks[way[0]], ranks[way[1]]))
    pairs = [[to_text(left), to_text(right)] for left, right in merges]
    file = json.loads(Tokenizer(models.BPE(ignore_merges=True)).to_str())
    file["model"]["vocab"] = {to_text(token): rank for token, rank in ranks.items()}
    file["model"]["merges"] = [" ".join(pair) for pair in pairs] if as_strings else pairs
    made = Tokenizer.from_str(json.dumps(file))
    made.pre_tokenizer = family("Llama 3").pre_tokenizer
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|begin_of_text|>", "<|eot_id|>", "<|eot_id|>more"])
    made.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 9001)]
            ),
        ]
    )
    written = json.loads(made.to_str())
    written["model"]["merges"] = file["model"]["merges"]
    return json.dumps(written)


@pytest.mark.parametrize("as_strings", [True, False])
def test_like_llama_3(as_strings, tmp_path):
    path = write(tmp_path / "tokenizer.json", llama3(as_strings))
    theirs = Tokenizer.from_file(str(path))
    enc = formats.load_huggingface(path)
    samples = [
        *texts(),
        "a<|eot_id|>b <|eot_id|>more <|eot_id|>mor  <|begin_of_text|><|eot_id|",
        "x unreachable by merges", " unreachable", " unreachable by merges ",
    ]  # fmt: skip
    assert_same(enc, ids_of(theirs), samples, allowed_special="all")
    assert theirs.encode("a").ids == [9001, *enc.encode("a")]  # the post-processor adds 9001
    with pytest.raises(ValueError, match="disallowed special token"):
        enc.encode("a<|eot_id|>")


def test_a_pretoken_that_no_merges_make(tmp_path):
    for ignore_merges in (True, False):
        vocab = {c: i for i, c in enumerate(sorted(pre.ByteLevel.alphabet()))}
        vocab |= {"abc": 256, "ab": 257, "bc": 258, "Ġabc": 259}
        model = models.BPE(vocab, [("b", "c")], ignore_merges=ignore_merges)
        theirs = Tokenizer(model)
        theirs.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
        enc = loaded(theirs, tmp_path)
        assert_same(enc, ids_of(theirs), ["abc", "abc abc abcd ab", " abc", "xabc abc"])
        assert enc.decode([256, 257, 259]) == "abcab abc"
        formats.save_huggingface(enc, tmp_path / "again.json")
        assert formats.load_huggingface(tmp_path / "again.json").digest == enc.digest


def test_merges_of_letters_for_no_byte_never_happen(tmp_path):
    vocab = {c: i for i, c in enumerate(sorted(pre.ByteLevel.alphabet()))}
    vocab |= {"日": 256, "日b": 257, "ab": 258, "abc": 259}
    merges = [("日", "b"), ("a", "b"), ("ab", "c")]
    theirs = Tokenizer(models.BPE(vocab, merges))
    theirs.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    enc = loaded(theirs, tmp_path)
    assert_same(enc, ids_of(theirs), ["日b 日", "abc日bab", *PLAIN])
    assert enc.decode([257, 258]) == "日bab"


@pytest.mark.parametrize("seed", range(8))
def test_ids_in_any_order_and_merges_in_any_order(seed):
    rng = random.Random(seed)
    file = json.loads(family("GPT-2", 400).to_str())
    vocab = file["model"]["vocab"]
    numbers = list(range(len(vocab) - 1))
    rng.shuffle(numbers)
    specials = {"<|endoftext|>": len(vocab) - 1}
    others = [token for token in vocab if token not in specials]
    file["model"]["vocab"] = dict(zip(others, numbers, strict=True)) | specials
    file["added_tokens"][0]["id"] = len(vocab) - 1
    merges = file["model"]["merges"]
    for _ in range(rng.randint(0, 60)):
        i, j = rng.randrange(len(merges)), rng.randrange(len(merges))
        merges[i], merges[j] = merges[j], merges[i]
    merges += rng.sample(merges, 5)  # the later place counts
    theirs = Tokenizer.from_str(json.dumps(file))
    enc = huggingface.read_huggingface(JsonValue(file, "made"), "made")
    for text in [*PLAIN, "".join(rng.choices("theinabc \n", k=200))]:
        expected = ids_of(theirs)(text)
        assert enc.encode(text) == expected
        assert stream_ids(enc.stream_encoder(), cut(rng, text.encode(), 5)) == expected


# Added tokens


def with_added(*tokens: AddedToken, special: tuple[str, ...] = ()) -> Tokenizer:
    made = family("GPT-2")
    made.add_tokens(list(tokens))
    made.add_special_tokens(list(special))
    return made


def test_added_tokens_are_always_found(tmp_path):
    theirs = with_added(
        AddedToken("<tool>", special=False, normalized=False),
        AddedToken("<tool>x", special=False, normalized=False),
        AddedToken("  ", special=False, normalized=False),
        AddedToken("日本", special=False, normalized=False),
        special=("<|im_start|>", "<|im_end|>"),
    )
    enc = loaded(theirs, tmp_path)
    samples = [
        "<tool>", "a<tool>x b", "<tool", "<tool>xy<tool>", "a   b    c", "日本語 日",
        "x<|im_start|>", "<|im_start|>user\n  hi<|im_end|>\n<|im_", *PLAIN,
    ]  # fmt: skip
    assert_same(enc, ids_of(theirs), samples, allowed_special="all")
    assert enc.special_tokens_set == {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
    assert 901 not in enc.definition.specials.ids
    assert enc.encode_ordinary("a<tool>") == ids_of(theirs)("a<tool>")
    assert enc.encode("<tool>") == [900]
    assert enc.decode([900]) == "<tool>"
    assert enc.encode_single_token("<tool>") == 900
    decoder = enc.stream_decoder(skip_special_tokens=True)
    assert decoder.decode(ids_of(theirs)("<|im_start|><tool>")) == "<tool>"
    formats.save_huggingface(enc, tmp_path / "again.json")
    assert formats.load_huggingface(tmp_path / "again.json").digest == enc.digest
    with pytest.raises(ValueError, match="encode_with_unstable"):
        enc.encode_with_unstable("a")


def test_overlapping_added_tokens(tmp_path):
    """Those that match raw text are found first."""
    for first, second in (("<ab>", "b>c"), ("<ab>", "a"), ("x", "yx"), ("ab", "ba")):
        theirs = with_added(
            AddedToken(first, normalized=True), AddedToken(second, normalized=False)
        )
        samples = ["<ab>c<ab>", "yxyx", "abab", "babax<ab>ab>c", first + second, second + first]
        assert_same(loaded(theirs, tmp_path), ids_of(theirs), samples)
    theirs = with_added(AddedToken("<a>", normalized=True), AddedToken("{a}", normalized=False))
    enc = loaded(theirs, tmp_path)
    assert enc.definition.rules.token_flags == ()  # without overlap, it is all the same
    assert_same(enc, ids_of(theirs), ["<a>{a}", "<{a}>", "{<a>"])


def test_hostile_added_tokens(tmp_path):
    file = json.loads(family("GPT-2").to_str())
    entry = file["added_tokens"][0] | {"special": False, "normalized": True}
    for contents, message in (
        (["x" * 17_000_000], "tokens have more than"),
        (["x" * 3_000_000], "at most 1024 bytes; 'xxx.* has 3000000"),
        ([f"<{i}>" + "y" * 1_000 for i in range(17_000)], "tokens have more than"),
    ):
        new = [
            entry | {"id": len(file["model"]["vocab"]) + i, "content": text}
            for i, text in enumerate(contents)
        ]
        data = json.dumps(file | {"added_tokens": new})
        refuses(formats.load_huggingface, write(tmp_path / "t.json", data), match=message)


# Refused features


METASPACE_FIRST = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}
BYTE_LEVEL = {"type": "ByteLevel"}
REPLACE = {"type": "Replace", "pattern": {"Regex": "[ab]"}, "content": "x"}
WORD_PIECE = {"type": "WordPiece", "prefix": "##", "cleanup": True}
SLOW_PARTS = [
    {"pre_tokenizer__pretokenizers__1": {"type": "Metaspace", "replacement": "▁"}},
    {"pre_tokenizer__pretokenizers__3__add_prefix_space": True},
    {"pre_tokenizer__pretokenizers__0__behavior": "Removed"},
    {"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "a+b"}},
    {"pre_tokenizer": None},
    {"model__end_of_word_suffix": "</w>"},
]


@pytest.mark.parametrize("changes", SLOW_PARTS)
def test_what_no_automaton_follows(changes, tmp_path):
    """Such files are read all the same: Python cuts the text."""
    theirs = Tokenizer.from_str(changed(**changes))
    enc = loaded(theirs, tmp_path)
    assert_same(enc, ids_of(theirs), PLAIN, allowed_special="all", round_trip=False)


def changed(**changes) -> str:
    file = json.loads(family("DeepSeek").to_str())
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = file
        for parent in parents:
            place = place[int(parent) if parent.isdigit() else parent]
        place[int(last) if last.isdigit() else last] = value
    return json.dumps(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"truncation": 5}, "truncation: expected an object"),
        ({"padding": [1]}, "padding: expected an object"),
        ({"more": 1}, "the field 'more' is not supported"),
        ({"normalizer": {"type": "Magic"}}, "normalizer: the normalizer 'Magic' is not"),
        ({"pre_tokenizer": {"type": "Unknown"}}, "'Unknown' is not supported"),
        ({"pre_tokenizer__pretokenizers__1": METASPACE_FIRST}, "the scheme first is supported bef"),
        ({"pre_tokenizer__pretokenizers__0__behavior": "Merged"}, "the behavior 'Merged'"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "^a"}}, "matches at every line"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "a{1,2}+"}}, "repeated repetition"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "(?<=a)b"}}, "group that is not"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "(?m:.)"}}, "group that is not"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "[a&&b]"}}, "is a nested set"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": r"\bx"}}, "word boundary"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "("}}, "pattern"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {}}, "expected a Regex or a String"),
        ({"post_processor": {"type": "Magic"}}, "the post-processor 'Magic' is not supported"),
        (
            {"decoder": {"type": "Sequence", "decoders": [BYTE_LEVEL, REPLACE]}},
            "each token by itself",
        ),
        (
            {"decoder": {"type": "Sequence", "decoders": [WORD_PIECE, {"type": "Fuse"}]}},
            "as the only",
        ),
        ({"decoder": {"type": "CTC"}}, "the decoder 'CTC' is not supported"),
        ({"decoder": {"type": "WordPiece", "cleanup": True}}, "prefix: expected a string"),
        ({"model__type": "Morphemes"}, "the model 'Morphemes' is not supported: expected BPE"),
        ({"model__dropout": 0.1}, "dropout 0.1 is not supported"),
        ({"model__end_of_word_suffix": 5}, "end_of_word_suffix: expected a string"),
        ({"model__continuing_subword_prefix": "##"}, "the second must begin with '##'"),
        ({"decoder": {"type": "BPEDecoder", "suffix": "</w>"}}, "with end_of_word_suffix only"),
        ({"model__magic": True}, "the field 'magic' is not supported"),
        ({"model__vocab__a": None}, "the id of 'a' must be in 0 … 4294967294, not None"),
        ({"model__vocab__a": 1.5}, "the id of 'a' must be in 0 … 4294967294, not 1.5"),
        ({"model__vocab__a": -1}, "not -1"),
        ({"model__vocab__a": 7}, "id 7 is given twice"),
        ({"model__vocab": []}, "vocab: expected an object"),
        ({"model__vocab": {}}, "not in the vocabulary"),
        ({"model__merges__3": "ab"}, "merge 3: expected two tokens, found 'ab'"),
        ({"model__merges__3": ["a"]}, "merge 3: expected two tokens"),
        ({"model__merges__3": ["a", 5]}, "merge 3: expected two tokens"),
        ({"model__merges__3": ["a", "zzzz"]}, "merge 3, of 'a' and 'zzzz'"),
        ({"model__merges__3": ["a", "日"]}, "'日' is not in the vocabulary"),
        ({"model__merges": None}, "merges: expected an array"),
        ({"model__ignore_merges": "yes"}, "expected true or false"),
        ({"added_tokens__0__id": "x"}, "id: expected an integer"),
        ({"added_tokens__0__content": 5}, "content: expected a string"),
        ({"added_tokens": {}}, "added_tokens: expected an array"),
    ],
)
def test_unsupported_features_are_refused_by_name(changes, message, tmp_path):
    path = write(tmp_path / "t.json", changed(**changes))
    refuses(formats.load_huggingface, path, match=message)


def test_a_missing_byte(tmp_path):
    file = json.loads(changed())
    file["model"]["merges"] = []
    del file["model"]["vocab"]["a"]
    theirs = Tokenizer.from_str(json.dumps(file))
    path = write(tmp_path / "t.json", json.dumps(file))
    enc = formats.load_huggingface(path)
    assert enc.encode("banana") == theirs.encode("banana").ids  # what has no token is left out
    assert enc.decode(enc.encode("banana")) == "bnn"


def refused_encodings() -> Iterator[tuple[streamtok.Encoding, str]]:
    def made(**parts: Any) -> streamtok.Encoding:
        return streamtok.Encoding("mine", pat_str=GPT2._pat_str, **parts)

    def read(file: str) -> streamtok.Encoding:
        return huggingface.read_huggingface(JsonValue(json.loads(file), "made"), "made")

    words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, "[UNK]"))
    yield read(family("Qwen").to_str()), "has a normalizer"
    yield read(words.to_str()), "has the pieces of WordLevel"
    words.model = models.WordPiece({"a": 0, "##b": 1, "[UNK]": 2}, unk_token="[UNK]")
    yield read(words.to_str()), "other settings of WordPiece than training gives"
    words.normalizer = normalizers.NFC()
    yield read(words.to_str()), "other settings of WordPiece than training gives"
    table = GPT2.definition.vocabulary
    yield (
        made(mergeable_ranks=table, special_tokens={"caf\xe9": 60000}),
        "has the token 'caf\xe9', which ByteLevel decodes to bytes",
    )
    special = {"<|a|>": 50257, "hello": 50258}
    yield made(mergeable_ranks=table, special_tokens=special), "one id for a text: 'hello'"


@pytest.mark.parametrize(("enc", "message"), list(refused_encodings()))
def test_encodings_that_cannot_be_written(enc, message, tmp_path):
    refuses(formats.save_huggingface, enc, tmp_path / "x", match=message)
    assert not list(tmp_path.iterdir())


def test_pretokens_of_every_character():
    """About every hundredth character; all of them would take minutes."""
    theirs = pre.Sequence([pre.Split(Regex(pattern), "isolated") for pattern in DEEPSEEK])
    mine = SplitSequence(DEEPSEEK)
    rng = random.Random(3)
    points = [rng.randrange(0x20, 0x3000) for _ in range(3000)]
    for point in points:
        text = "a{0}1{0}' {0}.{0}B\n".format(chr(point))
        assert mine.findall(text) == [part for part, _ in theirs.pre_tokenize_str(text)], hex(point)


LATIN = [
    "\u0120a",
    "caf\xe9",
    "\xe9\xe9",
    "\xc3\xa9",
    "\u0120\u010a",
    "\xff\xff",
    "a\xc3",
    "\xa9a",
    "\u65e5",
]
LATIN += ["a\xe9\u65e5", "<|x|>", "a b", "a b\xe9", "\xad\xad", "x\t\u010a", "\u0120 ", "\u0142o"]


@pytest.mark.parametrize("is_special", [True, False])
def test_added_tokens_in_the_byte_alphabet_decode_to_their_text(tmp_path, is_special):
    """In tokenizers, the decoder ByteLevel takes each of their characters for a byte."""
    theirs = family("GPT-2")
    (theirs.add_special_tokens if is_special else theirs.add_tokens)(LATIN)
    theirs.save(str(tmp_path / "tokenizer.json"))
    enc = streamtok.load(tmp_path / "tokenizer.json", cache=False)
    ids = [theirs.token_to_id(text) for text in LATIN]
    plain = enc.encode("hello a world")
    rng = random.Random(5)
    rows = [[id] for id in ids] + [rng.choices([*ids, *plain], k=6) for _ in range(200)]
    merged = {left + right for left, right in json.loads(theirs.to_str())["model"]["merges"]}
    own = {id: text.encode() for id, text in zip(ids, LATIN, strict=True) if text not in merged}
    byte_of = {id: to_bytes(text) for text, id in theirs.get_vocab().items()}
    hf = Compiling.from_str(theirs.to_str())
    for row in rows:
        assert hf.decode(row, False) == theirs.decode(row, skip_special_tokens=False)
        expected = b"".join(own.get(id) or byte_of[id] for id in row).decode("utf-8", "replace")
        assert enc.decode(row) == expected
        decoder = enc.stream_decoder()
        assert "".join(decoder.decode([id]) for id in row) + decoder.flush() == expected
        data = enc.decode_bytes(row)
        assert b"".join(enc.decode_tokens_bytes(row)) == data
        if data == expected.encode():
            assert enc.decode_with_offsets(row)[0] == expected
    text = "a".join(LATIN)
    found = enc.encode(text, allowed_special="all")
    assert found == theirs.encode(text, add_special_tokens=False).ids
    if is_special:
        assert enc.first_drift(found) is None


REPLACES = {
    "set": [decoders.Replace(Regex("[\u2581_]"), " "), decoders.ByteFallback(), decoders.Fuse()],
    "others": [decoders.Replace(Regex("[^a-z]"), "\xe9"), decoders.Fuse()],
    "two": [
        decoders.Replace("ab", "<>"), decoders.Replace("\u2581", " "), decoders.ByteFallback(),
        decoders.Fuse(), decoders.Strip(" ", 1, 0),
    ],
    "bytes": [decoders.Replace(Regex("[\u0120a]"), "x"), decoders.ByteLevel()],
}  # fmt: skip


@pytest.mark.parametrize("kind", REPLACES)
def test_decoders_that_replace_in_each_token(tmp_path, kind):
    """Also in added tokens, and in streams."""
    theirs = Tokenizer(models.BPE(byte_fallback=kind != "bytes"))
    specials = [] if kind == "bytes" else [f"<0x{byte:02X}>" for byte in range(256)]
    theirs.pre_tokenizer = (
        pre.ByteLevel(False) if kind == "bytes" else pre.Metaspace(prepend_scheme="never")
    )
    trainer = BpeTrainer(
        vocab_size=600,
        special_tokens=specials,
        initial_alphabet=pre.ByteLevel.alphabet() if kind == "bytes" else [],
        show_progress=False,
    )
    theirs.train_from_iterator(["a_b abc ab \u2581x hello world cab_d abab \xe9"] * 5, trainer)
    theirs.add_tokens(["a_\u2581b"])
    theirs.add_special_tokens(["<ab_>"])
    theirs.decoder = decoders.Sequence(REPLACES[kind])
    theirs.save(str(tmp_path / "tokenizer.json"))
    enc = streamtok.load(tmp_path / "tokenizer.json", cache=False)
    text = "a_b hello \u2581x<ab_> a_\u2581b \xe9"
    found = enc.encode(text, allowed_special="all")
    assert found == theirs.encode(text).ids
    rng = random.Random(kind)
    known = range(len(specials), theirs.get_vocab_size())  # the bytes alone are not UTF-8
    for ids in [found, *(rng.choices(known, k=6) for _ in range(200))]:
        expected = theirs.decode(ids, skip_special_tokens=False)
        assert enc.decode(ids) == expected
        decoder = enc.stream_decoder()
        assert "".join(decoder.decode([id]) for id in ids) + decoder.flush() == expected


# What the decoder WordPiece cleans, what nearly is that, and what begins with a prefix.
PIECES = [
    "", " ", ".", " .", "?", "!", ",", "'", " ' ", "' ", "n't", " n't", "'m", "do not", " do not",
    "do", "not", "'s", " 's .", "'ve", "'re", "a . b", "##", "##a", "###b", "##.", "## .", "##'s",
    "## do not", "a##", "#", "\u0120a", "<0x41>", "<0xE9>", "\u2581a", "\xe9", "x" * 20,
]  # fmt: skip


def with_word_pieces(kind: str, prefix: str, cleanup: bool) -> Tokenizer:
    alphabet = pre.ByteLevel.alphabet() if kind == "bytes" else list("abcdo nt'.,?!#")
    inner = "##" if kind == "prefix" else ""
    tokens = dict.fromkeys([*PIECES, *alphabet, *(inner + letter for letter in alphabet)])
    if kind == "fallback":
        tokens |= dict.fromkeys(f"<0x{byte:02X}>" for byte in range(256))
    tokens["[UNK]"] = None
    merges = [("a", inner + "b"), ("d", inner + "o"), ("n", inner + "o")]
    tokens |= dict.fromkeys(left + right.removeprefix(inner) for left, right in merges)
    settings = {"continuing_subword_prefix": inner} if inner else {}
    made = Tokenizer(
        models.BPE(
            {token: 3 * id for id, token in enumerate(tokens)},
            merges,
            unk_token="[UNK]",
            byte_fallback=kind == "fallback",
            **settings,
        )
    )
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre.ByteLevel(False) if kind == "bytes" else pre.BertPreTokenizer()
    made.add_tokens([AddedToken("Do Not", normalized=True), "##Added", "!!"])
    made.add_special_tokens(["[SEP]", "##[X]", ".[Y]"])
    made.decoder = decoders.WordPiece(prefix, cleanup)
    return made


@pytest.mark.parametrize("kind", ["letters", "prefix", "bytes", "fallback"])
@pytest.mark.parametrize("prefix", ["##", "", "#"])
@pytest.mark.parametrize("cleanup", [True, False])
def test_the_decoder_word_piece(tmp_path, kind, prefix, cleanup):
    """Whole, in streams cut anywhere and saved between, as arrays, in batches."""
    theirs = with_word_pieces(kind, prefix, cleanup)
    enc = loaded(theirs, tmp_path)
    formats.save_packed(enc, tmp_path / "packed.streamtok")
    again = streamtok.load(tmp_path / "packed.streamtok")
    text = "Do not ab ##added [SEP] aa. do!!"
    found = enc.encode(text, allowed_special="all")
    assert found == ids_of(theirs)(text)
    rng = random.Random(f"{kind} {prefix} {cleanup}")
    known = list(theirs.get_vocab(with_added_tokens=True).values())
    special = sorted(enc.definition.specials.ids)
    rows = [[], found, special, *([id] for id in known), *([id, id] for id in known)]
    rows += [rng.choices(known, k=rng.randint(2, 7)) for _ in range(300)]
    rows += [[*rng.choices(special, k=2), *rng.choices(known, k=3)] for _ in range(30)]
    expected = [theirs.decode(row, skip_special_tokens=False) for row in rows]
    assert enc.decode_batch(rows) == again.decode_batch(rows) == expected
    for row, whole in zip(rows, expected, strict=True):
        data = whole.encode()
        assert enc.decode_bytes(iter(row)) == data
        assert enc.decode_bytes(np.array(row, np.uint32)) == data
        assert enc.decode(row, errors="strict") == whole
        if not enc.definition.specials.ids.intersection(row):
            is_canonical = enc.encode(whole, disallowed_special=()) == row
            assert enc.is_canonical(row) == is_canonical
        shown, offsets = enc.decode_with_offsets(row)
        assert shown == whole
        assert offsets == [len(enc.decode(row[:at])) for at in range(len(row))]
        for skip in (False, True):
            decoder = enc.stream_decoder(skip_special_tokens=skip)
            got = ""
            at = 0
            while at < len(row):
                step = rng.randint(0, 3)
                got += decoder.decode(iter(row[at : at + step]))
                at += step
                state = decoder.getstate()
                decoder = rng.choice((enc, again)).stream_decoder(skip_special_tokens=skip)
                decoder.setstate(state)
            assert got + decoder.flush() == theirs.decode(row, skip_special_tokens=skip)
            assert decoder.decode_bytes(row).decode() == theirs.decode(
                row, skip_special_tokens=skip
            )
