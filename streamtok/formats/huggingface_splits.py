"""The `pre_tokenizer` of a tokenizer.json as splits, and back.

A pre-tokenizer cuts a text, or changes it, or both. What changes it are steps of a second
normalizer; after what cuts it, Hugging Face changes each pre-token (`PreTokenizer.stages`).
Before others, ByteLevel changes it to letters for bytes; as the last one it says that merges are of
bytes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engines.rules import MARK
from ..errors import PatternError, UnsupportedPatternError, VocabularyError
from ..normalizers import ByteLetters, MetaspaceText, PrefixSpace, Step
from ..patterns.huggingface_characters import DIGIT, PUNCTUATION, SCRIPT_PATTERN
from ..patterns.named import BERT_PATTERN, GPT2_PATTERN, WHOLE_TEXT_PATTERN
from ..patterns.pattern import Pattern
from ..patterns.sequence import MAX_SPLITS, SplitSequence, rebuilt_sequence, same_pieces
from ..patterns.splits import Split
from .json_value import JsonValue
from .oniguruma import from_oniguruma, quoted, to_oniguruma

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..models.pieces import Stages

__all__ = [
    "PreTokenizer", "metaspace_scheme", "outer_cut", "pattern_of", "read_pre_tokenizer",
    "write_splits",
]  # fmt: skip

_MAX_FIXED_LENGTH = 1000  # each character of it is a state
# What our behaviors are called there, and with `invert`.
_BEHAVIORS = {
    "Isolated": ("isolated", "isolated"),
    "Contiguous": ("contiguous", "contiguous"),
    "MergedWithPrevious": ("with previous", "with next"),
    "MergedWithNext": ("with next", "with previous"),
    "Removed": ("removed", "only"),
}


class PreTokenizer(NamedTuple):
    """What a pre-tokenizer does."""

    steps: tuple[Step, ...]  # change the text, before
    splits: tuple[Split, ...]  # cut it
    is_byte_level: bool
    # The splits, and what changes each pre-token after one, in order: see `Pieces`.
    stages: Stages

    def changes_pretokens(self) -> bool:
        """Whether a stage changes pre-tokens."""
        return len(self.stages) > len(self.splits)


def read_pre_tokenizer(field: JsonValue) -> PreTokenizer:
    """The splits of the field. Raises VocabularyError naming an unsupported part."""
    steps: list[Step] = []
    splits: list[Split] = []
    stages: list[tuple[Any, ...]] = []
    parts = [] if field.value is None else field.flat("pretokenizers")
    for part in parts:
        is_last = part is parts[-1]
        before = len(steps)
        new = _read(part, steps)
        if splits:
            for step in steps[before:]:
                if "first" in step.spec:
                    part.fail("the scheme first is supported before all that cuts the text only")
                stages.append(step.spec)
            del steps[before:]
        splits += new
        stages += [("Split", split.pattern, split.behavior) for split in new]
        if part["type"].value == "ByteLevel" and not is_last:
            if splits:
                stages.append(ByteLetters().spec)
            else:
                steps.append(ByteLetters())
        if len(stages) > MAX_SPLITS:
            part.fail(f"more than {MAX_SPLITS} splits in turn")
    is_byte_level = bool(parts) and parts[-1]["type"].value == "ByteLevel"
    return PreTokenizer(tuple(steps), tuple(splits), is_byte_level, tuple(stages))


def outer_cut(cutting: PreTokenizer, place: str) -> tuple[str | Pattern, Stages]:
    """The pattern of as many splits as one automaton follows, and the stages that are left."""
    stages = cutting.stages
    n = next((at for at, stage in enumerate(stages) if stage[0] != "Split"), len(stages))
    while n:
        try:
            return pattern_of(cutting.splits[:n], place), stages[n:]
        except VocabularyError as error:
            if not isinstance(error.__cause__, UnsupportedPatternError):
                raise
        n -= 1
    return WHOLE_TEXT_PATTERN, stages


def pattern_of(
    splits: tuple[Split, ...], place: str, spaces_are_marks: bool = False
) -> str | Pattern:
    """A pattern that cuts as `splits` do; see `SplitSequence`. Raises VocabularyError."""
    try:
        if not splits:
            return WHOLE_TEXT_PATTERN
        if len(splits) == 1 and not spaces_are_marks:
            pattern, behavior = splits[0]
            # If a pattern matches all text, there is no rest for behaviors to treat differently.
            if behavior == "only" or (behavior == "isolated" and Pattern.compile(pattern).is_total):
                return pattern
        found = rebuilt_sequence(splits, spaces_are_marks)  # a file's is asked for several times
    except PatternError as error:
        raise VocabularyError(f"{place}: {error}") from error
    if found.is_total and same_pieces(found, Pattern.compile(WHOLE_TEXT_PATTERN)):
        return WHOLE_TEXT_PATTERN
    return found


def _read(part: JsonValue, steps: list[Step]) -> list[Split]:
    """The splits of one pre-tokenizer; what it changes is appended to `steps`."""
    kind = part["type"].as_str()
    if kind == "ByteLevel":
        part.allow_only("type", "add_prefix_space", "trim_offsets", "use_regex")
        if part["add_prefix_space"].as_bool(True):
            steps.append(PrefixSpace())
        return [Split(GPT2_PATTERN)] if part["use_regex"].as_bool(True) else []
    if kind == "Metaspace":
        scheme = metaspace_scheme(part)
        replacement = part["replacement"].as_str()
        steps.append(MetaspaceText(replacement, scheme))
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
    if kind == "Whitespace":
        part.allow_only("type")
        return [Split(r"\w+|[^\w\s]+", "only")]
    if kind == "WhitespaceSplit":
        part.allow_only("type")
        return [Split(r"\s+", "removed")]
    if kind == "BertPreTokenizer":
        part.allow_only("type")
        return [Split(r"\s+", "removed"), Split(PUNCTUATION)]
    if kind == "UnicodeScripts":
        part.allow_only("type")
        return [Split(SCRIPT_PATTERN, "only")]
    part.fail(f"the pre-tokenizer {kind!r} is not supported")


def metaspace_scheme(part: JsonValue) -> str:
    """When a Metaspace puts its replacement before a text; checks all its fields."""
    part.allow_only("type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep")
    _character(part["replacement"])
    part["split"].as_bool(True)
    scheme = part["prepend_scheme"]
    if scheme.value is not None and scheme.as_str() not in ("always", "first", "never"):
        scheme.fail(f"expected always, first or never, found {scheme.value!r}")
    if part["add_prefix_space"].as_bool(True):  # files before tokenizers 0.15 say it so
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
    if name not in _BEHAVIORS:
        part.fail(f"the behavior {name!r} is not supported: expected {', '.join(_BEHAVIORS)}")
    return _BEHAVIORS[name][invert]


def _pattern(part: JsonValue) -> str:
    given = part["pattern"].as_dict()
    if given.keys() == {"Regex"}:
        return from_oniguruma(part["pattern"]["Regex"].as_str(), part.place)
    if given.keys() == {"String"} and given["String"]:
        return quoted(part["pattern"]["String"].as_str())
    part["pattern"].fail("expected a Regex or a String")


def write_splits(
    encoding: Encoding, is_byte_level: bool = True, is_cut: bool = True
) -> dict[str, Any] | None:
    """The pre-tokenizer that cuts text as `encoding` does. Raises VocabularyError if none does.

    is_cut: False if it is enough to change the text, because no merges cross where it is cut.
    """
    parts = _written_steps(encoding)
    prefix = is_byte_level and parts == ["PrefixSpace"]
    if prefix:
        parts = []
    parts += _written_splits(encoding) if is_cut else []
    gpt2 = _split(GPT2_PATTERN, "isolated")
    if is_byte_level:
        if parts == [gpt2]:
            return _byte_level(prefix, True)
        if prefix and parts:
            raise VocabularyError(
                f"{encoding.name} puts a space before the text and cuts it by a pattern of its "
                "own, which a tokenizer.json cannot express"
            )
        parts.append(_byte_level(prefix, False))
    if "PrefixSpace" in parts:
        raise VocabularyError(
            f"{encoding.name} puts a space before the text, which a tokenizer.json can express "
            "with ByteLevel alone"
        )
    return sequence(parts)


def sequence(parts: list[Any]) -> dict[str, Any] | None:
    """These pre-tokenizers as one."""
    if len(parts) == 1 and parts[0]["type"] != "Split":
        only: dict[str, Any] = parts[0]
        return only
    return {"type": "Sequence", "pretokenizers": parts} if parts else None


def written_pre_tokenizers(encoding: Encoding, stages: Stages) -> list[Any]:
    """What a model of pieces has before it. Raises VocabularyError where nothing says it."""
    second = encoding._rules.second_normalizer
    steps: Stages = () if second is None else second.spec
    letters, gpt2 = ByteLetters().spec, ("Split", GPT2_PATTERN, "isolated")
    specs = [*steps, *(("Split", *split) for split in _splits_of(encoding)), *stages]
    parts: list[dict[str, Any]] = []
    at = 0
    while at < len(specs):
        kind, *settings = specs[at]
        prefix = kind == "PrefixSpace"
        has_regex = specs[at + prefix : at + prefix + 2] == [gpt2, letters]
        if has_regex or specs[at + prefix : at + prefix + 1] == [letters]:  # they come together
            parts.append(_byte_level(prefix, has_regex))
            at += prefix + has_regex + 1
            continue
        if kind not in ("Split", "MetaspaceText"):
            raise VocabularyError(f"a tokenizer.json has no pre-tokenizer for the step {kind}")
        part = _split(*settings) if kind == "Split" else _metaspace(*settings)
        parts.append(_named().get(_key(part), part))
        at += 1
    return _joined(parts)


def _joined(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, with one in place of two where one does what both do."""
    joined: list[dict[str, Any]] = []
    for part in parts:
        last = joined[-1] if joined else {"type": ""}
        before = _split(quoted(last["replacement"]), "with next") if "split" in last else None
        if [last["type"], part["type"]] == ["WhitespaceSplit", "Punctuation"]:
            joined[-1] = {"type": "BertPreTokenizer"}
        elif before == part:
            joined[-1] = {**last, "split": True}
        else:
            joined.append(part)
    return joined


