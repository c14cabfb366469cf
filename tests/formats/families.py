"""Files with the sections that well-known families of models have, trained here on a few texts.

The sections are those of the published `tokenizer.json` files, and of what transformers writes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre

from streamtok import formats

from ..charsmaps import write_charsmap
from ..oracles import PLAIN, corpus_texts

MAP = write_charsmap(
    {"ﬁ": "fi", "½": "1/2", "①": "1", "Ⅷ": "VIII", "\u3000": " ", "\u00a0": " ", "\u200b": " ",
     "\t": " ", "\n": " ", "\r": " ", "e\u0301": "é", "カ": "カ"}
)  # fmt: skip
PRECOMPILED = normalizers.Precompiled(MAP)
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>", "[CLS]", "[SEP]", "[UNK]"]
MARKED = [*SPECIAL[:4], "[MASK]"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
TO_SPACES = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
WITHOUT_FIRST = decoders.Sequence([*TO_SPACES, decoders.Strip(" ", 1, 0)])
# kind of model: how many tokens it has
SIZES = {
    "byte level": 900, "characters": 1400, "unknown": 1400, "Unigram": 2000, "WordPiece": 600,
    "WordLevel": 500, "suffix": 900,
}  # fmt: skip
GPT2 = pre.ByteLevel(add_prefix_space=False)
LAST = pre.ByteLevel(add_prefix_space=False, use_regex=False)
DEEPSEEK = [
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]


def regex(pattern: str, behavior: str = "isolated", invert: bool = False) -> pre.Split:
    return pre.Split(Regex(pattern), behavior, invert)


def replaced(pattern: str, content: str) -> normalizers.Replace:
    return normalizers.Replace(Regex(pattern), content)


MARKS = pre.Metaspace()
WORDS = pre.Sequence([pre.WhitespaceSplit(), MARKS])
QUOTES = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
FOLDS = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
SPACES = replaced(" {2,}", " ")
BLANKS = replaced(r"\s{2,}|[\n\r\t]", " ")
RIGHT = normalizers.Strip(left=False, right=True)
TO_MARKS = normalizers.Replace(" ", "▁")
# family: (normalizer, pre-tokenizer), None where there is none
BYTE_LEVEL = {
    "GPT-2, OPT, MPT, Phi-2, CodeGen, Whisper, RoBERTa, BART": (None, GPT2),
    "GPT-NeoX, Pythia, OLMo, Mamba, ModernBERT": (normalizers.NFC(), GPT2),
    "Falcon": (
        None,
        pre.Sequence(
            [pre.Punctuation("contiguous"), GPT2, pre.Digits(False), regex("[0-9][0-9][0-9]")]
        ),
    ),
    "DeepSeek": (None, pre.Sequence([*map(regex, DEEPSEEK), LAST])),
    "without a pattern": (None, LAST),
    "BLOOM": (None, pre.Sequence([regex(r" ?[^(\s|[.,!?…。，、।۔،])]+"), LAST])),
    "StarCoder, SmolLM, Granite": (None, pre.Sequence([pre.Digits(True), GPT2])),
    "Command R": (normalizers.NFC(), pre.Sequence([pre.Digits(True), GPT2])),
    "Llama 3, GLM-4": (None, pre.Sequence([regex(formats.PATTERNS["llama3"]), LAST])),
    "Qwen 2 to 3": (normalizers.NFC(), pre.Sequence([regex(formats.PATTERNS["qwen2"]), LAST])),
    "Llama 4, gpt-oss": (None, pre.Sequence([regex(formats.PATTERNS["o200k"]), LAST])),
    "Phi-4": (None, pre.Sequence([regex(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", "removed", invert=True), LAST])),
    "Mistral Nemo": (None, pre.Sequence([regex(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"), LAST])),
}  # fmt: skip
CHARACTERS = {
    "Llama 2, Mistral 7B, Phi-3, TinyLlama": (
        normalizers.Sequence([normalizers.Prepend("▁"), TO_MARKS]), None,
    ),
    "Gemma": (TO_MARKS, pre.Split(" ", "merged_with_previous")),
    "SigLIP 2": (
        normalizers.Sequence([normalizers.Lowercase(), TO_MARKS]),
        pre.Split(" ", "merged_with_previous"),
    ),
    "Yi, Baichuan": (TO_MARKS, None),
    "NFKC": (normalizers.Sequence([normalizers.NFKC(), TO_MARKS]), None),
    "Metaspace always": (None, pre.Metaspace(split=False)),
    "Metaspace first": (None, pre.Metaspace(prepend_scheme="first")),
    "Metaspace never": (None, pre.Metaspace(prepend_scheme="never")),
    "Digits": (None, pre.Sequence([pre.Metaspace(prepend_scheme="never"), pre.Digits(True)])),
}  # fmt: skip
# Merges of characters, and others are unknown.
UNKNOWN = {"NLLB": (normalizers.Sequence([PRECOMPILED, SPACES]), MARKS)}
UNIGRAM = {
    "T5, mT5, FLAN, XLM-R, BGE-M3, mE5, mBART, CamemBERT": (PRECOMPILED, WORDS),
    "mBART-50, Pegasus": (normalizers.Sequence([PRECOMPILED, SPACES]), MARKS),
    "ALBERT, XLNet": (normalizers.Sequence([*QUOTES, *FOLDS, PRECOMPILED]), WORDS),
    "RemBERT": (normalizers.Sequence([*QUOTES, SPACES, PRECOMPILED]), MARKS),
    "DeBERTa-v3": (
        normalizers.Sequence([normalizers.Strip(), PRECOMPILED, SPACES]),
        pre.Sequence([MARKS]),
    ),
    "DeBERTa-v3 of transformers 5, BARThez": (
        normalizers.Sequence([BLANKS, normalizers.NFC(), RIGHT]),
        pre.Sequence([MARKS]),
    ),
    "Big Bird": (
        normalizers.Sequence([normalizers.Strip(left=False, right=False), replaced(" {2,}", "▁")]),
        MARKS,
    ),
}
WORD_PIECE = {
    "BERT, MiniLM, BGE, E5, GTE, DistilBERT, ELECTRA": normalizers.BertNormalizer(),
    "BERT cased, LaBSE, multilingual": normalizers.BertNormalizer(lowercase=False),
    "MPNet": normalizers.BertNormalizer(strip_accents=None),
}
CLIP = (
    normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]),
    regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", "removed", invert=True),
)
FAMILIES = {
    **{name: ("byte level", *parts) for name, parts in BYTE_LEVEL.items()},
    **{name: ("characters", *parts) for name, parts in CHARACTERS.items()},
    "CLIP": ("suffix", CLIP[0], pre.Sequence([CLIP[1], GPT2])),
    **{name: ("unknown", *parts) for name, parts in UNKNOWN.items()},
    **{name: ("Unigram", *parts) for name, parts in UNIGRAM.items()},
    **{name: ("WordPiece", one, pre.BertPreTokenizer()) for name, one in WORD_PIECE.items()},
}


def bytes_trainer(size: int, special: Sequence[str] = SPECIAL) -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special),
        initial_alphabet=pre.ByteLevel.alphabet(),
        show_progress=False,
    )


@functools.cache
def trained(kind: str, size: int, special: tuple[str, ...]) -> str:
    """A file with a model of this kind, and without what changes, cuts or completes a text."""
    settings = {"vocab_size": size, "special_tokens": [*special], "show_progress": False}
    normalizer: Any = normalizers.Sequence([])
    if kind == "byte level":
        model, splits, trainer = models.BPE(), GPT2, bytes_trainer(size, special)
        decoder: Any = decoders.ByteLevel()
    elif kind in ("characters", "unknown"):
        settings["special_tokens"] += BYTES if kind == "characters" else []
        model = models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=kind == "characters")
        splits, trainer = MARKS, trainers.BpeTrainer(limit_alphabet=500, **settings)
        decoder = decoders.Sequence(TO_SPACES) if kind == "characters" else decoders.Metaspace()
    elif kind == "WordPiece":
        model, splits = models.WordPiece(unk_token="[UNK]"), pre.BertPreTokenizer()
        trainer, decoder = trainers.WordPieceTrainer(**settings), decoders.WordPiece()
        normalizer = normalizers.BertNormalizer()
    elif kind == "suffix":
        model = models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>")
        splits, decoder = GPT2, decoders.ByteLevel()
        settings["initial_alphabet"] = pre.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(end_of_word_suffix="</w>", **settings)
    elif kind == "WordLevel":
        model, splits = models.WordLevel(unk_token="[UNK]"), pre.Whitespace()
        trainer, decoder = trainers.WordLevelTrainer(**settings), None
    else:
        model, splits, decoder = models.Unigram(), MARKS, decoders.Metaspace()
        trainer = trainers.UnigramTrainer(unk_token="<unk>", **settings)
    made = Tokenizer(model)
    made.pre_tokenizer, made.normalizer = splits, normalizer
    texts = [text[:4000] for text in (*PLAIN, *corpus_texts()) if text]
    made.train_from_iterator(texts, trainer)
    file = json.loads(made.to_str())
    file["added_tokens"] = [one for one in file["added_tokens"] if one["content"] not in BYTES]
    if decoder is not None:
        made.decoder = decoder
        file["decoder"] = json.loads(made.to_str())["decoder"]
    return json.dumps(file | {"normalizer": None, "pre_tokenizer": None, "post_processor": None})


def of_kind(
    kind: str,
    normalizer: Any = None,
    pre_tokenizer: Any = None,
    size: int | None = None,
    special: Sequence[str] = SPECIAL,
    **parts: Any,
) -> Tokenizer:
    """A tokenizer with a model of this kind, and these parts where they are given."""
    made = Tokenizer.from_str(trained(kind, size or SIZES[kind], tuple(special)))
    for name, part in (parts | {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer}).items():
        if part is not None:
            setattr(made, name, part)
    return made


def family(name: str, size: int | None = None) -> Tokenizer:
    """The first family whose name begins like that; size: of a byte-level vocabulary."""
    name, (kind, normalizer, pre_tokenizer) = next(
        row for row in FAMILIES.items() if row[0].startswith(name)
    )
    special = {"byte level": ["<|endoftext|>"], "characters": MARKED, "unknown": MARKED}
    made = of_kind(kind, normalizer, pre_tokenizer, size, special.get(kind, SPECIAL))
    if kind == "characters" and isinstance(pre_tokenizer, pre.Metaspace):
        marks = decoders.Metaspace(prepend_scheme=pre_tokenizer.prepend_scheme)
        made.decoder = decoders.Sequence([marks, *TO_SPACES[1:]])
    elif name.startswith("Llama 2"):
        made.decoder = WITHOUT_FIRST
    if "NeoX" in name:  # rows of spaces, as these models have them
        made.add_tokens([AddedToken(" " * size, normalized=True) for size in range(24, 1, -1)])
    return made
