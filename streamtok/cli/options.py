"""Arguments that several commands share: their types, their groups, and what they choose."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from .. import registry
from ..chunker import DEFAULT_MAX_PENDING, StreamEncoder
from ..encoding import Encoding
from ..errors import StreamtokError, VocabularyError
from .report import Refused

DEFAULT_ENCODING = "cl100k_base"
CHUNK_SIZE = 1 << 16  # larger ones are no faster, and a pipe gives no more at once
_SIZE_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}
_LARGEST = 1 << 60  # bytes or ids: more is a slip of the finger
_COUNT_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}


def add_command(
    subparsers: Any,
    name: str,
    function: Callable[[argparse.Namespace], int],
    text: str,
    examples: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """ArgumentParser: of the new subcommand; `function` gives its exit code.

    examples: command lines that end its help, without "streamtok" and the name.
    """
    lines = "".join(f"  {one.replace('@', f'streamtok {name}', 1)}\n" for one in examples)
    made: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"examples:\n{lines}" if lines else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.set_defaults(command=function)
    return made


# Types


def size_of(text: str) -> int:
    """int: bytes; the units are powers of 1024."""
    found = re.fullmatch(r"([0-9]{1,18})\s*(?:([kmg])(?:i?b)?|b)?", text.strip().lower())
    size = int(found[1]) << _SIZE_UNITS[found[2] or ""] if found else _LARGEST + 1
    if size > _LARGEST:
        raise _refused(text, "a size such as 65536, 64KiB or 1MiB")
    return size


def chunk_size_of(text: str) -> int:
    size = size_of(text)
    if not 1 <= size <= 1 << 30:
        raise argparse.ArgumentTypeError(f"a chunk must be 1 byte to 1 GiB, not {text}")
    return size


def chunk_sizes_of(text: str) -> list[int]:
    return [chunk_size_of(part) for part in text.split(",")]


def positive_of(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise _refused(text, "a positive number")
    return int(text)


def natural_of(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise _refused(text, "a number, 0 or more")
    return int(text)


def count_of(text: str) -> int:
    """int: how many; the units are powers of 1000."""
    found = re.fullmatch(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?\s*([kmgb]?)", text.strip().lower())
    count = rest = 0
    if found:
        places = found[2] or ""
        count, rest = divmod(int(found[1] + places) * _COUNT_UNITS[found[3]], 10 ** len(places))
    if not 1 <= count <= _LARGEST or rest:
        raise _refused(text, "a positive number such as 500000, 32k, 100M or 1G")
    return count


def seconds_of(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise _refused(text, "a number of seconds")


def address_of(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise _refused(text, "HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _refused(text: str, expected: str) -> argparse.ArgumentTypeError:
    shown = repr(text if len(text) <= 40 else f"{text[:37]}...")
    return argparse.ArgumentTypeError(f"{shown} must be {expected}")


# Groups


def add_encoding(
    parser: argparse.ArgumentParser,
    default: str | None = DEFAULT_ENCODING,
    otherwise: str = DEFAULT_ENCODING,
) -> None:
    parser.add_argument(
        "-e",
        "--encoding",
        default=default,
        metavar="NAME",
        help=f"a name or a vocabulary file (docs/formats.md); default: {otherwise}",
    )


def add_force(parser: argparse.ArgumentParser, also: str = "") -> None:
    parser.add_argument(
        "--force",
        action="store_true",
        help=f"replace an output that is not an earlier output of this command{also}; never an "
        "input",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="default and - : standard output"
    )


def add_chunk_size(parser: argparse.ArgumentParser, default: int = CHUNK_SIZE) -> None:
    parser.add_argument(
        "--chunk-size",
        type=chunk_size_of,
        default=default,
        metavar="SIZE",
        help=f"what is read at a time (default: {default >> 10}KiB)",
    )


def add_text_options(
    parser: argparse.ArgumentParser, max_pending: int = DEFAULT_MAX_PENDING
) -> None:
    add_encoding(parser)
    group = parser.add_argument_group("text and special tokens")
    group.add_argument(
        "--allowed-special",
        default="none",
        metavar="all|none|NAME,...",
        help="special tokens whose text becomes their id (default: none)",
    )
    group.add_argument(
        "--disallowed-special",
        default="all",
        metavar="all|none|NAME,...",
        help="those whose text is an error (default: all that are not allowed)",
    )
    group.add_argument(
        "--errors",
        choices=("strict", "replace", "surrogateescape"),
        default="strict",
        help="bytes that are not UTF-8: an error, U+FFFD, or kept as they are (default: strict)",
    )
    group.add_argument(
        "--max-pending",
        type=size_of,
        default=max_pending,
        metavar="SIZE",
        help=f"bytes that may wait for what comes after (default: {max_pending >> 20}MiB)",
    )


# What they choose


def load_encoding(args: argparse.Namespace) -> Encoding:
    try:
        if args.encoding in registry.list_encoding_names():
            return _named_encoding(args.encoding)
        from ..formats.conversion import open_encoding

        return open_encoding(args.encoding)
    except StreamtokError as error:
        raise Refused(" ".join(str(error).split())) from None
    except ValueError as error:
        raise Refused(str(error)) from None


def _named_encoding(name: str) -> Encoding:
    try:
        return registry.get_encoding(name)
    except VocabularyError as error:  # what to do is in its first two lines, more about it behind
        what, _, more = str(error).partition("\n")
        raise Refused("; ".join(filter(None, [what, more.partition("\n")[0]]))) from None


def stream_settings(args: argparse.Namespace, encoding: Encoding) -> dict[str, Any]:
    return {
        "allowed_special": _specials(args.allowed_special, encoding),
        "disallowed_special": _specials(args.disallowed_special, encoding),
        "errors": args.errors,
        "max_pending": args.max_pending,
    }


def open_stream(args: argparse.Namespace, encoding: Encoding) -> StreamEncoder:
    return encoding.stream_encoder(**stream_settings(args, encoding))


def _specials(given: str, encoding: Encoding) -> Any:
    if given == "all":
        return given
    if given == "none":
        return frozenset()
    names = frozenset(given.split(","))
    for name in sorted(names):
        check_special(name, encoding)
    return names


def check_special(name: str, encoding: Encoding) -> None:
    """Raises Refused if there is no special token of the name."""
    if name in encoding.special_tokens_set:
        return
    raise Refused(f"{name!r} is no special token of {encoding.name}{known_specials(encoding)}")


def known_specials(encoding: Encoding) -> str:
    """str: the end of a message, with the special tokens that there are."""
    known = sorted(encoding.special_tokens_set)
    if not known:
        return ", which has no special tokens"
    more = f" and {len(known) - 8} more" if len(known) > 8 else ""
    return f": its special tokens are {', '.join(known[:8])}{more}"