def _written_steps(encoding: Encoding) -> list[Any]:
    """The pre-tokenizers of the second normalizer; "PrefixSpace" is left to the caller."""
    second = encoding._rules.second_normalizer
    parts: list[Any] = []
    is_folded = False  # "▁" has become a space: see `huggingface_models.py`
    for kind, *values in second.spec if second is not None else ():
        if kind == "PrefixSpace":
            parts.append(kind)
        elif kind == "MetaspaceText":
            replacement, scheme = values
            parts.append(_metaspace(MARK if replacement == " " else replacement, scheme))
            is_folded = False
        elif [kind, *values] == ["Replace", MARK, " "]:
            is_folded = True
        else:
            raise VocabularyError(f"a tokenizer.json has no pre-tokenizer for the step {kind}")
    return [*parts, _metaspace(MARK, "never")] if is_folded else parts


def _metaspace(replacement: str, scheme: str) -> dict[str, Any]:
    return {
        "type": "Metaspace",
        "replacement": replacement,
        "prepend_scheme": scheme,
        "split": False,
    }


def _written_splits(encoding: Encoding) -> list[dict[str, Any]]:
    return [_split(*split) for split in _splits_of(encoding)]


def _splits_of(encoding: Encoding) -> list[Split]:
    """The splits that cut as its pattern does."""
    pattern = encoding.pattern
    if pattern is None:
        raise VocabularyError(
            f"no DFA matches the pattern of {encoding.name}: it cannot be compared"
        )
    if isinstance(pattern, SplitSequence):
        return list(pattern.splits)
    if pattern.is_total and same_pieces(pattern, Pattern.compile(GPT2_PATTERN)):
        return [Split(GPT2_PATTERN)]
    if pattern.is_total and same_pieces(pattern, Pattern.compile(WHOLE_TEXT_PATTERN)):
        return []
    return [Split(pattern.source, "isolated" if pattern.is_total else "only")]


