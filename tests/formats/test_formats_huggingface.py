"""tokenizer.json against Hugging Face's tokenizers: ids, refused features, round trips."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors
from tokenizers import pre_tokenizers as pre

import streamtok
from streamtok import formats
from streamtok.formats.packed import dumps_packed, loads_packed
from streamtok.vocabulary.byte_alphabet import to_text

from ..encodings import like
from ..oracles import PLAIN, assert_same, refuses, texts
from .families import family
from .reading import both, changed, check, ids_of, read, refused


@pytest.mark.parametrize(
    "patterns",
    [
        # DeepSeek LLM's and V2's, with fewer letters, and Coder's.
        [r"[\r\n]", r"\s?[A-Za-zµ-ƺ]+", r"\s?[!-/:-~！-／]+", r"\s+$", "[一-龥가-퟿]+"],
        ["[\\r\\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥가-퟿]+"],
        [r"a$|\s+", r"\p{L}+$|\n"],
    ],
)
def test_ends_of_lines(patterns: list[str]) -> None:
    theirs = family("DeepSeek")
    splits = [pre.Split(Regex(pattern), "isolated") for pattern in patterns]
    theirs.pre_tokenizer = pre.Sequence(
        [*splits, pre.Digits(True), pre.ByteLevel(False, use_regex=False)]
    )
    rng = random.Random(4)
    parts = ["a", "b ", " ", "  ", *"\n\r\té日。!\u3000한¬", "12"]
    check(theirs, [*texts(), *("".join(rng.choices(parts, k=9)) for _ in range(300))])


def test_openais_vocabularies(tmp_path):
    enc = streamtok.get_encoding("cl100k_base")
    formats.save_huggingface(enc, tmp_path / "tokenizer.json")
    again = check((tmp_path / "tokenizer.json").read_text("utf-8"), round_trip=True)
    assert again.definition.vocabulary == enc.definition.vocabulary  # the plain rank table again


def llama3(as_strings: bool) -> str:
    """Like Llama 3's: pre-tokens are looked up first, and special tokens go around a text."""
    file = json.loads(family("Llama 3").to_str())
    model = file["model"]
    model["ignore_merges"] = True
    model["vocab"][to_text(b" unreachable by merges")] = len(model["vocab"])
    if as_strings:
        model["merges"] = [" ".join(pair) for pair in model["merges"]]
    made = Tokenizer.from_str(json.dumps(file))
    made.add_special_tokens(["<|begin_of_text|>", "<|eot_id|>", "<|eot_id|>more"])
    begin = "<|begin_of_text|>", made.token_to_id("<|begin_of_text|>")
    made.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(f"{begin[0]} $A", special_tokens=[begin]),
        ]
    )
    written = json.loads(made.to_str())
    written["model"]["merges"] = model["merges"]
    return json.dumps(written)


@pytest.mark.parametrize("as_strings", [True, False])
def test_like_llama_3(as_strings):
    theirs, enc = both(llama3(as_strings))
    samples = [
        *texts(),
        "a<|eot_id|>b <|eot_id|>more <|eot_id|>mor  <|begin_of_text|><|eot_id|",
        "x unreachable by merges", " unreachable", " unreachable by merges ",
    ]  # fmt: skip
    assert_same(enc, ids_of(theirs), samples, allowed_special="all")
    assert theirs.encode("a").ids == enc.encode("a", add_special_tokens=True)
    with pytest.raises(ValueError, match="disallowed special token"):
        enc.encode("a<|eot_id|>")


def test_merges_of_letters_for_no_byte_never_happen():
    vocab = {c: i for i, c in enumerate(sorted(pre.ByteLevel.alphabet()))}
    vocab |= {"日": 256, "日b": 257, "ab": 258, "abc": 259}
    merges = [("日", "b"), ("a", "b"), ("ab", "c")]
    theirs = Tokenizer(models.BPE(vocab, merges))
    theirs.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    enc = check(theirs, ["日b 日", "abc日bab", *PLAIN], round_trip=True)
    assert enc.decode([257, 258]) == "日bab"


# Added tokens


