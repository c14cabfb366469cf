"""Damaged and hostile vocabulary files: each loader ends in bounded work, with a documented error.

Sound files of every format are cut off, flipped, spliced and sprinkled with what asks for much:
huge counts, deep nesting, patterns that explode. Whatever comes of it is an encoding that encodes,
or a `VocabularyError` or `PatternError`. Anything else is a difference, and so is a file that takes
more calls of Python functions, or more memory, than its size allows. The process has 2 GiB.
"""

from __future__ import annotations

import atexit
import base64
import collections
import contextlib
import functools
import json
import pickle
import random
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import tiktoken

import streamtok
from streamtok import formats
from streamtok.errors import PatternError, VocabularyError
from streamtok.formats.gpt2 import read_gpt2
from streamtok.formats.packed import PACKED_MAGIC
from streamtok.normalizers.growth import MOST_GROWTH
from streamtok.vocabulary.byte_alphabet import to_text

from ..charsmaps import write_charsmap
from ..gguf_files import gguf_file
from ..packed_files import closed, opened
from ..sentencepiece_models import field

MEMORY = 2 << 30
MEMORY_OF_ANY, MEMORY_PER_BYTE = 256 << 20, 1 << 10  # above what the process had before
CALLS, CALLS_PER_BYTE = 8_000_000, 1_000  # far above what the work of any budget here takes

