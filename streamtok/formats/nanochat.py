"""nanochat's `tokenizer.pkl`, a pickled `tiktoken.Encoding`, and rustbpe's list of tokens.

`pickled_encoding.py` reads the pickle without unpickling it. rustbpe trains nanochat's
vocabularies, and returns its tokens as a list: `from_rustbpe` takes that.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import VocabularyError
from ..files.part_file import write_whole
from ..vocabulary.table import Vocabulary
from .loading import check_specials, make_encoding, read_bytes, shown
from .pickled_encoding import read_pickled
from .tiktoken import rank_table

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["from_rustbpe", "load_nanochat", "save_nanochat"]

_FIELDS = {"name": str, "pat_str": str, "mergeable_ranks": dict, "special_tokens": dict}


def load_nanochat(path: Path, *, name: str | None = None) -> Encoding:
    """The encoding in a pickled `tiktoken.Encoding`. The file is not run.

    path: the `tokenizer.pkl`, or the folder that it is in. Raises OSError, and VocabularyError
    naming the file, the position and the opcode for any other pickle.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "tokenizer.pkl")
    source = os.fspath(path)
    state = read_pickled(read_bytes(path), source)
    for field, kind in _FIELDS.items():
        if not isinstance(state.get(field), kind):
            raise VocabularyError(f"{source}: the field {field!r} must be a {kind.__name__}")
    if extra := state.keys() - _FIELDS.keys():
        raise VocabularyError(f"{source}: unknown field of tiktoken.Encoding: {shown(min(extra))}")
    specials = state["special_tokens"]
    for text, token in specials.items():
        if not isinstance(text, str) or not isinstance(token, int):
            raise VocabularyError(
                f"{source}: a special token must be a str with an int for its id, "
                f"found {shown(text)}: {shown(token)}"
            )
    try:
        vocabulary = Vocabulary.from_ranks(state["mergeable_ranks"])
    except (TypeError, VocabularyError) as error:
        raise VocabularyError(f"{source}: mergeable_ranks: {error}") from None
    return make_encoding(
        source,
        name or state["name"],
        pat_str=state["pat_str"],
        mergeable_ranks=vocabulary,
        special_tokens=check_specials(specials, source),
    )


def from_rustbpe(
    ranks: Iterable[tuple[Iterable[int], int]],
    pattern: str,
    *,
    special_tokens: Iterable[str] = (),
    name: str = "rustbpe",
) -> Encoding:
    """The encoding of a `rustbpe.Tokenizer`, from its `get_mergeable_ranks()` and `get_pattern()`.

    special_tokens: they get the next ids, in order, as in nanochat. Raises VocabularyError.
    """
    table = {bytes(token): rank for token, rank in ranks}
    first = max(table.values(), default=-1) + 1
    return make_encoding(
        "rustbpe",
        name,
        pat_str=pattern,
        mergeable_ranks=Vocabulary.from_ranks(table),
        special_tokens={text: first + i for i, text in enumerate(special_tokens)},
    )


def save_nanochat(encoding: Encoding, path: Path) -> None:
    """Write a file from which `pickle.load` makes a `tiktoken.Encoding`. It appears when complete.

    path: the file, or a folder that gets a `tokenizer.pkl`. Raises OSError, and VocabularyError for
    what a `tiktoken.Encoding` cannot express.
    """
    if os.path.isdir(path):
        path = os.path.join(path, "tokenizer.pkl")
    state = {
        "name": encoding.name,
        "pat_str": encoding._pat_str,
        "mergeable_ranks": rank_table(encoding, "a tiktoken.Encoding").to_ranks(),
        "special_tokens": encoding._special_tokens,
    }
    # What pickle writes for an object made without arguments and its state; tiktoken is not needed.
    head = pickle.PROTO + b"\x03" + pickle.GLOBAL + b"tiktoken.core\nEncoding\n"
    body = pickle.dumps(state, protocol=3).removeprefix(pickle.PROTO + b"\x03")[:-1]
    made = head + pickle.EMPTY_TUPLE + pickle.NEWOBJ + body + pickle.BUILD + pickle.STOP
    write_whole(path, made)
