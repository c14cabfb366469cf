"""What `tokenizers` does with a text, slow and obvious: the ids that a `tokenizer.json` asks for.

    encode(json.load(open("tokenizer.json")), "a text")

Four steps. (1) Added tokens with `normalized: false` are found in the text. (2) Each stretch
between them is normalized on its own. (3) Added tokens with `normalized: true` are found in what
that gives; they were normalized, too. (4) What is left goes through the pre-tokenizers, and each
pre-token through the model. Post-processors are not applied. The behaviour is that of tokenizers
0.23 (github.com/huggingface/tokenizers, Apache-2.0), quirks included: each has a comment.

Left out: dropout, the normalizer Nmt, and the pre-tokenizer FixedLength; they raise
NotImplementedError. Normal forms and lower case are those of this Python's Unicode, scripts are
those of the `regex` package, which also matches patterns.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import regex

from streamtok.models.serde_float import serde_float
from streamtok.normalizers.growth import MOST_GROWTH
from streamtok.patterns.huggingface_characters import SCRIPTS
from streamtok.patterns.unicode_classes import as_in_reference
from streamtok.reference.bpe import compile_pattern, split
from streamtok.reference.unigram import unigram
from streamtok.reference.wordpiece import word_level, word_piece

from .sentencepiece_map import mapped

__all__ = ["bpe", "encode", "find_added", "normalize", "pre_tokenize", "split_added"]

Json = Mapping[str, Any]
Found = list[tuple[str, int | None]]  # stretches of a text; those that are added tokens have an id

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"  # \w of the regex crate is this and the two joiners
_BYTES = [b for r in ((33, 126), (161, 172), (174, 255)) for b in range(r[0], r[1] + 1)]
_OTHER = [b for b in range(256) if b not in _BYTES]
BYTE_SYMBOLS = {b: chr(b) for b in _BYTES} | {b: chr(256 + i) for i, b in enumerate(_OTHER)}


def encode(file: Json, text: str) -> list[int]:
    """`Tokenizer.encode(text, add_special_tokens=False).ids`; file: the parsed tokenizer.json."""
    normalizer = file.get("normalizer")
    raw, normalized = added_tokens(file)
    ids: list[int] = []
    place = 0  # of a stretch in the text
    for stretch, id in split_added(raw, text):
        if id is not None:
            ids.append(id)
        else:
            inner = split_added(normalized, normalize(normalizer, stretch))
            for number, (part, found) in enumerate(inner):
                if found is not None:
                    ids.append(found)
                    continue
                is_first = place == 0 and number == 0 and not _loses_its_start(normalizer, stretch)
                for pretoken in pre_tokenize(file.get("pre_tokenizer"), part, is_first):
                    ids += model_ids(file["model"], pretoken)
        place += len(stretch)
    return ids


def _loses_its_start(normalizer: Json | None, text: str) -> bool:
    """Whether the normalized text does not begin with what became of the first character."""
    inert = "\u4dff"  # after what is looked at, so that nothing is taken off its end
    alone = normalize(normalizer, inert)
    return any(normalize(normalizer, text[:end] + inert) == alone for end in range(1, len(text)))


# Added tokens


def added_tokens(file: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    """The added tokens by what is looked for: in the text as it is, and in normalized text.

    Their ids are the model's, or else the next free ones; those in the file do not count.
    """
    vocab, normalizer = _ids_of(file["model"]), file.get("normalizer")
    raw: dict[str, Json] = {}
    normalized: dict[str, Json] = {}
    ids: dict[str, int] = {}
    for token in file.get("added_tokens") or []:
        content = token["content"]
        next_id = max([len(vocab), *(id + 1 for id in ids.values())])
        ids.setdefault(content, vocab.get(content, next_id))
        entry = {**token, "id": ids[content]}
        if entry.get("normalized", not entry.get("special")):
            # Of several with the same normalized content, tokenizers takes any: its hashes decide.
            normalized.setdefault(normalize(normalizer, content), entry)
        else:
            raw[content] = entry
    return raw, normalized


def _ids_of(model: Json) -> Mapping[str, int]:
    vocab: Any = model["vocab"]
    return {text: id for id, (text, _) in enumerate(vocab)} if isinstance(vocab, list) else vocab


def find_added(tokens: Mapping[str, Json], text: str) -> Iterator[tuple[int, str]]:
    """The leftmost occurrences, and the longest there; none overlaps the one before it."""
    ordered = sorted(filter(None, tokens), key=len, reverse=True)
    if ordered:
        for match in re.finditer("|".join(map(re.escape, ordered)), text):
            yield match.start(), match[0]


def split_added(tokens: Mapping[str, Json], text: str) -> Found:
    """The added tokens in `text` and the stretches between them, none of which is empty."""
    found: Found = []
    done = 0
    for start, content in find_added(tokens, text):
        token, stop = tokens[content], start + len(content)
        if token.get("single_word") and (
            _is_word(text[start - 1 : start]) or _is_word(text[stop : stop + 1])
        ):
            continue  # and what it covers is text, even if a shorter token is in there
        if token.get("lstrip"):
            start = max(len(_without_blanks_at_end(text[:start])), done)
        if token.get("rstrip"):
            stop += len(text[stop:]) - len(_without_blanks_at_start(text[stop:]))
        # A token in blanks that rstrip took is found all the same, so that they count twice. With
        # lstrip, nothing is left of it, or less than nothing, where tokenizers panics.
        if done < start:
            found.append((text[done:start], None))
        if start < stop:
            found.append((text[start:stop], token["id"]))
        done = stop
    if done < len(text):
        found.append((text[done:], None))
    return found


def _is_word(character: str) -> bool:
    return regex.match(rf"[{WORD}\p{{Join_Control}}]", character) is not None


def _without_blanks_at_end(text: str) -> str:
    return str(regex.sub(r"\p{White_Space}+\Z", "", text))


def _without_blanks_at_start(text: str) -> str:
    return str(regex.sub(r"\A\p{White_Space}+", "", text))


# Normalizers


def normalize(step: Json | None, text: str) -> str:
    """`text` after a normalizer as it stands in the file. None changes nothing."""
    if step is None:
        return text
    kind = step["type"]
    if kind == "Sequence":
        found = text
        for inner in step["normalizers"]:
            found = normalize(inner, found)
            _check_growth(len(found), text)
        return found
    if kind in ("NFC", "NFD", "NFKC", "NFKD"):
        return unicodedata.normalize(kind, text)
    if kind == "Lowercase":
        return "".join(map(str.lower, text))  # each by itself: a final sigma is like any other
    if kind == "StripAccents":
        return "".join(c for c in text if not unicodedata.category(c).startswith("M"))
    if kind == "Strip":
        text = _without_blanks_at_start(text) if step["strip_left"] else text
        return _without_blanks_at_end(text) if step["strip_right"] else text
    if kind == "Prepend":
        _check_growth(len(step["prepend"]), text)
        return step["prepend"] + text if text else text
    if kind == "Replace":
        return replace(step["pattern"], step["content"], text)
    if kind == "BertNormalizer":
        return _bert(step, text)
    if kind == "Precompiled":
        return mapped(base64.b64decode(step["precompiled_charsmap"]), text)
    if kind == "ByteLevel":
        return _byte_symbols(text)
    raise NotImplementedError(f"the normalizer {kind}")


def _byte_symbols(text: str) -> str:
    return "".join(BYTE_SYMBOLS[byte] for byte in text.encode())


def replace(pattern: Json, content: str, text: str) -> str:
    """`text` with all matches replaced; `content` is not a template. An empty String is nowhere."""
    found = list(_matches(pattern, text))
    _check_growth(len(content) * sum(is_match for _, _, is_match in found), text)
    return "".join(content if is_match else text[a:b] for a, b, is_match in found)


def _check_growth(size: int, text: str) -> None:
    """Raise ValueError where a normalizer makes a text much longer."""
    if size > MOST_GROWTH * len(text) > 0:
        raise ValueError(f"a normalizer makes a text more than {MOST_GROWTH} times as long")


def _bert(step: Json, text: str) -> str:
    if step["clean_text"]:
        kept = [c for c in text if c in "\t\n\r" or not (c == "\ufffd" or _is_other(c))]
        text = regex.sub(r"\p{White_Space}", " ", "".join(kept))
    if step["handle_chinese_chars"]:
        text = "".join(f" {c} " if _is_chinese(c) else c for c in text)
    strip = step["strip_accents"]
    if strip or (strip is None and step["lowercase"]):
        text = unicodedata.normalize("NFD", text)
        text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    return "".join(map(str.lower, text)) if step["lowercase"] else text


def _is_other(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Co")


def _is_chinese(character: str) -> bool:
    blocks = (
        (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
    )  # fmt: skip
    return any(low <= ord(character) <= high for low, high in blocks)


# Pre-tokenizers


def pre_tokenize(step: Json | None, text: str, is_first: bool = True) -> list[str]:
    """The pre-tokens of a stretch, none of them empty; is_first: it begins the whole text."""
    if step is None:
        return [text]
    if step["type"] == "Sequence":
        parts = [text]
        for number, inner in enumerate(step["pretokenizers"]):
            if number and inner.get("prepend_scheme") == "first":
                raise NotImplementedError("Metaspace with the scheme first after other steps")
            parts = [piece for part in parts for piece in pre_tokenize(inner, part, is_first)]
        return parts
    return list(filter(None, _cut(step, text, is_first)))


def _cut(step: Json, text: str, is_first: bool) -> list[str]:
    kind = step["type"]
    if kind == "ByteLevel":
        if step["add_prefix_space"] and not text.startswith(" "):
            text = " " + text
        parts = _split(GPT2, "Isolated", text) if step.get("use_regex", True) else [text]
        return list(map(_byte_symbols, parts))
    if kind == "Metaspace":
        mark, scheme = step["replacement"], step.get("prepend_scheme", "always")
        text = text.replace(" ", mark)
        wanted = scheme == "always" or (scheme == "first" and is_first)
        if wanted and not text.startswith(mark):
            text = mark + text
        if not step.get("split", True):
            return [text]
        return _split(re.escape(mark), "MergedWithNext", text)
    if kind == "Split":
        found = _matches(step["pattern"], text)
        if step.get("invert"):
            found = [(a, b, not is_match) for a, b, is_match in found]
        return _behave(step["behavior"], text, found)
    if kind == "Digits":
        each = step.get("individual_digits", False)
        return _split(r"\p{N}", "Isolated" if each else "Contiguous", text)
    if kind == "Punctuation":
        return _split(r"[\p{P}!-/:-@\[-`{-~]", step.get("behavior", "Isolated"), text)
    if kind == "Whitespace":
        word = rf"{WORD}\p{{Join_Control}}"
        return split(rf"[{word}]+|[^{word}\s]+", text)
    if kind == "WhitespaceSplit":
        return _split(r"\p{White_Space}", "Removed", text)
    if kind == "CharDelimiterSplit":
        return text.split(step["delimiter"])
    if kind == "BertPreTokenizer":
        words = _split(r"\p{White_Space}", "Removed", text)
        return [p for w in words for p in _split(r"[\p{P}!-/:-@\[-`{-~]", "Isolated", w)]
    if kind == "UnicodeScripts":
        return _by_script(text)
    raise NotImplementedError(f"the pre-tokenizer {kind}")


def _by_script(text: str) -> list[str]:
    """The runs of one script. What has none goes with the run before it, or is dropped."""
    parts: list[str] = []
    last = ""
    for character in text:
        script = _script_of(character)
        if script not in ("", last):
            parts.append("")
            last = script
        if parts:
            parts[-1] += character
    return parts


@lru_cache(maxsize=1 << 16)
def _script_of(character: str) -> str:
    """Its script, as UnicodeScripts sees it; "": it has none."""
    if character == " ":
        return ""
    if regex.match(r"[\p{Hiragana}\p{Katakana}\u30fc]", character):
        return "Han"
    return next((name for name in SCRIPTS if regex.match(rf"\p{{{name}}}", character)), "")


def _split(pattern: str, behavior: str, text: str) -> list[str]:
    return _behave(behavior, text, _matches({"Regex": pattern}, text))


def _matches(pattern: Json, text: str) -> list[tuple[int, int, bool]]:
    """Matches of a Regex or a String and the stretches between them, in order."""
    if pattern.get("String") == "":
        return [(0, len(text), False)]
    source = (
        _as_in_oniguruma(pattern["Regex"]) if "Regex" in pattern else re.escape(pattern["String"])
    )
    found = []
    done = 0
    for match in compile_pattern(source).finditer(as_in_reference(text)):
        start, end = match.span()
        if done < start:
            found.append((done, start, False))
        found.append((start, end, True))
        done = end
    return [*found, (done, len(text), False)] if done < len(text) else found


def _as_in_oniguruma(pattern: str) -> str:
    r"""`pattern` with Oniguruma's \w: outside of sets, it has six more digits."""
    sets = str(regex.sub(r"\[[^]]*\]", lambda found: found[0].replace(r"\w", WORD), pattern))
    return sets.replace(r"\w", rf"[{WORD}\xb2\xb3\xb9\xbc-\xbe]")


