"""Random SentencePiece models of bpe and unigram, against the library; see `one_round`."""

from __future__ import annotations

import collections
import io
import random
from typing import Any

import sentencepiece as spm

import streamtok
from streamtok.formats.sentencepiece import read_sentencepiece
from streamtok.reference import bpe
from streamtok.reference.unigram import sentencepiece_unigram

from ...charsmaps import write_charsmap
from ...reference import sentencepiece_map
from ...sentencepiece_models import field, model, processor
from ...tokenizer_files import text_of
from .checks import Difference, check_text
from .rounds import TEXTS

MARK = "\u2581"
LETTERS = "aaabbcdexyzé日本👍"
SYMBOLS = ("xy", "xyx", "yxx", "<sep>", "ab", "abc", "日a", "bb")
MAP = {"Ａ": "a", "e\u0301": "é", "x": "", MARK: " ", "日": "xy"}
MAPPED = ("Ａ", "e\u0301", "\ufb01", "\u3000", "ᚠ", "ᚠᚡ", "<unk")  # by the library's maps, or not
TYPES = {"unigram": 1, "bpe": 2}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def one_round(seed: int) -> collections.Counter[str]:
    """Make a model of a seed and compare ids, streams, decoding and offsets of a few texts.

    Half of them are trained by the library, the others have random pieces and few scores, so that
    many paths are as good as others; these are compared with the reference, too.
    """
    rng = random.Random(seed)
    counts = collections.Counter({"files": 1})
    rows: list[tuple[str, float, int]] | None = None
    settings: dict[str, Any] = {}
    if rng.random() < 0.5:
        settings = random_settings(rng)
        try:
            data = trained(rng, settings)
        except RuntimeError:  # too few or too many pieces
            return counts + collections.Counter({"not trained": 1})
    else:
        kind = rng.choice([1, 1, 2])
        rows, settings = random_rows(rng, kind)
        data = made(rows, kind, settings)
    try:
        theirs = processor(data)
    except Exception:
        return counts + collections.Counter({"not taken by sentencepiece": 1})
    try:
        enc = read_sentencepiece(data, "FILE", "random")
    except streamtok.VocabularyError as error:
        shape = "'...'".join(str(error).removeprefix("FILE: ").split("'")[::2])[:110]
        return counts + collections.Counter([f"refused: {shape}"])
    pieces = [theirs.id_to_piece(id) for id in range(theirs.vocab_size())]
    vocab = [piece for piece in pieces if not piece.startswith("<")] or ["a"]
    for _ in range(TEXTS):
        text = text_of(rng, [*SYMBOLS, *MAPPED], vocab, LETTERS)
        found = difference(enc, theirs, settings, text, rng, counts)
        if found is None and rows is not None:
            twin = by_reference(rows, settings, text)
            counts["by reference"] += twin is not None
            if twin not in (None, theirs.encode(text)):
                found = Difference("reference", text, theirs.encode(text), twin)
        assert found is None, str(found)[:2000]
    counts["equal"] += 1
    return counts


def by_reference(
    rows: list[tuple[str, float, int]], settings: dict[str, Any], text: str
) -> list[int] | None:
    """The ids of the slow twins; None where there is none."""
    symbols = {text for text, _, kind in rows if kind == USER_DEFINED}
    normal = sentencepiece_map.normalized(
        settings["map"], symbols, settings["add_dummy_prefix"],
        settings["remove_extra_whitespaces"], text,
    )  # fmt: skip
    if settings["kind"] == TYPES["unigram"]:
        return [id for id, *_ in sentencepiece_unigram(rows, normal)]
    if symbols or not settings["byte_fallback"]:
        return None
    ids = {piece: id for id, (piece, *_) in enumerate(rows)}
    scores = {piece: score for piece, score, kind in rows if kind == NORMAL}
    byte_ids = [ids[f"<0x{byte:02X}>"] for byte in range(256)]
    return bpe.sentencepiece(scores, ids, byte_ids, normal)


def difference(
    enc: streamtok.Encoding,
    theirs: spm.SentencePieceProcessor,
    settings: dict[str, Any],
    text: str,
    rng: random.Random,
    counts: collections.Counter[str],
) -> Difference | None:
    counts["texts"] += 1
    expected = theirs.encode(text)
    for found in check_text(enc, text, expected, rng, counts, {"disallowed_special": ()}):
        return found
    if MARK not in text and "<" not in text:
        counts["decoded"] += 1
        decoded = enc.decode(expected).replace("<unk>", " \u2047 ")
        if decoded != theirs.decode(expected):
            return Difference("decode", text, theirs.decode(expected), decoded)
    ids, spans = enc.encode_with_offsets(text, "byte", disallowed_special=())
    if ids.tolist() != expected:
        return Difference("ids with offsets", text, expected, ids.tolist())
    is_plain = settings["normalization_rule_name"] == "identity"
    # For the library, what is within a user-defined symbol is where the symbol begins.
    has_symbols = any(symbol in text.replace(" ", MARK) for symbol in SYMBOLS)
    is_plain = is_plain and not has_symbols and settings["kind"] != 2
    if is_plain and not settings["remove_extra_whitespaces"]:
        counts["offsets"] += 1
        proto = theirs.encode(text, return_type="proto")
        pairs = zip(proto.pieces, spans.tolist(), strict=True)
        both = [((a.begin, a.end), tuple(b)) for a, b in pairs if not theirs.is_byte(a.id)]
        # For the library, the mark that it puts before a text stands for nothing.
        if any(a != b for a, b in both if a[0] < a[1] or a[0] != b[0]):
            return Difference("offsets", text, [a for a, _ in both], [b for _, b in both])
    return None


