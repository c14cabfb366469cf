"""The settings that other files of a model's folder add to a vocabulary file.

A `tokenizer.json` or a `tekken.json` says everything about text and ids. Beside a
`tokenizer.model`, `tokenizer_config.json`, `special_tokens_map.json` and `added_tokens.json` list
special and added tokens, and say whether a token begins or ends each text. The defaults of
tokenizer classes are those of transformers' converters (github.com/huggingface/transformers,
Apache-2.0).

No vocabulary file says which token ends a text: this is in `tokenizer_config.json`,
`special_tokens_map.json`, `generation_config.json` and `config.json`. A chat template is in
`chat_template.jinja` or in `tokenizer_config.json`.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, NamedTuple

from ..encoding import Encoding, changed
from ..engines.template import NO_TEMPLATE, Template
from ..errors import VocabularyError
from ..vocabulary.ranks_file import MAX_DIGITS
from .json_value import JsonValue, parse_json
from .loading import check_total, errors_at, read_bytes, shown
from .sentencepiece_normalizer import changes_spaces_only, flags_of

__all__ = [
    "CONFIG_FILES",
    "EOS_FILES",
    "Config",
    "read_chat_template",
    "read_config",
    "read_eos",
    "with_config",
]

CONFIG_FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")

EOS_FILES = (*CONFIG_FILES[:2], "generation_config.json", "config.json")

_ROLES = tuple(f"{role}_token" for role in ["bos", "eos", "unk", "sep", "pad", "cls", "mask"])
_FLAGS = ("lstrip", "rstrip", "single_word")
# Tokenizer classes that put the BOS token before each text by default.
_BEGIN_WITH_BOS = ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer")


class Config(NamedTuple):
    """The settings in a folder. added: for each token's text, its id, whether it is special, and
    its flags.
    """

    folder: str
    added: dict[str, dict[str, Any]]
    begin: str | None  # the token before each text
    end: str | None  # the token after each text


def _read(folder: str, file: str) -> JsonValue:
    """The object in a file of the folder; an empty one if there is no such file."""
    path = os.path.join(folder, file)
    return JsonValue(parse_json(read_bytes(path), path) if os.path.isfile(path) else {}, path)


def read_config(folder: str) -> Config | None:
    """The settings in a folder; None if there are none. Raises OSError and VocabularyError."""
    config, special_map, added = found = [_read(folder, file) for file in CONFIG_FILES]
    if not any(file.as_dict() for file in found):
        return None
    roles: dict[str, str] = {}
    special: dict[str, dict[str, Any]] = {}
    for file in (config, special_map):
        fields = [(role, file[role]) for role in _ROLES]
        further = file["additional_special_tokens"]
        fields += [("", one) for one in (further.elements() if further.value is not None else [])]
        for role, field in fields:
            if field.value is not None:
                text, flags = _text_and_flags(field)
                special[text] = special.get(text, {}) | flags
                roles.setdefault(role, text)
    entries: dict[str, dict[str, Any]] = {}
    by_id = config["added_tokens_decoder"]
    for number in by_id.as_dict() if by_id.value is not None else ():
        if not (number.isascii() and number.isdigit()) or len(number) > MAX_DIGITS:
            by_id.fail(f"expected an id, found {shown(number)}")
        text, flags = _text_and_flags(by_id[number])
        is_special = by_id[number]["special"].as_bool()
        entries[text] = {**flags, "special": is_special, "id": int(number)}
    for text in added.as_dict():
        flags = special.get(text, {})
        entries.setdefault(text, {**flags, "special": text in special, "id": added[text].as_int()})
    kind = config["tokenizer_class"]
    name = "" if kind.value is None else kind.as_str().removesuffix("Fast")
    begins = config["add_bos_token"].as_bool(name in _BEGIN_WITH_BOS)
    ends = config["add_eos_token"].as_bool()
    return Config(
        folder,
        entries,
        roles.get("bos_token", "<s>") if begins else None,
        roles.get("eos_token", "</s>") if ends else None,
    )


def read_eos(folder: str, encoding: Encoding) -> tuple[int, ...]:
    """The ids that end a text of the model in this folder; the tokenizer's own id comes first.

    Names of unknown tokens are ignored. Raises OSError and VocabularyError.
    """
    found: list[int] = []
    for file in EOS_FILES:
        value = _read(folder, file)
        if file in CONFIG_FILES:
            token = value["eos_token"]
            if not found and token.value is not None:
                with contextlib.suppress(KeyError):
                    found.append(encoding.encode_single_token(_text_and_flags(token)[0]))
            continue
        ids = value["eos_token_id"]
        if ids.value is None and value["text_config"].value is not None:
            ids = value["text_config"]["eos_token_id"]  # of multimodal models
        listed = ids.value if isinstance(ids.value, list) else [ids.value]
        known = [id for id in listed if type(id) is int and 0 <= id <= encoding.max_token_value]
        if known:
            return tuple(dict.fromkeys(found + known))
    return tuple(found)


def read_chat_template(folder: str) -> tuple[str, dict[str, str]]:
    """(source, tokens): the model's chat template, and tokens by role, such as "bos_token".

    Raises OSError, and VocabularyError if there is no template.
    """
    files = [_read(folder, file) for file in CONFIG_FILES[:2]]
    path = os.path.join(folder, "chat_template.jinja")
    field = files[0]["chat_template"]
    if os.path.isfile(path):
        source = read_bytes(path).decode("utf-8", "replace")
    elif isinstance(field.value, list):
        named = {one["name"].as_str(): one["template"].as_str() for one in field.elements()}
        source = named.get("default", "")
    else:
        source = "" if field.value is None else field.as_str()
    if not source:
        raise VocabularyError(
            f"{folder}: no chat template: expected chat_template.jinja, or chat_template in "
            f"{CONFIG_FILES[0]}"
        )
    tokens: dict[str, str] = {}
    for file in files:
        for role, value in file.as_dict().items():
            if role.endswith("_token") and isinstance(value, str | dict):
                tokens.setdefault(role, _text_and_flags(file[role])[0])
    return source, tokens


def _text_and_flags(field: JsonValue) -> tuple[str, dict[str, Any]]:
    """(text, flags) of a token that is given as a string or as an object with flags."""
    if isinstance(field.value, str):
        return field.as_str(), {}
    flags = {flag: field[flag].as_bool() for flag in _FLAGS if field[flag].value is not None}
    return field["content"].as_str(), flags


def with_config(encoding: Encoding, config: Config) -> Encoding:
    """The encoding of a SentencePiece model with the tokens and the template of its folder.

    Raises VocabularyError for a token whose id contradicts the model's, or that is not supported.
    """
    rules, vocabulary = encoding.definition.rules, encoding.definition.vocabulary
    special = dict(encoding.definition.specials.special)
    added = dict(rules.added_tokens)
    n_known = len(special) + len(added)
    for text, entry in config.added.items():
        number = entry["id"]
        try:
            known = encoding.encode_single_token(text)
        except KeyError:
            known = number
        if number != known:
            raise VocabularyError(
                f"{config.folder}: the token {shown(text)} has id {number}, in the model {known}"
            )
        if text in special or text in added:
            continue
        for flag in _FLAGS:
            if entry.get(flag):
                raise VocabularyError(
                    f"{config.folder}: {flag} of the token {shown(text)} is not supported beside a "
                    "SentencePiece model"
                )
        if not entry["special"] and not (changes_spaces_only(rules) and vocabulary.model is None):
            raise VocabularyError(
                f"{config.folder}: the token {shown(text)} is not special, which is not supported "
                "beside a SentencePiece model whose normalizer changes more than spaces"
            )
        (special if entry["special"] else added)[text] = number
    ids = added | special
    around: list[tuple[int, ...]] = []
    for role, token in (("bos_token", config.begin), ("eos_token", config.end)):
        if token is not None and token not in ids:
            raise VocabularyError(f"{config.folder}: {role} {token!r} is not a token of the model")
        around.append(() if token is None else (ids[token],))
    template = Template(*around)
    if len(special) + len(added) == n_known and template == NO_TEMPLATE:
        return encoding
    check_total(ids, config.folder)
    with errors_at(config.folder):
        return changed(
            encoding,
            special_tokens=special,
            rules=rules._replace(added_tokens=tuple(added.items()), token_flags=flags_of(added)),
            template=template,
        )