def _behave(behavior: str, text: str, found: Iterable[tuple[int, int, bool]]) -> list[str]:
    """The stretches that a Split keeps, joined as its behavior says."""
    parts: list[tuple[int, int]] = []
    previous = False
    if behavior == "Removed":
        parts = [(a, b) for a, b, is_match in found if not is_match]
    elif behavior == "Isolated":
        parts = [(a, b) for a, b, _ in found]
    elif behavior == "MergedWithNext":
        # From the back. Of several matches in a row, only the last joins what follows it.
        for a, b, is_match in reversed(list(found)):
            if is_match and not previous and parts:
                parts[-1] = (a, parts[-1][1])
            else:
                parts.append((a, b))
            previous = is_match
        parts.reverse()
    else:
        for a, b, is_match in found:
            joins = {
                "MergedWithPrevious": is_match and not previous,  # only the first match of a row
                "Contiguous": is_match == previous,
            }[behavior]
            if joins and parts:
                parts[-1] = (parts[-1][0], b)
            else:
                parts.append((a, b))
            previous = is_match
    return [text[a:b] for a, b in parts]


# The model


def model_ids(model: Json, pretoken: str) -> list[int]:
    """The ids of a pre-token: those of `bpe`, or what another model makes of it."""
    kind = model.get("type", "BPE")
    if kind == "BPE":
        return bpe(model, pretoken)
    if kind == "Unigram":
        rows = [(text, serde_float(repr(float(score)))) for text, score in model["vocab"]]
        return [id for id, _, _ in unigram({**model, "vocab": rows}, pretoken)]
    split = word_piece if kind == "WordPiece" else word_level
    return [id for id, _, _ in split(model, pretoken)]


