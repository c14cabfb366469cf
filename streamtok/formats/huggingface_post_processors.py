"""The post-processor of a `tokenizer.json`: the ids that it puts around a text, and the way back.

It reads TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel (which only changes
offsets) and sequences of them. (github.com/huggingface/tokenizers, Apache-2.0)

A post-processor gets a list of parts, which are joined in the end: one part for one text, two for a
pair. Each piece of a template becomes a part. So in a sequence, the processor after a template of
two pieces takes them for a pair of texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..engines.template import NO_TEMPLATE, Template
from ..vocabulary.table import MAX_ID
from .loading import shown

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .json_value import JsonValue

    Part = tuple[int | None, ...]  # ids; None stands for those of the text

__all__ = ["post_processor_json", "read_post_processor"]

_MAX_IDS = 4096  # around a text, so that sequences of sequences stay small


def read_post_processor(field: JsonValue) -> Template:
    """The template of the field `post_processor`, which may be null.

    Raises VocabularyError for kinds that are not known and for templates that do not have the text
    exactly once.
    """
    if field.value is None:
        return NO_TEMPLATE
    ids = [number for part in _process(field, [(None,)]) for number in part]
    if ids.count(None) != 1:
        field.fail(f"a text that occurs {ids.count(None)} times in its template is not supported")
    at = ids.index(None)
    before, after = ([n for n in part if n is not None] for part in (ids[:at], ids[at + 1 :]))
    return Template(tuple(before), tuple(after))


def _process(field: JsonValue, parts: list[Part]) -> list[Part]:
    """The parts that a post-processor makes of others, with special tokens."""
    kind = field["type"].as_str()
    if kind == "Sequence":
        for step in field["processors"].elements():
            parts = _process(step, parts)
    elif kind == "TemplateProcessing":
        parts = _fill(field, parts)
    elif kind in ("BertProcessing", "RobertaProcessing"):
        cls, sep = _pair_id(field["cls"]), _pair_id(field["sep"])
        further = () if kind == "BertProcessing" else (sep,)  # before each part but the first
        parts = [(*(further if i else (cls,)), *part, sep) for i, part in enumerate(parts)]
    elif kind != "ByteLevel":
        field.fail(f"the post-processor {kind!r} is not supported")
    if sum(map(len, parts)) + len(parts) > _MAX_IDS:
        field.fail(f"more than {_MAX_IDS} ids around a text are not supported")
    return parts


def _fill(field: JsonValue, parts: list[Part]) -> list[Part]:
    """The pieces of a TemplateProcessing."""
    texts = [piece for piece in field["single"].elements() if "Sequence" in piece.as_dict()]
    if len(texts) != 1:  # then it changes the ids without special tokens, too
        field["single"].fail(f"expected the text once in a template, found it {len(texts)} times")
    if len(parts) > 2:
        field.fail("a template after one of more than two pieces is not supported")
    known = {name: parts[i] for i, name in enumerate("AB"[: len(parts)])}
    filled: list[Part] = []
    for piece in field["single" if len(parts) == 1 else "pair"].elements():
        keys = piece.as_dict().keys()
        if keys == {"Sequence"}:
            name = piece["Sequence"]["id"].as_str()
            if name not in known:
                piece.fail(f"there is no text {shown(name)} here, only {', '.join(known)}")
            filled.append(known[name])
        elif keys == {"SpecialToken"}:
            name = piece["SpecialToken"]["id"].as_str()
            entry = field["special_tokens"][name]
            if entry.value is None:
                piece.fail(f"the special token {shown(name)} is not in special_tokens")
            filled.append(tuple(_id(one) for one in entry["ids"].elements()))
        else:
            piece.fail(f"expected a Sequence or a SpecialToken, found {shown(sorted(keys))}")
        if sum(map(len, filled)) > _MAX_IDS:
            piece.fail(f"more than {_MAX_IDS} ids around a text are not supported")
    return filled


def _pair_id(field: JsonValue) -> int:
    """The id of a special token that is given as [text, id]."""
    parts = field.elements()
    if len(parts) != 2:
        field.fail("expected a text and its id")
    parts[0].as_str()
    return _id(parts[1])


def _id(field: JsonValue) -> int:
    number = field.as_int()
    if not 0 <= number <= MAX_ID:
        field.fail(f"an id must be in 0 … {MAX_ID}, not {number}")
    return number


def post_processor_json(encoding: Encoding) -> dict[str, Any] | None:
    """The field `post_processor` for the encoding's template: a TemplateProcessing, or null."""
    template = encoding.definition.template
    if template == NO_TEMPLATE:
        return None
    texts = {number: text for text, number in encoding.definition.specials.special.items()}
    name_of: dict[int, str] = {}
    for number in (*template.before, *template.after):
        name = texts.get(number, f"#{number}")
        while name in encoding.definition.specials.special and number not in texts:
            name = "#" + name
        name_of[number] = name
    before, after = (
        [{"SpecialToken": {"id": name_of[number], "type_id": 0}} for number in part]
        for part in template
    )
    texts_of_pair = [{"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB")]
    return {
        "type": "TemplateProcessing",
        "single": [*before, texts_of_pair[0], *after],
        "pair": [*before, *texts_of_pair, *after],
        "special_tokens": {
            name: {"id": name, "ids": [number], "tokens": [name]}
            for number, name in name_of.items()
        },
    }
