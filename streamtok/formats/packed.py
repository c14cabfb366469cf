"""The packed form of an encoding, `.streamtok`: all of it in one file, which loads in no time.

Nothing in it is computed again: the tokens with the parts that they are made of, and the tables of
the pattern, are arrays as the core reads them. It takes reading them and making the hash tables:
milliseconds where a tokenizer.json of the same encoding takes a hundred. There is no code in it.

A file is a header, a table of sections, and the sections, each at a multiple of 64 bytes. All
numbers are little-endian.

    header   8 bytes "stokenc\\0", uint32 version, uint32 number of sections, uint64 size of the
             file, uint32 CRC-32 of the table
    table    for each section: its name in 16 bytes, uint64 offset, uint64 size, uint32 CRC-32

The section `about` is JSON: name, special tokens, text rules, template, pattern, settings. The
others are the arrays of `Vocabulary` and `Pattern`, and for models that are not merges, in files of
version 4, those of `Pieces`. Every CRC is checked, so a damaged file is found out. A file
that was made to deceive can give wrong ids, but all that memory safety depends on is checked.
"""

from __future__ import annotations

import binascii
import json
import os
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engines.model_settings import NO_SETTINGS, ModelSettings
from ..engines.rules import TextRules, TokenFlags
from ..engines.template import Template
from ..errors import PatternError, VocabularyError
from ..files.part_file import write_whole
from ..models.pieces import Pieces
from ..normalizers import Normalizer
from ..patterns.pattern import Pattern
from ..patterns.sequence import SplitSequence
from ..patterns.tables import CODE_POINTS_PER_BLOCK, MAX_WINDOW_CLASSES, Tables, Windows
from ..patterns.windows import MAX_COUNT, MAX_REACH, NONE, UNDECIDED
from ..vocabulary.table import MAX_ID, NO_ID, Vocabulary
from .loading import make_encoding, read_bytes, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..encoding import Encoding
    from .loading import Path

__all__ = [
    "PACKED_MAGIC",
    "PACKED_VERSION",
    "dumps_packed",
    "join_sections",
    "load_packed",
    "loads_packed",
    "save_packed",
    "sections_of",
]

PACKED_MAGIC = b"stokenc\0"
PACKED_VERSION = 2
_VERSION_WITH_PIECES = 4
_HEADER = struct.Struct("<8sIIQI4x")
_SECTION = struct.Struct("<16sQQI4x")
_ALIGNMENT = 64
_MAX_SECTIONS = 64
_VOCABULARY_ARRAYS = ("lefts", "byte_ids", "ties")  # of Vocabulary; any may be missing
_PIECE_ARRAYS = (
    ("offsets", np.uint32),
    ("ids", np.uint32),
    ("scores", np.float64),
    ("byte_ids", np.uint32),
)  # of Pieces; the last two may be missing
_WINDOWS_SIZE = 900


def save_packed(encoding: Encoding, path: Path) -> None:
    """Write a packed file. It appears when it is complete. Raises OSError."""
    write_whole(path, dumps_packed(encoding))


