"""What the other files of a model's folder add to a vocabulary file that does not say it itself.

A `tokenizer.json` and a `tekken.json` say everything about text and ids. Beside a
`tokenizer.model`, and beside `vocab.json` with `merges.txt`, these files have the special tokens,
the added tokens, the class that the model's authors used, and whether a text begins with a token:
`tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json`. What the classes do is
from transformers' converters (github.com/huggingface/transformers, Apache-2.0).

Which token ends a text is in no vocabulary file: `tokenizer_config.json`, `generation_config.json`
and `config.json` say it, and `special_tokens_map.json`.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engines.template import NO_TEMPLATE, Template
from ..errors import VocabularyError
from ..patterns.named import PATTERNS
from ..vocabulary.ranks_file import MAX_DIGITS
from .gpt2 import read_merges
from .huggingface import read_huggingface
from .json_value import JsonValue, parse_json
from .loading import make_encoding, read_bytes, shown

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = [
    "CONFIG_FILES",
    "EOS_FILES",
    "Config",
    "load_merges",
    "read_config",
    "read_eos",
    "with_config",
]

CONFIG_FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")

EOS_FILES = (*CONFIG_FILES[:2], "generation_config.json", "config.json")

_ROLES = tuple(f"{role}_token" for role in ["bos", "eos", "unk", "sep", "pad", "cls", "mask"])
_FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
_ROBERTA = {"cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
_ROBERTA |= {"bos_token": "<s>", "eos_token": "</s>", "mask_token": "<mask>"}
_GPT2 = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
# The roles of tokens that each class has if the files do not say it.
_DEFAULTS = {
    **dict.fromkeys(("GPT2", "CodeGen", "Whisper"), _GPT2),
    **dict.fromkeys(("Roberta", "Bart", "Longformer", "LED"), _ROBERTA),
    "Qwen2": {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"},
}
_BEGIN_WITH_BOS = ("Llama", "CodeLlama", "Gemma")  # classes that do so if nothing is said


class Config(NamedTuple):
    """What the files say; `added` by text: an entry of `added_tokens` in a tokenizer.json."""

    place: str
    kind: str | None  # the class, without "Tokenizer" and "Fast"
    roles: dict[str, str]
    added: dict[str, dict[str, Any]]
    begins: bool | None  # whether a text begins with the token of bos_token, if that is said
    ends: bool | None
    prefix_space: bool


def read_config(folder: str) -> Config | None:
    """What the files of a folder say; None if there are none. Raises VocabularyError, OSError."""
    found: list[JsonValue] = []
    for file in CONFIG_FILES:
        path = os.path.join(folder, file)
        value = parse_json(read_bytes(path), path) if os.path.isfile(path) else {}
        found.append(JsonValue(value, path))
    config, special_map, added = found
    if not any(file.as_dict() for file in found):
        return None
    roles: dict[str, str] = {}
    special: dict[str, dict[str, Any]] = {}
    for one_file in (config, special_map):
        fields = [(role, one_file[role]) for role in _ROLES]
        further = one_file["additional_special_tokens"]
        fields += [("", one) for one in (further.elements() if further.value is not None else [])]
        for role, field in fields:
            if field.value is None:
                continue
            text, flags = _text_and_flags(field)
            special[text] = {**special.get(text, {}), **flags}
            if role:
                roles.setdefault(role, text)
    return Config(
        folder,
        _class_of(config["tokenizer_class"]),
        roles,
        _added(config["added_tokens_decoder"], added, special),
        _said(config["add_bos_token"]),
        _said(config["add_eos_token"]),
        config["add_prefix_space"].as_bool(),
    )


def read_eos(folder: str, encoding: Encoding) -> tuple[int, ...]:
    """The ids that end a text of the model in this folder, the tokenizer's own first.

    Names of unknown tokens are ignored. Raises VocabularyError, OSError.
    """
    found: list[int] = []
    for file in EOS_FILES:
        path = os.path.join(folder, file)
        if not os.path.isfile(path):
            continue
        value = JsonValue(parse_json(read_bytes(path), path), path)
        if file in CONFIG_FILES:
            token = value["eos_token"]
            if not found and token.value is not None:
                with contextlib.suppress(KeyError):
                    found.append(encoding.encode_single_token(_text_and_flags(token)[0]))
            continue
        ids = value["eos_token_id"]
        if ids.value is None and value["text_config"].value is not None:
            ids = value["text_config"]["eos_token_id"]  # of models of more than text
        listed = ids.value if isinstance(ids.value, list) else [ids.value]
        known = [id for id in listed if type(id) is int and 0 <= id <= encoding.max_token_value]
        if known:
            return tuple(dict.fromkeys(found + known))
    return tuple(found)


def _class_of(field: JsonValue) -> str | None:
    if field.value is None:
        return None
    return field.as_str().removesuffix("Fast").removesuffix("Tokenizer")


def _said(field: JsonValue) -> bool | None:
    return None if field.value is None else field.as_bool()


def _added(
    by_id: JsonValue, ids: JsonValue, special: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The entries of all added tokens; those that only have a role have no id."""
    entries: dict[str, dict[str, Any]] = {}
    for number in by_id.as_dict() if by_id.value is not None else ():
        if not (number.isascii() and number.isdigit()) or len(number) > MAX_DIGITS:
            by_id.fail(f"expected an id, found {shown(number)}")
        text, flags = _text_and_flags(by_id[number])
        is_special = by_id[number]["special"].as_bool()
        entries[text] = {"special": is_special, **flags, "id": int(number)}
    for text in ids.as_dict():
        flags = {"special": text in special, **special.get(text, {})}
        entries.setdefault(text, {**flags, "id": ids[text].as_int()})
    for text, flags in special.items():
        entries.setdefault(text, {"special": True, **flags})
    return entries


def _text_and_flags(field: JsonValue) -> tuple[str, dict[str, Any]]:
    """A token that is given as its text, or as an object with flags."""
    if isinstance(field.value, str):
        return field.as_str(), {}
    flags = {flag: field[flag].as_bool() for flag in _FLAGS if field[flag].value is not None}
    return field["content"].as_str(), flags


def _template(config: Config, ids: dict[str, int], begins: bool) -> Template:
    """The template that `add_bos_token` and `add_eos_token` ask for."""

    def of(role: str, is_wanted: bool) -> tuple[int, ...]:
        text = config.roles.get(role, {"bos_token": "<s>", "eos_token": "</s>"}[role])
        if is_wanted and text not in ids:
            raise VocabularyError(f"{config.place}: {role} {text!r} is not a token of the model")
        return (ids[text],) if is_wanted else ()

    begins = begins if config.begins is None else config.begins
    return Template(of("bos_token", begins), of("eos_token", bool(config.ends)))


def with_config(encoding: Encoding, config: Config) -> Encoding:
    """The encoding of a SentencePiece model with the tokens and the template of its folder.

    Raises VocabularyError for a token whose id contradicts the model's, and for flags.
    """
    special = dict(encoding.definition.specials.special)
    added = dict(encoding.definition.rules.added_tokens)
    n_known = len(special) + len(added)
    for text, entry in config.added.items():
        number = entry.get("id")
        if number is None:
            continue  # the model's own, or without an id
        try:
            known = encoding.encode_single_token(text)
        except KeyError:
            known = number
        if number != known:
            raise VocabularyError(
                f"{config.place}: the token {shown(text)} has id {number}, in the model {known}"
            )
        if text in special or text in added:
            continue
        for flag in _FLAGS[:3]:
            if entry.get(flag):
                raise VocabularyError(
                    f"{config.place}: {flag} of the token {shown(text)} is not supported beside a "
                    "SentencePiece model"
                )
        if not entry["special"] and encoding.definition.rules.normalizer != "spaces":
            raise VocabularyError(
                f"{config.place}: the token {shown(text)} is not special, which is not supported "
                "beside a SentencePiece model whose normalizer changes more than spaces"
            )
        (special if entry["special"] else added)[text] = number
    begins = config.kind in _BEGIN_WITH_BOS
    template = _template(config, {**added, **special}, begins)
    if len(special) + len(added) == n_known and template == NO_TEMPLATE:
        return encoding
    pattern = encoding.pattern
    return make_encoding(
        config.place,
        encoding.name,
        pat_str=pattern
        if pattern is not None and pattern.is_composed
        else encoding.definition.pat_str,
        mergeable_ranks=encoding.definition.vocabulary,
        special_tokens=special,
        rules=encoding.definition.rules._replace(added_tokens=tuple(added.items())),
        template=template,
    )


