"""The packed form of an encoding, `.streamtok`: all of it in one file, which loads in no time.

Nothing in it is computed again: the tokens with the parts that they are made of, and the tables of
the pattern, are arrays as the core reads them. It takes reading them and making the hash tables:
milliseconds where a tokenizer.json of the same encoding takes hundreds. A file holds no code.

A file is an uncompressed `.npz` archive, as `numpy.load` reads it: the arrays of `Vocabulary`,
`Pattern` and, for models that are not merges, `Pieces`. One more member is JSON, `about.json`:
name, special tokens, text rules, template, pattern, settings. The archive has a CRC-32 of each
member, so damage is found out. A file that was made to deceive can give wrong ids, but all that
memory safety depends on is checked.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

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
from .loading import make_encoding, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..encoding import Encoding
    from .loading import Path

__all__ = [
    "PACKED_MAGIC",
    "dumps_packed",
    "join_members",
    "loads_packed",
    "members_of",
    "save_packed",
]

PACKED_MAGIC = b"PK\3\4"  # of any archive
_ABOUT = "about.json"
_FORM = 1
_MAX_MEMBERS = 64
_VOCABULARY_ARRAYS = ("lefts", "byte_ids", "ties")  # of Vocabulary; any may be missing
_PIECE_ARRAYS = ("offsets", "ids", "scores", "byte_ids")  # of Pieces; the last two may be missing
_TYPES = {
    **dict.fromkeys(("tokens", "decode_tokens", "pieces", "windows"), np.uint8),
    **dict(zip(Tables._fields, (np.uint16, np.uint8, np.uint16, np.uint8), strict=True)),
    "piece_scores": np.float64,
}  # of the arrays that are not uint32
_WINDOWS_SIZE = 900


def save_packed(encoding: Encoding, path: Path) -> None:
    """Write a packed file. It appears when it is complete. Raises OSError."""
    write_whole(path, dumps_packed(encoding))


def dumps_packed(encoding: Encoding) -> bytes:
    """The contents of a packed file."""
    vocabulary = encoding.definition.vocabulary
    pattern = encoding.pattern
    model = vocabulary.model
    decode_only = sorted(vocabulary.decode_only.items())
    texts = [text for _, text in decode_only]
    lefts, rights = encoding.definition.table.parts()
    arrays: dict[str, Any] = {
        "tokens": _bytes_of(vocabulary.tokens),
        "offsets": vocabulary.offsets,
        "ids": vocabulary.ids,
        "decode_ids": [number for number, _ in decode_only],
        "decode_offsets": np.cumsum([0, *map(len, texts)], dtype=np.uint32),
        "decode_tokens": _bytes_of(b"".join(texts)),
        **{name: getattr(vocabulary, name) for name in _VOCABULARY_ARRAYS},
        "left_parts": lefts,
        "right_parts": rights,
    }
    if pattern is not None:
        arrays |= {name: getattr(pattern, name) for name in Tables._fields}
        if pattern.windows is not None:
            arrays["windows"] = _bytes_of(pattern.windows.to_bytes())
    about: dict[str, Any] = {
        "form": _FORM,
        "name": encoding.name,
        "special_tokens": list(encoding.definition.specials.special.items()),
        "pattern": encoding.definition.pat_str,
        "is_total": None if pattern is None else pattern.is_total,
        "sequence": list(pattern.__reduce__()[1]) if isinstance(pattern, SplitSequence) else None,
        "rules": {
            name: _as_json(value)
            for name, value in encoding.definition.rules._asdict().items()
            if value != encoding.definition.rules._field_defaults[name]
        },
        "template": encoding.definition.template,
        "model_settings": encoding.definition.model_settings,
        "model": None,
    }
    if model is not None:
        arrays["pieces"] = _bytes_of(model.blob)
        arrays |= {f"piece_{name}": getattr(model, name) for name in _PIECE_ARRAYS}
        about["model"] = [
            model.kind, model.unknown, model.prefix, model.most_characters, _as_json(model.stages),
        ]  # fmt: skip
    return join_members(
        {_ABOUT: json.dumps(about).encode()}
        | {
            f"{name}.npy": _npy(np.asarray(array, _little(name)))
            for name, array in arrays.items()
            if array is not None
        }
    )


def join_members(members: dict[str, bytes]) -> bytes:
    """The archive of these members."""
    contents = io.BytesIO()
    with zipfile.ZipFile(contents, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # of no date
    return contents.getvalue()


def loads_packed(data: bytes, source: str = "<bytes>", name: str | None = None) -> Encoding:
    """The encoding in the contents of a packed file; name: in place of the name that it had.

    Raises VocabularyError for damage and for another form, which names `source`.
    """
    file = _Packed(data, source)
    try:
        about = json.loads(file.member(_ABOUT))
        if about["form"] != _FORM:
            raise VocabularyError(
                f"{source} has form {shown(about['form'])} of packed encodings, expected {_FORM}: "
                "convert the original again"
            )
        made = make_encoding(
            source,
            name or str(about["name"]),
            pat_str=_pattern(file, about),
            mergeable_ranks=_vocabulary(file, _pieces(file, about["model"])),
            special_tokens={str(text): int(number) for text, number in about["special_tokens"]},
            rules=_rules(source, about["rules"]),
            template=_template(about["template"]),
        )
        made.definition.model_settings = _model_settings(about["model_settings"])
        return made
    except VocabularyError:
        raise
    except RecursionError:
        raise file.damage(_ABOUT, "nested too deep") from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, PatternError) as error:
        raise file.damage(_ABOUT, shown(str(error))) from None


def members_of(data: bytes, source: str = "<bytes>") -> dict[str, bytes]:
    """The members of an archive, by name, each checked. Raises VocabularyError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = archive.infolist()
            sizes = sum(one.file_size for one in found)
            if len(found) > _MAX_MEMBERS or sizes > len(data):
                raise VocabularyError(
                    f"{source} is damaged: {len(found)} members with {sizes} bytes in {len(data)}"
                )
            if any(one.compress_type != zipfile.ZIP_STORED for one in found):
                raise VocabularyError(f"{source} is not a packed encoding: a member is compressed")
            return {one.filename: archive.read(one) for one in found}
    except VocabularyError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise VocabularyError(
            f"{source} is not a packed encoding, or is damaged: {shown(str(error))}"
        ) from None


