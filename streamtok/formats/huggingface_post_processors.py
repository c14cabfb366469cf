"""Reads and writes the post-processor of a `tokenizer.json`, which puts ids around a text.

TemplateProcessing, BertProcessing and RobertaProcessing are supported, even in a sequence with
ByteLevel, which only changes offsets. (github.com/huggingface/tokenizers, Apache-2.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..engines.template import NO_TEMPLATE, Template
from ..vocabulary.table import MAX_ID
from .loading import shown

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .json_value import JsonValue

__all__ = ["post_processor_json", "read_post_processor"]

_MAX_IDS = 4096  # around a text


def read_post_processor(field: JsonValue) -> Template:
    """The template of the field `post_processor`, which may be null.

    Raises VocabularyError for unknown kinds, and for templates that do not contain the text exactly
    once.
    """
    parts = [part for part in field.flat("processors") if part["type"].as_str() != "ByteLevel"]
    if not parts:
        return NO_TEMPLATE
    part, *others = parts
    for other in others:
        other.fail("a post-processor after another one, which is not ByteLevel, is not supported")
    kind = part["type"].as_str()
    if kind == "TemplateProcessing":
        return _template(part)
    if kind not in ("BertProcessing", "RobertaProcessing"):
        part.fail(f"the post-processor {kind!r} is not supported")
    return Template((_pair_id(part["cls"]),), (_pair_id(part["sep"]),))


def _template(field: JsonValue) -> Template:
    """The ids that a TemplateProcessing puts around one text."""
    single = field["single"]
    around: list[list[int]] = [[]]  # the ids before the text, and those after it
    for piece in single.elements():
        keys = piece.as_dict().keys()
        if keys == {"Sequence"}:
            name = piece["Sequence"]["id"].as_str()
            if name != "A":
                piece.fail(f"expected the text 'A', found {shown(name)}")
            around.append([])
        elif keys == {"SpecialToken"}:
            name = piece["SpecialToken"]["id"].as_str()
            entry = field["special_tokens"][name]
            if entry.value is None:
                piece.fail(f"the special token {shown(name)} is not in special_tokens")
            around[-1] += [_id(one) for one in entry["ids"].elements()]
        else:
            piece.fail(f"expected a Sequence or a SpecialToken, found {shown(sorted(keys))}")
        if sum(map(len, around)) > _MAX_IDS:
            piece.fail(f"more than {_MAX_IDS} ids around a text are not supported")
    if len(around) != 2:  # such a template changes ids even without special tokens
        single.fail(f"expected the text once in a template, found it {len(around) - 1} times")
    return Template(tuple(around[0]), tuple(around[1]))


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