def test_added_tokens_are_always_found(tmp_path):
    theirs = family("GPT-2")
    for text in ("<tool>", "<tool>x", "  ", "日本"):
        theirs.add_tokens([AddedToken(text, special=False, normalized=False)])
    theirs.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    samples = [
        "<tool>", "a<tool>x b", "<tool", "<tool>xy<tool>", "a   b    c", "日本語 日",
        "x<|im_start|>", "<|im_start|>user\n  hi<|im_end|>\n<|im_", *PLAIN,
    ]  # fmt: skip
    enc = check(theirs, samples, round_trip=True)
    assert enc.special_tokens_set == {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
    assert 901 not in enc.definition.specials.ids
    assert enc.encode_ordinary("a<tool>") == ids_of(theirs)("a<tool>")
    assert enc.encode("<tool>") == [900] == [enc.encode_single_token("<tool>")]
    decoder = enc.stream_decoder(skip_special_tokens=True)
    assert decoder.decode(ids_of(theirs)("<|im_start|><tool>")) == "<tool>"
    formats.save_huggingface(enc, tmp_path / "again.json")
    assert formats.load(tmp_path / "again.json").digest == enc.digest
    with pytest.raises(ValueError, match="encode_with_unstable"):
        enc.encode_with_unstable("a")


# Refused features


METASPACE_FIRST = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}
BYTE_LEVEL = {"type": "ByteLevel"}
REPLACE = {"type": "Replace", "pattern": {"Regex": "[ab]"}, "content": "x"}
WORD_PIECE = {"type": "WordPiece", "prefix": "##", "cleanup": True}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"truncation": 5}, "truncation: expected an object"),
        ({"more": 1}, "the field 'more' is not supported"),
        ({"pre_tokenizer": {"type": "Unknown"}}, "'Unknown' is not supported"),
        ({"pre_tokenizer__pretokenizers__1": METASPACE_FIRST}, "the scheme first is supported bef"),
        ({"pre_tokenizer__pretokenizers__0__behavior": "Merged"}, "the behavior 'Merged'"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "^a"}}, "matches at every line"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "a{1,2}+"}}, "repeated repetition"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": "(?<=a)b"}}, "group that is not"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {"Regex": r"\bx"}}, "word boundary"),
        ({"pre_tokenizer__pretokenizers__0__pattern": {}}, "expected a Regex or a String"),
        (
            {"decoder": {"type": "Sequence", "decoders": [BYTE_LEVEL, REPLACE]}},
            "the decoder Replace is supported for",
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
        ({"model__vocab__a": 1.5}, "the id of 'a' must be in 0 … 4294967294, not 1.5"),
        ({"model__vocab__a": 7}, "id 7 is given twice"),
        ({"model__vocab": []}, "vocab: expected an object"),
        ({"model__merges__3": "ab"}, "merge 3: expected two tokens, found 'ab'"),
        ({"model__merges__3": ["a", "zzzz"]}, "merge 3, of 'a' and 'zzzz'"),
        ({"model__merges": None}, "merges: expected an array"),
        ({"model__ignore_merges": "yes"}, "expected true or false"),
        ({"added_tokens__0__id": "x"}, "id: expected an integer"),
        ({"added_tokens__0__content": 5}, "content: expected a string"),
        ({"added_tokens": {}}, "added_tokens: expected an array"),
        (
            {"added_tokens__0__normalized": True, "added_tokens__0__content": "x" * 3_000_000},
            "at most 1024 bytes; 'xxx.* has 3000000",
        ),
    ],
)
def test_unsupported_features_are_refused_by_name(changes, message):
    refused(changed(json.loads(family("DeepSeek").to_str()), changes), message)


def test_a_missing_byte():
    file = changed(json.loads(family("DeepSeek").to_str()), {"model__merges": []})
    del file["model"]["vocab"]["a"]
    theirs, enc = both(file)
    assert enc.encode("banana") == theirs.encode("banana").ids  # what has no token is left out
    assert enc.decode(enc.encode("banana")) == "bnn"


WORD_LEVEL = models.WordLevel({"a": 0, "[UNK]": 1}, "[UNK]")
WORD_PIECES = models.WordPiece({"a": 0, "##b": 1, "[UNK]": 2}, unk_token="[UNK]")
NOT_WRITTEN: list[tuple[Callable[[], streamtok.Encoding], str]] = [
    (lambda: read(family("Qwen")), "has a normalizer"),
    (lambda: read(Tokenizer(WORD_LEVEL)), "has the pieces of WordLevel"),
    (lambda: read(Tokenizer(WORD_PIECES)), "other settings of WordPiece than training gives"),
    (lambda: read(family("CLIP")), "keep the original file"),
    (lambda: like("gpt2", special={"caf\xe9": 60000}), "caf\xe9', which ByteLevel decodes to byte"),
    (lambda: like("gpt2", special={"<|a|>": 50257, "hello": 50258}), "one id for a text: 'hello'"),
]


