"""Tokenizers like those of real models, trained by `tokenizers` on a few texts of our own."""

from __future__ import annotations

import functools
from pathlib import Path

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import streamtok
from streamtok.formats.huggingface import read_huggingface
from streamtok.formats.json_value import JsonValue, parse_json

TOP = Path(__file__).resolve().parents[2]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = (
    "Streams of text: naïve café, 日本語 and unaffable “quotes” [MASK] don't x\u0301 "
    f"{'z' * 150} 😀 \u00a0 end\tof  it. <mask>"
)


@functools.cache
def corpus() -> list[str]:
    return [
        line
        for name in ("README.md", "docs/formats.md", "docs/normalizers.md")
        for line in (TOP / name).read_text("utf-8").replace("<unk>", "unknown").splitlines()
    ]


def loaded(tokenizer: Tokenizer) -> tuple[streamtok.Encoding, Tokenizer]:
    """The file of a tokenizer, as streamtok and tokenizers load it."""
    text = tokenizer.to_str()
    file = JsonValue(parse_json(text.encode(), "file"), "file")
    return read_huggingface(file, "trained"), Tokenizer.from_str(text)


@functools.cache
def bert() -> tuple[streamtok.Encoding, Tokenizer]:
    """As BERT, MiniLM and BGE have it."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.train_from_iterator(
        corpus(), trainers.WordPieceTrainer(vocab_size=900, special_tokens=BERT)
    )
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return loaded(made)


@functools.cache
def t5(splits_words: bool = True) -> tuple[streamtok.Encoding, Tokenizer]:
    """As T5 and XLM-R have it; splits_words: text is cut at blanks before words get marks."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    marks = pre_tokenizers.Metaspace()
    made.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), marks])
        if splits_words
        else marks
    )
    made.decoder = decoders.Metaspace()
    made.train_from_iterator(
        corpus(),
        trainers.UnigramTrainer(
            vocab_size=900,
            special_tokens=["<s>", "</s>", "<unk>"],
            unk_token="<unk>",
        ),
    )
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return loaded(made)


@functools.cache
def words() -> tuple[streamtok.Encoding, Tokenizer]:
    made = Tokenizer(models.WordLevel(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(
        corpus(), trainers.WordLevelTrainer(vocab_size=300, special_tokens=["<unk>", "<mask>"])
    )
    return loaded(made)


MODELS = {"bert": bert, "t5": t5, "albert": functools.partial(t5, False), "words": words}