PATTERNS = [
    r"((a{1,20}){1,20}){1,20}", r"(((((a{1,10}){1,10}){1,10}){1,10}){1,10})", "a{1,1000000}",
    r"(?:(?:a{1000}){1000}){1000}", r"[ab]*a[ab]{20}", "(?<=x)(?:a{1000}){1000}", "[" * 500,
    "(" * 300 + "a" + ")" * 300, "(?i:" * 300, r"(?:a|aa|aaa|b|bb){1,300}", r"\p{L}{1,900}+x",
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|[\s\S]", "(a+)+b", "", "a|", r"\x{110000}", "(?P<x>a",
]  # fmt: skip
NUMBERS = [0, 1, -1, 255, 2**16, 2**31, 2**32 - 1, 2**32, 2**63, 10**30, 1.5, None, True, "1", []]

Loader = Callable[[Path], streamtok.Encoding]


def small_encoding() -> streamtok.Encoding:
    """Four merges above the bytes, and two special tokens that begin alike."""
    tokens = [bytes([i]) for i in range(256)] + [b"ab", b"abc", b" a", b" abc"]
    return streamtok.Encoding(
        "small",
        pat_str=r"(?: ?)\p{L}+|\p{N}{1,3}|\s+|[^\s\p{L}\p{N}]",
        mergeable_ranks={token: i for i, token in enumerate(tokens)},
        special_tokens={"<|end|>": 260, "<|end|>>": 261},
    )


def words_file() -> dict[str, Any]:
    """A tokenizer.json with prefixes and suffixes of words, unknown tokens, and a map."""
    tokens = ["<unk>", "a", "##a", "b", "##b</w>", "##a</w>", "b</w>", "ab</w>", "##ab</w>"]
    charsmap = base64.b64encode(write_charsmap({"e\u0301": "a", "\n": " "})).decode()
    return {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
        "model": {
            "type": "BPE", "unk_token": "<unk>", "continuing_subword_prefix": "##",
            "end_of_word_suffix": "</w>", "fuse_unk": True, "ignore_merges": True,
            "vocab": {token: id for id, token in enumerate(tokens)},
            "merges": [["a", "##b</w>"], ["##a", "##b</w>"]],
        },
    }  # fmt: skip


def sound_files(folder: Path) -> dict[str, tuple[bytes, Loader]]:
    """The contents of a sound file of each format, and its loader."""
    enc = small_encoding()
    tokens = enc.definition.vocabulary.to_list()
    config = {
        "pattern": enc._pat_str, "default_vocab_size": 2 + len(tokens),
        "default_num_special_tokens": 2, "version": "v13",
    }  # fmt: skip
    rows = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode()}
        for rank, token in enumerate(tokens)
    ]
    named = [{"rank": 0, "token_str": "<s>"}, {"rank": 1, "token_str": "</s>"}]
    tekken = {"config": config, "vocab": rows, "special_tokens": named}
    twin = tiktoken.Encoding(
        "small",
        pat_str=enc._pat_str,
        mergeable_ranks=enc._mergeable_ranks,
        special_tokens=enc._special_tokens,
    )
    ids = folder / "ids.json"
    made: dict[str, tuple[bytes, Loader]] = {
        "tekken.json": (json.dumps(tekken).encode(), formats.load),
        "x.model": (
            f"minbpe v1\n{enc._pat_str}\n1\n<|end|> 260\n97 98\n256 99\n32 97\n258 98\n".encode(),
            formats.load,
        ),
        "tokenizer.pkl": (pickle.dumps(twin), formats.load),
    }

    def save(name: str, encoding: streamtok.Encoding, write: Any, load: Loader) -> None:
        write(encoding, folder / name)
        made[name] = (folder / name).read_bytes(), load

    save(
        "x.tiktoken",
        enc,
        formats.save_tiktoken,
        lambda p: formats.load(p, pattern="\\S+|\\s"),
    )
    save("x.streamtok", enc, formats.save_packed, formats.load)
    save("tokenizer.json", enc, formats.save_huggingface, formats.load)
    made["words.json"] = json.dumps(words_file()).encode(), formats.load
    formats.save_gpt2(enc, folder / "merges.txt", ids)

    def pair(merges: Path, ids: Path) -> streamtok.Encoding:
        return read_gpt2(str(merges), str(ids), None, "gpt2", None)

    made["merges.txt"] = (folder / "merges.txt").read_bytes(), lambda p: pair(p, ids)
    merges = folder / "sound.txt"
    merges.write_bytes(made["merges.txt"][0])
    made["vocab.json"] = ids.read_bytes(), lambda p: pair(merges, p)
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3)] + [(f"<0x{b:02X}>", 0.0, 6) for b in range(256)]
    pieces += [
        ("\u2581", -9.0, 1),
        ("a", -9.0, 1),
        ("b", -9.0, 1),
        ("ab", -1.0, 1),
        ("<x>", 0.0, 4),
    ]
    texts, scores, types = (list(column) for column in zip(*pieces, strict=True))
    made["x.gguf"] = gguf_file("llama", texts, types, scores, bos_token_id=1), formats.load
    letters = [to_text(token) for token in tokens]
    made["gpt2.gguf"] = (
        gguf_file("gpt2", letters, [1] * len(letters), merges=["a b", "ab c"], pre="gpt-2"),
        formats.load,
    )
    head = b"".join(
        field(1, field(1, t.encode()) + field(2, s) + field(3, k)) for t, s, k in pieces
    ) + field(2, field(3, 2) + field(35, 1))
    plain = field(1, b"identity") + field(3, 1) + field(4, 0)
    made["tokenizer.model"] = head + field(3, plain), formats.load
    charsmap = write_charsmap({"a": "A", "e\u0301": "é", "\xa0": " ", "ab": ""})
    made["mapped.model"] = head + field(3, field(2, charsmap)), formats.load
    few = b"".join(
        field(1, field(1, t.encode()) + field(2, s) + field(3, k)) for t, s, k in pieces if k != 6
    )
    made["unknown.model"] = few + field(2, field(3, 2)), formats.load
    return made


