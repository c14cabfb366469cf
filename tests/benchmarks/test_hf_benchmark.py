"""The benchmark of transformers' calls: all are compared before they are timed."""

from __future__ import annotations

from pathlib import Path

import streamtok
from benchmarks import corpus, hf


def test_files_and_folders(tmp_path: Path) -> None:
    """transformers knows the class of a folder with a configuration."""
    file = tmp_path / "tokenizer.json"
    streamtok.formats.save_huggingface(streamtok.get_encoding("gpt2"), file)
    assert type(hf.loaded(tmp_path)).__name__ == type(hf.loaded(file)).__name__
    config = '{"tokenizer_class": "GPT2TokenizerFast", "pad_token": "!"}'
    (tmp_path / "tokenizer_config.json").write_text(config)
    assert hf.loaded(tmp_path).pad_token == "!"


def test_all_calls_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    streamtok.formats.save_huggingface(streamtok.get_encoding("gpt2"), file)
    text = corpus.generated("english").decode("utf-8", "ignore")[:1000]
    rows = list(hf.measure(file, text, 1))
    assert len(rows) >= 9
    for _, times in rows:
        assert times["tokenizers"] > 0
        assert times["streamtok"] > 0
