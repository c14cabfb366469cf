"""Write `streamtok/data/normalization.txt`: the character sets that normalizers use.

The source is `tokenizers` 0.23.3 itself, asked about every code point. Its crates have different
Unicode versions: 9.0 for NFC, NFD, NFKC, NFKD and StripAccents, 8.0 for BertNormalizer's controls
and accents, 17.0 for lower case, white space and grapheme clusters. `docs/normalizers.md` describes
the consequences. Python's `unicodedata`, which is at least 13.0, is used only for canonical
compositions of two characters, which never change
(https://www.unicode.org/policies/stability_policy.html).

    python tools/make_normalization.py            # writes the file
    python tools/make_normalization.py --check    # fails if the file differs

Each line of the file has a name and ranges of code points, in hexadecimal.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

import regex
from tokenizers import normalizers

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.charsmaps import write_charsmap  # noqa: E402

TOKENIZERS_VERSION = "0.23.3"
OUTPUT = ROOT / "streamtok" / "data" / "normalization.txt"
ALL = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
FORMS = ("NFC", "NFD", "NFKC", "NFKD")
FIRST_PYTHON_UNICODE = 13  # of Python 3.10


def ranges(chars: Iterable[str]) -> str:
    """The code points of `chars`, as written in a line of the file."""
    found: list[list[int]] = []
    for point in sorted(map(ord, chars)):
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return " ".join(f"{low:x}" if low == high else f"{low:x}-{high:x}" for low, high in found)


def form_sets() -> dict[str, set[str]]:
    """For each form, how its characters interact with their neighbours.

    FORM_joins: may change with, or move before, the character before it. FORM_changes: changes by
    itself, and does not join. FORM_opens: may change with a following character that joins.
    """
    apply = {form: getattr(normalizers, form)().normalize_str for form in FORMS}
    # Characters whose combining class is not 0 move before U+0345 (240) or after U+0334 (1).
    nfd = apply["NFD"]
    single = [char for char in ALL if nfd(char) == char]
    marks = {
        char
        for char in single
        if nfd("\u0345" + char) != "\u0345" + char or nfd(char + "\u0334") != char + "\u0334"
    } | {"\u0345", "\u0334"}
    firsts, seconds = set(), set()
    for char in ALL:
        parts = unicodedata.decomposition(char).split()
        if len(parts) == 2 and nfd(char) != char and apply["NFC"](char) == char:
            firsts.add(chr(int(parts[0], 16)))
            seconds.add(chr(int(parts[1], 16)))
    firsts |= set(map(chr, range(0x1100, 0x1113))) | set(map(chr, range(0xAC00, 0xD7A4, 28)))
    seconds |= set(map(chr, range(0x1161, 0x1176))) | set(map(chr, range(0x11A8, 0x11C3)))
    sets = {}
    for form in FORMS:
        composes = form in ("NFC", "NFKC")
        whole = apply[form.replace("C", "D")]
        changed = {char for char in ALL if apply[form](char) != char}
        joins = {char for char in ALL if whole(char)[0] in marks or char in marks}
        if composes:
            joins |= {char for char in ALL if whole(char)[0] in seconds} | seconds
        sets[f"{form}_joins"] = joins
        sets[f"{form}_changes"] = changed - joins
        opens = {char for char in ALL if whole(char) != char and whole(char)[-1] in marks}
        sets[f"{form}_opens"] = (opens | changed | firsts if composes else opens) - joins
    return sets


def cluster_sets() -> dict[str, set[str]]:
    """The classes of characters in the rules for grapheme clusters (UAX #29).

    They are tested with Precompiled, which replaces a whole cluster of less than 6 bytes that
    begins with a key. Hangul and flags are those of `regex`: they are stable. Precomposed Hangul
    syllables are left out, because their code points determine their class.
    """
    sets = {
        name: {char for char in ALL if regex.match(rf"\p{{GCB={value}}}", char)}
        for name, value in (("l", "L"), ("v", "V"), ("t", "T"), ("flag", "Regional_Indicator"))
    }
    mark, picture = "\u0301", "\xa9"
    k, virama, kh = "\u0915", "\u094d", "\u0916"  # Devanagari
    after_a = replacing("a")
    joined = {char for char in ALL if after_a("a" + char) == "X"} - {"\n", "\u200d"}
    at_picture = replacing(picture)
    sets["extend"] = {
        char
        for char in joined
        if at_picture(f"{picture}{char}\u200d{picture}{mark}").endswith("X" + mark)
    }
    sets["spacing"] = joined - sets["extend"]
    sets["picture"] = (
        {char for char in ALL if at_picture(f"{picture}\u200d{char}") == f"X\u200d{char}"}
        - joined
        - {"\u200d"}
    )
    at_mark = replacing(mark)
    sets["control"] = {char for char in ALL if at_mark(f"k{char}{mark}{mark}") == f"k{char}X"}
    sets["control"] -= {"\r", "\n", mark}
    sets["prepend"] = {char for char in ALL if after_a(f"{char}a{mark}") == f"{char}X{mark}"}
    at_kh = replacing(kh)
    linkers = {c for c in ALL if at_kh(f"{k}{c}{kh}{mark}") == f"{k}{c}X{mark}"} - sets["prepend"]
    between = {c for c in ALL if at_kh(f"{k}{virama}{c}{kh}{mark}") == f"{k}{virama}{c}X{mark}"}
    sets["linker"] = linkers
    sets["conjunct"] = between - linkers - sets["prepend"]
    consonants = [char for char in ALL if regex.match(r"\p{InCB=Consonant}", char)]
    at_consonant = replacing(*consonants)
    sets["consonant"] = {
        char
        for char in consonants
        if at_consonant(f"{kh}{virama}{char}{mark}") == f"X{virama}X{mark}"
    }
    return {f"cluster_{name}": chars for name, chars in sets.items()}


def replacing(*keys: str) -> Callable[[str], str]:
    """Precompiled, with a map that replaces each of these keys by X."""
    replace: Callable[[str], str] = normalizers.Precompiled(
        write_charsmap(dict.fromkeys(keys, "X"))
    ).normalize_str
    return replace


def dropped(step: normalizers.Normalizer) -> set[str]:
    """The characters that the step removes."""
    return {char for char in ALL if step.normalize_str(f"a{char}b") == "ab"}


def lines() -> list[str]:
    """The lines of the file."""
    sets = form_sets() | cluster_sets()
    sets["accents"] = dropped(normalizers.StripAccents())
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False}
    bert = normalizers.BertNormalizer
    sets["bert_accents"] = dropped(bert(**{**off, "strip_accents": True}, lowercase=False))
    sets["bert_controls"] = dropped(bert(**{**off, "clean_text": True}, lowercase=False))
    # Lowercase mappings that Python 3.10 lacks.
    lower = normalizers.Lowercase().normalize_str
    newer = {}
    for char in ALL:
        if lower(char) != char.lower() or (lower(char) != char and is_newer(char, lower(char))):
            newer[char] = lower(char)
    result = [f"{name} {ranges(chars)}" for name, chars in sorted(sets.items())]
    pairs = " ".join(f"{ord(char):x}:{ord(low):x}" for char, low in sorted(newer.items()))
    return [*result, f"lower {pairs}"]


def is_newer(*chars: str) -> bool:
    """Whether one of the characters may be newer than Unicode 13.0, by block."""
    newer = [(0xA7C0, 0xA7DD), (0x1C89, 0x1C8A), (0x2C2F, 0x2C2F), (0x2C5F, 0x2C5F),
             (0x10570, 0x105BC), (0x10D50, 0x10D85), (0x16EA0, 0x16EDF)]  # fmt: skip
    points = [ord(char) for text in chars for char in text]
    return any(low <= point <= high for point in points for low, high in newer)


def main() -> None:
    """Write the file, or check it."""
    if version("tokenizers") != TOKENIZERS_VERSION:
        raise SystemExit(f"expected tokenizers=={TOKENIZERS_VERSION}")
    text = "\n".join(lines()) + "\n"
    if "--check" in sys.argv[1:]:
        if OUTPUT.read_text() != text:
            raise SystemExit(f"{OUTPUT.name} is not what tokenizers {TOKENIZERS_VERSION} does")
        return
    OUTPUT.write_text(text)
    print(f"{OUTPUT.name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
