"""Write `streamtok/data/patterns.bin`: the compiled tables of well-known patterns.

Compiling takes tens of milliseconds, reading the tables a fraction of one. The file is only a
cache. `tests/patterns/test_pattern.py` compiles each pattern and expects equal tables. After a
change to the compiler or to `unicode.npz`, run

    python tools/make_patterns.py

The text of a pattern is the key of its tables, so it must be exactly that of the encodings.
"""

from __future__ import annotations

from pathlib import Path

from streamtok.formats.character_merges import CUT_BEFORE_SPACES
from streamtok.patterns.bundled_tables import pack_tables
from streamtok.patterns.dfa import compile_tables
from streamtok.patterns.named import (
    CL100K_PATTERN,
    DEEPSEEK_V3_PATTERNS,
    GPT2_PATTERN,
    O200K_PATTERN,
    PATTERNS,
    R50K_PATTERN,
)
from streamtok.patterns.pattern import Pattern
from streamtok.patterns.sequence import SplitSequence, compose
from streamtok.patterns.splits import Split

OUTPUT = Path(__file__).resolve().parent.parent / "streamtok" / "data" / "patterns.bin"

# As first published by OpenAI; tiktoken now uses the form of R50K_PATTERN.
_GPT2_FIRST = r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SOURCES = [
    _GPT2_FIRST,
    R50K_PATTERN,
    PATTERNS["llama3"],
    CL100K_PATTERN,
    O200K_PATTERN,
    PATTERNS["qwen2"],
    GPT2_PATTERN,
    CUT_BEFORE_SPACES,
    *DEEPSEEK_V3_PATTERNS,
]
SEQUENCES = [DEEPSEEK_V3_PATTERNS]


def automata() -> dict[str, Pattern]:
    """All patterns, compiled, by source."""
    made = [Pattern(source, compile_tables(source)) for source in SOURCES]
    made += [
        SplitSequence(splits, tables=compose(tuple(map(Split, splits)))) for splits in SEQUENCES
    ]
    return {pattern.source: pattern for pattern in made}


if __name__ == "__main__":
    OUTPUT.write_bytes(pack_tables(automata()))
    print(f"{OUTPUT.name}: {len(automata())} patterns, {OUTPUT.stat().st_size} bytes")
