"""Each step beside what it must be equal to: a normalizer of `tokenizers`."""

from tokenizers import Regex, pre_tokenizers
from tokenizers import normalizers as hf

from streamtok.normalizers import (
    PREFIX_SPACE,
    BertAccents,
    BertChinese,
    BertClean,
    Form,
    Lowercase,
    MetaspaceText,
    Nmt,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    ReplaceRuns,
    Strip,
    StripAccents,
)
from streamtok.vocabulary.byte_alphabet import to_bytes

from .random_steps import CHARSMAP


def bert(**settings):
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False}
    return hf.BertNormalizer(**{**off, "lowercase": False, **settings})


# name: (ours, theirs)
NORMALIZERS = {
    "NFC": (Normalizer([Form("NFC")]), hf.NFC()),
    "NFD": (Normalizer([Form("NFD")]), hf.NFD()),
    "NFKC": (Normalizer([Form("NFKC")]), hf.NFKC()),
    "NFKD": (Normalizer([Form("NFKD")]), hf.NFKD()),
    "Lowercase": (Normalizer([Lowercase()]), hf.Lowercase()),
    "StripAccents": (Normalizer([StripAccents()]), hf.StripAccents()),
    "Nmt": (Normalizer([Nmt()]), hf.Nmt()),
    "clean": (Normalizer([BertClean()]), bert(clean_text=True)),
    "chinese": (Normalizer([BertChinese()]), bert(handle_chinese_chars=True)),
    "accents": (Normalizer([Form("NFD"), BertAccents()]), bert(strip_accents=True)),
    "Strip": (Normalizer([Strip(True, True)]), hf.Strip()),
    "Strip left": (Normalizer([Strip(True, False)]), hf.Strip(left=True, right=False)),
    "Strip right": (Normalizer([Strip(False, True)]), hf.Strip(left=False, right=True)),
    "Strip none": (Normalizer([Strip(False, False)]), hf.Strip(left=False, right=False)),
    "Prepend": (Normalizer([Prepend("▁")]), hf.Prepend("▁")),
    "Replace": (Normalizer([Replace(" ", "▁")]), hf.Replace(" ", "▁")),
    "Replace two": (Normalizer([Replace("ea", "e\u0301")]), hf.Replace("ea", "e\u0301")),
    "blanks": (Normalizer([ReplaceRuns(r"\s+", " ")]), hf.Replace(Regex(r"\s+"), " ")),
    "spaces": (Normalizer([ReplaceRuns(" {2,}", "▁")]), hf.Replace(Regex(" {2,}"), "▁")),
    "lines": (
        Normalizer([ReplaceRuns("[\\n\\t=]{3,}", "")]),
        hf.Replace(Regex("[\\n\\t=]{3,}"), ""),
    ),
    "capitals": (Normalizer([ReplaceRuns("[A-Z9]", "<>")]), hf.Replace(Regex("[A-Z9]"), "<>")),
    "Precompiled": (Normalizer([Precompiled(CHARSMAP)]), hf.Precompiled(CHARSMAP)),
    "T5": (
        Normalizer([Precompiled(CHARSMAP), Strip(False, True), ReplaceRuns(" {2,}", "▁")]),
        hf.Sequence(
            [
                hf.Precompiled(CHARSMAP),
                hf.Strip(left=False, right=True),
                hf.Replace(Regex(" {2,}"), "▁"),
            ]
        ),
    ),
    "BertNormalizer": (
        Normalizer([BertClean(), BertChinese(), Form("NFD"), BertAccents(), Lowercase()]),
        hf.BertNormalizer(),
    ),
    "T5-like": (
        Normalizer([Nmt(), Form("NFKC"), Strip(False, True), Replace("  ", " ")]),
        hf.Sequence([hf.Nmt(), hf.NFKC(), hf.Strip(left=False, right=True), hf.Replace("  ", " ")]),
    ),
    "Llama-2-like": (
        Normalizer([Prepend("▁"), Replace(" ", "▁")]),
        hf.Sequence([hf.Prepend("▁"), hf.Replace(" ", "▁")]),
    ),
    "many": (
        Normalizer([Strip(True, True), Form("NFKD"), StripAccents(), Lowercase(), Form("NFC")]),
        hf.Sequence([hf.Strip(), hf.NFKD(), hf.StripAccents(), hf.Lowercase(), hf.NFC()]),
    ),
}


class Uncut:
    """A pre-tokenizer that cuts nothing, as a normalizer."""

    def __init__(self, pre_tokenizer, has_letters=False):
        self.pre_tokenizer, self.has_letters = pre_tokenizer, has_letters

    def normalize_str(self, text):
        made = "".join(part for part, _ in self.pre_tokenizer.pre_tokenize_str(text))
        return to_bytes(made).decode() if self.has_letters else made


PRE_TOKENIZERS = {
    scheme: (
        Normalizer([MetaspaceText("▁", scheme)]),
        Uncut(pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=False)),
    )
    for scheme in ("always", "first", "never")
} | {
    "prefix space": (
        Normalizer([PREFIX_SPACE]),
        Uncut(pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False), True),
    )
}
