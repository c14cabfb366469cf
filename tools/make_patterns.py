"""Write `streamtok/data/patterns.bin`: the compiled tables of well-known patterns.

Compiling takes tens of milliseconds, reading the tables a fraction of one. The file is only a
cache. `tests/patterns/test_pattern.py` compiles each pattern and expects equal tables. So it fails
after a change to the compiler or to `unicode.npz`, until someone runs

    python tools/make_patterns.py

Patterns are copied exactly from the encodings that use them, because the text of a pattern is the
key of its tables.
"""

from __future__ import annotations

from pathlib import Path

from streamtok.patterns.pattern import Pattern, pack_tables

OUTPUT = Path(__file__).resolve().parent.parent / "streamtok" / "data" / "patterns.bin"

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SPACE_RUNS = r"\s*[\r\n]+|\s+(?!\S)|\s+"

PATTERNS = {
    # r50k_base, p50k_base and p50k_edit as well; as first published, then as tiktoken writes it now
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "r50k_base": (
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
    ),
    # the same two ages; the older spelling is Llama 3's
    "llama3": (
        _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        + _SPACE_RUNS
    ),
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}?"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACE_RUNS}"
    ),
    "qwen2": (
        _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + _SPACE_RUNS
    ),
}  # fmt: skip

if __name__ == "__main__":
    OUTPUT.write_bytes(pack_tables([Pattern.compile_afresh(text) for text in PATTERNS.values()]))
    print(f"{OUTPUT.name}: {len(PATTERNS)} patterns, {OUTPUT.stat().st_size} bytes")