def load_merges(merges_path: str, ids_path: str, config: Config, name: str) -> Encoding:
    """The encoding of GPT-2's pair of files by the class that the configuration names.

    Raises VocabularyError for a class that is not known.
    """
    defaults = _DEFAULTS.get(config.kind or "")
    if defaults is None:
        raise VocabularyError(
            f"{config.place}: files of merges have no pre-tokenization pattern, and the one of "
            f"{config.kind}Tokenizer is not known: give a pattern, or a tokenizer.json"
        )
    ids = parse_json(read_bytes(ids_path), ids_path)
    vocabulary = JsonValue(ids, ids_path).as_dict()
    roles = {role: text for role, text in defaults.items() if text in vocabulary} | config.roles
    added = {text: {"special": True, **entry} for text, entry in config.added.items()}
    for role, text in roles.items():
        added.setdefault(text, {"special": True})
        if role == "mask_token":
            added[text].setdefault("lstrip", True)
            added[text].setdefault("normalized", False)
    entries = []
    for text, entry in added.items():
        number = vocabulary.get(text, entry.get("id"))
        if number is None:
            continue  # without an id: it is in no text and in no template
        if entry.get("id", number) != number:
            raise VocabularyError(
                f"{config.place}: the token {shown(text)} has id {entry['id']}, and {number} in "
                f"{ids_path}"
            )
        entries.append({**entry, "id": number, "content": text})
    value = {
        "added_tokens": sorted(entries, key=lambda entry: entry["id"]),
        **_pipeline(config, roles, {entry["content"]: entry["id"] for entry in entries}),
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": ids,
            "merges": read_merges(read_bytes(merges_path), merges_path),
        },
    }
    return read_huggingface(JsonValue(value, config.place), name)


def _pipeline(config: Config, roles: dict[str, str], ids: dict[str, int]) -> dict[str, Any]:
    """The parts of a tokenizer.json between the added tokens and the model."""
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": config.prefix_space,
        "trim_offsets": True,
        "use_regex": True,
    }
    if config.kind == "Qwen2":
        split = {
            "type": "Split",
            "pattern": {"Regex": PATTERNS["qwen2"]},
            "behavior": "Isolated",
            "invert": False,
        }
        steps = [split, {**byte_level, "use_regex": False}]
        return {
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        }
    parts: dict[str, Any] = {"pre_tokenizer": byte_level}
    if _DEFAULTS[config.kind or ""] is _ROBERTA:
        pair = {key: roles.get(f"{key}_token", "") for key in ("sep", "cls")}
        for key, text in pair.items():
            if text not in ids:
                raise VocabularyError(f"{config.place}: {key}_token {text!r} has no id")
        ends = {key: [text, ids[text]] for key, text in pair.items()}
        parts["post_processor"] = {"type": "RobertaProcessing", **ends}
    elif config.begins or config.ends:
        template = _template(config._replace(roles=roles), ids, False)
        pieces, known = [], {}
        for part in template:
            for number in part:
                known[str(number)] = {"ids": [number]}
            pieces.append([{"SpecialToken": {"id": str(number)}} for number in part])
        parts["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [*pieces[0], {"Sequence": {"id": "A"}}, *pieces[1]],
            "special_tokens": known,
        }
    return parts