def bpe(model: Json, pretoken: str) -> list[int]:
    """The ids of a pre-token: its characters, or their bytes, or the unknown token; then merges."""
    vocab = model["vocab"]
    if model.get("ignore_merges") and pretoken in vocab:
        return [vocab[pretoken]]
    prefix = model.get("continuing_subword_prefix") or ""
    parts = list(_symbols(model, pretoken))
    ranks = _ranks(tuple(map(_pair, model["merges"])))
    while True:
        pairs = [pair for pair in pairwise(parts) if pair in ranks]
        if not pairs:
            return [vocab[part] for part in parts]
        best = min(pairs, key=ranks.__getitem__)
        at = list(pairwise(parts)).index(best)
        parts[at : at + 2] = [best[0] + best[1].removeprefix(prefix)]


@lru_cache(maxsize=8)
def _ranks(merges: tuple[tuple[str, str], ...]) -> dict[tuple[str, str], int]:
    return {pair: rank for rank, pair in enumerate(merges)}  # the later place counts


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _symbols(model: Json, pretoken: str) -> Iterator[str]:
    vocab = model["vocab"]
    unknown: str | None = model.get("unk_token")
    prefix = model.get("continuing_subword_prefix") or ""
    suffix = model.get("end_of_word_suffix") or ""
    is_waiting = False  # an unknown token comes out when a known character follows, or the end
    for at, character in enumerate(pretoken):
        symbol = (prefix if at else "") + character
        symbol += suffix if at == len(pretoken) - 1 else ""
        if symbol in vocab:
            if is_waiting and unknown is not None:
                yield unknown
            is_waiting = False
            yield symbol
            continue
        if model.get("byte_fallback"):
            fallback = [f"<0x{byte:02X}>" for byte in symbol.encode()]
            if all(byte in vocab for byte in fallback):
                yield from fallback  # before an unknown token that waits
                continue
        if unknown is None:
            continue  # the character is dropped
        if is_waiting and not model.get("fuse_unk"):
            yield unknown
        is_waiting = True
    if is_waiting and unknown is not None:
        yield unknown
