"""The encodings that the machines try: bundled, random, far-looking, long-worded, normalised."""

from __future__ import annotations

import functools
import json
import random
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

import streamtok
from streamtok._core.encode import MODEL_KINDS
from streamtok.engines.rules import TextRules, TokenFlags
from streamtok.engines.template import Template
from streamtok.normalizers import (
    PREFIX_SPACE,
    Form,
    JoinedSpaces,
    LongestMap,
    Lowercase,
    MetaspaceText,
    Normalizer,
    Prepend,
    Replace,
    Strip,
    StripAccents,
    UnknownRuns,
)
from streamtok.patterns.sequence import SplitSequence
from streamtok.vocabulary.pieces import Pieces
from streamtok.vocabulary.table import Vocabulary

from ...api.test_laws import PATTERNS
from ...charsmaps import write_charsmap
from ...conftest import PACKED, encoding_of
from ...encodings import from_merges, space_rules
from ...tokenizer_files import File

SINGLES = [bytes([i]) for i in range(256)]
SPECIALS = {"<|endoftext|>": 5000, "<|eot_id|>": 5001, "<|eot_id|>\n": 5002}
# Patterns that may look arbitrarily far ahead, letters that matter to them, and whether they look
# at each letter a few times at most: with others a long text is quadratic work for everybody.
FAR = [
    (r"xa*b|x|a+|[^xa]", b"xxaaaab", True),
    (r"(?:ab)*c|a|b|[^ab]", b"ababc", False),
    (r'"[^"]*"|[^"]|"', b'"ab ', True),
    (r"a+b|a|[^a]", b"aaaab", False),
    (r" *\n| +(?!\S)| +|[^ ]", b"   \na", True),
    (r"x[ab]*y|[ab]{1,3}|x|y|[^abxy]", b"xaby", False),
]


@dataclass
class Subject:
    """An encoding, its kind, and what texts for it should be made of.

    letters: of chunks of streams; words: of whole texts. file: its tokenizer.json, if it is one.
    """

    kind: str
    encoding: streamtok.Encoding
    letters: bytes = b"ab \n"
    is_linear: bool = True  # whether long texts are affordable
    words: list[str] = field(default_factory=list)
    file: File | None = None

    def __post_init__(self) -> None:
        self.words = self.words or [*self.letters.decode("utf-8", "ignore"), *SPECIALS]

    @cached_property
    def special(self) -> list[str]:
        """Texts of special and added tokens."""
        return sorted(self.encoding.definition.specials.every)

    @cached_property
    def json(self) -> str:
        return json.dumps(self.file)

    @cached_property
    def real(self) -> Any:
        """The tokenizer of `tokenizers`, or None."""
        from ..random_tokenizers.checks import theirs

        return None if self.file is None else theirs(self.file)

    @cached_property
    def hf(self) -> Any:
        """The tokenizer of `streamtok.hf`, or None if it has another engine."""
        if self.real is None:
            return None
        import streamtok.hf

        found = streamtok.hf.Tokenizer.from_str(self.json)
        return found if found.engine == "streamtok" else None

    @cached_property
    def transformers(self) -> Any:
        """A tokenizer of transformers with that engine, or None."""
        try:
            from transformers import PreTrainedTokenizerFast
        except ImportError:
            return None
        from streamtok.hf import accelerate

        made = accelerate(PreTrainedTokenizerFast(tokenizer_object=self.real))
        made.pad_token = made.convert_ids_to_tokens(0)
        has_ours = made._tokenizer.engine == "streamtok"
        return made if has_ours and made.pad_token_id is not None else None


def any_subject(rng: random.Random) -> Subject:
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    if kind == "bundled":
        name = rng.choice([*PACKED, "llama3_style"])
        letters = rng.choice([b"a", b" \n", b"ab \n'1", b"=-", b"\n"])
        return Subject(kind, encoding_of(name), letters)
    return made(kind, rng.randrange(6 if kind == "long" else 36))


