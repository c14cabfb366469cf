"""Random encodings with flagged added tokens and normalizers, and their twins in `tokenizers`."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

import streamtok
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.normalizers import (
    Form,
    Lowercase,
    MetaspaceText,
    Normalizer,
    Precompiled,
    PrefixSpace,
    Prepend,
    Replace,
    StripAccents,
)
from streamtok.normalizers.charsmap import write_charsmap
from streamtok.vocabulary.byte_alphabet import to_text

CHARSMAP = write_charsmap({"e\u0301": "\u00e9", "A": "a\u0301", "\n": " ", "a\u0301": ""})
LETTERS = "aAb .\n\u2581e\u00e9\u0301"
STEPS = {
    "NFC": (Form("NFC"), normalizers.NFC()),
    "NFD": (Form("NFD"), normalizers.NFD()),
    "NFKC": (Form("NFKC"), normalizers.NFKC()),
    "lower": (Lowercase(), normalizers.Lowercase()),
    "accents": (StripAccents(), normalizers.StripAccents()),
    "prepend": (Prepend("\u2581"), normalizers.Prepend("\u2581")),
    "spaces": (Replace(" ", "\u2581"), normalizers.Replace(" ", "\u2581")),
    "fold": (Replace("\u2581", " "), normalizers.Replace("\u2581", " ")),
    "double": (Replace("a", "aa"), normalizers.Replace("a", "aa")),
    "drop": (Replace("b", ""), normalizers.Replace("b", "")),
    "map": (Precompiled(CHARSMAP), normalizers.Precompiled(CHARSMAP)),
    "join": (Replace("ab", "A"), normalizers.Replace("ab", "A")),
}


@dataclass
class Twins:
    """An encoding, and what it must do."""

    ours: streamtok.Encoding
    theirs: Tokenizer
    strings: list[str]  # of the tokens

    def ids(self, text: str) -> list[int] | None:
        """Theirs; None where they panic: lstrip among the blanks that rstrip took."""
        try:
            return self.theirs.encode(text, add_special_tokens=False).ids
        except BaseException as error:  # the class of panics is no Exception
            if type(error).__name__ != "PanicException":
                raise
            return None


def twins(seed: int) -> Twins:
    """The encodings number `seed`."""
    rng = random.Random(seed)
    parts = [b"a", b"b", b" ", b"A", b".", "\u2581".encode(), b"e", "\u00e9".encode()]
    tokens = [bytes([i]) for i in range(256)]
    merges: list[tuple[bytes, bytes]] = []
    for _ in range(rng.randint(0, 30)):
        pair = rng.choice(tokens[-30:]), rng.choice(tokens[-30:])
        if rng.random() < 0.7:
            pair = rng.choice(parts)[:1], rng.choice(parts)[-1:]
        if b"".join(pair) not in tokens:
            merges.append(pair)
            tokens.append(b"".join(pair))
    names = rng.sample(sorted(STEPS), rng.choice([0, 1, 1, 2, 3]))
    step = rng.choice([None, None, "prefix", "metaspace"])
    theirs = Tokenizer(
        models.BPE(
            vocab={to_text(token): i for i, token in enumerate(tokens)},
            merges=[(to_text(left), to_text(right)) for left, right in merges],
        )
    )
    second: Normalizer | None = None
    chain = [pre_tokenizers.ByteLevel(add_prefix_space=step == "prefix", use_regex=False)]
    if step == "prefix":
        second = Normalizer([PrefixSpace()])
    elif step == "metaspace":
        scheme = rng.choice(["always", "first", "never"])
        second = Normalizer([MetaspaceText("\u2581", scheme)])
        chain.insert(0, pre_tokenizers.Metaspace("\u2581", scheme, split=False))
    theirs.pre_tokenizer = pre_tokenizers.Sequence(chain)
    theirs.normalizer = normalizers.Sequence([STEPS[name][1] for name in names])
    normalizer = Normalizer([STEPS[name][0] for name in names])
    added, special = {}, {}
    flags: list[tuple[str, TokenFlags]] = []
    seen = set()
    odds = rng.choice([0.0, 0.3, 0.3])
    for _ in range(rng.randint(0, 5)):
        text = "".join(rng.choices(LETTERS, k=rng.randint(1, 3)))
        flag = TokenFlags(*(rng.random() < odds for _ in range(4)))
        found = normalizer.normalize(text) if flag.normalized else text
        if not found or (flag.normalized, found) in seen or text in added or text in special:
            continue  # which of two with the same text is found is not determined
        if text.encode() in tokens:
            continue
        seen.add((flag.normalized, found))
        token = AddedToken(
            text,
            normalized=flag.normalized,
            lstrip=flag.lstrip,
            rstrip=flag.rstrip,
            single_word=flag.single_word,
        )
        is_special = rng.random() < 0.4
        (theirs.add_special_tokens if is_special else theirs.add_tokens)([token])
        (special if is_special else added)[text] = theirs.token_to_id(text)
        flags.append((text, flag))
    ours = streamtok.Encoding(
        f"random {seed}",
        pat_str=r"[\s\S]+",
        mergeable_ranks={token: i for i, token in enumerate(tokens)},
        special_tokens=special,
        rules=TextRules(
            tuple(added.items()),
            normalizer=normalizer,
            token_flags=tuple(flags),
            second_normalizer=second,
        ),
    )
    return Twins(ours, theirs, [*added, *special])


def text_of(rng: random.Random, strings: list[str]) -> str:
    """A text with many tokens, and beginnings of tokens."""
    parts = []
    for _ in range(rng.randint(0, 8)):
        part = rng.choice(strings) if strings and rng.random() < 0.4 else rng.choice(LETTERS)
        parts.append(part[: rng.randint(1, len(part))] if rng.random() < 0.2 else part)
    return "".join(parts)
