"""The `pre_tokenizer` of a tokenizer.json as pre-tokenization patterns, and back.

Supported are ByteLevel, with or without its pattern, alone or at the end of a Sequence of Split
(Isolated) and Digits. All others raise an error that names them, Punctuation among them: Hugging
Face decides what punctuation is by a table of about Unicode 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import PatternError, VocabularyError
from ..patterns.named import GPT2_PATTERN, WHOLE_TEXT_PATTERN
from ..patterns.pattern import Pattern
from ..patterns.sequence import SplitSequence, same_pieces
from .json_value import JsonValue
from .oniguruma import from_oniguruma, quoted, to_oniguruma

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["read_splits", "write_splits"]


def read_splits(field: JsonValue) -> str | Pattern:
    """The pattern of a pre-tokenizer, or the sequence of its patterns.

    Raises VocabularyError naming the place.
    """
    if field.value is None:
        field.fail("expected a pre-tokenizer: only ByteLevel vocabularies are supported")
    steps = _flat(field)
    last = steps[-1] if steps else field
    if last["type"].value != "ByteLevel":
        last.fail(
            f"the last pre-tokenizer is {last['type'].value!r}: only vocabularies that end with "
            "ByteLevel are supported"
        )
    patterns = [p for step in steps for p in _patterns_of(step, step is last)]
    if not patterns:
        return WHOLE_TEXT_PATTERN
    try:
        if len(patterns) == 1 and Pattern.compile(patterns[0]).is_total:
            return patterns[0]
        return SplitSequence(patterns)
    except PatternError as error:
        raise VocabularyError(f"{field.place}: {error}") from error


def _flat(field: JsonValue, depth: int = 0) -> list[JsonValue]:
    if field["type"].value != "Sequence":
        return [field]
    if depth > 20:
        field.fail("sequences are nested too deep")
    field.allow_only("type", "pretokenizers")
    return [step for part in field["pretokenizers"].elements() for step in _flat(part, depth + 1)]


def _patterns_of(step: JsonValue, is_last: bool) -> list[str]:
    kind = step["type"].as_str()
    if kind == "ByteLevel":
        step.allow_only("type", "add_prefix_space", "trim_offsets", "use_regex")
        if not is_last:
            step.fail(
                "ByteLevel is supported at the end only: pre-tokenizers after it would see bytes"
            )
        if step["add_prefix_space"].as_bool(True):
            step.fail("add_prefix_space is not supported")
        return [GPT2_PATTERN] if step["use_regex"].as_bool(True) else []
    if kind == "Split":
        step.allow_only("type", "pattern", "behavior", "invert")
        return [_split_pattern(step)]
    if kind == "Digits":
        step.allow_only("type", "individual_digits")
        return [r"\p{N}" if step["individual_digits"].as_bool() else r"\p{N}+"]
    step.fail(f"the pre-tokenizer {kind!r} is not supported")


def _split_pattern(step: JsonValue) -> str:
    given = step["pattern"].as_dict()
    if given.keys() == {"Regex"}:
        pattern = from_oniguruma(step["pattern"]["Regex"].as_str(), step.place)
    elif given.keys() == {"String"} and given["String"]:
        pattern = quoted(step["pattern"]["String"].as_str())
    else:
        step["pattern"].fail("expected a Regex or a String")
    behavior, invert = step["behavior"].as_str(), step["invert"].as_bool()
    is_total = Pattern.compile(pattern).is_total
    # If a pattern matches all text, there is no rest, which the behaviors treat differently.
    if not (behavior == "Isolated" and not invert) and not (
        is_total and ((behavior == "Removed" and invert) or behavior == "Isolated")
    ):
        step.fail(f"the behavior {behavior!r} with {invert=} is not supported: expected Isolated")
    return pattern


def write_splits(encoding: Encoding) -> dict[str, Any]:
    """The pre-tokenizer that cuts text as `encoding` does. Raises VocabularyError if none does."""
    pattern = encoding.pattern
    if pattern is None:
        raise VocabularyError(
            f"no DFA matches the pattern of {encoding.name}: it cannot be compared"
        )
    if not pattern.is_total:
        raise VocabularyError(
            f"the pattern of {encoding.name} leaves characters out, which a tokenizer.json with "
            "ByteLevel cannot express"
        )
    if isinstance(pattern, SplitSequence):
        patterns = list(pattern.patterns)
    elif same_pieces(pattern, Pattern.compile(GPT2_PATTERN)):
        return _byte_level(True)
    else:
        patterns = [pattern.source]
    if patterns == [WHOLE_TEXT_PATTERN]:
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