def _split(pattern: str, behavior: str) -> dict[str, Any]:
    if (pattern, behavior) == (SCRIPT_PATTERN, "only"):  # its sets have no names there
        return {"type": "UnicodeScripts"}
    names = {own: (name, own == "only") for name, (own, _) in _BEHAVIORS.items()}
    name, invert = names.get(behavior, ("Removed", True))
    return {
        "type": "Split",
        "pattern": {"Regex": to_oniguruma(pattern)},
        "behavior": name,
        "invert": invert,
    }


def _key(part: dict[str, Any]) -> str:
    return "" if part["type"] != "Split" else "".join(map(str, part.values()))


@functools.cache
def _named() -> dict[str, dict[str, Any]]:
    """Splits that have names of their own, by their general form. Takes tens of milliseconds."""
    return {
        _key(_split(pattern, behavior)): part
        for pattern, behavior, part in (
            (r"\s+", "removed", {"type": "WhitespaceSplit"}),
            (r"\w+|[^\w\s]+", "only", {"type": "Whitespace"}),
            (BERT_PATTERN, "only", {"type": "BertPreTokenizer"}),
            (PUNCTUATION, "isolated", {"type": "Punctuation", "behavior": "Isolated"}),
            (DIGIT, "isolated", {"type": "Digits", "individual_digits": True}),
            (DIGIT + "+", "isolated", {"type": "Digits", "individual_digits": False}),
        )
    }


def _byte_level(add_prefix_space: bool, use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": True,
        "use_regex": use_regex,
    }
