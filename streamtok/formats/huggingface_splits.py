"""The `pre_tokenizer` of a tokenizer.json as split patterns, and back.

What is understood: ByteLevel, with its pattern or without, alone or at the end of a sequence of
isolating Split and of Digits. Everything else is refused by name; Punctuation, too, since Hugging
Face decides by a table of Unicode 8 or so what that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import PatternError, VocabularyError
from ..patterns.named import GPT2_PATTERN
from ..patterns.pattern import Pattern
from ..patterns.sequence import SplitSequence, same_pieces
from .loading import Reader
from .oniguruma import from_oniguruma, quoted, to_oniguruma

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["read_splits", "write_splits"]

_WHOLE_TEXT = r"[\s\S]+"


def read_splits(field: Reader) -> str | Pattern:
    """The pieces that a pre-tokenizer makes: a pattern, or several in turn."""
    if field.value is None:
        field.fail("no pre-tokenizer is given: only ByteLevel vocabularies can be read")
    steps = _flat(field)
    last = steps[-1] if steps else field
    if last["type"].value != "ByteLevel":
        last.fail(
            f"the last pre-tokenizer is {last['type'].value!r}: only vocabularies that end with "
            "ByteLevel can be read"
        )
    patterns = [p for step in steps for p in _patterns_of(step, step is last)]
    if not patterns:
        return _WHOLE_TEXT
    try:
        if len(patterns) == 1 and Pattern.compile(patterns[0]).is_total:
            return patterns[0]
        return SplitSequence(patterns)
    except PatternError as error:
        raise VocabularyError(f"{field.place}: {error}") from error


def _flat(field: Reader, depth: int = 0) -> list[Reader]:
    if field["type"].value != "Sequence":
        return [field]
    if depth > 20:
        field.fail("sequences are nested too deep")
    field.only("type", "pretokenizers")
    return [step for part in field["pretokenizers"].items() for step in _flat(part, depth + 1)]


def _patterns_of(step: Reader, is_last: bool) -> list[str]:
    kind = step["type"].as_str()
    if kind == "ByteLevel":
        step.only("type", "add_prefix_space", "trim_offsets", "use_regex")
        if not is_last:
            step.fail("ByteLevel is supported at the end only: what follows would see bytes")
        if step["add_prefix_space"].flag(True):
            step.fail("add_prefix_space is not supported")
        return [GPT2_PATTERN] if step["use_regex"].flag(True) else []
    if kind == "Split":
        step.only("type", "pattern", "behavior", "invert")
        return [_split_pattern(step)]
    if kind == "Digits":
        step.only("type", "individual_digits")
        return [r"\p{N}" if step["individual_digits"].flag() else r"\p{N}+"]
    step.fail(f"the pre-tokenizer {kind!r} is not supported")


def _split_pattern(step: Reader) -> str:
    given = step["pattern"].as_dict()
    if given.keys() == {"Regex"}:
        pattern = from_oniguruma(step["pattern"]["Regex"].as_str(), step.place)
    elif given.keys() == {"String"} and given["String"]:
        pattern = quoted(step["pattern"]["String"].as_str())
    else:
        step["pattern"].fail("expected a Regex or a String")
    behavior, invert = step["behavior"].as_str(), step["invert"].flag()
    is_total = Pattern.compile(pattern).is_total
    # A pattern that leaves nothing out gives the same pieces, whether the rest is kept or removed.
    if not (behavior == "Isolated" and not invert) and not (
        is_total and ((behavior == "Removed" and invert) or behavior == "Isolated")
    ):
        step.fail(f"the behavior {behavior!r}, {invert=} is not supported")
    return pattern


def write_splits(encoding: Encoding) -> dict[str, Any]:
    """The pre-tokenizer that makes the pieces of `encoding`; VocabularyError if there is none."""
    pattern = encoding.pattern
    if pattern is None:
        raise VocabularyError(f"the split pattern of {encoding.name} has no tables to compare")
    if not pattern.is_total:
        raise VocabularyError(
            f"the split pattern of {encoding.name} leaves characters out, "
            "which a tokenizer.json with ByteLevel cannot"
        )
    if isinstance(pattern, SplitSequence):
        patterns = list(pattern.patterns)
    elif same_pieces(pattern, Pattern.compile(GPT2_PATTERN)):
        return _byte_level(True)
    else:
        patterns = [pattern.source]
    if patterns == [_WHOLE_TEXT]:
        return _byte_level(False)
    splits: list[dict[str, Any]] = [
        {
            "type": "Split",
            "pattern": {"Regex": to_oniguruma(source)},
            "behavior": "Isolated",
            "invert": False,
        }
        for source in patterns
    ]
    return {"type": "Sequence", "pretokenizers": [*splits, _byte_level(False)]}


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }
