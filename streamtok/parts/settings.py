"""What the parts of a job have in common: the encoding and the options of `streamtok encode`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ..chunker import DEFAULT_MAX_PENDING
from ..errors import PlanError
from ..formats.opening import open_encoding, vocabulary_of
from ..pipeline import sinks
from ..pipeline.documents import DocumentEncoder
from ..pipeline.sources import Reading
from ..registry import get_encoding, list_encoding_names
from ..special_tokens import SPECIAL_POLICIES, special_settings
from .bounds import FindCut, clean_cuts, cuts_behind

if TYPE_CHECKING:
    from ..chunker import StreamEncoder
    from ..encoding import Encoding


_OPEN = 4  # encodings that a process keeps


@dataclass(frozen=True)
class Settings:
    """The options of a plan; the names and meanings are those of `streamtok encode`.

    encoding: a name or a vocabulary file; digest: of that encoding. prepend, append: ids. A plan
    takes add_special_tokens, too: these two become what the vocabulary's file asks for. lines,
    delimiter (bytes), jsonl (a field), parquet (a column): how an input is split into documents;
    none of them: each input is one document. Those in POLICY decide only about text that has not
    been read: they may change while the job goes on.
    """

    encoding: str
    digest: str
    format: str
    part_size: int
    special: str = "refuse"
    errors: str = "strict"
    max_pending: int = DEFAULT_MAX_PENDING
    prepend: int | tuple[int, ...] | None = None
    append: int | tuple[int, ...] | None = None
    lines: bool = False
    delimiter: bytes | None = None
    jsonl: str | None = None
    parquet: str | None = None
    skip_empty: bool = False
    skip_bad_lines: bool = False
    max_bad_lines: int | None = None
    strip_bom: bool = False
    unpack: bool = True
    sidecar: bool = True
    shard_tokens: int | None = None
    shard_exactly: bool = False

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """The names of the options that have defaults."""
        return tuple(one.name for one in fields(cls))[4:]

    @classmethod
    def make(
        cls,
        encoding: str | Encoding,
        format: str | None,
        part_size: int,
        options: Mapping[str, Any],
    ) -> tuple[Settings, Encoding]:
        """Check the options. Returns the settings and the encoding. Raises as `plan`."""
        known = (*cls.options(), "add_special_tokens")
        if unknown := sorted(options.keys() - set(known)):
            raise TypeError(
                f"{unknown[0]!r} is not an option of a plan: expected one of {', '.join(known)}"
            )
        if format is not None and format not in sinks.FILE_FORMATS:
            formats = ", ".join(sinks.FILE_FORMATS)
            raise ValueError(f"format must be one of {formats}, not {format!r}")
        name, loaded = _named(encoding)
        chosen = sinks.choose_format(format, "", loaded.max_token_value)
        made = cls.of(name, loaded, chosen, options, part_size)
        made.open_encoder(loaded).release()  # raises for options that no stream accepts
        return made, loaded

    @classmethod
    def of(
        cls,
        name: str,
        loaded: Encoding,
        chosen: str,
        options: Mapping[str, Any],
        part_size: int = 0,
    ) -> Settings:
        """The settings of a run that makes files in a format. name: of the encoding.

        part_size: 0 if it has no parts. Raises ValueError for options that do not go together.
        """
        values = dict(options)
        if values.pop("add_special_tokens", False):
            if values.get("prepend") is not None or values.get("append") is not None:
                raise ValueError("give add_special_tokens, or prepend and append, not both")
            values["prepend"], values["append"] = (tuple(ids) or None for ids in loaded._template)
        made = cls(name, loaded.digest, chosen, part_size, **values)
        if made.special not in SPECIAL_POLICIES:
            known = ", ".join(SPECIAL_POLICIES)
            raise ValueError(f"special must be one of {known}, not {made.special!r}")
        kinds = ("lines", "delimiter", "jsonl", "parquet")
        if sum(getattr(made, kind) not in (None, False) for kind in kinds) > 1:
            raise ValueError("only one of lines, delimiter, jsonl and parquet can be given")
        if made.shard_exactly and (
            made.shard_tokens is None or sinks.TABLE[chosen].keeps_documents
        ):
            raise ValueError(
                "shard_exactly needs shard_tokens, and a format that does not keep documents whole"
            )
        if made.delimiter == b"":
            raise ValueError("delimiter must have at least one byte")
        return made

    def as_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        row = asdict(self)
        row["delimiter"] = None if self.delimiter is None else self.delimiter.decode("latin-1")
        return {key: list(v) if isinstance(v, tuple) else v for key, v in row.items()}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Settings:
        """The settings of `as_json`. Raises KeyError, TypeError."""
        values = {one.name: row[one.name] for one in fields(cls)}
        values = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        made = cls(**values)
        if isinstance(made.delimiter, str):
            made = replace(made, delimiter=made.delimiter.encode("latin-1"))
        return made

    # What they mean

    @property
    def reading(self) -> Reading:
        """How the inputs are read."""
        return Reading.of(self)

    def can_cut(self, encoding: Encoding) -> bool:
        """Whether the text of an input can be cut into parts.

        Inside a document only if the output does not record documents, and where the encoding has
        clean cuts.
        """
        if self.reading.is_split:
            return self.reading.can_cut
        return encoding._cuts is not None and not sinks.TABLE[self.format].keeps_documents

    def find_cut(self, encoding: Encoding) -> FindCut:
        """Where the text of an input may be cut, if `can_cut`."""
        end = self.reading.end
        if end is not None:
            return cuts_behind(end)
        return clean_cuts(self.open_stream(encoding))

    def family(self, encoding: Encoding, job: str | None = None) -> sinks.Family:
        """The files of a part. job: of the plan."""
        vocabulary = vocabulary_of(self.encoding)
        about = sinks.About(
            encoding.name, encoding.digest, encoding.max_token_value, vocabulary, job
        )
        return sinks.Family(self.format, about, self.sidecar)

    def open_encoding(self) -> Encoding:
        """The encoding, loaded once in a process. Raises PlanError if it is another one here."""
        found = _opened(self.encoding)
        if found.digest != self.digest:
            raise PlanError(
                f"the encoding {self.encoding!r} is another one here: its digest is "
                f"{found.digest[:16]}…, in the plan {self.digest[:16]}…"
            )
        return found

    def open_stream(self, encoding: Encoding) -> StreamEncoder:
        """A stream with these settings."""
        return encoding.stream_encoder(
            **special_settings(self.special),
            errors=self.errors,
            max_pending=self.max_pending,
        )

    def open_encoder(self, encoding: Encoding, num_threads: int = 1) -> DocumentEncoder:
        """An encoder of documents with these settings."""
        return DocumentEncoder(
            self.open_stream(encoding),
            prepend=self.prepend,
            append=self.append,
            skip_empty=self.skip_empty,
            num_threads=num_threads,
        )


@functools.lru_cache(_OPEN)
def _opened(name: str) -> Encoding:
    return open_encoding(name)


def _named(encoding: str | Encoding) -> tuple[str, Encoding]:
    """(name, encoding): the name is what other processes can open."""
    if isinstance(encoding, str):
        return encoding, open_encoding(encoding)
    if same_encoding(encoding.name, encoding):
        return encoding.name, encoding
    raise PlanError(
        f"other machines cannot make {encoding!r} from its name: save it to a file, "
        "and give the path of that file as the encoding"
    )


def same_encoding(name: str, encoding: Encoding) -> bool:
    """Whether `name` is that of a bundled encoding with the same ids."""
    return name in list_encoding_names() and get_encoding(name).digest == encoding.digest