def dumps_packed(encoding: Encoding) -> bytes:
    """The contents of a packed file."""
    vocabulary = encoding._vocabulary
    pattern = encoding.pattern
    decode_only = sorted(vocabulary.decode_only.items())
    texts = [text for _, text in decode_only]
    sections = {
        "tokens": vocabulary.tokens,
        "offsets": _little(vocabulary.offsets),
        "ids": _little(vocabulary.ids),
        "decode_ids": _little(np.array([number for number, _ in decode_only], np.uint32)),
        "decode_offsets": _little(np.cumsum([0, *map(len, texts)], dtype=np.uint32)),
        "decode_tokens": b"".join(texts),
    }
    for name in _VOCABULARY_ARRAYS:
        array = getattr(vocabulary, name)
        if array is not None:
            sections[name] = _little(array)
    lefts, rights = encoding._table.parts()
    sections |= {"left_parts": _little(lefts), "right_parts": _little(rights)}
    if pattern is not None:
        for name, array in zip(Tables._fields, _tables_of(pattern), strict=True):
            sections[name] = _little(array)
        if pattern.windows is not None:
            sections["windows"] = pattern.windows.to_bytes()
    model = vocabulary.model
    if model is not None:
        sections["pieces"] = model.blob
        for name, _ in _PIECE_ARRAYS:
            array = getattr(model, name)
            if array is not None:
                sections[f"piece_{name}"] = _little(array)
    about = {
        "name": encoding.name,
        "special_tokens": list(encoding._special_tokens.items()),
        "pattern": encoding._pat_str,
        "is_total": None if pattern is None else pattern.is_total,
        "sequence": list(pattern.__reduce__()[1]) if isinstance(pattern, SplitSequence) else None,
        "states": 0 if pattern is None else pattern.n_states,
        "rules": {
            name: _as_json(value)
            for name, value in encoding._rules._asdict().items()
            if value != encoding._rules._field_defaults[name]
        },
        "template": encoding._template,
        "model_settings": encoding._model_settings,
    }
    version = PACKED_VERSION
    if model is not None:
        about["model"] = [
            model.kind, model.unknown, model.prefix, model.most_characters,
            _as_json(model.stages),
        ]  # fmt: skip
        version = _VERSION_WITH_PIECES
    return join_sections({"about": json.dumps(about).encode(), **sections}, version)


def join_sections(sections: dict[str, bytes], version: int = PACKED_VERSION) -> bytes:
    """The file of these sections."""
    at = _HEADER.size + _SECTION.size * len(sections)
    table, body = b"", []
    for name, data in sections.items():
        gap = -at % _ALIGNMENT
        table += _SECTION.pack(name.encode(), at + gap, len(data), binascii.crc32(data))
        body += [bytes(gap), data]
        at += gap + len(data)
    crc = binascii.crc32(table)
    header = _HEADER.pack(PACKED_MAGIC, version, len(sections), at, crc)
    return header + table + b"".join(body)


def load_packed(path: Path, *, name: str | None = None) -> Encoding:
    """The encoding in a packed file; name: in place of the name that it had.

    Raises OSError, and VocabularyError for damage and for another version of the form.
    """
    return loads_packed(read_bytes(path), os.fspath(path), name)


def loads_packed(data: bytes, source: str = "<bytes>", name: str | None = None) -> Encoding:
    """The encoding in the contents of a packed file. Errors name `source`."""
    file = _Sections(data, source)
    try:
        about = json.loads(file.data("about"))
        made = make_encoding(
            source,
            name or str(about["name"]),
            pat_str=_pattern(file, about),
            mergeable_ranks=_vocabulary(file, _pieces(file, about.get("model"))),
            special_tokens={str(text): int(number) for text, number in about["special_tokens"]},
            rules=_rules(source, about["rules"]),
            template=_template(about.get("template", [[], []])),
        )
        made._model_settings = _model_settings(about.get("model_settings", NO_SETTINGS))
        return made
    except VocabularyError:
        raise
    except RecursionError:
        raise file.damage("about", "nested too deep") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, PatternError) as error:
        raise file.damage("about", shown(str(error))) from None


def sections_of(data: bytes, source: str = "<bytes>") -> dict[str, bytes]:
    """The sections of a file, each checked."""
    file = _Sections(data, source)
    return {name: file.data(name) for name in file.places}


class _Place(NamedTuple):
    offset: int
    size: int
    crc: int


