"""Encoding through vLLM's own `get_tokenizer`: the real tokenizer and the plug-in's.

    .nox/vllm/bin/python -m benchmarks.with_vllm o200k_base

`nox -s vllm` makes that environment. The texts are the standard library's sources, each part used
once, and the ids must be equal. Prints the median processor time of a call.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

import streamtok

SIZES = {1_000: 200, 10_000: 30, 100_000: 4, 1_000_000: 1}  # characters: texts in a round
ROUNDS = 5


def tokenizers_of(name: str, folder: str) -> dict[str, Any]:
    """The tokenizers that vLLM loads from a folder before and after loading its plug-ins."""
    import vllm.plugins
    from transformers import PreTrainedTokenizerFast
    from vllm.tokenizers import get_tokenizer

    file = str(Path(folder, "file.json"))
    streamtok.formats.save_huggingface(streamtok.get_encoding(name), file)
    PreTrainedTokenizerFast(tokenizer_file=file).save_pretrained(folder)
    Path(folder, "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    real = get_tokenizer(folder)
    os.environ["STREAMTOK_VLLM"] = "1"
    vllm.plugins.load_general_plugins()
    ours = get_tokenizer(folder)
    assert ours._tokenizer.engine == "streamtok"
    print(f"vLLM {vllm.__version__}, {name}")
    return {"tokenizers": real, "streamtok": ours}


def main(name: str) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    files = [one for one in sorted(library.rglob("*.py")) if "site-packages" not in one.parts]
    text = "".join(one.read_text("utf-8", "ignore") for one in files)
    with tempfile.TemporaryDirectory() as folder:
        tokenizers = tokenizers_of(name, folder)
    at = 0
    for size, n in SIZES.items():
        times: dict[str, list[float]] = {whose: [] for whose in tokenizers}
        for _ in range(ROUNDS):
            texts = [text[start : start + size] for start in range(at, at + n * size, size)]
            at += n * size
            ids = []
            for whose, tokenizer in tokenizers.items():
                begun = time.process_time()
                ids.append([tokenizer.encode(one) for one in texts])
                times[whose].append((time.process_time() - begun) / n)
            assert ids[0] == ids[1]
        real, ours = (statistics.median(times[whose]) * 1000 for whose in tokenizers)
        print(f"{size:>9,} characters: {real:8.2f} ms, {ours:7.3f} ms, {real / ours:4.0f} times")
    assert at <= len(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
