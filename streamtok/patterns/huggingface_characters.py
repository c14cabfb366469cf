"""Which characters Hugging Face's pre-tokenizers take for punctuation, and for digits.

They are what `tokenizers` 0.23 answers for each code point; a test asks it again. Punctuation is
that of Unicode 8 or so (its crate unicode_categories has not changed since 2016) and all of
ASCII's; digits are the numbers of Unicode 17. Scripts are those of Unicode 9; what is newer, and
the space, goes with any of them.
"""

from __future__ import annotations

__all__ = ["DIGIT", "NOT_PUNCTUATION", "PUNCTUATION", "SCRIPTS", "SCRIPT_PATTERN"]

# Against \p{P} and ASCII's punctuation, by the tables of `patterns/unicode_classes.py`.
_MORE = r"\x{166d}\x{111c9}"
_FEWER = (
    r"\x{61d}\x{9fd}\x{a76}\x{c77}\x{c84}\x{1b4e}-\x{1b4f}\x{1b7d}-\x{1b7f}\x{2e43}-\x{2e4f}"
    r"\x{2e52}-\x{2e5d}\x{10d6e}\x{10ead}\x{10f55}-\x{10f59}\x{10f86}-\x{10f89}"
    r"\x{113d4}-\x{113d5}\x{113d7}-\x{113d8}\x{1144b}-\x{1144f}\x{1145a}-\x{1145b}\x{1145d}"
    r"\x{11660}-\x{1166c}\x{116b9}\x{1183b}\x{11944}-\x{11946}\x{119e2}\x{11a3f}-\x{11a46}"
    r"\x{11a9a}-\x{11a9c}\x{11a9e}-\x{11aa2}\x{11b00}-\x{11b09}\x{11be1}\x{11c41}-\x{11c45}"
    r"\x{11c70}-\x{11c71}\x{11ef7}-\x{11ef8}\x{11f43}-\x{11f4f}\x{11fff}\x{12ff1}-\x{12ff2}"
    r"\x{16d6d}-\x{16d6f}\x{16e97}-\x{16e9a}\x{16fe2}\x{1e5ff}\x{1e95e}-\x{1e95f}"
)

_ABOUT = rf"!-/:-@\[-`{{-~\p{{P}}{_MORE}"
PUNCTUATION = rf"(?![{_FEWER}])[{_ABOUT}]"
NOT_PUNCTUATION = rf"(?:[^\s{_ABOUT}]|[{_FEWER}])"  # nor white space
DIGIT = r"[\p{N}\x{11de0}-\x{11de9}\x{16ff4}-\x{16ff6}]"

_NAMES = """
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
SCRIPTS = tuple(_NAMES.split())
# Against \p{Script}: what a set has besides, and what it lacks.
_MORE_OF = {
    "Common": r"\x{589}\x{61c}",
    "Devanagari": r"\x{953}\x{954}",
    "Han": r"\p{Hiragana}\p{Katakana}\x{30fc}",
}
_FEWER_OF = {
    "Arabic": r"\x{61c}",
    "Armenian": r"\x{589}",
    "Common": r"\x{30fc}",
    "Inherited": r"\x{953}\x{954}",
}


def _one_script(name: str) -> str:
    kept = rf"&&[^{_FEWER_OF[name]}]" if name in _FEWER_OF else ""
    return rf"[\p{{{name}}}{_MORE_OF.get(name, '')}\p{{No_Script}}{kept}]+"


SCRIPT_PATTERN = rf"(?!\p{{No_Script}})(?:{'|'.join(map(_one_script, SCRIPTS))})"
"""A run of one script; of a text that begins with characters of none, these are left out."""
