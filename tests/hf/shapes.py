"""Tokenizers of all kinds, and the calls that programs make: ours and the real one must agree."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

from tokenizers import AddedToken, Tokenizer, normalizers, processors
from tokenizers import pre_tokenizers as pre

from ..formats.families import FAMILIES, GPT2, MARKS, WITHOUT_FIRST, of_kind

TEXTS = [
    "", " ", "a", "Hello, world! How are you?", "  two  spaces and\ttabs\n\nlines  ",
    "naïve e\u0301tude, ﬁne Ａ, e\u0301", "日本語のテキスト 12345",
    "🎉 party \U0001f468\u200d\U0001f469 <s> x</s> <mask>  y",
    "def f(x):\n    return x + 1  # comment\n", "don't we'll THEY'RE \u2581 under \u00a0 nbsp",
    "a" * 60 + " " * 30 + "\r\n", "[CLS] it [SEP] <|im_start|>user\nhi<|im_end|>",
]  # fmt: skip
PREFIX = pre.ByteLevel(add_prefix_space=True)
Template = processors.TemplateProcessing
BEGUN = Template("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
CLS, SEP = ("[CLS]", 4), ("[SEP]", 5)
ENDS = Template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", [CLS, SEP])
LAST = Template("$A </s>", "$A </s> $B </s>", [("</s>", 2)])
TRIMMING = processors.ByteLevel(trim_offsets=True, add_prefix_space=True)


def gpt2(**parts: Any) -> Tokenizer:
    usual = {"pre_tokenizer": GPT2, "post_processor": processors.ByteLevel(trim_offsets=False)}
    return of_kind("byte level", size=600, **usual | parts)


def roberta() -> Tokenizer:
    ends = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    made = gpt2(pre_tokenizer=PREFIX, post_processor=ends)
    made.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return made


def llama3() -> Tokenizer:
    trim = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    made = gpt2(
        pre_tokenizer=FAMILIES["Llama 3, GLM-4"][2],
        post_processor=processors.Sequence([trim, BEGUN]),
    )
    made.model.ignore_merges = True
    made.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    made.add_tokens([AddedToken("under", normalized=False)])
    return made


FOLDED = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
WITH_MARKS = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
FIRST = pre.Metaspace("▁", prepend_scheme="first", split=False)
BERT = normalizers.BertNormalizer(), pre.BertPreTokenizer()
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "gpt2": gpt2,
    "roberta": roberta,
    "llama3": llama3,
    "trimmed": lambda: gpt2(pre_tokenizer=PREFIX, post_processor=TRIMMING),
    "nfc": lambda: gpt2(normalizer=normalizers.NFC()),
    "lower": lambda: gpt2(normalizer=FOLDED, post_processor=ENDS),
    "llama2": lambda: of_kind(
        "characters", WITH_MARKS, size=900, decoder=WITHOUT_FIRST, post_processor=BEGUN
    ),
    "metaspace": lambda: of_kind("characters", None, FIRST, 900, decoder=WITHOUT_FIRST),
    "bert": lambda: of_kind("WordPiece", *BERT, post_processor=processors.BertProcessing(SEP, CLS)),
    "unigram": lambda: of_kind("Unigram", normalizers.NFKC(), MARKS, post_processor=LAST),
    "word_level": lambda: of_kind("WordLevel", None, pre.Whitespace()),
}


def told(encoding: Any) -> dict[str, Any]:
    """All that an encoding says. The other names of what is here are not."""
    n = len(encoding)
    characters = range(12)
    return {
        "ids": encoding.ids,
        "type_ids": encoding.type_ids,
        "attention_mask": encoding.attention_mask,
        "special_tokens_mask": encoding.special_tokens_mask,
        "tokens": encoding.tokens,
        "len": n,
        "n_sequences": encoding.n_sequences,
        "overflowing": [told(part) for part in encoding.overflowing],
        "offsets": encoding.offsets,
        "word_ids": encoding.word_ids,
        "sequence_ids": encoding.sequence_ids,
        "char_to_token": [encoding.char_to_token(at) for at in characters],
        "char_to_word": [encoding.char_to_word(at) for at in characters],
        "token_to_chars": [encoding.token_to_chars(at) for at in range(n)],
        "token_to_word": [encoding.token_to_word(at) for at in range(n)],
        "token_to_sequence": [encoding.token_to_sequence(at) for at in range(n)],
        "word_to_tokens": [encoding.word_to_tokens(at) for at in range(4)],
        "word_to_chars": [encoding.word_to_chars(at) for at in range(4)],
        "repr": repr(encoding),
    }


def raised(call: Callable[[], Any]) -> Any:
    """What a call gives, or what it raises."""
    try:
        found = call()
    except BaseException as error:  # the class of panics is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        # Which text of a batch is refused first is chance there, so what went wrong is left out.
        return type(error).__name__, str(error).partition(":")[0]
    return found


def said(call: Callable[[], Any]) -> Any:
    """As `raised`, with encodings told."""

    def plain(found: Any) -> Any:
        if hasattr(found, "special_tokens_mask"):
            return told(found)
        if isinstance(found, list | tuple):
            return [plain(one) for one in found]
        return found

    found = raised(call)
    return raised(lambda: plain(found))


def _settings(tokenizer: Any) -> Iterator[str]:
    """Set truncation and padding in all ways, one after another."""
    pads: list[tuple[str, dict[str, Any] | None]] = [
        ("no padding", None),
        ("padding", {}),
        ("left", {"direction": "left", "pad_id": 3, "pad_type_id": 2, "pad_token": "<pad>"}),
        ("fixed", {"length": 9, "pad_token": "</s>", "pad_id": 2}),
        ("multiple", {"pad_to_multiple_of": 8}),
        ("left fixed multiple", {"length": 5, "pad_to_multiple_of": 4, "direction": "left"}),
    ]
    cuts: list[tuple[str, dict[str, Any] | None]] = [
        ("no truncation", None),
        ("6", {"max_length": 6}),
        ("7, stride 2", {"max_length": 7, "stride": 2}),
        ("left", {"max_length": 8, "stride": 3, "direction": "left"}),
        ("only_first", {"max_length": 6, "strategy": "only_first"}),
        ("only_second", {"max_length": 6, "strategy": "only_second"}),
        ("nothing", {"max_length": 0}),
        ("1", {"max_length": 1}),
    ]
    for pad, padding in pads:
        tokenizer.no_padding() if padding is None else tokenizer.enable_padding(**padding)
        for cut, truncation in cuts:
            if truncation is None:
                tokenizer.no_truncation()
            else:
                tokenizer.enable_truncation(**truncation)
            yield f"{pad}, {cut}"
    tokenizer.no_padding()
    tokenizer.no_truncation()


Calls = Callable[[Any], Iterator[tuple[str, Callable[[], Any]]]]
PAIR = ("How many people?", "About 8 million of them, in 2020.")
WORDS = ["Hello", ",", " world", "日本", ""]


def _encodes(t: Any, texts: list[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "encode", lambda: [t.encode(text) for text in texts]
    yield "encode, plain", lambda: [t.encode(text, add_special_tokens=False) for text in texts]
    yield "encode, pairs", lambda: [t.encode(text, "and this") for text in texts]
    yield "encode, words", lambda: t.encode(WORDS, is_pretokenized=True)
    yield "encode, pairs of words", lambda: t.encode(WORDS, WORDS, is_pretokenized=True)
    yield "batch", lambda: t.encode_batch(texts)
    yield "batch, plain", lambda: t.encode_batch(texts, add_special_tokens=False)
    yield "batch, of one", lambda: t.encode_batch([texts[3]])
    yield "batch, of none", lambda: t.encode_batch([])
    yield "batch, of pairs", lambda: t.encode_batch([PAIR, (texts[3], texts[4])])
    yield "batch, of both", lambda: t.encode_batch([texts[3], PAIR])
    yield "batch, of words", lambda: t.encode_batch([WORDS, ["x"]], is_pretokenized=True)
    yield "batch, fast", lambda: t.encode_batch_fast(texts)
    yield "batch, tuple", lambda: t.encode_batch(tuple(texts))


def _wrong(t: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    for what in (b"bytes", None, 3, ["list"], ("a", "b")):
        yield f"encode {what!r}", lambda what=what: t.encode(what)
        yield f"batch {what!r}", lambda what=what: t.encode_batch([what])
    yield "batch of a str", lambda: t.encode_batch("abc")
    yield "decode -1", lambda: t.decode([-1])
    yield "decode str", lambda: t.decode("abc")
    yield "decode a number", lambda: t.decode(3)
    yield "padding", lambda: t.enable_padding(direction="up")
    yield "truncation", lambda: t.enable_truncation(5, strategy="none")
    yield "stride", lambda: t.enable_truncation(5, stride=7)


def _decodes(t: Any, ids: list[list[int]]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for skip in (True, False):
        yield f"decode, {skip}", lambda s=skip: [t.decode(row, s) for row in ids]
        yield f"decode, name, {skip}", lambda s=skip: t.decode(ids[3], skip_special_tokens=s)
        yield f"decode_batch, {skip}", lambda s=skip: t.decode_batch(ids, s)
        yield f"reversed, {skip}", lambda s=skip: [t.decode(row[::-1], s) for row in ids]
        yield f"each, {skip}", lambda s=skip: [t.decode([id], s) for row in ids for id in row]
    yield "unknown ids", lambda: t.decode([*ids[3], 999_999, 3])


def _vocabulary(t: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "vocab", t.get_vocab
    yield "vocab, plain", lambda: t.get_vocab(with_added_tokens=False)
    yield "size", lambda: (t.get_vocab_size(), t.get_vocab_size(False))
    yield "names", lambda: [t.id_to_token(id) for id in (0, 5, 100, 999_999)]
    yield "ids", lambda: [t.token_to_id(x) for x in ("<s>", "a", "nothing at all")]
    yield "added", lambda: [(n, str(x)) for n, x in t.get_added_tokens_decoder().items()]
    yield "to add", lambda: (t.num_special_tokens_to_add(False), t.num_special_tokens_to_add(True))
    yield "json", t.to_str
    yield "truncation", lambda: t.truncation
    yield "padding", lambda: t.padding
    yield "model", lambda: type(t.model).__name__
    yield "str", lambda: str(t)
    yield "repr", lambda: repr(t)


def _objects(t: Any, texts: list[str]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls on encodings."""
    made = t.encode

    def padded(**how: Any) -> Any:
        one = made(texts[3])
        one.pad(20, **how)
        return one

    def cut(**how: Any) -> Any:
        one = made(texts[3])
        one.truncate(3, **how)
        return one

    def numbered() -> Any:
        one = made(texts[3])
        one.set_sequence_id(1)
        return one.char_to_token(1, 1), one.word_to_tokens(0, 1)

    def both() -> Any:
        # Which text an id is of depends on the order of a hash map there.
        return t.post_process(*[made(x, add_special_tokens=False) for x in texts[3:5]])

    yield "pad", padded
    yield "pad, left", lambda: padded(direction="left", pad_id=3, pad_type_id=1, pad_token="x")
    yield "truncate", lambda: cut(stride=1)
    yield "truncate, left", lambda: cut(direction="left")
    yield "set_sequence_id", numbered
    yield "merge", lambda: type(made(texts[3])).merge([padded(), padded()], False)
    yield "merge, growing", lambda: type(made(texts[3])).merge([made(texts[3]), made(texts[4])])
    yield "pickle", lambda: pickle.loads(pickle.dumps(made(texts[5])))
    yield "post_process", lambda: t.post_process(t.encode(texts[3], add_special_tokens=False))
    yield "post_process, pair", lambda: both().ids


