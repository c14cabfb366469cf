"""Reads the `pre_tokenizer` of a tokenizer.json as splits.

A pre-tokenizer cuts a text, or changes it, or both. Changes before the first cut become steps of a
second normalizer; later changes apply to each pre-token (`PreTokenizer.stages`). ByteLevel before
other pre-tokenizers replaces each byte by a letter; as the last pre-tokenizer, it means that the
model merges bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UnsupportedPatternError, VocabularyError
from ..normalizers import PREFIX_SPACE, ByteLetters, MetaspaceText, Step
from ..patterns.huggingface_characters import DIGIT, PUNCTUATION
from ..patterns.named import GPT2_PATTERN, WHOLE_TEXT_PATTERN
from ..patterns.pattern import Pattern
from ..patterns.sequence import MAX_SPLITS, rebuilt_sequence, same_pieces
from ..patterns.splits import Split
from .json_value import JsonValue
from .loading import errors_at
from .oniguruma import from_oniguruma, quoted

if TYPE_CHECKING:
    from ..vocabulary.pieces import Stages

__all__ = [
    "BEHAVIORS", "PreTokenizer", "metaspace_scheme", "outer_cut", "pattern_of",
    "read_pre_tokenizer",
]  # fmt: skip

_MAX_FIXED_LENGTH = 1000  # each character takes a state of the DFA
# Our names for Hugging Face's behaviors, without and with `invert`.
BEHAVIORS = {
    "Isolated": ("isolated", "isolated"),
    "Contiguous": ("contiguous", "contiguous"),
    "MergedWithPrevious": ("with previous", "with next"),
    "MergedWithNext": ("with next", "with previous"),
    "Removed": ("removed", "only"),
}
# Pre-tokenizers without settings.
_FIXED = {
    "Whitespace": [Split(r"\w+|[^\w\s]+", "only")],
    "WhitespaceSplit": [Split(r"\s+", "removed")],
    "BertPreTokenizer": [Split(r"\s+", "removed"), Split(PUNCTUATION)],
}


class PreTokenizer(NamedTuple):
    """What a pre-tokenizer does."""

    steps: tuple[Step, ...]  # change the text before it is cut
    splits: tuple[Split, ...]  # cut the text
    is_byte_level: bool
    # The splits, and the changes to each pre-token that follow them, in order (see `Pieces`).
    stages: Stages


def read_pre_tokenizer(field: JsonValue) -> PreTokenizer:
    """The pre-tokenizer in this field. Raises VocabularyError naming an unsupported part."""
    steps: list[Step] = []
    splits: list[Split] = []
    stages: list[tuple[Any, ...]] = []
    parts = field.flat("pretokenizers")
    for part in parts:
        changes: list[Step] = []
        new = _read(part, changes)
        if not splits:
            steps += changes
        elif any("first" in step.spec for step in changes):
            part.fail("the scheme first is supported before all that cuts the text only")
        else:
            stages += [step.spec for step in changes]
        splits += new
        stages += [("Split", split.pattern, split.behavior) for split in new]
        if part["type"].value == "ByteLevel" and part is not parts[-1]:
            if splits:
                stages.append(ByteLetters().spec)
            else:
                steps.append(ByteLetters())
        if len(stages) > MAX_SPLITS:
            part.fail(f"more than {MAX_SPLITS} splits in turn")
    is_byte_level = bool(parts) and parts[-1]["type"].value == "ByteLevel"
    return PreTokenizer(tuple(steps), tuple(splits), is_byte_level, tuple(stages))


def outer_cut(cutting: PreTokenizer, position: str) -> tuple[str | Pattern, Stages]:
    """(pattern, stages): one pattern for as many splits as possible, and the remaining stages."""
    stages = cutting.stages
    n = next((at for at, stage in enumerate(stages) if stage[0] != "Split"), len(stages))
    while n:
        try:
            return pattern_of(cutting.splits[:n], position), stages[n:]
        except VocabularyError as error:
            if not isinstance(error.__cause__, UnsupportedPatternError):
                raise
        n -= 1
    return WHOLE_TEXT_PATTERN, stages


def pattern_of(
    splits: tuple[Split, ...], position: str, spaces_are_marks: bool = False
) -> str | Pattern:
    """A pattern that cuts as `splits` do; see `SplitSequence`. Raises VocabularyError."""
    if not splits:
        return WHOLE_TEXT_PATTERN
    with errors_at(position):
        if len(splits) == 1 and not spaces_are_marks:
            pattern, behavior = splits[0]
            # If the matches cover all text, both behaviors are the same.
            if behavior == "only" or (behavior == "isolated" and Pattern.compile(pattern).is_total):
                return pattern
        found = rebuilt_sequence(splits, spaces_are_marks)  # cached: a file needs it several times
    if found.is_total and same_pieces(found, Pattern.compile(WHOLE_TEXT_PATTERN)):
        return WHOLE_TEXT_PATTERN
    return found


def _read(part: JsonValue, changes: list[Step]) -> list[Split]:
    """The splits of one pre-tokenizer; its changes to the text are appended to `changes`."""
    kind = part["type"].as_str()
    if kind == "ByteLevel":
        part.allow_only("type", "add_prefix_space", "trim_offsets", "use_regex")
        if part["add_prefix_space"].as_bool(True):
            changes.append(PREFIX_SPACE)
        return [Split(GPT2_PATTERN)] if part["use_regex"].as_bool(True) else []
    if kind == "Metaspace":
        scheme = metaspace_scheme(part)
        replacement = part["replacement"].as_str()
        changes.append(MetaspaceText(replacement, scheme))
        return [Split(quoted(replacement), "with next")] if part["split"].as_bool(True) else []
    if kind == "Split":
        part.allow_only("type", "pattern", "behavior", "invert")
        return [Split(_pattern(part), _behavior(part, part["invert"].as_bool()))]
    if kind == "Digits":
        part.allow_only("type", "individual_digits")
        return [Split(DIGIT if part["individual_digits"].as_bool() else DIGIT + "+")]
    if kind == "Punctuation":
        part.allow_only("type", "behavior")
        is_default = part["behavior"].value is None
        return [Split(PUNCTUATION, "isolated" if is_default else _behavior(part, False))]
    if kind == "CharDelimiterSplit":
        part.allow_only("type", "delimiter")
        return [Split(quoted(_character(part["delimiter"])), "removed")]
    if kind == "FixedLength":
        part.allow_only("type", "length")
        length = part["length"].as_int()
        if not 1 <= length <= _MAX_FIXED_LENGTH:
            part.fail(f"the length {length} is not supported: expected 1 … {_MAX_FIXED_LENGTH}")
        return [Split(rf"[\s\S]{{1,{length}}}")]
    if kind not in _FIXED:
        part.fail(f"the pre-tokenizer {kind!r} is not supported")
    part.allow_only("type")
    return _FIXED[kind]


def metaspace_scheme(part: JsonValue) -> str:
    """When a Metaspace prepends its replacement: "always", "first" or "never". Checks all its
    fields.
    """
    part.allow_only("type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep")
    _character(part["replacement"])
    part["split"].as_bool(True)
    scheme = part["prepend_scheme"]
    if scheme.value is not None and scheme.as_str() not in ("always", "first", "never"):
        scheme.fail(f"expected always, first or never, found {scheme.value!r}")
    if part["add_prefix_space"].as_bool(True):  # in files before tokenizers 0.15
        return scheme.value or "always"
    if scheme.value not in (None, "never"):
        scheme.fail(f"{scheme.value!r} contradicts add_prefix_space, which is false")
    return "never"


def _character(field: JsonValue) -> str:
    text = field.as_str()
    if len(text) != 1:
        field.fail(f"expected one character, found {len(text)}")
    return text


def _behavior(part: JsonValue, invert: bool) -> str:
    name = part["behavior"].as_str()
    if name not in BEHAVIORS:
        part.fail(f"the behavior {name!r} is not supported: expected {', '.join(BEHAVIORS)}")
    return BEHAVIORS[name][invert]


def _pattern(part: JsonValue) -> str:
    given = part["pattern"].as_dict()
    if given.keys() == {"Regex"}:
        return from_oniguruma(part["pattern"]["Regex"].as_str(), part.position)
    if given.keys() == {"String"} and given["String"]:
        return quoted(part["pattern"]["String"].as_str())
    part["pattern"].fail("expected a Regex or a String")
