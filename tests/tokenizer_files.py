"""Random `tokenizer.json` files that `tokenizers` accepts, and texts that are hard for each."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer, models

from streamtok.vocabulary.byte_alphabet import CHARACTERS as BYTE_SYMBOLS

from .charsmaps import write_charsmap

File = dict[str, Any]

# Few letters, so that tokens, matches and added tokens meet often.
ALPHABETS = [
    "ab ",
    "ab <>\n",
    "aAbé ",
    "ab\u2581 x",
    "a1b2 .,",
    "eé\u0301\u0327 a",
    "日本a \u3000ｶﾞ",
    "ßﬁİ a",
    "aж あカ日ー1.",
]
ODD = [
    "\u0301", "e\u0301", "é", "É", "\u0344", "\u0958", "ﬁ", "½", "Å", "\u212b", "ｶ\uff9e",
    "가", "\u1100", "\u1161", "\u11a8", "İ", "Σ", "ß", "\u00a0", "\u3000", "\u200b", "\u200d",
    "\u0085", "\u2028", "\x1c", "\x00", "\x07", "\ufffd", "\ufeff", "日", "中", "𐍈", "👍",
    "👩‍👩‍👧", "ệ", "\u0323\u0302", "\u1e9b\u0323", "\u2581", "１", "²", "Ⅷ", "\r\n", "\t", "ー",
    "、", "！", "_", "'s", "'LL", "...", "\u0660", "ａ", "\U0001d15e", "\u09c7\u09be", "\ue000",
    "«", "\u00ad", "\u0e33", "ǆ", "𝒳", "\U000e0041",
]  # fmt: skip
CONTENTS = [
    "<s>", "</s>", "<b>", "<br>", "<b", "b>", "<b><br>", "ab", "a", "abab", " ", "  ", "   ",
    "\n", "\n\n", "\u2581", "\u2581\u2581", " a", "a ", " <b>", "<b> ", "b a", "é", "e\u0301",
    "É", "\u0301", "日", "日本", "A", "aB", "AB", "ﬁ", "x", "xa", "1", "12", ".", "a.b", "\u00a0",
    "é<", "[UNK]", "<unk>", "<0x41>", "Ġ", "ab cd", "İ", "Å", "\u200d", "_",
]  # fmt: skip
PATTERNS = [
    r"\s+", r"[ab]+", r"\p{L}+|\p{N}", r" ?\p{L}+| ?[^\s\p{L}]+|\s+(?!\S)|\s+", r"a+b|a|b",
    r"\d{1,3}", r"(?i:'s|'ll)|\p{Lu}?\p{Ll}+",
    r"[^a]", r" a| b", r"\p{N}{1,2}", r"[一-龥]+", r"\s*[\r\n]+|\s+(?!\S)|\s+", r"\w+|[^\w\s]+",
    r"\.", r"a(?=b)", r"\u2581",
]  # fmt: skip
BEHAVIORS = [
    "Isolated",
    "Isolated",
    "Removed",
    "MergedWithPrevious",
    "MergedWithNext",
    "Contiguous",
]


def random_file(rng: random.Random) -> File:
    """A file as its author would write it, or nearly so."""
    alphabet = rng.choice(ALPHABETS)
    kind = rng.choices(["bytes", "characters"], [55, 45])[0]
    file = file_of(
        random_model(rng, kind, alphabet),
        random_pre_tokenizer(rng, kind),
        random_decoder(rng, kind),
        random_normalizer(rng, kind),
    )
    suffix = file["model"]["end_of_word_suffix"]
    if suffix and rng.random() < 0.7:
        file["decoder"] = {"type": "BPEDecoder", "suffix": suffix}
    return with_added_tokens(rng, file, alphabet)


def file_of(model: Any, pre_tokenizer: Any, decoder: Any, normalizer: Any) -> File:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": decoder,
        "model": model,
    }


def with_added_tokens(rng: random.Random, file: File, alphabet: str) -> File:
    file["added_tokens"] = without_chance(random_added_tokens(rng, alphabet), file)
    give_ids(file)
    return file


def without_chance(added: list[Any], file: File) -> list[Any]:
    """The added tokens for which the result is not left to chance.

    tokenizers panics if one is normalized to nothing, which is everywhere. Of several that are
    normalized to the same it takes any.
    """
    normalizer = Tokenizer.from_str(json.dumps(file)).normalizer
    found = {}
    for token in added:
        content = token["content"]
        if token["normalized"] and normalizer is not None:
            try:
                content = normalizer.normalize_str(content)
            except BaseException as error:
                if "Panic" not in type(error).__name__:  # of pyo3, which is no Exception
                    raise
                content = ""
        if content:
            found.setdefault((token["normalized"], content), token)
    return list(found.values())


def random_piece_file(rng: random.Random) -> File:
    """A file with WordPiece, WordLevel or Unigram, as its author would write it, or nearly so."""
    alphabet = rng.choice(ALPHABETS)
    kind = rng.choice(["WordPiece", "WordPiece", "Unigram", "Unigram", "WordLevel"])
    file = file_of(
        random_pieces(rng, kind, alphabet),
        pieces_pre_tokenizer(rng),
        rng.choice([None, metaspace_decoder(rng), random_decoder(rng, "characters")]),
        random_normalizer(rng, rng.choice(["bytes", "characters"])),
    )
    if rng.random() < 0.1:
        file["decoder"] = random_decoder(rng, "bytes")
    if kind == "WordPiece" and rng.random() < 0.7:
        prefix = file["model"]["continuing_subword_prefix"]
        file["decoder"] = {"type": "WordPiece", "prefix": prefix, "cleanup": rng.random() < 0.5}
    return with_added_tokens(rng, file, alphabet)


# Normalizers


def random_normalizer(rng: random.Random, kind: str) -> Any:
    if kind == "characters" and rng.random() < 0.5:
        steps = [{"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]
        if rng.random() < 0.6:
            steps.insert(rng.randint(0, 1), {"type": "Prepend", "prepend": "\u2581"})
        if rng.random() < 0.2:
            steps.insert(rng.randint(0, 1), one_normalizer(rng))
        return steps[0] if len(steps) == 1 else {"type": "Sequence", "normalizers": steps}
    if rng.random() < 0.3:
        return None
    if rng.random() < 0.65:
        return one_normalizer(rng)
    return {
        "type": "Sequence",
        "normalizers": [one_normalizer(rng) for _ in range(rng.choice([0, 1, 2, 2, 2, 3, 3, 4]))],
    }


def one_normalizer(rng: random.Random) -> Any:
    kind = rng.choice(
        ["NFC", "NFC", "NFD", "NFKC", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip",
        "Prepend", "Nmt", "Bert", "Precompiled", "ByteLevel"]
        + ["Replace"] * 4
    )  # fmt: skip
    if kind == "Strip":
        left, right = rng.choice([(True, True), (True, False), (False, True)])
        return {"type": "Strip", "strip_left": left, "strip_right": right}
    if kind == "Precompiled":
        return {"type": kind, "precompiled_charsmap": random_charsmap(rng)}
    if kind == "Prepend":
        return {"type": "Prepend", "prepend": rng.choice(["\u2581", " ", "a", "ab", "\u0301"])}
    if kind == "Replace":
        pattern, content = rng.choice(
            [
                ({"String": " "}, "\u2581"), ({"String": "\u2581"}, " "), ({"String": "a"}, "bb"),
                ({"String": "ab"}, ""), ({"String": "ab"}, "ba"), ({"String": "aa"}, "a"),
                ({"String": "aab"}, "é"), ({"String": "\n"}, " \n"), ({"String": "é"}, "e"),
                ({"String": "``"}, '"'), ({"String": "  "}, " "),
                ({"Regex": rng.choice([" {2,}", r"\s+", "[ab]", "a+b", r"\p{N}"])}, "0"),
                ({"Regex": r"\s{2,}|[\n\r\t]"}, " "),
            ]
        )  # fmt: skip
        return {"type": "Replace", "pattern": pattern, "content": content}
    if kind == "Bert":
        return {
            "type": "BertNormalizer",
            "clean_text": rng.random() < 0.5,
            "handle_chinese_chars": rng.random() < 0.5,
            "strip_accents": rng.choice([None, True, False]),
            "lowercase": rng.random() < 0.5,
        }
    return {"type": kind}


def random_charsmap(rng: random.Random) -> str:
    """A map of SentencePiece, in Base64: of letters, with marks or without, and of blanks."""
    letters = [*"aAé1.\n\t \r", *(odd for odd in ODD if len(odd) == 1 and odd != "\x00")]
    marks = ["", "", "\u0301", "\u0301\u0327", "\u200d", "\u0300", "a", "\n", "\uff9e"]
    keys = {rng.choice(letters) + rng.choice(marks) for _ in range(rng.choice([1, 5, 20]))}
    values = ["", " ", "a", "ab", "b", "é", "\u2581", "日", "e\u0301"]
    found = {key: rng.choice([*values, key]) for key in sorted(keys)}
    return base64.b64encode(write_charsmap(found)).decode()


# Pre-tokenizers


def random_pre_tokenizer(rng: random.Random, kind: str) -> Any:
    if kind == "characters":
        if rng.random() < 0.55:
            return None
        steps = [one_pre_tokenizer(rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        if rng.random() < 0.3:
            steps = [metaspace(rng)]
        elif rng.random() < 0.2:
            steps = [split({"String": " "}, "MergedWithPrevious")]
    else:
        end = byte_level(rng, False)
        steps = [one_pre_tokenizer(rng) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))] + [end]
        end["add_prefix_space"] = rng.random() < (0.05 if steps[1:] else 0.4)
    if len(steps) == 1 and rng.random() < 0.8:
        return steps[0]
    return {"type": "Sequence", "pretokenizers": steps}


def one_pre_tokenizer(rng: random.Random) -> Any:
    kind = rng.choice(
        ["Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "CharDelimiterSplit",
        "BertPreTokenizer"]
        + ["Metaspace", rng.choice(["ByteLevel", "Split", "Split"])] + ["Split"] * 6
    )  # fmt: skip
    if kind == "Split":
        if rng.random() < 0.3:
            pattern = {"String": rng.choice([" ", "a", "ab", "\u2581", "\n", "."])}
        else:
            pattern = {"Regex": rng.choice(PATTERNS)}
        return split(pattern, rng.choice(BEHAVIORS), invert=rng.random() < 0.2)
    if kind == "Digits":
        return {"type": kind, "individual_digits": rng.random() < 0.5}
    if kind == "Punctuation":
        return {"type": kind, "behavior": rng.choice(BEHAVIORS)}
    if kind == "CharDelimiterSplit":
        return {"type": kind, "delimiter": rng.choice([" ", "a", "\u2581", "\n"])}
    if kind == "Metaspace":
        return metaspace(rng)
    if kind == "ByteLevel":
        return byte_level(rng, rng.random() < 0.3)
    return {"type": kind}


def byte_level(rng: random.Random, add_prefix_space: bool) -> Any:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": rng.random() < 0.5,
        "use_regex": rng.random() < 0.5,
    }


def split(pattern: Any, behavior: str, *, invert: bool = False) -> Any:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def metaspace(rng: random.Random) -> Any:
    return {
        "type": "Metaspace",
        "replacement": rng.choice(["\u2581", "\u2581", "\u2581", "_"]),
        "prepend_scheme": rng.choice(["always", "first", "never"]),
        "split": rng.random() < 0.6,
    }


def pieces_pre_tokenizer(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.15:
        return None
    if kind < 0.35:
        return {"type": "BertPreTokenizer"}
    if kind < 0.5:
        return metaspace(rng)
    if kind < 0.65:
        marks = {**metaspace(rng), "prepend_scheme": rng.choice(["always", "always", "never"])}
        more = [one_pre_tokenizer(rng)] if rng.random() < 0.2 else []
        return {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, *more, marks]}
    steps = [one_pre_tokenizer(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    return steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}


# Decoders


def metaspace_decoder(rng: random.Random) -> Any:
    scheme = rng.choice(["always", "first", "never"])
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True}


def random_decoder(rng: random.Random, kind: str) -> Any:
    if rng.random() < 0.05:
        return None
    if kind == "bytes":
        return {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        }
    steps: list[Any] = [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if rng.random() < 0.4:
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": steps}


# Models


def random_model(rng: random.Random, kind: str, alphabet: str) -> Any:
    unknown = rng.choice([None, "<unk>", "<unk>"])
    if kind == "bytes" and rng.random() < 0.7:
        unknown = None
    has_fallback = kind == "characters" and rng.random() < 0.85
    if kind == "bytes":
        tokens = [BYTE_SYMBOLS[byte] for byte in range(256)]
        if rng.random() < 0.03:
            tokens = rng.sample(tokens, 250)
        tokens += [unknown] if unknown else []
        seeds = [BYTE_SYMBOLS[byte] for byte in alphabet.encode()]
    else:
        tokens = [unknown] if unknown else []
        if has_fallback:
            missing = rng.choice([0] * 12 + [1, 30])
            tokens += [f"<0x{b:02X}>" for b in rng.sample(range(256), 256 - missing)]
        letters = sorted(
            {*alphabet, *("\u2581" if rng.random() < 0.97 else ""), *rng.sample("<>é日.1", 2)}
        )
        if rng.random() < 0.9 and " " in letters:
            letters.remove(" ")
        tokens += letters
        seeds = [letter for letter in letters if len(letters) > 2]
    seeds = [seed for seed in seeds if seed in tokens]
    prefix = rng.choice(["##", "@"]) if rng.random() < 0.12 else ""
    suffix = rng.choice(["</w>", "_", "a"]) if rng.random() < 0.2 else ""
    # Those that begin a word, and all others; each is the last of its word, or is not.
    firsts, others = seeds, [prefix + seed for seed in seeds]
    ends = [begin + seed + suffix for seed in seeds for begin in ("", prefix)] if suffix else []
    ends = [end for end in ends if rng.random() < 0.9]
    tokens += [token for token in dict.fromkeys([*others, *ends]) if token not in tokens]
    merges = []
    for _ in range(rng.choice([0, 3, 10, 30, 60])):
        is_first, is_last = rng.random() < 0.6 or not prefix, rng.random() < 0.4
        left = rng.choice(firsts if is_first else others)
        rights = [end for end in ends if end.startswith(prefix)] if is_last else others
        right = rng.choice(rights or others)
        made = left + right[len(prefix) :]
        if len(made) > 8 + len(prefix) + len(suffix):
            continue
        merges.append([left, right])
        if made not in tokens:
            tokens.append(made)
            if rights is ends or (is_last and rights):
                ends.append(made)
            else:
                (firsts if is_first else others).append(made)
                if not prefix:
                    others = firsts
    if rng.random() < 0.3:
        rng.shuffle(merges)
    merges = [list(pair) for pair in dict.fromkeys(map(tuple, merges))]
    if rng.random() < 0.3:
        extra = "".join(rng.choices(alphabet, k=3))  # a token that no merges make
        extra = "".join(BYTE_SYMBOLS[b] for b in extra.encode()) if kind == "bytes" else extra
        tokens += [] if extra in tokens else [extra]
    if rng.random() < 0.3:
        rng.shuffle(tokens)
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": prefix or None,
        "end_of_word_suffix": suffix or None,
        "fuse_unk": rng.random() < 0.6,
        "byte_fallback": has_fallback,
        "ignore_merges": rng.random() < 0.3,
        "vocab": {token: id for id, token in enumerate(tokens)},
        "merges": merges,
    }


def random_pieces(rng: random.Random, kind: str, alphabet: str) -> Any:
    """A model of pieces: few scores, so that sums are often the same, or nearly so."""
    unknown = rng.choice(["[UNK]", "<unk>", "<unk>", "a"])
    letters = [*alphabet, *rng.sample(ODD, 3), *rng.choices(["\u2581", "##"], k=2)]
    texts = [unknown]
    for _ in range(rng.choice([3, 10, 30, 80])):
        texts.append("".join(rng.choices(letters, k=rng.choice([1, 1, 1, 2, 2, 3, 3, 4, 9]))))
    if kind == "WordPiece":
        prefix = rng.choice(["##", "##", "##", "@", "a", ""])
        texts += [prefix + text for text in texts if rng.random() < 0.7]
    has_fallback = kind == "Unigram" and rng.random() < 0.4
    if has_fallback:
        texts += [f"<0x{b:02X}>" for b in rng.sample(range(256), rng.choice([256, 256, 250, 80]))]
    texts = list(dict.fromkeys(texts))
    if rng.random() < 0.5:
        rng.shuffle(texts)
    ids = {text: id for id, text in enumerate(texts)}
    if kind == "WordLevel":
        return {"type": kind, "vocab": ids, "unk_token": unknown}
    if kind == "WordPiece":
        return {
            "type": kind,
            "unk_token": unknown,
            "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": rng.choice([100, 100, 7, 4, 1, 0]),
            "vocab": ids,
        }
    scores = rng.choice(
        [[-1.1, -2.2, -3.3000000000000003, -4.4], [-1, -2, -3, 0, 0.5], [-rng.random() * 9]]
    )
    is_real = rng.random() < 0.3
    rows = [[text, -rng.expovariate(0.1) if is_real else rng.choice(scores)] for text in texts]
    return {
        "type": kind,
        "unk_id": ids[unknown],
        "vocab": rows,
        "byte_fallback": has_fallback,
    }


# Added tokens


def random_added_tokens(rng: random.Random, alphabet: str) -> list[Any]:
    found = []
    contents = rng.sample(CONTENTS, rng.choice([0, 1, 2, 3, 5, 8]))
    contents += [
        "".join(rng.choices(alphabet, k=rng.randint(1, 4))) for _ in range(rng.choice([0, 1, 2]))
    ]
    is_plain = rng.random() < 0.3  # as in most files
    for content in dict.fromkeys(contents):
        flags = {
            flag: not is_plain and rng.random() < 0.2
            for flag in ("single_word", "lstrip", "rstrip")
        }
        special = rng.random() < 0.5
        normalized = (not special) if rng.random() < 0.5 else rng.random() < 0.5
        if is_plain:
            normalized = False
        found.append(
            {"id": 0, "content": content, **flags, "normalized": normalized, "special": special}
        )
    return found


def give_ids(file: File) -> None:
    """Write the ids that Hugging Face gives to the added tokens."""
    ids: dict[str, int] = {}
    vocab = ids_of(file["model"])
    for token in file["added_tokens"]:
        next_id = max([len(vocab), *(id + 1 for id in ids.values())])
        ids[token["content"]] = token["id"] = vocab.get(token["content"], next_id)


def ids_of(model: Any) -> dict[str, int]:
    """The ids of a model's tokens, or pieces."""
    vocab: Any = model["vocab"]
    return {text: id for id, (text, _) in enumerate(vocab)} if type(vocab) is list else vocab


