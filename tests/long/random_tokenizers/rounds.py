"""A round: a random `tokenizer.json` file and four texts; the ids must be those of `tokenizers`.

The file of a seed, made by `tests/tokenizer_files.py`, goes through `tokenizers` and through
`streamtok.load`. If streamtok refuses it, the round ends there and is counted by the message. Else
each text is

- encoded whole, and counted;
- streamed as bytes: cut once, at every place and byte by byte if it is of 16 bytes or less; else at
  five random places, and one text in two byte by byte; twice at two to six random places; and as a
  str at three random places. Before one chunk in ten the state is loaded into another stream;
- decoded, if decoding should be equal (`decodes_alike`).

On average a round has 3.6 texts and 35 streams; nine files in ten are not refused. `tokenizers`
panics on some files and texts; they are no cases.
"""

from __future__ import annotations

import collections
import random
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from ...tokenizer_files import File, random_file, random_piece_file, random_text
from .checks import Refused, check_file
from .finds import describe

TEXTS = 4  # a file
Make = Callable[[random.Random], File]


def case(seed: int, make: Make = random_file) -> tuple[File, list[str]]:
    rng = random.Random(seed)
    file = make(rng)
    return file, [random_text(rng, file) for _ in range(TEXTS)]


def one_round(seed: int, make: Make = random_file) -> collections.Counter[str]:
    """What was compared, and how it ended; make: random_file, or another kind."""
    with tempfile.TemporaryDirectory() as folder:
        return checked(*case(seed, make), Path(folder), seed)


def one_round_of_pieces(seed: int) -> collections.Counter[str]:
    """The same for WordPiece, WordLevel and Unigram."""
    return one_round(seed, random_piece_file)


def checked(file: File, texts: list[str], folder: Path, seed: int) -> collections.Counter[str]:
    counts = collections.Counter({"files": 1})
    try:
        difference = check_file(file, texts, folder, seed, counts)
    except Refused as refused:
        shape = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", str(refused).removeprefix("FILE: "))
        shape = re.sub(r"\d+", "N", re.sub(r"(bytes are .*):.*", r"\1", shape))[:110]
        counts[f"refused: {shape}"] += 1
        return counts
    if difference is not None:
        raise AssertionError(describe(file, difference))
    return counts