# Models


def random_settings(rng: random.Random) -> dict[str, Any]:
    """Settings of the trainer."""
    name = rng.choice([*TYPES, "unigram"])
    return {
        "kind": TYPES[name],
        "model_type": name,
        "vocab_size": rng.choice([20, 40, 90, 300]) + 256,
        "byte_fallback": rng.random() < 0.5,
        "character_coverage": rng.choice([0.98, 1.0]),
        "normalization_rule_name": rng.choice(["identity", "identity", "nmt_nfkc", "nfkc_cf"]),
        "remove_extra_whitespaces": rng.random() < 0.4,
        "add_dummy_prefix": rng.random() < 0.7,
        "split_by_whitespace": rng.random() < 0.7,
        "split_by_number": rng.random() < 0.5,
        "split_digits": rng.random() < 0.3,
        "split_by_unicode_script": rng.random() < 0.5,
        "allow_whitespace_only_pieces": rng.random() < 0.3,
        "max_sentencepiece_length": rng.choice([2, 4, 16]),
        "user_defined_symbols": ",".join(rng.sample(SYMBOLS, rng.choice([0, 0, 1, 3]))),
        "control_symbols": rng.choice(["", "<call>,<end>"]),
        "pad_id": rng.choice([-1, 3]),
        "seed_sentencepiece_size": 2000,
    }


def trained(rng: random.Random, settings: dict[str, Any]) -> bytes:
    words = ["".join(rng.choices(LETTERS, k=rng.choice([1, 2, 3, 4, 6]))) for _ in range(60)]
    words += ["12", "3", "Ａ", "e\u0301", "\ufb01", "(", "."]
    lines = [" ".join(rng.choices(words, k=rng.randint(2, 12))) for _ in range(150)]
    writer = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=writer,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **{name: value for name, value in settings.items() if value != "" and name != "kind"},
    )
    return writer.getvalue()


def random_rows(
    rng: random.Random, kind: int
) -> tuple[list[tuple[str, float, int]], dict[str, Any]]:
    has_bytes = rng.random() < 0.4
    letters = [*LETTERS[: rng.randint(3, len(LETTERS))], MARK]
    texts = {rng.choice(letters) for _ in range(rng.choice([3, 8, 20]))}
    if kind == 2 or rng.random() < 0.8:
        texts.add(MARK)
    if kind == 2:  # BPE without bytes knows all characters of its pieces
        texts.update(letters)
    for _ in range(rng.choice([3, 10, 30])):
        text = "".join(rng.choices(letters, k=rng.choice([2, 2, 3, 4, 7])))
        texts.add(MARK + text if rng.random() < 0.4 else text)
    scores = rng.choice([[-1.0, -2.0, -3.0], [-0.1, -0.2, -0.3, -0.7], [-1.1, 0.0, 2.5]])
    is_real = rng.random() < 0.4
    rows = [
        (text, -rng.expovariate(0.1) if is_real else rng.choice(scores), NORMAL)
        for text in sorted(texts)
    ]
    symbols = [text for text in rng.sample(SYMBOLS, rng.choice([0, 0, 1, 3])) if text not in texts]
    rows += [(text, 0.0, USER_DEFINED) for text in symbols]
    if kind != 2 and rng.random() < 0.2:
        rows = [(text, score, UNUSED if rng.random() < 0.2 else t) for text, score, t in rows]
    rows += [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL)]
    rows += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)] if has_bytes else []
    if rng.random() < 0.5:
        rng.shuffle(rows)
    settings = {
        "kind": kind,
        "byte_fallback": has_bytes,
        "add_dummy_prefix": rng.random() < 0.6,
        "remove_extra_whitespaces": rng.random() < 0.3,
        "map": rng.choice([{}, {}, MAP]),
    }
    settings["normalization_rule_name"] = "user_defined" if settings["map"] else "identity"
    return rows, settings


def made(rows: list[tuple[str, float, int]], kind: int, settings: dict[str, Any]) -> bytes:
    normalizer = field(1, b"identity") + field(3, int(settings["add_dummy_prefix"]))
    normalizer += field(4, int(settings["remove_extra_whitespaces"]))
    normalizer += field(2, write_charsmap(settings["map"])) if settings["map"] else b""
    trainer = field(3, kind) + field(35, int(settings["byte_fallback"]))
    return model(rows, trainer=trainer, normalizer=normalizer)
