"""Random steps, and texts of characters that matter to them."""

from streamtok.normalizers import (
    PREFIX_SPACE,
    BertAccents,
    BertChinese,
    BertClean,
    Form,
    JoinedSpaces,
    LongestMap,
    Lowercase,
    MetaspaceText,
    Nmt,
    Precompiled,
    Prepend,
    Replace,
    ReplaceRuns,
    Strip,
    StripAccents,
    UnknownRuns,
)

from ..charsmaps import write_charsmap
from ..nasty import TEXTS

NASTY = [text.decode("utf-8", "ignore") for text in TEXTS]
CHARSMAP = write_charsmap(
    {
        "e\u0301": "é", "\n": " ", "\t": "", "ﬁ": "fi", "İ": "I", "\u3000": " ", "A": "a\u0301",
        "か\u3099": "が", "\u00a8": " \u0308", "\u00a8\u0301": " \u0308\u0301", "a\u0301": "",
    }
)  # fmt: skip
CHARACTERS = (
    "aeiAEIbΣσςİIſKﬁ<>= \t\n\x00\x1c\x7f\x85\xa0\u1680\u200b\u2028\u3000\ufeff\ufffd▁中文字゛ﾊﾟか"
    "\u3099\uac00\uac01\u1100\u1161\u11a8\u0958\u0344\u2126\u212b\uf900\u1e0b\u0323\u0301\u0301"
    "\u0316\u0334éÉ\u00a8\r\n\u200d\U0001f469\U0001f1eb\U0001f1f7न\u094d\u093cक\u08ca\u1715xyz0'"
)
STEPS = [
    *(lambda r, form=form: Form(form) for form in ("NFC", "NFD", "NFKC", "NFKD")),
    lambda r: Lowercase(),
    lambda r: StripAccents(),
    lambda r: Nmt(),
    lambda r: BertClean(),
    lambda r: BertChinese(),
    lambda r: BertAccents(),
    lambda r: Strip(r.random() < 0.5, r.random() < 0.5),
    lambda r: Prepend(r.choice(["▁", "ab", "\u0301", " "])),
    lambda r: Replace(r.choice(" ▁"), r.choice(" ▁")),
    lambda r: Replace(some(r, 1, 3), some(r, 0, 3)),
    lambda r: Replace(r.choice("ab e"), r.choice(["", "aa", "b", "e\u0301"])),
    lambda r: ReplaceRuns(r.choice([r"\s+", " {2,}", "[^a-z]+", r"[\n\t=]{3,}"]), some(r, 0, 1)),
    lambda r: ReplaceRuns("[A-Z9]", "<>"),
    lambda r: Precompiled(CHARSMAP),
    lambda r: LongestMap(CHARSMAP, ("<e>", "ab"), r.random() < 0.5),
    lambda r: JoinedSpaces(),
    lambda r: UnknownRuns("abcxyz e中", "\ue000"),
    lambda r: MetaspaceText("▁", r.choice(["always", "first", "never"])),
    lambda r: PREFIX_SPACE,
]


def some(rng, least, most):
    return "".join(rng.choices(CHARACTERS, k=rng.randint(least, most)))


def random_text(rng):
    few = rng.choices(CHARACTERS, k=rng.randint(1, 8)) if rng.random() < 0.7 else CHARACTERS
    text = "".join(rng.choice(few) for _ in range(rng.choice([0, 1, 2, 3, 5, 9, 30, 200])))
    return text + rng.choice(NASTY) if rng.random() < 0.3 else text