KINDS = {
    "bundled": 35, "random": 23, "far": 14, "long": 6, "spaces": 12, "added": 3, "merges": 5,
    "sequence": 2, "rewriting": 10, "pieces": 12, "sparse": 2,
}  # fmt: skip
MAP = write_charsmap(
    {"ab": "b", "abb": "a", "e\u0301": "\xe9", "\u3000": " ", "\n": "", "b ": "  "}
)
STEPS = [
    JoinedSpaces(), Prepend(" ", True), UnknownRuns("ab \n<r>\u2581", "?"),
    LongestMap(MAP, ("<b>", "ab a"), True), LongestMap(MAP, (), False),
    Form("NFC"), Form("NFD"), Form("NFKC"), Form("NFKD"), Lowercase(), StripAccents(),
    Strip(True, True), Strip(False, True), Prepend(" "), Prepend("ab"), Replace(" ", "\u2581"),
    Replace("\u2581", " "), Replace("a", "bb"), Replace("ab", ""), Replace("  ", " "),
]  # fmt: skip
TEMPLATES = [((5000,), ()), ((), (5001,)), ((5000,), (5001,)), ((5000, 97), (5001, 5002, 5001))]
SECOND_STEPS = [
    PREFIX_SPACE, MetaspaceText("\u2581", "always"), MetaspaceText("\u2581", "first"),
    MetaspaceText("b", "never"),
]  # fmt: skip


@functools.lru_cache(100)  # each takes some 4 MB of tables and caches
def made(kind: str, number: int) -> Subject:
    """One encoding of this kind, always the same for the same number."""
    rng = random.Random(f"{kind} {number}")
    if kind == "random":
        letters = rng.choice([b"ab", b"ab \n", b"etaoin ", b"a=1 \xe6\x97\xa5"])
        step = rng.randint(1, 3)  # holes
        ranks = {token: id * step for token, id in random_ranks(rng, letters).items()}
        return Subject(kind, encoding(kind, rng.choice(PATTERNS), ranks), b"abetoin =1\n")
    if kind == "far":
        pattern, letters, is_linear = FAR[number % len(FAR)]
        ranks = random_ranks(rng, letters)
        return Subject(kind, encoding(f"far {number}", pattern, ranks), letters, is_linear)
    if kind == "long":
        texts = ["-" * rng.choice([200, 1000])] * 2 + ["=" * rng.choice([300, 1000]) + "\n"] * 2
        trained = streamtok.Encoding.train_from_iterator(texts, 300, rng.choice(["gpt2", "cl100k"]))
        return Subject(kind, trained, b"-=-=--==\n")
    if kind == "sequence":
        pattern = SplitSequence([[r"\d", "[a-z]+"], [r"\s+", r"\p{L}+|\d"]][number % 2])
        return Subject(kind, encoding(kind, pattern, random_ranks(rng, b"ab 1")), b"ab 1")
    if kind == "merges":
        return Subject(kind, encoding("merges", rng.choice(PATTERNS), merge_list(rng)), b"ab \n")
    if kind == "sparse":
        ranks = {one: 3 * id + 1 for id, one in enumerate(SINGLES)} | {"日本".encode(): 999}
        return Subject(kind, encoding(kind, r"\w+|\W", ranks | {b"\xf0\x9f": 1000}), b"ab \xf0\x9f")
    if kind == "rewriting":
        return rewriting(rng, number)
    if kind == "pieces":
        return pieces(rng, number)
    added = [("<b>", 6000), ("<br>", 6001), ("ab", 6002), ("  ", 6003)]
    some = tuple(rng.sample(added, rng.randint(kind == "added", len(added))))
    rules = space_rules(some, rng.random() < 0.7) if kind == "spaces" else TextRules(some)
    pattern = rng.choice([r"[\s\S]+", *PATTERNS])
    ranks = random_ranks(rng, b"ab \n<br>")
    return Subject(kind, encoding(kind, pattern, ranks, rules), b"ab \n<br>")


@functools.cache
def templated(number: int) -> Subject:
    """An encoding that puts ids around a text where it is asked to."""
    subject = made("added", number)
    more = {"rules": subject.encoding.definition.rules, "template": Template(*TEMPLATES[number])}
    ranks = subject.encoding._mergeable_ranks
    enc = streamtok.Encoding(
        "template", pat_str=PATTERNS[1], mergeable_ranks=ranks, special_tokens=SPECIALS, **more
    )
    return replace(subject, kind="template", encoding=enc)