class _Sections:
    """The sections of a file, each checked when it is read."""

    def __init__(self, contents: bytes, source: str) -> None:
        self.contents = memoryview(contents)
        self.source = source
        self.places: dict[str, _Place] = {}
        if len(contents) < _HEADER.size or contents[: len(PACKED_MAGIC)] != PACKED_MAGIC:
            raise VocabularyError(f"{source} is not a packed encoding, or is cut short")
        _, version, count, size, crc = _HEADER.unpack_from(contents)
        if version not in (PACKED_VERSION, _VERSION_WITH_PIECES):
            raise VocabularyError(
                f"{source} has version {version} of the packed form, expected {PACKED_VERSION} or "
                f"{_VERSION_WITH_PIECES}: convert the original again"
            )
        if size != len(contents):
            raise VocabularyError(f"{source} is damaged: {len(contents)} bytes instead of {size}")
        end = _HEADER.size + count * _SECTION.size
        if count > _MAX_SECTIONS or end > size:
            raise VocabularyError(f"{source} is damaged: it has {count} sections")
        if binascii.crc32(self.contents[_HEADER.size : end]) != crc:
            raise VocabularyError(f"{source} is damaged: the checksum of its table is wrong")
        for at in range(_HEADER.size, end, _SECTION.size):
            name, *place = _SECTION.unpack_from(contents, at)
            self.places[name.rstrip(b"\0").decode("ascii", "replace")] = _Place(*place)

    def damage(self, name: str, what: str) -> VocabularyError:
        """The error for a section."""
        return VocabularyError(f"{self.source} is damaged: the section {name!r}: {what}")

    def data(self, name: str) -> bytes:
        """The bytes of a section."""
        if name not in self.places:
            raise self.damage(name, "it is missing")
        place = self.places[name]
        if place.offset + place.size > len(self.contents):
            raise self.damage(name, "it ends after the end of the file")
        data = self.contents[place.offset : place.offset + place.size]
        if binascii.crc32(data) != place.crc:
            raise self.damage(name, "its checksum is wrong")
        return data.tobytes()

    def array(self, name: str, dtype: Any = np.uint32) -> NDArray[Any]:
        """The numbers in a section, read-only."""
        data = self.data(name)
        little = np.dtype(dtype).newbyteorder("<")
        if len(data) % little.itemsize:
            raise self.damage(name, f"{len(data)} bytes are not a whole number of {little}")
        array = np.frombuffer(data, little).astype(dtype)
        array.flags.writeable = False
        return array

    def array_or_none(self, name: str) -> NDArray[np.uint32] | None:
        """The same, None if there is no such section."""
        return self.array(name) if name in self.places else None


def _pieces(file: _Sections, about: Any) -> Pieces | None:
    if about is None:
        return None
    kind, unknown, prefix, most_characters, stages = about
    arrays = {
        name: file.array(f"piece_{name}", dtype)
        for name, dtype in _PIECE_ARRAYS
        if f"piece_{name}" in file.places
    }
    try:
        return Pieces(
            kind, file.data("pieces"), prefix=prefix,
            unknown=unknown if unknown == NO_ID else _checked_id(unknown),
            most_characters=most_characters, stages=_from_json(stages), **arrays,
        )  # fmt: skip
    except (ValueError, OverflowError) as error:
        raise file.damage("pieces", str(error)) from None


def _vocabulary(file: _Sections, model: Pieces | None) -> Vocabulary:
    texts, bounds = file.data("decode_tokens"), file.array("decode_offsets")
    numbers = file.array("decode_ids")
    rising = len(bounds) == len(numbers) + 1 and bounds[0] == 0 and bounds[-1] == len(texts)
    if not rising or (bounds[1:] < bounds[:-1]).any():
        raise file.damage("decode_offsets", "they do not fit the tokens that only decode")
    ends = bounds.tolist()
    decode_only = {
        number: texts[ends[i] : ends[i + 1]] for i, number in enumerate(numbers.tolist())
    }
    try:
        return Vocabulary(
            file.data("tokens"),
            file.array("offsets"),
            file.array("ids"),
            lefts=file.array_or_none("lefts"),
            byte_ids=file.array_or_none("byte_ids"),
            ties=file.array_or_none("ties"),
            decode_only=decode_only,
            parts=(file.array("left_parts"), file.array("right_parts")),
            model=model,
        )
    except ValueError as error:
        raise file.damage("tokens", str(error)) from None


