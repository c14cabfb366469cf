"""What `split` and `truncate` share: a budget, a text in blocks, errors with their place."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from ..errors import StreamtokError
from ..pipeline.sources import FileInput, Opening, Whole
from . import encoding_options, options
from .argument_types import parse_positive
from .messages import Refused, input_name, write_bytes
from .open_inputs import refuse_ids


def add_budget_options(parser: argparse.ArgumentParser) -> None:
    """Add -n, the options of encodings and text, and those of reading."""
    parser.add_argument(
        "-n",
        "--max-tokens",
        type=parse_positive,
        required=True,
        metavar="N",
        help="the largest number of tokens",
    )
    encoding_options.add_text_options(parser, None, plain_specials=True)
    reading = parser.add_argument_group("reading")
    options.add_chunk_size(reading)
    reading.add_argument(
        "--no-unpack", action="store_true", help="do not decompress: take the bytes as they are"
    )


def blocks_of(args: argparse.Namespace, path: str) -> Iterator[bytes]:
    """The text of a file, decompressed, in blocks as they come. Raises Refused, OSError."""
    refuse_ids(path)
    source = FileInput(
        path,
        input_name(path),
        lambda name, consumed, records, crc, is_open: Whole(consumed, records, crc),
        may_be_compressed=not args.no_unpack,
        block_size=args.chunk_size,
        opening=Opening(),
        waiting=args.signals.heard,
    )
    for group in source.groups(None, False):
        for text, *_ in group:
            assert isinstance(text, bytes)
            if text:
                yield text


@contextlib.contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Turn what is wrong with the text of a file into Refused, with its place."""
    try:
        yield
    except StreamtokError:
        raise
    except UnicodeDecodeError as error:
        raise Refused(
            f"{input_name(path)}: byte {error.start} is not UTF-8 ({error.reason}); "
            "--errors replace or --errors surrogateescape accepts it"
        ) from None
    except ValueError as error:
        what = str(error).partition("\n")[0].rstrip(".")
        if "disallowed special token" in what:
            what += "; --special plain takes it for text, --special allow for one token"
        raise Refused(f"{input_name(path)}: {what}") from None


def written(text: Any, errors: str) -> str:
    """The text of a chunk of bytes, as JSON may have it."""
    return str(text.decode("utf-8", errors)) if isinstance(text, bytes) else str(text)


def write_text(text: Any, end: bytes = b"") -> None:
    """Write to standard output as it is; an empty text may be a str."""
    write_bytes((text if isinstance(text, bytes) else text.encode()) + end)
