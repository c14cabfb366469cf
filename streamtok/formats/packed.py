"""The packed form of an encoding, `.streamtok`: one file that loads in milliseconds.

It holds the tokens, the parts that each is merged from, and the tables of the pattern, as the
arrays that the core reads. Loading reads these arrays and builds the hash tables; a tokenizer.json
of the same encoding takes hundreds of milliseconds.

A file holds a `_Packed`, as `vocabulary/sealed.py` writes it. The objects made from it check
everything that memory safety depends on. A forged file can still produce wrong ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from ..engines.model_settings import ModelSettings
from ..engines.rules import TextRules, TokenFlags
from ..engines.template import Template
from ..errors import VocabularyError
from ..files import write_whole
from ..normalizers import Normalizer
from ..patterns.pattern import Pattern
from ..patterns.sequence import SplitSequence
from ..patterns.tables import CODE_POINTS_PER_BLOCK, MAX_WINDOW_CLASSES, Tables, Windows
from ..patterns.windows import MAX_COUNT, MAX_REACH, NONE, UNDECIDED
from ..vocabulary.pieces import Pieces
from ..vocabulary.sealed import array_of, builtins_of, seal, unseal
from ..vocabulary.table import MAX_ID, Vocabulary
from .loading import MAX_MESSAGE, make_encoding

if TYPE_CHECKING:
    from ..encoding import Encoding
    from .loading import Path

__all__ = ["PACKED_MAGIC", "dumps_packed", "loads_packed", "save_packed"]

PACKED_MAGIC = b"streamtok encoding 1\n"
_WINDOWS_SIZE = 900

Id = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)]


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    """An object in a file."""


class _Rules(_Record):
    """The arguments of `TextRules`."""

    added_tokens: tuple[tuple[str, int], ...] = ()
    normalizer: Normalizer | None = None
    token_flags: tuple[tuple[str, TokenFlags], ...] = ()
    second_normalizer: Normalizer | None = None
    drops_first_space: bool = False
    decoded_texts: tuple[tuple[str, bytes], ...] = ()
    first_texts: tuple[tuple[int, str], ...] = ()
    drops_first_spaces: bool = False


class _Pattern(_Record):
    """A `Pattern` and the values derived from its tables."""

    transitions: np.ndarray
    accepts: np.ndarray
    class_pages: np.ndarray
    class_blocks: np.ndarray
    windows: bytes | None
    is_total: bool
    sequence: tuple[tuple[tuple[str, str], ...], bool] | None  # the arguments of `SplitSequence`


class _Vocabulary(_Record):
    """The arguments of `Vocabulary`."""

    tokens: bytes
    offsets: np.ndarray
    ids: np.ndarray
    lefts: np.ndarray | None
    byte_ids: np.ndarray | None
    ties: np.ndarray | None
    decode_only: dict[int, bytes]
    parts: tuple[np.ndarray, np.ndarray]
    model: Pieces | None


class _Packed(_Record):
    """An encoding."""

    name: str
    source: str  # of the pattern
    pattern: _Pattern | None
    vocabulary: _Vocabulary
    special_tokens: dict[str, int]
    rules: _Rules
    template: tuple[tuple[Id, ...], tuple[Id, ...]]
    control_tokens: tuple[str, ...] | None
    eos: tuple[Id, ...]
    truncation: dict[str, Any] | None
    padding: dict[str, Any] | None


def save_packed(encoding: Encoding, path: Path) -> None:
    """Write a packed file, which appears only once it is complete. Raises OSError."""
    write_whole(path, dumps_packed(encoding))


def dumps_packed(encoding: Encoding) -> bytes:
    """The contents of a packed file."""
    definition = encoding.definition
    known = definition.vocabulary
    vocabulary = _Vocabulary(
        known.tokens, known.offsets, known.ids, known.lefts, known.byte_ids, known.ties,
        dict(sorted(known.decode_only.items())), definition.table.parts(), known.model,
    )  # fmt: skip
    pattern, tables = encoding.pattern, None
    if pattern is not None:
        tables = _Pattern(
            **{name: getattr(pattern, name) for name in Tables._fields},
            windows=None if pattern.windows is None else pattern.windows.to_bytes(),
            is_total=pattern.is_total,
            sequence=pattern.__reduce__()[1] if isinstance(pattern, SplitSequence) else None,
        )
    control = definition.arguments["control_tokens"]
    packed = _Packed(
        encoding.name,
        definition.pat_str,
        tables,
        vocabulary,
        definition.specials.special,
        _Rules(**definition.rules._asdict()),
        definition.template,
        None if control is None else tuple(sorted(control)),
        *definition.model_settings,
    )
    return seal(PACKED_MAGIC, packed, _as_builtins)


def loads_packed(data: bytes, source: str = "<bytes>", name: str | None = None) -> Encoding:
    """The encoding in the contents of a packed file. name: replaces the name in the file.

    Raises a VocabularyError that names `source` if the file is damaged.
    """
    try:
        packed = unseal(PACKED_MAGIC, data, _Packed, _of_builtins)
        made = make_encoding(
            source,
            name or packed.name,
            pat_str=_pattern(packed.source, packed.pattern),
            mergeable_ranks=Vocabulary(**msgspec.structs.asdict(packed.vocabulary)),
            special_tokens=packed.special_tokens,
            rules=TextRules(**msgspec.structs.asdict(packed.rules)),
            template=Template(*packed.template),
            control_tokens=packed.control_tokens,
        )
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        why = str(error).removeprefix(f"{source}: ")[:MAX_MESSAGE]
        raise VocabularyError(f"{source} is damaged: {why}") from None
    made.definition.model_settings = ModelSettings(packed.eos, packed.truncation, packed.padding)
    return made


def _pattern(source: str, packed: _Pattern | None) -> str | Pattern:
    if packed is None:
        return source
    tables = Tables(*(getattr(packed, name) for name in Tables._fields))
    _check_tables(tables)
    if packed.sequence is None:
        pattern = Pattern(source, tables)
    else:
        pattern = SplitSequence(*packed.sequence, tables)
    windows = None
    if packed.windows is not None:
        if len(packed.windows) != _WINDOWS_SIZE:
            raise ValueError(f"windows have {len(packed.windows)} bytes instead of {_WINDOWS_SIZE}")
        windows = Windows.from_bytes(packed.windows)
        _check_windows(windows)
    pattern.__dict__ |= {"windows": windows, "is_total": packed.is_total}
    return pattern


def _check_tables(tables: Tables) -> None:
    """Raise ValueError if a number points outside the tables."""
    n_states, n_classes = tables.transitions.shape
    if (
        [table.dtype for table in tables] != [np.uint16, np.uint8, np.uint16, np.uint8]
        or n_states < 2
        or n_classes < 1
        or tables.accepts.shape != (n_states, n_classes + 1)
        or tables.class_pages.shape != (0x110000 // CODE_POINTS_PER_BLOCK,)
        or tables.class_blocks.shape[1:] != (CODE_POINTS_PER_BLOCK,)
        or int(tables.transitions.max()) >= n_states
        or int(tables.class_pages.max()) >= len(tables.class_blocks)
        or int(tables.class_blocks.max()) >= n_classes
        or int(tables.accepts.max()) > 1
    ):
        raise ValueError("the tables of the pattern do not fit together")


def _check_windows(windows: Windows) -> None:
    """Raise ValueError if a number points outside the windows' tables."""
    if (
        max(int(table.max()) for table in windows[1:3]) >= MAX_WINDOW_CLASSES
        or int(windows.decisions.max()) > UNDECIDED
        or windows.reach > MAX_REACH
        or (windows.counted != NONE and not 1 <= windows.run <= MAX_COUNT)
    ):
        raise ValueError("the windows of the pattern do not fit together")


def _as_builtins(value: Any) -> Any:
    if isinstance(value, Normalizer):
        return value.spec
    return value.__reduce__()[1] if isinstance(value, Pieces) else builtins_of(value)


def _of_builtins(kind: type, value: Any) -> Any:
    if kind is Normalizer:
        return Normalizer.from_spec(_specs(value))
    if kind is not Pieces:
        return array_of(kind, value)
    *settings, stages = value
    arguments: list[Any] = [
        array_of(kind, part) if isinstance(part, list) else part for part in settings
    ]
    arguments.append(_specs(stages))
    return Pieces(*arguments)


def _specs(packed: Any) -> tuple[tuple[Any, ...], ...]:
    """Names of steps with their settings. Lists become tuples again: MessagePack has only lists."""
    return tuple(
        tuple(tuple(setting) if isinstance(setting, list) else setting for setting in step)
        for step in packed
    )
