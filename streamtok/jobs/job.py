"""A job of `streamtok encode`: each of its options is defined once, as a field of `EncodeJob`.

The command's parser, the checks, plans and checkpoints are derived from these fields. Signals,
messages and file names are not part of a job.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ..chunker import DEFAULT_MAX_PENDING
from ..errors import PlanError
from ..formats.opening import open_encoding, vocabulary_of
from ..special_tokens import SPECIAL_POLICIES, special_settings
from . import PART_SIZE
from .argument_types import (
    parse_count,
    parse_positive,
    parse_positive_size,
    parse_seconds,
    parse_task,
)
from .documents import DocumentEncoder
from .option_fields import IDS, UNREAD, from_json, in_words, said, said_fields, to_json
from .sinks.by_name import FILE_FORMATS, FILE_SUFFIXES, Family, choose_format
from .sinks.flat import About
from .sinks.format_table import MASKED
from .sources.reading import LiveReading

if TYPE_CHECKING:
    from ..chunker import StreamEncoder
    from ..encoding import Encoding
    from .sources.conversations import Conversations

CHUNK_SIZE = 1 << 19  # bytes to read at a time

_OPEN = 4  # encodings that a process keeps loaded
_ENDS = "ends of documents"
_OUTPUT = "output"
_SPEED = "speed; the ids are the same"
_PARTS = (
    "in parts\nOUTPUT is then a folder with a file for each part, a plan and a manifest.\n"
    "The same command continues a job that was stopped."
)
_RECOVERY = "recovery after a crash"


@dataclass(frozen=True, kw_only=True)
class EncodeJob(LiveReading):
    """The options of `streamtok encode`.

    encoding: a name or a vocabulary file. prepend, append: ids, or names of special tokens, which
    `resolve` replaces with ids. digest: that of the encoding and the chat template, which `resolve`
    sets.
    """

    encoding: str = said("-e --encoding NAME", default="cl100k_base")
    special: str = said("--special HOW", decides=UNREAD, default="refuse")
    max_pending: int = said("--max-pending SIZE", decides=UNREAD, default=DEFAULT_MAX_PENDING)
    digest: str = ""
    prepend: str | int | tuple[int, ...] | None = said(
        "--prepend --bos TOKEN",
        "a special token or id to put before each document",
        decides=IDS,
        group=_ENDS,
    )
    append: str | int | tuple[int, ...] | None = said(
        "--append --eos TOKEN",
        "a special token or id to put after each document",
        decides=IDS,
        group=_ENDS,
    )
    add_special_tokens: bool = said(
        "--add-special-tokens",
        "put the special tokens that the vocabulary file asks for, such as <s>, around each "
        "document",
        default=False,
        group=_ENDS,
    )
    format: str | None = said(
        "--format",
        f"default: by the suffix of the output ({' '.join(FILE_SUFFIXES)}); text for "
        "standard output; for .bin and no suffix u16 if the vocabulary fits, "
        "else u32; text is one id a line",
        decides=IDS,
        group=_OUTPUT,
        choices=FILE_FORMATS,
    )
    chat: str | None = said(
        "--chat FOLDER",
        "render the messages in FIELD of --jsonl with the chat template in this model's folder; "
        "also write which ids are the assistant's, to OUTPUT.mask.npy or as assistant_masks in "
        "JSON lines; -e is FOLDER by default",
        decides=IDS,
        group=_OUTPUT,
    )
    shard_tokens: int | None = said(
        "--shard-tokens N",
        "write files OUTPUT_000000…; each ends with the document that brings it to N ids; "
        "with --force, files left from an earlier, longer run are removed",
        parse_count,
        decides=IDS,
        group=_OUTPUT,
    )
    chunk_size: int = said("--chunk-size SIZE", default=CHUNK_SIZE)
    threads: int | None = said(
        "--threads N",
        "threads that encode; the output is the same (default: 2 if there are 2 cores; 1 for "
        "Parquet, to save memory, and in parts)",
        parse_positive,
        group=_SPEED,
    )
    workers: int | None = said(
        "--workers N",
        "encode in N processes of this machine; the output is the same",
        parse_positive,
        group=_SPEED,
    )
    ray: str | None = said(
        "--ray ADDRESS",
        "encode on a Ray cluster: its address, auto for the cluster running here, or local",
        group=_PARTS,
    )
    task: tuple[int, int] | None = said(
        "--task I/N",
        "only every N-th part, from number I on: the same command with 0/N to (N-1)/N, on "
        "any machines, does the job; the last one to finish writes the manifest",
        parse_task,
        group=_PARTS,
    )
    part_size: int = said(
        "--part-size SIZE",
        f"approximate bytes of an input in a part (default: {PART_SIZE >> 20}MiB)",
        parse_positive_size,
        default=PART_SIZE,
        group=_PARTS,
    )
    resume: bool = said(
        "--resume",
        "keep a checkpoint in OUTPUT.checkpoint, and continue from an existing one",
        default=False,
        group=_RECOVERY,
    )
    checkpoint_every: float = said(
        "--checkpoint-every SECONDS", "default: 5", parse_seconds, default=5.0, group=_RECOVERY
    )

    # Checks

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.special not in SPECIAL_POLICIES:
            known = ", ".join(SPECIAL_POLICIES)
            raise ValueError(f"special must be one of {known}, not {self.special!r}")
        if self.format is not None and self.format not in FILE_FORMATS:
            formats = ", ".join(FILE_FORMATS)
            raise ValueError(f"format must be one of {formats}, not {self.format!r}")
        if self.add_special_tokens and (self.prepend is not None or self.append is not None):
            raise ValueError("give --add-special-tokens, or --prepend and --append, not both")
        if self.chat is not None:
            if self.jsonl is None:
                raise ValueError("--chat needs --jsonl FIELD, which holds lists of messages")
            if self.add_special_tokens:
                raise ValueError("--add-special-tokens and --chat: the template adds them itself")
            if self.errors == "surrogateescape":
                raise ValueError("--chat needs text: give --errors strict or replace")
        if self.is_in_parts:
            for name in ("follow", "resume", "workers", "shard_tokens"):
                if getattr(self, name):
                    more = "; for more cores run more tasks" if name == "workers" else ""
                    option = name.replace("_", "-")
                    raise ValueError(f"--{option} cannot be used with --ray and --task{more}")
        if self.workers is not None:
            for name in ("follow", "threads"):
                if getattr(self, name):
                    raise ValueError(f"--{name} cannot be used with --workers")
        size: object = self.part_size
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"part_size must be a positive number of bytes, not {size!r}")

    @property
    def is_in_parts(self) -> bool:
        """Whether the output is a folder, with a file for each part."""
        return self.ray is not None or self.task is not None

    def resolve(self, loaded: Encoding, output: str) -> EncodeJob:
        """Return the job with format and digest set, and ids in place of special tokens' names.

        loaded: the encoding. output: the file name, whose suffix selects the format if no option
        does. Raises LookupError for an unknown special token, and ValueError if the suffix is
        unknown or the format cannot hold the ids or the masks.
        """
        prepend, append = (special_id(one, loaded) for one in (self.prepend, self.append))
        if self.add_special_tokens:
            prepend, append = (tuple(ids) or None for ids in loaded.definition.template)
        chosen = choose_format(self.format, output, loaded.max_token_value)
        if self.chat is not None and chosen not in MASKED:
            known = ", ".join(MASKED)
            raise ValueError(f"--chat cannot write {chosen}: expected --format with one of {known}")
        return replace(
            self,
            digest=self._digest_of(loaded),
            format=chosen,
            prepend=prepend,
            append=append,
            add_special_tokens=False,
        )

    # Contents of plans and checkpoints

    def as_json(self, *decides: str) -> dict[str, Any]:
        """The values of the options that affect one of `decides`, by the name of the option.

        decides: IDS and UNREAD by default. The digest is always included. With UNREAD, so is the
        name of the encoding, by which other machines load it.
        """
        decides = decides or (IDS, UNREAD)
        row = {one.name: to_json(getattr(self, one.name)) for one, _ in said_fields(self, *decides)}
        named = {"encoding": self.encoding} if UNREAD in decides else {}
        return {**named, "digest": self.digest, **row}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> EncodeJob:
        """Rebuild a job from the result of `as_json`.

        Raises KeyError, TypeError or ValueError if an option is missing or has a wrong value.
        """
        known = {one.name: one for one in fields(cls)}
        names = ["encoding", "digest", *(one.name for one, _ in said_fields(cls, IDS, UNREAD))]
        return cls(**{name: from_json(known[name], row[name]) for name in names})

    def difference(self, saved: Mapping[str, Any]) -> tuple[str, str] | None:
        """Describe the first option that affects the ids and whose saved value differs, if any.

        The result is (then, now): the saved value and ours, in words.
        """
        for one, option in said_fields(self, IDS):
            before, now = saved.get(one.name), to_json(getattr(self, one.name))
            if before != now:
                return in_words(option.flag, before), in_words(option.flag, now)
        if saved.get("digest") != self.digest:
            then, now = (str(one)[:16] for one in (saved.get("digest"), self.digest))
            flags = "--encoding" if self.chat is None else "--encoding and --chat"
            return in_words(flags, then), in_words(flags, now)
        return None

    # Objects that the options describe

    @property
    def chosen(self) -> str:
        """The format of a resolved job."""
        assert self.format is not None
        return self.format

    def family(self, loaded: Encoding, digest: str | None = None) -> Family:
        """The files of the output. digest: of the plan's part, if there is one."""
        about = About(
            loaded.name,
            loaded.digest,
            loaded.max_token_value,
            vocabulary_of(self.encoding),
            digest,
        )
        return Family(self.chosen, about, self.chat is not None)

    def open_encoding(self) -> Encoding:
        """Return the encoding, loaded once per process.

        Raises PlanError if it or the chat template has changed since `digest` was set.
        """
        found = _opened(self.encoding)
        digest = self._digest_of(found)
        if self.digest and digest != self.digest:
            what = "" if self.chat is None else f" or the chat template of {self.chat!r}"
            raise PlanError(
                f"the encoding {self.encoding!r}{what} is different here: its digest is "
                f"{digest[:16]}…, but {self.digest[:16]}… in the plan"
            )
        return found

    def _digest_of(self, loaded: Encoding) -> str:
        """The digest of the encoding, and of the chat template if there is one."""
        if self.chat is None:
            return loaded.digest
        both = f"{loaded.digest} {_opened_chat(self.chat, loaded).digest}"
        return hashlib.sha256(both.encode()).hexdigest()

    def open_conversations(self, loaded: Encoding) -> Conversations | None:
        """Return the chat template, loaded once per process; None if documents are texts."""
        return None if self.chat is None else _opened_chat(self.chat, loaded)

    def open_stream(self, loaded: Encoding) -> StreamEncoder:
        return loaded.stream_encoder(
            **special_settings(self.special),
            errors=self.errors,
            max_pending=self.max_pending,
        )

    def open_encoder(self, loaded: Encoding, num_threads: int = 1) -> DocumentEncoder:
        assert not isinstance(self.prepend, str)
        assert not isinstance(self.append, str)
        return DocumentEncoder(
            self.open_stream(loaded),
            prepend=self.prepend,
            append=self.append,
            skip_empty=self.skip_empty,
            num_threads=num_threads,
            conversations=self.open_conversations(loaded),
        )


@functools.lru_cache(_OPEN)
def _opened(name: str) -> Encoding:
    return open_encoding(name)


@functools.lru_cache(_OPEN)
def _opened_chat(folder: str, loaded: Encoding) -> Conversations:
    from .sources.conversations import Conversations  # needs jinja2, which is optional

    return Conversations(folder, loaded)


def special_id(
    name: str | int | tuple[int, ...] | None, loaded: Encoding
) -> int | tuple[int, ...] | None:
    """Convert the name of a special token or a decimal id to an id; return other values unchanged.

    Raises LookupError if the name is neither.
    """
    if not isinstance(name, str):
        return name
    if name in loaded.special_tokens_set:
        return loaded.encode_single_token(name)
    if re.fullmatch(r"[0-9]{1,18}", name):
        with contextlib.suppress(KeyError, OverflowError):
            loaded.decode_single_token_bytes(int(name))
            return int(name)
    known = sorted(loaded.special_tokens_set)
    more = f" and {len(known) - 8} more" if len(known) > 8 else ""
    listed = f": its special tokens are {', '.join(known[:8])}{more}"
    raise LookupError(
        f"{name!r} is neither a special token nor an id of {loaded.name}"
        f"{listed if known else ', which has no special tokens'}"
    )