def damaged(data: bytes, rng: random.Random) -> bytes:
    """`data` with a few changes of bytes, or of values if it is JSON."""
    if data.startswith(PACKED_MAGIC) and rng.random() < 0.9:  # or the checksum finds it all
        return with_damaged_field(data, rng)
    if data[:1] == b"{" and rng.random() < 0.6:
        value = json.loads(data)
        if "model" in value and rng.random() < 0.3:
            amplify(value, rng)
            return json.dumps(value).encode()
        for _ in range(rng.choice([1, 1, 2, 4])):
            change_value(value, rng)
        try:
            return json.dumps(value).encode()
        except (ValueError, RecursionError):
            return data[: len(data) // 2]
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        kind = rng.randrange(8)
        if kind == 0:
            data = data[:end]
        elif kind == 1:
            data = data[:at] + rng.randbytes(rng.randint(1, 8)) + data[at + rng.randint(0, 8) :]
        elif kind == 2 and data:
            flipped = bytearray(data)
            flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            data = bytes(flipped)
        elif kind == 3:
            data = data[:at] + data[end:]
        elif kind == 4:
            data = data[:at] + data[at:end] * rng.choice([2, 3, 20]) + data[end:]
        elif kind == 5:
            part = rng.choice([b"\xff", b"\n", b"[", b"{", b"(", b"}", b"\x94", b"9", b" ", b'"'])
            data = data[:at] + part * rng.choice([1, 5, 1000, 100_000]) + data[at:]
        elif kind == 6:
            data = data[:at] + rng.choice(PATTERNS).encode() + data[at + rng.randint(0, 60) :]
        else:
            lines = data.split(b"\n")
            lines[rng.randrange(len(lines))] = rng.choice([*lines, *map(str.encode, PATTERNS)])
            data = b"\n".join(lines)
    return data


def with_damaged_field(data: bytes, rng: random.Random) -> bytes:
    """A packed file with a change in one of its fields, or without it, and a right checksum."""
    packed = opened(data)
    inner = packed["rules"], packed["pattern"], packed["vocabulary"], packed["vocabulary"]["model"]
    fields = rng.choice([packed, *(each for each in inner if each)])
    name = rng.choice(sorted(fields))
    value = fields[name]
    is_array = isinstance(value, list) and len(value) == 3 and isinstance(value[2], bytes)
    if (is_array or isinstance(value, bytes)) and rng.random() < 0.9:
        damage = bytearray(value[2] if is_array else value)
        for _ in range(rng.choice([1, 1, 2, 10, 300]) if damage else 0):
            damage[rng.randrange(len(damage))] = rng.choice([0, 1, 2, 255, rng.randrange(256)])
        cut = rng.choice([len(damage), len(damage), rng.randrange(len(damage) + 1)])
        damage = damage[:cut] + damage[: rng.choice([0, 0, 4, 64])]
        fields[name] = [value[0], [-1], bytes(damage)] if is_array else bytes(damage)
    else:
        changed = {name: fields.pop(name)}
        change_value(changed, rng)
        fields |= changed
    try:
        return closed(packed)
    except (ValueError, OverflowError, RecursionError):  # MessagePack has no such number or text
        return data[: len(data) // 2]


def change_value(value: Any, rng: random.Random) -> None:
    """Change something in a JSON value, the deeper the likelier."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        below = value[key]
        if isinstance(below, (dict, list)) and below and rng.random() < 0.85:
            value = below
            continue
        kind = rng.randrange(6)
        if kind == 0:
            del value[key]
        elif kind == 1:
            value[key] = rng.choice(NUMBERS)
        elif kind == 2 or isinstance(below, str):
            value[key] = rng.choice([*PATTERNS, "\ud800", "a" * 70_000, " ", "ab", "<|end|>"])
        elif kind == 3:
            value[key] = nested(rng)
        elif kind == 4 and isinstance(value, list):
            value += [below] * rng.choice([1, 20, 1000])
        else:
            value[key] = rng.choice([{}, [], {"type": "Sequence"}, [below], {"Regex": below}])
        return


def amplify(file: dict[str, Any], rng: random.Random) -> None:
    """Let a tokenizer.json ask for much more than it has: in a text, and around one."""
    long = rng.choice(["a", "ab", " ", "é"]) * rng.choice([2, 60, 2_000, 60_000])
    short = rng.choice(["a", "b", " ", "ab", "l"])
    step = rng.choice(
        [
            {"type": "Replace", "pattern": {"String": short}, "content": long},
            {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": long},
            {"type": "Prepend", "prepend": long},
            {"type": "NFKD"},
            {
                "type": "Precompiled",
                "precompiled_charsmap": base64.b64encode(write_charsmap({short: long})).decode(),
            },
        ]
    )
    kind = rng.randrange(5)
    if kind < 2:
        steps = [step] * rng.choice([1, 2, 3, 10, 24])
        file["normalizer"] = {"type": "Sequence", "normalizers": steps}
    elif kind == 2:
        file["normalizer"] = step
        contents = [f"{long[:3_000]}{i}" for i in range(rng.choice([1, 30, 300]))]
        file["added_tokens"] = [
            {"id": 1_000 + i, "content": one, "normalized": True} for i, one in enumerate(contents)
        ]
    elif kind == 3:
        file["model"] |= {
            "continuing_subword_prefix": long, "byte_fallback": True, "unk_token": None,
        }  # fmt: skip
    else:
        ids = [1] * rng.choice([1, 100, 10_000])
        pieces = [{"SpecialToken": {"id": "s", "type_id": 0}}] * rng.choice([1, 100, 10_000])
        file["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [*pieces, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [],
            "special_tokens": {"s": {"id": "s", "ids": ids, "tokens": []}},
        }


def nested(rng: random.Random) -> Any:
    """What holds itself a few or many times over."""
    made: Any = rng.choice([None, "a", {"type": "NFC"}, {"type": "Digits"}])
    key = rng.choice(["normalizers", "processors", "pretokenizers", "x"])
    for _ in range(rng.choice([3, 30, 100, 200])):
        made = {"type": "Sequence", key: [made]} if rng.random() < 0.9 else [made]
    return made


class TooManyCallsError(BaseException):
    """More work than a file of this size may make. No `Exception`, so that nothing catches it."""


def load_counting(load: Loader, path: Path) -> str:
    """ "encoding" or "refused"; raises whatever a loader should not."""
    left = CALLS + CALLS_PER_BYTE * path.stat().st_size

    def count(_frame: FrameType, _event: str, _arg: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise TooManyCallsError(path.name)

    sys.setprofile(count)
    try:
        encoding = load(path)
    except (VocabularyError, PatternError) as error:
        sys.setprofile(None)
        if len(str(error)) > 2_000:
            raise AssertionError(f"a message of {len(str(error))} characters") from error
        return "refused"
    finally:
        sys.setprofile(None)
    text = " abc ab\n123 <|end|>> é"
    ids = encoding.encode(text, allowed_special="all")
    encoding.decode_bytes(ids)
    if len(ids) > MOST_GROWTH * len(text.encode()):
        raise AssertionError(f"{len(ids)} ids for {len(text)} characters")
    if len(encoding.encode(text, allowed_special="all", add_special_tokens=True)) > len(ids) + 4096:
        raise AssertionError("more ids around the text than a template may have")
    return "encoding"


@functools.cache
def prepared() -> tuple[Path, dict[str, tuple[bytes, Loader]]]:
    """A folder and the sound files, which are loaded; from now on the process has little memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    sound = sound_files(folder)
    (folder / "case").mkdir()
    for name, (data, load) in sound.items():
        (folder / "case" / name).write_bytes(data)
        found = load_counting(load, folder / "case" / name)
        assert found == "encoding", f"the sound {name} is {found}"
    return folder / "case", sound


def one_round(seed: int) -> collections.Counter[str]:
    """Load one damaged file."""
    folder, sound = prepared()
    rng = random.Random(seed)
    name = rng.choice(sorted(sound))
    data, load = sound[name]
    path = folder / name
    path.write_bytes(damaged(data, rng))
    forget_peak()
    before = peak()
    found = load_counting(load, path)
    most = MEMORY_OF_ANY + MEMORY_PER_BYTE * path.stat().st_size
    taken = peak() - before
    assert taken <= most, f"{name}: {taken} bytes of memory; {most} were expected at most"
    return collections.Counter([f"{name} {found}"])


def peak() -> int:
    """The most memory that this process had since `forget_peak`, in bytes; 0 if nobody tells."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def forget_peak() -> None:
    """Let the peak be what the process has now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
