"""The field `normalizer` of a `tokenizer.json`.

Each enabled setting of BertNormalizer becomes steps of its own.
(github.com/huggingface/tokenizers, Apache-2.0)
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

from ..errors import PatternError, VocabularyError
from ..normalizers import (
    BertAccents,
    BertChinese,
    BertClean,
    ByteLetters,
    Form,
    Lowercase,
    Nmt,
    Normalizer,
    Precompiled,
    Prepend,
    Replace,
    ReplaceRuns,
    Step,
    Strip,
    StripAccents,
)
from ..patterns.budget import Budget
from ..patterns.syntax import parse
from ..patterns.tree import SetNode
from .json_value import JsonValue
from .loading import errors_at, shown
from .oniguruma import from_oniguruma

__all__ = ["read_normalizer"]

_MAX_STEPS = 1000
_SIMPLE: dict[str, Callable[[], Step]] = {
    "NFC": lambda: Form("NFC"),
    "NFD": lambda: Form("NFD"),
    "NFKC": lambda: Form("NFKC"),
    "NFKD": lambda: Form("NFKD"),
    "Lowercase": Lowercase,
    "Nmt": Nmt,
    "StripAccents": StripAccents,
    "ByteLevel": ByteLetters,
}


def read_normalizer(field: JsonValue) -> Normalizer:
    """The normalizer that `field` describes; null changes nothing.

    Raises VocabularyError, which names the step, for damage and for unsupported features.
    """
    parts = field.flat("normalizers")
    if len(parts) > _MAX_STEPS:
        field.fail(f"more than {_MAX_STEPS} normalizers")
    steps = [step for part in parts for step in _steps(part)]
    with errors_at(field.position):
        return Normalizer(steps)


def _steps(part: JsonValue) -> list[Step]:
    kind = part["type"].as_str()
    if kind == "Replace":
        return _replace(part)
    if kind == "BertNormalizer":
        return _bert(part)
    if kind == "Precompiled":
        charsmap = part["precompiled_charsmap"]
        try:
            return [Precompiled(base64.b64decode(charsmap.as_str(), validate=True))]
        except ValueError as error:
            charsmap.fail(f"not a map of SentencePiece: {error}")
    if kind == "Prepend":
        part.allow_only("type", "prepend")
        prefix = part["prepend"].as_str()
        if not prefix:  # in this case, tokenizers 0.23 repeats characters or panics
            part.fail("Prepend with an empty string is not supported")
        return [Prepend(prefix)]
    if kind in ("Strip", "StripNormalizer"):
        part.allow_only("type", "strip_left", "strip_right")
        return [Strip(_flag(part["strip_left"]), _flag(part["strip_right"]))]
    if kind not in _SIMPLE:
        part.fail(f"the normalizer {shown(kind)} is not supported")
    part.allow_only("type")
    return [_SIMPLE[kind]()]


_SET = re.compile(
    r"(?P<set>\[.*\\[pPux].*\]|\\[pPux]\{[^}]*\}|\\u[0-9a-fA-F]{4})(?P<times>|\+|\{[1-9]\d{0,2},\})"
)
# Such patterns are in the files that transformers 5 writes for DeBERTa-v3 and BARThez.
_RUNS_OR_SINGLE = re.compile(r"(?P<runs>\\s\{[1-9]\d?,\})\|(?P<single>\[(?:\\[nrtfv])+\])")


def _flag(field: JsonValue) -> bool:
    """The value of a field that must be true or false."""
    if field.value is None:
        field.fail("expected true or false, found null")
    return field.as_bool()


def _replace(field: JsonValue) -> list[Step]:
    """The steps of a Replace: two for `_RUNS_OR_SINGLE`, else one."""
    field.allow_only("type", "pattern", "content")
    pattern = field["pattern"]
    pattern.allow_only("String", "Regex")
    if len(pattern.as_dict()) != 1:
        pattern.fail("expected one of String and Regex")
    content = field["content"].as_str()
    if "String" not in pattern.as_dict():
        regex = pattern["Regex"].as_str()
        runs = _RUNS_OR_SINGLE.fullmatch(regex)
        if runs and content == " ":  # a space, which \s matches again
            return [ReplaceRuns(runs["single"], content), ReplaceRuns(runs["runs"], content)]
        try:
            return [ReplaceRuns(_spelled_out(regex, pattern["Regex"].position) or regex, content)]
        except ValueError as error:
            pattern["Regex"].fail(f"Replace: {error}")
    text = pattern["String"].as_str()
    if not text:
        pattern.fail("Replace with an empty String is not supported")
    return [Replace(text, content)]


def _spelled_out(regex: str, position: str) -> str | None:
    """A set written with classes or code points (`\\p{Zs}`, `\\u00AD`), rewritten as its
    characters.

    None if `regex` has neither, or is not a set.
    """
    found = _SET.fullmatch(regex)
    if found is None:
        return None
    try:
        node = parse(from_oniguruma(found["set"], position), Budget(found["set"]))
    except (PatternError, VocabularyError):
        return None
    if not isinstance(node, SetNode):
        return None
    ranges = []
    for low, high in node.charset.ranges():
        for first, last in ((low, min(high, 0xD7FF)), (max(low, 0xE000), high)):
            if first <= last:  # surrogates represent invalid UTF-8, and are in no set
                ranges.append(f"{_in_set(first)}-{_in_set(last)}")
    return f"[{''.join(ranges)}]{found['times']}"


def _in_set(point: int) -> str:
    return f"\\{chr(point)}" if chr(point) in r"\[](){}.*+?^$|&-" else chr(point)


def _bert(field: JsonValue) -> list[Step]:
    field.allow_only("type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    lowercase = _flag(field["lowercase"])
    steps: list[Step] = []
    if _flag(field["clean_text"]):
        steps.append(BertClean())
    if _flag(field["handle_chinese_chars"]):
        steps.append(BertChinese())
    if field["strip_accents"].as_bool(lowercase):  # null: the value of lowercase
        steps += (Form("NFD"), BertAccents())
    if lowercase:
        steps.append(Lowercase())
    return steps
