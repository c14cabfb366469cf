"""The packed form of an encoding, `.streamtok`: all of it in one file, which loads in no time.

Nothing in it is computed again: the tokens with the parts that they are made of, and the tables of
the pattern, are arrays as the core reads them. It takes reading them and making the hash tables:
milliseconds where a tokenizer.json of the same encoding takes hundreds. A file holds no code.

A file is a magic line, the CRC-32 of the rest, and MessagePack: an object with the fields of
`_Packed`. Arrays are their little-endian bytes. msgspec checks the types of the fields; what memory
safety depends on is checked besides. A file that was made to deceive can still give wrong ids.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import numpy as np

from ..engines.model_settings import ModelSettings
from ..engines.rules import TextRules, TokenFlags
from ..engines.template import Template
from ..errors import PatternError, VocabularyError
from ..files import write_whole
from ..normalizers import Normalizer
from ..patterns.pattern import Pattern
from ..patterns.sequence import SplitSequence
from ..patterns.tables import CODE_POINTS_PER_BLOCK, MAX_WINDOW_CLASSES, Tables, Windows
from ..patterns.windows import MAX_COUNT, MAX_REACH, NONE, UNDECIDED
from ..vocabulary.pieces import Pieces
from ..vocabulary.table import MAX_ID, NO_ID, Vocabulary
from .loading import MAX_MESSAGE, make_encoding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..encoding import Encoding
    from .loading import Path

__all__ = ["PACKED_MAGIC", "dumps_packed", "loads_packed", "save_packed", "sealed"]

PACKED_MAGIC = b"streamtok encoding 1\n"
_START = len(PACKED_MAGIC) + 4
_WINDOWS_SIZE = 900

Id = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)]
IdOrNone = Annotated[int, msgspec.Meta(ge=0, le=NO_ID)]
Specs: TypeAlias = tuple[tuple[Any, ...], ...]  # `Normalizer.spec`, `Pieces.stages`


class _Record(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """An object in a file. Its fields have the names and meanings of what they are made from."""


class _Rules(_Record):
    """`TextRules`. A normalizer is its `spec`."""

    added_tokens: tuple[tuple[str, int], ...] = ()
    normalizer: Specs | None = None
    token_flags: tuple[tuple[str, TokenFlags], ...] = ()
    second_normalizer: Specs | None = None
    drops_first_space: bool = False
    decoded_texts: tuple[tuple[str, str], ...] = ()
    first_texts: tuple[tuple[int, str], ...] = ()
    drops_first_spaces: bool = False


class _Pattern(_Record):
    """The tables of a `Pattern`, and what it derives from them."""

    n_classes: Annotated[int, msgspec.Meta(ge=1)]
    transitions: memoryview
    accepts: memoryview
    class_pages: memoryview
    class_blocks: memoryview
    windows: memoryview | None
    is_total: bool
    sequence: tuple[tuple[tuple[str, str], ...], bool] | None  # what `rebuilt_sequence` takes


class _Pieces(_Record):
    """`Pieces`."""

    kind: str
    blob: bytes
    offsets: memoryview
    ids: memoryview
    unknown: IdOrNone
    prefix: str
    most_characters: int
    scores: memoryview | None
    byte_ids: memoryview | None
    stages: Specs


class _Vocabulary(_Record):
    """`Vocabulary`."""

    tokens: bytes
    offsets: memoryview
    ids: memoryview
    lefts: memoryview | None
    byte_ids: memoryview | None
    ties: memoryview | None
    decode_only: dict[int, bytes]
    parts: tuple[memoryview, memoryview]
    model: _Pieces | None


class _Packed(_Record):
    """An encoding."""

    name: str
    source: str  # of the pattern
    pattern: _Pattern | None
    vocabulary: _Vocabulary
    special_tokens: dict[str, int]
    rules: _Rules
    template: tuple[tuple[Id, ...], tuple[Id, ...]]
    eos: tuple[Id, ...]
    truncation: dict[str, Any] | None
    padding: dict[str, Any] | None


def save_packed(encoding: Encoding, path: Path) -> None:
    """Write a packed file. It appears when it is complete. Raises OSError."""
    write_whole(path, dumps_packed(encoding))


def dumps_packed(encoding: Encoding) -> bytes:
    """The contents of a packed file."""
    definition = encoding.definition
    vocabulary, settings = definition.vocabulary, definition.model_settings
    lefts, rights = definition.table.parts()
    rules = definition.rules._asdict()
    for name in ("normalizer", "second_normalizer"):
        rules[name] = rules[name].spec if rules[name] else None
    packed = _Packed(
        name=encoding.name,
        source=definition.pat_str,
        pattern=_packed_pattern(encoding.pattern),
        vocabulary=_Vocabulary(
            tokens=vocabulary.tokens,
            decode_only=dict(sorted(vocabulary.decode_only.items())),
            parts=(_bytes_of(lefts), _bytes_of(rights)),
            model=_packed_pieces(vocabulary.model),
            **_all_bytes(vocabulary, "offsets", "ids", "lefts", "byte_ids", "ties"),
        ),
        special_tokens=definition.specials.special,
        rules=_Rules(**rules),
        template=definition.template,
        eos=settings.eos,
        truncation=settings.truncation,
        padding=settings.padding,
    )
    return sealed(msgspec.msgpack.encode(packed))


def _packed_pattern(pattern: Pattern | None) -> _Pattern | None:
    if pattern is None:
        return None
    is_sequence = isinstance(pattern, SplitSequence)
    return _Pattern(
        n_classes=pattern.n_classes,
        windows=None if pattern.windows is None else memoryview(pattern.windows.to_bytes()),
        is_total=pattern.is_total,
        sequence=pattern.__reduce__()[1] if is_sequence else None,
        **_all_bytes(pattern, *Tables._fields),
    )


def _packed_pieces(model: Pieces | None) -> _Pieces | None:
    if model is None:
        return None
    return _Pieces(
        kind=model.kind,
        blob=model.blob,
        unknown=model.unknown,
        prefix=model.prefix,
        most_characters=model.most_characters,
        stages=model.stages,
        **_all_bytes(model, "offsets", "ids", "scores", "byte_ids"),
    )


def sealed(packed: bytes) -> bytes:
    """The contents of a file with this MessagePack."""
    return PACKED_MAGIC + zlib.crc32(packed).to_bytes(4, "little") + packed


def loads_packed(data: bytes, source: str = "<bytes>", name: str | None = None) -> Encoding:
    """The encoding in the contents of a packed file; name: in place of the name that it had.

    Raises VocabularyError, which names `source`, for damage.
    """
    if not data.startswith(PACKED_MAGIC):
        raise VocabularyError(f"{source} is not a packed encoding")
    contents = memoryview(data)[_START:]
    if zlib.crc32(contents).to_bytes(4, "little") != data[len(PACKED_MAGIC) : _START]:
        raise VocabularyError(f"{source} is damaged: its checksum is wrong")
    try:
        packed = msgspec.msgpack.decode(contents, type=_Packed)
        made = make_encoding(
            source,
            name or packed.name,
            pat_str=_pattern(packed.source, packed.pattern),
            mergeable_ranks=_vocabulary(packed.vocabulary),
            special_tokens=packed.special_tokens,
            rules=_rules(packed.rules),
            template=Template(*packed.template),
        )
    except (
        msgspec.DecodeError, ValueError, TypeError, LookupError, AttributeError, RecursionError,
        OverflowError, PatternError,
    ) as error:  # fmt: skip
        why = str(error).removeprefix(f"{source}: ")[:MAX_MESSAGE]
        raise VocabularyError(f"{source} is damaged: {why}") from None
    settings = ModelSettings(packed.eos, packed.truncation, packed.padding)
    made.definition.model_settings = settings
    return made


def _vocabulary(packed: _Vocabulary) -> Vocabulary:
    return Vocabulary(
        packed.tokens,
        _array(packed.offsets),
        _array(packed.ids),
        lefts=_array_or_none(packed.lefts),
        byte_ids=_array_or_none(packed.byte_ids),
        ties=_array_or_none(packed.ties),
        decode_only=packed.decode_only,
        parts=(_array(packed.parts[0]), _array(packed.parts[1])),
        model=None if packed.model is None else _pieces(packed.model),
    )


def _pieces(packed: _Pieces) -> Pieces:
    return Pieces(
        packed.kind,
        packed.blob,
        _array(packed.offsets),
        _array(packed.ids),
        packed.unknown,
        packed.prefix,
        packed.most_characters,
        _array_or_none(packed.scores, np.float64),
        _array_or_none(packed.byte_ids),
        _specs(packed.stages),
    )


def _pattern(source: str, packed: _Pattern | None) -> str | Pattern:
    if packed is None:
        return source
    tables = Tables(
        _array(packed.transitions, np.uint16).reshape(-1, packed.n_classes),
        _array(packed.accepts, np.uint8).reshape(-1, packed.n_classes + 1),
        _array(packed.class_pages, np.uint16),
        _array(packed.class_blocks, np.uint8).reshape(-1, CODE_POINTS_PER_BLOCK),
    )
    _check_tables(tables)
    if packed.sequence is None:
        pattern = Pattern(source, tables)
    else:
        pattern = SplitSequence(*packed.sequence, tables)
    windows = None
    if packed.windows is not None:
        if len(packed.windows) != _WINDOWS_SIZE:
            raise ValueError(f"windows have {len(packed.windows)} bytes instead of {_WINDOWS_SIZE}")
        windows = Windows.from_bytes(bytes(packed.windows))
        _check_windows(windows)
    pattern.__dict__ |= {"windows": windows, "is_total": packed.is_total}
    return pattern


def _check_tables(tables: Tables) -> None:
    """Raise ValueError for numbers that lead out of the tables."""
    n_states, n_classes = tables.transitions.shape
    if (
        n_states < 2
        or len(tables.accepts) != n_states
        or tables.class_pages.shape != (0x110000 // CODE_POINTS_PER_BLOCK,)
        or int(tables.transitions.max()) >= n_states
        or int(tables.class_pages.max()) >= len(tables.class_blocks)
        or int(tables.class_blocks.max()) >= n_classes
        or int(tables.accepts.max()) > 1
    ):
        raise ValueError("the tables of the pattern do not fit together")


def _check_windows(windows: Windows) -> None:
    """Raise ValueError for numbers that lead out of the windows' tables."""
    if (
        max(int(table.max()) for table in windows[1:3]) >= MAX_WINDOW_CLASSES
        or int(windows.decisions.max()) > UNDECIDED
        or windows.reach > MAX_REACH
        or (windows.counted != NONE and not 1 <= windows.run <= MAX_COUNT)
    ):
        raise ValueError("the windows of the pattern do not fit together")


