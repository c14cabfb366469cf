"""Chooses the vocabularies and texts: those that come with streamtok, trained ones, random ones."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from ...hf.shapes import KINDS
from ...hf.shapes import TEXTS as SENTENCES
from ...nasty import TEXTS
from ...sentencepiece_models import trained
from ...tokenizer_files import random_file, random_piece_file, random_text

BUILT_IN = ["gpt2", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]
RANDOM = 6  # of each kind
N_NASTY = 90


def vocabularies() -> dict[str, Any]:
    """{name: {"kind": "name" | "json" | "model", "data": …, "texts": […]}}; texts in base64."""
    rng = random.Random(47)
    nasty = [base64.b64encode(text).decode() for text in rng.sample(TEXTS, N_NASTY)]
    nasty += [base64.b64encode(text.encode()).decode() for text in SENTENCES]
    nasty.append(base64.b64encode("\n".join(SENTENCES * 3).encode()).decode())

    def entry(kind: str, data: str, *more: str) -> dict[str, Any]:
        texts = [base64.b64encode(text.encode()).decode() for text in more]
        return {"kind": kind, "data": data, "texts": [*nasty, *texts]}

    chosen = {name: entry("name", name) for name in BUILT_IN}
    for name, shape in KINDS.items():
        chosen[f"{name}, trained"] = entry("json", shape().to_str())
    for model_type, rule in (("bpe", "identity"), ("unigram", "identity"), ("unigram", "nmt_nfkc")):
        data = trained(model_type=model_type, normalization_rule_name=rule, vocab_size=600)
        chosen[f"sentencepiece {model_type} {rule}"] = entry(
            "model", base64.b64encode(data).decode()
        )
    for kind, maker in (("merges", random_file), ("pieces", random_piece_file)):
        found = 0
        for seed in range(1000):
            rng = random.Random(seed)
            file = maker(rng)
            if found < RANDOM and _is_read(file):
                texts = [random_text(rng, file) for _ in range(30)]
                chosen[f"random {kind} {seed}"] = entry("json", json.dumps(file), *texts)
                found += 1
    return chosen


def _is_read(file: Any) -> bool:
    """Whether both libraries read it and it has steps before the model and added tokens."""
    from tokenizers import Tokenizer

    from streamtok.formats.huggingface import read_huggingface
    from streamtok.formats.json_value import JsonValue, parse_json

    text = json.dumps(file)
    if not (file["normalizer"] and file["pre_tokenizer"] and file["added_tokens"]):
        return False
    try:
        Tokenizer.from_str(text)
        read_huggingface(JsonValue(parse_json(text.encode(), "file"), "file"), "file")
    except Exception:  # tokenizers has no other
        return False
    return True
