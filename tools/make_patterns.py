"""Write `streamtok/data/patterns.bin`: the tables of well-known split patterns, compiled ahead.

Compiling takes some tens of milliseconds, reading ready-made tables a fraction of one. The file is
only a cache: `tests/patterns/test_pattern.py` compiles each pattern afresh and expects equal tables, so that
a change to the compiler or to `unicode.npz` that was not followed by

    python tools/make_patterns.py

shows. Patterns are facts of the encodings that use them, and are copied to the letter: the tables
are found by the pattern's text.
"""

from __future__ import annotations

from pathlib import Path

from streamtok.patterns.bundled_tables import pack_tables
from streamtok.patterns.named import CL100K_PATTERN, O200K_PATTERN, PATTERNS, R50K_PATTERN
from streamtok.patterns.pattern import Pattern

OUTPUT = Path(__file__).resolve().parent.parent / "streamtok" / "data" / "patterns.bin"

# As first published by OpenAI; tiktoken writes it as R50K_PATTERN now.
_GPT2_FIRST = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SOURCES = [
    _GPT2_FIRST,
    R50K_PATTERN,
    PATTERNS["llama3"],
    CL100K_PATTERN,
    O200K_PATTERN,
    PATTERNS["qwen2"],
]

if __name__ == "__main__":
    OUTPUT.write_bytes(pack_tables({source: Pattern.compile_afresh(source) for source in SOURCES}))
    print(f"{OUTPUT.name}: {len(SOURCES)} patterns, {OUTPUT.stat().st_size} bytes")
