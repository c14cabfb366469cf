"""Sets of code points, and the Unicode properties that pre-tokenization patterns name.

The properties come from a table in the package data. `tools/make_unicode.py` makes it from one
pinned Unicode version, that of the reference encoders. The interpreter's `unicodedata` is not used,
since it depends on the Python version. Only compiling a pattern needs this module; using a compiled
pattern does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CODE_POINTS", "CharSet", "UnicodeTable", "as_in_reference"]

CODE_POINTS = 0x110000
Toggles = npt.NDArray[np.int64]

_GROUPS = {
    "L": ("Lu", "Ll", "Lt", "Lm", "Lo"),
    "LC": ("Lu", "Ll", "Lt"),
    "M": ("Mn", "Mc", "Me"),
    "N": ("Nd", "Nl", "No"),
    "P": ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po"),
    "S": ("Sm", "Sc", "Sk", "So"),
    "Z": ("Zs", "Zl", "Zp"),
    "C": ("Cc", "Cf", "Cs", "Co", "Cn"),
}
_LONG_NAMES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm", "Other_Letter": "Lo",
    "Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Number": "N", "Decimal_Number": "Nd", "Digit": "Nd", "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P", "Punct": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd",
    "Open_Punctuation": "Ps", "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi",
    "Final_Punctuation": "Pf", "Other_Punctuation": "Po",
    "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk",
    "Other_Symbol": "So",
    "Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp",
    "Other": "C", "Control": "Cc", "Cntrl": "Cc", "Format": "Cf", "Surrogate": "Cs",
    "Private_Use": "Co", "Unassigned": "Cn",
}  # fmt: skip
_SHORT_NAMES = {
    "Alpha": "Alphabetic", "Lower": "Lowercase", "Upper": "Uppercase", "space": "White_Space",
    "wspace": "White_Space", "Arab": "Arabic", "Cyrl": "Cyrillic", "Deva": "Devanagari",
    "Grek": "Greek", "Hang": "Hangul", "Hani": "Han", "Hebr": "Hebrew", "Hira": "Hiragana",
    "Kana": "Katakana", "Latn": "Latin", "Zinh": "Inherited", "Zyyy": "Common",
}  # fmt: skip
_PROPERTIES = ("Alphabetic", "Lowercase", "Uppercase", "White_Space")
_IN_WORDS = ("Alphabetic", "Mn", "Mc", "Me", "Nd", "Pc")  # as \w, but without joiners


class CharSet:
    """An immutable set of code points.

    `toggles` is strictly increasing. Membership changes at each toggle, so a code point is in the
    set if an odd number of toggles are at or below it.
    """

    __slots__ = ("toggles",)

    toggles: Toggles

    def __init__(self, toggles: Toggles) -> None:
        self.toggles = toggles

    @classmethod
    def from_ranges(cls, ranges: Iterable[tuple[int, int]]) -> CharSet:
        """The union of `ranges`, with both ends included."""
        toggles: list[int] = []
        for low, high in sorted(ranges):
            if toggles and low <= toggles[-1]:
                toggles[-1] = max(toggles[-1], high + 1)
            else:
                toggles += (low, high + 1)
        return cls(np.array(toggles, dtype=np.int64))

    @classmethod
    def from_code_points(cls, points: Iterable[int]) -> CharSet:
        """The set of `points`."""
        array = np.unique(np.fromiter(points, dtype=np.int64))
        lasts = np.flatnonzero(np.diff(array, append=-1) != 1)
        firsts = np.concatenate(([0], lasts[:-1] + 1)) if len(lasts) else lasts
        toggles = np.empty(2 * len(lasts), dtype=np.int64)
        toggles[::2] = array[firsts]
        toggles[1::2] = array[lasts] + 1
        return cls(toggles)

    @classmethod
    def union(cls, sets: Iterable[CharSet]) -> CharSet:
        """The union of `sets`."""
        return cls.from_ranges(pair for charset in sets for pair in charset.ranges())

    def ranges(self) -> list[tuple[int, int]]:
        """The runs of members, with both ends included."""
        return list(zip(self.toggles[::2].tolist(), (self.toggles[1::2] - 1).tolist(), strict=True))

    def code_points(self) -> Toggles:
        """All members, in order."""
        return np.flatnonzero(self.contains(np.arange(CODE_POINTS)))

    def contains(self, points: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Whether each of `points` is a member."""
        inside: npt.NDArray[np.bool_] = np.searchsorted(self.toggles, points, side="right") % 2 == 1
        return inside

    def __invert__(self) -> CharSet:
        return CharSet(np.setxor1d(self.toggles, [0, CODE_POINTS]))

    def __or__(self, other: CharSet) -> CharSet:
        return CharSet.union((self, other))

    def __and__(self, other: CharSet) -> CharSet:
        return ~(~self | ~other)

    def __sub__(self, other: CharSet) -> CharSet:
        return ~(~self | other)

    def __bool__(self) -> bool:
        return len(self.toggles) > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharSet) and self.toggles.tolist() == other.toggles.tolist()

    def __hash__(self) -> int:
        return hash(self.toggles.tobytes())

    def __repr__(self) -> str:
        shown = ", ".join(f"{low:x}-{high:x}" for low, high in self.ranges()[:4])
        return f"<CharSet {shown}{', ...' if len(self.toggles) > 8 else ''}>"