def _rules(packed: _Rules) -> TextRules:
    fields = msgspec.structs.asdict(packed)
    for name in ("normalizer", "second_normalizer"):
        if fields[name] is not None:
            fields[name] = Normalizer.from_spec(_specs(fields[name]))
    return TextRules(**fields)


def _specs(packed: Specs) -> Specs:
    """The same with tuples in the place of lists, which MessagePack does not tell apart."""
    return tuple(
        tuple(tuple(setting) if isinstance(setting, list) else setting for setting in step)
        for step in packed
    )


def _all_bytes(owner: Any, *names: str) -> dict[str, Any]:
    """The bytes of the arrays with these names; None where there is none."""
    arrays = {name: getattr(owner, name) for name in names}
    return {name: None if each is None else _bytes_of(each) for name, each in arrays.items()}


def _bytes_of(array: NDArray[Any]) -> memoryview:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return memoryview(little.tobytes())


def _array(data: memoryview, kind: type[np.generic] = np.uint32) -> NDArray[Any]:
    """The numbers of this type, read-only. Raises ValueError if there is part of one."""
    array = np.frombuffer(data, np.dtype(kind).newbyteorder("<")).astype(kind)
    array.flags.writeable = False
    return array


def _array_or_none(
    data: memoryview | None, kind: type[np.generic] = np.uint32
) -> NDArray[Any] | None:
    return None if data is None else _array(data, kind)