class _Packed:
    """The members of a file, with the arrays that they are."""

    def __init__(self, contents: bytes, source: str) -> None:
        self.source = source
        self.members = members_of(contents, source)

    def damage(self, name: str, what: str) -> VocabularyError:
        """The error for a member."""
        return VocabularyError(f"{self.source} is damaged: the member {name!r}: {what}")

    def member(self, name: str) -> bytes:
        """The bytes of a member."""
        if name not in self.members:
            raise self.damage(name, "it is missing")
        return self.members[name]

    def array(self, name: str) -> NDArray[Any]:
        """The array in a member, read-only. Tables of a pattern have two axes, or one."""
        member = f"{name}.npy"
        file = io.BytesIO(self.member(member))
        reader: Any = npy  # has types from NumPy 2.4 on only
        try:
            if reader.read_magic(file) != (1, 0):
                raise ValueError("an array is written in version 1.0")
            shape, _, dtype = reader.read_array_header_1_0(file)
            if dtype != _little(name):
                raise ValueError(f"expected {_little(name)}, found {dtype}")
            array = np.frombuffer(file.getbuffer(), dtype, offset=file.tell()).reshape(shape)
        except Exception as error:  # NumPy's are of many kinds, for a header that is none
            raise self.damage(member, str(error)[:200]) from None
        if array.ndim != 1 and name not in Tables._fields:
            raise self.damage(member, f"expected one axis, found {array.ndim}")
        array.flags.writeable = False
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def array_or_none(self, name: str) -> NDArray[Any] | None:
        """The same, None if there is no such member."""
        return self.array(name) if f"{name}.npy" in self.members else None


def _pieces(file: _Packed, about: Any) -> Pieces | None:
    if about is None:
        return None
    kind, unknown, prefix, most_characters, stages = about
    arrays: dict[str, Any] = {name: file.array_or_none(f"piece_{name}") for name in _PIECE_ARRAYS}
    blob = file.array("pieces").tobytes()
    try:
        return Pieces(
            kind, blob, prefix=prefix,
            unknown=unknown if unknown == NO_ID else _checked_id(unknown),
            most_characters=most_characters, stages=_from_json(stages), **arrays,
        )  # fmt: skip
    except (ValueError, OverflowError) as error:
        raise file.damage("pieces.npy", str(error)) from None


def _vocabulary(file: _Packed, model: Pieces | None) -> Vocabulary:
    texts, bounds = file.array("decode_tokens").tobytes(), file.array("decode_offsets")
    numbers = file.array("decode_ids")
    rising = len(bounds) == len(numbers) + 1 and bounds[0] == 0 and bounds[-1] == len(texts)
    if not rising or (bounds[1:] < bounds[:-1]).any():
        raise file.damage("decode_offsets.npy", "they do not fit the tokens that only decode")
    ends = bounds.tolist()
    decode_only = {
        number: texts[ends[i] : ends[i + 1]] for i, number in enumerate(numbers.tolist())
    }
    tokens, offsets, ids, *parts = map(
        file.array, ("tokens", "offsets", "ids", "left_parts", "right_parts")
    )
    more: dict[str, Any] = {name: file.array_or_none(name) for name in _VOCABULARY_ARRAYS}
    try:
        return Vocabulary(
            tokens.tobytes(), offsets, ids,
            decode_only=decode_only, parts=(parts[0], parts[1]), model=model, **more,
        )  # fmt: skip
    except ValueError as error:
        raise file.damage("tokens.npy", str(error)) from None


def _pattern(file: _Packed, about: dict[str, Any]) -> str | Pattern:
    source = str(about["pattern"])
    if "transitions.npy" not in file.members:
        return source
    tables = Tables(*map(file.array, Tables._fields))
    try:
        _check_tables(tables)
    except ValueError as error:
        raise file.damage("transitions.npy", str(error)) from None
    if about["sequence"] is None:
        pattern = Pattern(source, tables)
    else:  # what `rebuilt_sequence` takes
        splits, spaces_are_marks = _as_tuples(about["sequence"])
        pattern = SplitSequence(splits, bool(spaces_are_marks), tables)
    windows = None
    if "windows.npy" in file.members:
        data = file.array("windows").tobytes()
        if len(data) != _WINDOWS_SIZE:
            raise file.damage("windows.npy", f"{len(data)} bytes instead of {_WINDOWS_SIZE}")
        windows = Windows.from_bytes(data)
        _check_windows(windows)
    pattern.__dict__ |= {"windows": windows, "is_total": bool(about["is_total"])}
    return pattern


def _check_tables(tables: Tables) -> None:
    """Raise ValueError for numbers that lead out of the tables."""
    n_states, n_classes = tables.transitions.shape
    if (
        n_states < 2
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
    except VocabularyError as error:  # of a newer version; other errors are damage
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


def _bytes_of(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _npy(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(array), allow_pickle=False)
    return file.getvalue()


def _little(name: str) -> np.dtype[Any]:
    """What the numbers of this array are."""
    return np.dtype(_TYPES.get(name, np.uint32)).newbyteorder("<")