# Texts


def random_text(rng: random.Random, file: File) -> str:
    """A text of what matters to this file."""
    contents = [token["content"] for token in file["added_tokens"]]
    contents += normalized_contents(file)
    vocab = [text for text in ids_of(file["model"]) if text]
    letters = [token for token in vocab if len(token) == 1 and token.isprintable()] or ["a"]
    letters = letters if len(letters) < 40 else list("ab <>1.é\n\u2581")
    if file["decoder"] and file["decoder"]["type"] == "ByteLevel":
        back = {symbol: byte for byte, symbol in BYTE_SYMBOLS.items()}
        known = [bytes([back[c] for c in token if c in back]) for token in vocab]
        vocab = [data.decode("utf-8", "ignore") for data in known]
    return text_of(rng, contents, vocab, letters)


def text_of(
    rng: random.Random, contents: list[str], vocab: list[str], letters: Sequence[str]
) -> str:
    """Added tokens and parts of them, tokens, blanks, odd characters, letters; some many times."""
    parts = []
    for _ in range(rng.choice([0, 1, 2, 4, 6, 10, 20])):
        kind = rng.random()
        if kind < 0.3 and contents:
            part = rng.choice(contents)
            part = part if rng.random() < 0.85 else part[: rng.randint(0, len(part))]
        elif kind < 0.45:
            token = rng.choice(vocab)
            token = rng.choice(vocab) if token.startswith("<0x") else token
            if token.startswith("<0x") and rng.random() < 0.99:
                token = rng.choice(letters)
            part = token.replace("\u2581", " ") if rng.random() < 0.5 else token
        elif kind < 0.6:
            part = rng.choice([" ", "  ", "   ", "\n", "\n\n", " \n", "\t", "\u2581", " \u2581"])
        elif kind < 0.75:
            part = rng.choice(ODD)
        else:
            part = "".join(rng.choices(letters, k=rng.randint(1, 6)))
        parts.append(part * (rng.choice([5, 300]) if rng.random() < 0.02 else 1))
    return "".join(parts)


def normalized_contents(file: File) -> list[str]:
    """What `tokenizers` looks for in normalized text."""
    empty = json.loads(Tokenizer(models.BPE()).to_str())
    normalizer = Tokenizer.from_str(
        json.dumps(empty | {"normalizer": file["normalizer"]})
    ).normalizer
    found = [token["content"] for token in file["added_tokens"] if token["normalized"]]
    return [normalizer.normalize_str(content) for content in found] if normalizer else found
