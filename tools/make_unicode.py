"""Write `streamtok/data/unicode.npz`: the character sets that patterns use.

The sets come from one pinned release of the `regex` package. Its Unicode version, 16.0, is that of
the Rust `regex` crate in tiktoken 0.14. Later releases must not be used: in their Unicode versions,
thousands of characters change class. Python's `unicodedata` is not used, because its Unicode
version changes with Python's.

    pip install --target some-folder regex==2025.7.34
    PYTHONPATH=some-folder python tools/make_unicode.py            # writes the file
    python tools/make_unicode.py --check                           # compares it with tiktoken

In the file, a set is a sorted list of toggles (see `patterns.unicode_classes.CharSet`), stored as
differences. A fold class is a list of characters that `(?i:...)` treats as equal. `--check` needs
tiktoken and takes some seconds: it compares every set on every code point, and the fold classes on
every cased character. The tests compare the sets that real patterns use.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import regex

from streamtok.patterns.unicode_classes import CharSet, UnicodeTable

REGEX_VERSION = "2025.7.34"
UNICODE_VERSION = "16.0.0"
TIKTOKEN_VERSION = "0.14.0"
OUTPUT = Path(__file__).resolve().parent.parent / "streamtok" / "data" / "unicode.npz"

CATEGORIES = [
    *("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No"),
    *("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So"),
    *("Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn"),
]
PROPERTIES = ["Alphabetic", "Lowercase", "Uppercase", "White_Space"]
SCRIPTS = """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak
    Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian
    Caucasian_Albanian Chakma Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret
    Devanagari Duployan Egyptian_Hieroglyphs Elbasan Ethiopic Georgian Glagolitic Gothic Grantha
    Greek Gujarati Gurmukhi Han Hangul Hanunoo Hatran Hebrew Imperial_Aramaic Inherited
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Kayah_Li Kharoshthi
    Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani
    Malayalam Mandaic Manichaean Marchen Meetei_Mayek Mende_Kikakui Meroitic_Cursive
    Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean New_Tai_Lue Newa Nko
    Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian
    Old_South_Arabian Old_Turkic Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa
    Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham
    SignWriting Sinhala Sora_Sompeng Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le
    Tai_Tham Tai_Viet Takri Tamil Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic
    Vai Warang_Citi Yi
"""

# Where tiktoken's engine and `regex` disagree, tiktoken wins. There is one such case: in `regex`,
# the dotted and dotless i of Turkish are case variants of i and I; in Rust they are not.
FOLD_OVERRIDES = {"i": "iI", "I": "iI", "\u0130": "\u0130", "\u0131": "\u0131"}

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL_TEXT = "".join(map(chr, CODE_POINTS))  # without surrogates, which tiktoken never sees


def members(pattern: str, text: str = ALL_TEXT) -> list[int]:
    """The code points of `text` that `regex` matches with `pattern`, which is one set."""
    return [ord(char) for char in regex.findall(pattern, text)]


def pattern_of(name: str) -> str:
    """The spelling of the set `name` in a pattern."""
    return r"\w" if name == "word" else rf"\p{{{name}}}"


def cased_text() -> str:
    """All characters with a case variant, and some others."""
    return "".join(regex.findall(r"\p{CWCM}|\p{CWCF}|\p{Lu}|\p{Ll}|\p{Lt}", ALL_TEXT))


def fold_classes() -> list[list[int]]:
    """The classes of two or more characters that `(?i:...)` treats as equal."""
    cased = cased_text()
    classes: set[tuple[int, ...]] = set()
    for char in cased:
        variants = FOLD_OVERRIDES.get(char) or regex.findall(f"(?i:{char})", cased)
        classes.add(tuple(sorted(map(ord, variants))))
    found = sorted(group for group in classes if len(group) > 1)
    flat = [member for group in found for member in group]
    if len(flat) != len(set(flat)):
        raise SystemExit("the fold classes overlap: case folding is not an equivalence")
    return [list(group) for group in found]


def write() -> None:
    """Write the file."""
    if version("regex") != REGEX_VERSION:
        raise SystemExit(f"expected regex=={REGEX_VERSION}, found {version('regex')}")
    names = [*CATEGORIES, *SCRIPTS.split(), "Hiragana", "Katakana", *PROPERTIES, "word"]
    toggles = [CharSet.from_code_points(members(pattern_of(name))).toggles for name in names]
    names.append("Cs")
    toggles.append(CharSet.from_ranges([(0xD800, 0xDFFF)]).toggles)
    classes = fold_classes()
    np.savez_compressed(
        OUTPUT,
        regex_version=np.array(REGEX_VERSION),
        unicode_version=np.array(UNICODE_VERSION),
        names=np.array(names),
        sizes=np.array([len(t) for t in toggles], dtype=np.int32),
        steps=np.concatenate([np.diff(t, prepend=0) for t in toggles]).astype(np.int32),
        fold_sizes=np.array([len(group) for group in classes], dtype=np.int8),
        fold_members=np.array([c for group in classes for c in group], dtype=np.int32),
    )
    print(f"{OUTPUT.name}: {len(names)} sets, {len(classes)} fold classes, "
          f"{OUTPUT.stat().st_size} bytes")  # fmt: skip


def check() -> int:
    """Compare the file with tiktoken; return the number of sets that differ."""
    import tiktoken

    if version("tiktoken") != TIKTOKEN_VERSION:
        raise SystemExit(f"expected tiktoken=={TIKTOKEN_VERSION}, found {version('tiktoken')}")
    byte_ranks = {bytes([value]): value for value in range(256)}

    def kept(pattern: str, text: str) -> list[int]:
        # Characters that the pattern does not match are dropped, so only the set remains.
        encoding = tiktoken.Encoding(
            "check", pat_str=pattern, mergeable_ranks=byte_ranks, special_tokens={}
        )
        return [ord(char) for char in encoding.decode(encoding.encode_ordinary(text))]

    table = UnicodeTable.load()
    surrogates = CharSet.from_ranges([(0xD800, 0xDFFF)])
    bad = 0
    for name, charset in table.sets.items():
        if name != "Cs":
            ours = (charset - surrogates).code_points()
            bad += report(name, ours.tolist(), kept(pattern_of(name), ALL_TEXT))
    cased = cased_text()
    cased_set = CharSet.from_code_points([ord(char) for char in cased])
    for char in cased:
        folded = table.fold(CharSet.from_code_points([ord(char)])) & cased_set
        theirs = kept(rf"(?i:\x{{{ord(char):x}}})", cased)
        bad += report(f"(?i:{char})", folded.code_points().tolist(), theirs)
    print(f"{len(table.sets)} sets and {len(cased)} cased characters compared, {bad} differ")
    return bad


def report(name: str, ours: list[int], theirs: list[int]) -> bool:
    """Print where two lists of code points differ; return whether they do."""
    difference = sorted(set(ours) ^ set(theirs))
    if difference:
        print(f"{name}: {len(difference)} differ, the first is U+{difference[0]:04X}")
    return bool(difference)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make or check streamtok/data/unicode.npz.")
    parser.add_argument("--check", action="store_true", help="compare the file with tiktoken")
    if parser.parse_args().check:
        sys.exit(1 if check() else 0)
    write()