def rewriting(rng: random.Random, number: int) -> Subject:
    """Normalizers, and added and special tokens with flags, as in a tokenizer.json."""
    added = [
        ("<b>", 6000),
        ("<br>", 6001),
        ("ab", 6002),
        ("  ", 6003),
        ("\n", 6004),
        ("e\u0301", 6005),
    ]
    added = rng.sample(added, rng.randint(0, len(added)))
    flags = tuple(
        (text, TokenFlags(*(rng.random() < 0.3 for _ in TokenFlags._fields)))
        for text in [*dict(added), *SPECIALS]
        if rng.random() < 0.7
    )
    normalizer = Normalizer(rng.sample(STEPS, rng.choice([0, 1, 1, 1, 2, 3])))
    flags = tuple(
        (text, f) for text, f in flags if not f.normalized or normalizer.normalize(text, False)
    )
    second = Normalizer(rng.sample(SECOND_STEPS, rng.choice([0, 0, 1])))
    rules = TextRules(
        added_tokens=tuple(added),
        normalizer=normalizer or None,
        token_flags=flags,
        second_normalizer=second or None,
    )
    letters = rng.choice([b"ab \n<br>", "aáé e\u0301\u0327ﬁ".encode(), "ab ▁ \u3000".encode()])
    pattern = rng.choice([r"[\s\S]+", *PATTERNS])
    name = f"rewriting {number}"
    return Subject("rewriting", encoding(name, pattern, random_ranks(rng, letters), rules), letters)


def pieces(rng: random.Random, number: int) -> Subject:
    """A model that is no merges."""
    kinds = [kind for kind in MODEL_KINDS if kind != "Merges"]
    kind = kinds[number % len(kinds)]
    letters = rng.choice(["ab \n", "ab é日", "a=1 \n"])
    texts = {"".join(rng.choices(letters, k=rng.choice([1, 1, 2, 3, 5, 12]))) for _ in range(25)}
    texts |= {"##" + text for text in texts} if kind == "WordPiece" else set()
    ids = {text: id for id, text in enumerate(rng.sample(sorted(texts), len(texts)), 257)}
    more = {}
    if kind == "WordPiece":
        more |= {"prefix": "##", "most_characters": rng.choice([5, 100])}
    if kind.endswith("nigram"):
        few = rng.choice([[-1.0, -2.0, -3.0], [-0.1, -0.3, -0.7, -2500.1]])
        more["scores"] = np.array(rng.choices(few, k=257 + len(ids)))
    if kind not in ("WordPiece", "WordLevel") and rng.random() < 0.5:
        more["byte_ids"] = np.arange(1, 257, dtype=np.uint32)
    if not kind.startswith("SentencePiece") and rng.random() < 0.3:
        more["stages"] = (("MetaspaceText", "▁", "always"),)
    pattern = (
        r"[\s\S]+" if kind.startswith("SentencePiece") else rng.choice([r"[\s\S]+", *PATTERNS])
    )
    if "stages" in more:
        pattern = r"\S+|\s+"
    decoded = {id: text.encode() for text, id in ids.items()} | {0: b"<unk>"}
    decoded |= {byte + 1: bytes([byte]) for byte in range(256)}
    vocabulary = Vocabulary.of_model(Pieces.of_ids(kind, ids, 0, **more), decoded)
    return Subject("pieces", encoding(f"{kind} {number}", pattern, vocabulary), letters.encode())


def random_ranks(rng: random.Random, letters: bytes) -> dict[bytes, int]:
    sizes = [2, 2, 2, 3, 3, 4, 6, 12]
    tokens = {bytes(rng.choices(letters, k=rng.choice(sizes))) for _ in range(rng.randint(1, 50))}
    if rng.random() < 0.3:
        tokens |= {letters[:1] * 2**i for i in range(1, rng.randint(2, 9))}
    order = [*rng.sample(sorted(tokens), len(tokens)), *SINGLES]
    if rng.random() < 0.5:
        order = order[len(tokens) :] + order[: len(tokens)]
    return {token: i for i, token in enumerate(order)}


def merge_list(rng: random.Random) -> Vocabulary:
    """Merges in an order that their ids do not tell."""
    ids = random_ranks(rng, b"ab \n")
    tokens = sorted(ids)
    merges = [
        (token[:i], token[i:])
        for token in tokens
        for i in range(1, len(token))
        if token[:i] in ids and token[i:] in ids
    ]
    merges = rng.sample(merges, rng.randint(0, len(merges)))
    return from_merges(ids, merges, ignore_merges=rng.random() < 0.5)


def encoding(
    name: str,
    pattern: str | SplitSequence,
    ranks: dict[bytes, int] | Vocabulary,
    rules: TextRules | None = None,
) -> streamtok.Encoding:
    more = {} if rules is None else {"rules": rules}
    return streamtok.Encoding(
        name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=SPECIALS, **more
    )