@pytest.mark.parametrize(("make", "message"), NOT_WRITTEN)
def test_encodings_that_cannot_be_written(make, message, tmp_path):
    refuses(formats.save_huggingface, make(), tmp_path / "x", match=message)
    assert not list(tmp_path.iterdir())


def test_byte_values_of_pieces_are_without_special_tokens() -> None:
    theirs = Tokenizer(WORD_PIECES)
    theirs.pre_tokenizer = pre.BertPreTokenizer()
    theirs.decoder = decoders.WordPiece()
    theirs.add_special_tokens(["[UNK]"])
    assert sorted(x.strip() for x in read(theirs).token_byte_values()) == [b"a", b"b"]


# What the decoder WordPiece cleans, what nearly is that, and what begins with a prefix.
PIECES = [
    "", " ", ".", " .", "?", "!", ",", "'", " ' ", "' ", "n't", " n't", "'m", "do not", " do not",
    "do", "not", "'s", " 's .", "'ve", "'re", "a . b", "##", "##a", "###b", "##.", "## .", "##'s",
    "## do not", "a##", "#", "\u0120a", "<0x41>", "<0xE9>", "\u2581a", "\xe9", "x" * 20,
]  # fmt: skip


def with_word_pieces(kind: str, prefix: str, cleanup: bool) -> Tokenizer:
    alphabet = pre.ByteLevel.alphabet() if kind == "bytes" else list("abcdo nt'.,?!#")
    merges = [("a", "b"), ("d", "o"), ("n", "o")]
    tokens = dict.fromkeys([*PIECES, *alphabet, "[UNK]", *map("".join, merges)])
    if is_fallback := kind == "fallback":
        tokens |= dict.fromkeys(f"<0x{byte:02X}>" for byte in range(256))
    ids = {token: 3 * id for id, token in enumerate(tokens)}
    made = Tokenizer(models.BPE(ids, merges, unk_token="[UNK]", byte_fallback=is_fallback))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre.ByteLevel(False) if kind == "bytes" else pre.BertPreTokenizer()
    made.add_tokens([AddedToken("Do Not", normalized=True), "##Added", "!!"])
    made.add_special_tokens(["[SEP]", "##[X]", ".[Y]"])
    made.decoder = decoders.WordPiece(prefix, cleanup)
    return made


@pytest.mark.parametrize("kind", ["letters", "bytes", "fallback"])
@pytest.mark.parametrize(("prefix", "cleanup"), [("##", True), ("#", False), ("", True)])
def test_the_decoder_word_piece(kind, prefix, cleanup):
    """Whole, in streams cut anywhere and saved between, as arrays, in batches."""
    theirs = with_word_pieces(kind, prefix, cleanup)
    enc = read(theirs)
    again = loads_packed(dumps_packed(enc))
    text = "Do not ab ##added [SEP] aa. do!!"
    found = enc.encode(text, allowed_special="all")
    assert found == ids_of(theirs)(text)
    rng = random.Random(f"{kind} {prefix} {cleanup}")
    known = list(theirs.get_vocab(with_added_tokens=True).values())
    special = sorted(enc.definition.specials.ids)
    rows = [[], found, special, *([id] for id in known), *([id, id] for id in known)]
    rows += [rng.choices(known, k=rng.randint(2, 7)) for _ in range(100)]
    rows += [[*rng.choices(special, k=2), *rng.choices(known, k=3)] for _ in range(30)]
    expected = [theirs.decode(row, skip_special_tokens=False) for row in rows]
    assert enc.decode_batch(rows) == again.decode_batch(rows) == expected
    for row, whole in zip(rows, expected, strict=True):
        assert enc.decode_bytes(iter(row)) == enc.decode_bytes(np.array(row, np.uint32))
        shown, offsets = enc.decode_with_offsets(row)
        assert shown == whole
        assert offsets == [len(enc.decode(row[:at])) for at in range(len(row))]
        for skip in (False, True):
            decoder = enc.stream_decoder(skip_special_tokens=skip)
            got = ""
            for id in row:
                got += decoder.decode([id])
                state = decoder.getstate()
                decoder = rng.choice((enc, again)).stream_decoder(skip_special_tokens=skip)
                decoder.setstate(state)
            assert got + decoder.flush() == theirs.decode(row, skip_special_tokens=skip)