def _pattern(file: _Sections, about: dict[str, Any]) -> str | Pattern:
    source = str(about["pattern"])
    if "transitions" not in file.places:
        return source
    n_states = int(about["states"])
    dtypes = (np.uint16, np.uint8, np.uint16, np.uint8)
    transitions, accepts, pages, blocks = (
        file.array(name, dtype) for name, dtype in zip(Tables._fields, dtypes, strict=True)
    )
    try:
        tables = Tables(
            transitions.reshape(n_states, -1),
            accepts.reshape(n_states, -1),
            pages,
            blocks.reshape(-1, CODE_POINTS_PER_BLOCK),
        )
        _check_tables(tables)
    except ValueError as error:
        raise file.damage("transitions", str(error)) from None
    if about["sequence"] is None:
        pattern = Pattern(source, tables)
    else:  # what `rebuilt_sequence` takes
        splits, *settings = _as_tuples(about["sequence"])
        pattern = SplitSequence(splits, bool(settings and settings[0]), tables)
    windows = None
    if "windows" in file.places:
        data = file.data("windows")
        if len(data) != _WINDOWS_SIZE:
            raise file.damage("windows", f"{len(data)} bytes instead of {_WINDOWS_SIZE}")
        windows = Windows.from_bytes(data)
        _check_windows(windows)
    pattern.__dict__ |= {"windows": windows, "is_total": bool(about["is_total"])}
    return pattern


def _tables_of(pattern: Pattern) -> Tables:
    return Tables(*(getattr(pattern, name) for name in Tables._fields))


def _check_tables(tables: Tables) -> None:
    """Raise ValueError for numbers that lead out of the tables."""
    n_states, n_classes = tables.transitions.shape
    if (
        n_states < 2
        or n_classes < 1
        or tables.accepts.shape != (n_states, n_classes + 1)
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


def _checked_id(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= MAX_ID:
        raise ValueError(f"an id must be in 0 … {MAX_ID}, not {shown(number)}")
    return number


def _template(value: Any) -> Template:
    before, after = (tuple(_checked_id(number) for number in part) for part in value)
    return Template(before, after)


def _model_settings(value: Any) -> ModelSettings:
    eos, truncation, padding = value
    for field in (truncation, padding):
        if field is not None and not isinstance(field, dict):
            raise ValueError(f"expected an object, found {shown(field)}")
    return ModelSettings(tuple(map(_checked_id, eos)), truncation, padding)


def _rules(source: str, fields: dict[str, Any]) -> TextRules:
    if unknown := fields.keys() - set(TextRules._fields):
        what = f"the text rule {shown(min(unknown))} is not known: update streamtok"
        raise VocabularyError(f"{source}: {what}")
    try:
        return TextRules(**{name: _from_json(value) for name, value in fields.items()})
    except VocabularyError as error:
        raise VocabularyError(f"{source}: {error}") from None


def _as_json(value: Any) -> Any:
    """What `_from_json` makes the same value of: of tuples, names, numbers, bytes, normalizers."""
    if isinstance(value, TokenFlags):
        return {"flags": value._asdict()}
    if isinstance(value, Normalizer):
        return {"normalizer": _as_json(value.spec)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, tuple):
        return [_as_json(part) for part in value]
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"a packed encoding cannot hold {shown(value)} in its text rules")


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        plain = str, int  # most parts, of thousands of added tokens
        return tuple([part if type(part) in plain else _from_json(part) for part in value])
    if isinstance(value, dict):
        ((kind, inner),) = value.items()
        if kind == "flags":
            return TokenFlags(**inner)
        if kind == "normalizer":
            return Normalizer.from_spec(_from_json(inner))
        if kind == "bytes":
            return bytes.fromhex(inner)
        raise ValueError(f"unknown kind of value {shown(kind)}")
    return value


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _little(array: Any) -> bytes:
    """The bytes of an array's numbers."""
    little: bytes = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return little