@dataclass(frozen=True)
class UnicodeTable:
    """The sets of one Unicode version, by name, and its simple case folding."""

    unicode_version: str
    regex_version: str  # the release of `regex` that the sets were read from
    sets: dict[str, CharSet]
    fold_members: Toggles  # all characters with a case variant, class by class
    fold_class: Toggles  # the class of each of them

    @staticmethod
    @lru_cache(maxsize=1)
    def load() -> UnicodeTable:
        """Read the table from the package data, once."""
        path = Path(__file__).parents[1] / "data" / "unicode.npz"
        with np.load(path, allow_pickle=False) as file:
            sizes = file["sizes"]
            parts = np.split(file["steps"].astype(np.int64), np.cumsum(sizes)[:-1])
            sets = {
                str(name): CharSet(np.cumsum(steps))
                for name, steps in zip(file["names"], parts, strict=True)
            }
            fold_sizes = file["fold_sizes"]
            return UnicodeTable(
                unicode_version=str(file["unicode_version"]),
                regex_version=str(file["regex_version"]),
                sets=sets,
                fold_members=file["fold_members"].astype(np.int64),
                fold_class=np.repeat(np.arange(len(fold_sizes)), fold_sizes),
            )

    def fold(self, charset: CharSet) -> CharSet:
        """`charset` and the case variants of its members."""
        hit = np.unique(self.fold_class[charset.contains(self.fold_members)])
        variants = self.fold_members[np.isin(self.fold_class, hit)]
        return charset | CharSet.from_code_points(variants.tolist())

    def find(self, name: str) -> CharSet | None:
        """The set that `\\p{name}` means, or None if the table does not have it.

        Ignores case, spaces, `-` and `_` in names, as in Unicode's loose matching.
        """
        kind, separator, value = name.partition("=")
        names, known = _loose_names(), _loose(value if separator else name)
        found = names.get(known) or names.get(known.removeprefix("is"))
        if found is None:
            return None
        is_category = any(found in (group, *parts) for group, parts in _GROUPS.items())
        others = "Any", "ASCII", "Posix_Word", *_PROPERTIES
        is_script = not is_category and found not in others
        if separator:
            wanted = {"gc": is_category, "generalcategory": is_category,
                      "sc": is_script, "script": is_script}  # fmt: skip
            if not wanted.get(_loose(kind), False):
                return None
        if found == "Any":
            return CharSet.from_ranges([(0, CODE_POINTS - 1)])
        if found == "ASCII":
            return CharSet.from_ranges([(0, 127)])
        parts = _IN_WORDS if found == "Posix_Word" else _GROUPS.get(found, (found,))
        return CharSet.union(self.sets[part] for part in parts)


def as_in_reference(text: str) -> str:
    """Replace the characters of `text` that a later Unicode version may classify differently.

    The result has the same length. Releases of the `regex` package with Unicode 16 or later, such
    as `UnicodeTable.regex_version`, cut it where the reference encoders cut `text`.
    """
    if text.isascii():
        return text
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").copy()
    points[UnicodeTable.load().sets["Cn"].contains(points)] = 0xFDD0  # will never be assigned
    points[points == 0x295] = 0x250  # a lower-case letter, as 0x295 was up to Unicode 16
    return points.tobytes().decode("utf-32-le", "surrogatepass")


def _loose(name: str) -> str:
    return name.lower().replace(" ", "").replace("_", "").replace("-", "")


@lru_cache(maxsize=1)
def _loose_names() -> dict[str, str]:
    special = "Any", "ASCII", "Posix_Word"
    own = {name: name for name in (*UnicodeTable.load().sets, *_GROUPS, *special)}
    del own["word"]
    return {_loose(name): found for name, found in (own | _LONG_NAMES | _SHORT_NAMES).items()}