def differences(ours: Any, real: Any, texts: list[str], every: int = 1) -> tuple[int, list[str]]:
    """How many calls were compared, and those whose answers are not the same.

    ours and real have one origin, and are changed alike. every: of the settings, encode with every
    such one only, beginning with another one each time.
    """
    n, found = 0, []

    def compare(where: str, calls: Calls, pair: Any = (ours, real)) -> None:
        nonlocal n
        for (name, one), (_, other) in zip(*map(calls, pair), strict=True):
            n += 1
            if said(one) != said(other):
                found.append(f"{where}: {name}")

    ids = [real.encode(text, add_special_tokens=True).ids for text in texts]
    compare("vocabulary", _vocabulary)
    compare("decoding", lambda t: _decodes(t, ids))
    compare("encodings", lambda t: _objects(t, texts))
    number = random.randrange(every)
    for setting, _ in zip(_settings(ours), _settings(real), strict=True):
        number += 1
        if number % every == 0:
            compare(setting, lambda t: _encodes(t, texts))
    compare("wrong", _wrong)
    for tokenizer in (ours, real):
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
    compare("special tokens as text", lambda t: _encodes(t, texts))
    for tokenizer in (ours, real):
        tokenizer.encode_special_tokens = False
        tokenizer.add_tokens(["party", AddedToken("it", single_word=True)])
        tokenizer.add_special_tokens(["<new>", AddedToken("<mask>", lstrip=True)])
    texts = [*texts, "a party, <new> it  <mask> and more"]
    compare("added tokens", lambda t: _encodes(t, texts))
    compare("added tokens", _vocabulary)
    copies = copy.deepcopy(ours), copy.deepcopy(real)
    pickled = pickle.loads(pickle.dumps(ours)), pickle.loads(pickle.dumps(real))
    for pair in (copies, pickled):
        compare("copies", lambda t: _encodes(t, texts), pair)
        compare("copies", _vocabulary, pair)
    return n, found
