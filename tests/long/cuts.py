"""Streams that are cut at random against whole texts, tiktoken and the slow reference.

Every round makes a text of nasty parts, runs, random characters and bytes that are no UTF-8, picks
an encoding (r50k, cl100k, o200k, Llama-3-style, one of random tokens with a random pattern or one
that looks far ahead, one with long tokens, one with normalizers and flags of tokens, or a model of
pieces), a policy for errors and special tokens, and cuts the text at random.
"""

from __future__ import annotations

import collections
import random

from streamtok.reference import bpe as reference

from ..conftest import PACKED, encoding_of, stream_ids, twin_of
from ..oracles import cut
from .states.encodings import made
from .states.texts import random_text

OTHERS = ("far", "long")  # patterns that look far ahead, and long tokens
NOT_BPE_ALONE = ("rewriting", "pieces")  # what the reference of BPE and tiktoken do not have
REFERENCE_BYTES = 400  # the reference is slow: it sees this much of a text


def one_round(seed: int) -> collections.Counter[str]:
    """Check one text; the bytes and cuts that were checked."""
    rng = random.Random(seed)
    name = rng.choice([*PACKED, "llama3_style", "random", "random", *OTHERS, *NOT_BPE_ALONE])
    is_known = name in (*PACKED, "llama3_style")
    number = rng.randrange(6 if name == "long" else 1000)
    enc = encoding_of(name) if is_known else made(name, number).encoding
    errors = rng.choice(["replace", "surrogateescape"])
    settings = {
        "errors": errors,
        "allowed_special": rng.choice(["all", frozenset()]),
        "disallowed_special": (),
    }
    data = random_text(rng, rng.choice([50, 500, 20_000, 60_000]))
    checked = collections.Counter({"bytes": len(data)})
    whole = enc.encode(data, **settings)
    for mean in [rng.choice([1, 3, 8]), rng.choice([8, 20, 5000])]:
        chunks = cut(rng, data, mean)
        got = stream_ids(enc.stream_encoder(**settings), chunks)
        assert got == whole, f"stream of {name} at chunks of about {mean} bytes"
        checked["cuts"] += max(0, len(chunks) - 1)
    if name in NOT_BPE_ALONE:
        return checked
    if errors == "surrogateescape" and enc.pattern and enc.pattern.is_total:
        assert enc.decode_bytes(whole) == data, f"round trip of {name}"
    part = data[:REFERENCE_BYTES]
    allowed = enc.special_tokens_set if settings["allowed_special"] else ()
    expected = reference.encode(
        enc._mergeable_ranks, enc._pat_str, part, errors=errors,
        special_tokens=enc._special_tokens, allowed_special=allowed,
    )  # fmt: skip
    assert enc.encode(part, **settings) == expected, f"reference of {name}"
    if is_known:
        text = data.decode("utf-8", "replace")
        expected = twin_of(name).encode(
            text, allowed_special=settings["allowed_special"], disallowed_special=()
        )
        assert enc.encode(text, **{**settings, "errors": "strict"}) == expected, (
            f"tiktoken's {name}"
        )
    return checked
