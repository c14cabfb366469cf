"""Adds subcommands and the options that they share; turns fields of dataclasses into options.

Only this package handles a Namespace: other packages get the dataclasses that `read_options`
returns. The options for encodings and special tokens are in `encoding_options`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from ..jobs.argument_types import parse_chunk_size
from ..jobs.option_fields import T, option_of
from .help import ShortHelp
from .messages import Misused

UNPACKED = "gzip, zstd, xz and bzip2 are decompressed"
FILE_HELP = f"a path, or a URL such as s3://bucket/key; - or none: standard input; {UNPACKED}"
CHUNK_SIZE = 1 << 16  # larger chunks are not faster, and a pipe does not hold more


def add_command(
    subparsers: Any,
    name: str,
    function: Callable[[argparse.Namespace], int],
    text: str,
    examples: Sequence[str],
) -> argparse.ArgumentParser:
    """Add the subcommand `name`, described by `text`. `function` runs it and returns its exit code.

    examples: command lines for the end of the help, with "@" in place of the command.
    """
    lines = "".join(f"  {one.replace('@', f'streamtok {name}', 1)}\n" for one in examples)
    made: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"examples:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    made.add_argument("-h", action=ShortHelp, help="the options used most, and an example")
    made.add_argument("--help", action="help", help="all options")
    made.set_defaults(command=function)
    return made


def add_option(
    where: argparse._ActionsContainer,
    usage: str,
    text: str,
    parse: Callable[[str], Any] | None = None,
    default: Any = None,
    **more: Any,
) -> None:
    """Add an option to a parser or a group.

    usage: its names and the placeholder of its value, as in "-o --output FILE". An option without a
    value and without choices is a switch. text: its help. more: as for `add_argument`.
    """
    names = [one for one in usage.split() if one.startswith("-")]
    values = usage.split()[len(names) :]
    if values:
        more["metavar"] = values[0]
    elif not more.keys() & {"action", "choices"}:
        more["action"] = "store_true"
    if default is not None:
        more["default"] = default
    if parse is not None:
        more["type"] = parse
    where.add_argument(*names, help=text, **more)


def add_options(parser: argparse.ArgumentParser, kind: type) -> dict[str, Any]:
    """Add an option for each field of a dataclass; return the argument groups by title.

    Fields without a help text are left out: the command adds those options itself.
    """
    groups: dict[str, Any] = {}
    exclusive: dict[str, Any] = {}
    for one in fields(kind):
        option = option_of(one)
        if option is None or not option.text:
            continue
        title, _, text = option.group.partition("\n")
        if title not in groups:
            groups[title] = parser.add_argument_group(title, text or None)
        where = groups[title]
        if option.one_of is not None:
            if option.one_of not in exclusive:
                exclusive[option.one_of] = where.add_mutually_exclusive_group()
            where = exclusive[option.one_of]
        default = None if str(one.type) == "bool" else one.default
        add_option(where, option.usage, option.text, option.parse, default, **option.more)
    return groups


def read_options(args: argparse.Namespace, kind: type[T]) -> T:
    """Make a dataclass from the options of a command. Raises Misused."""
    given = vars(args)
    try:
        return kind(**{one.name: given[one.name] for one in fields(kind) if one.name in given})  # type: ignore[arg-type]
    except ValueError as error:
        raise Misused(str(error)) from None


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add FILE..., inputs that may be compressed."""
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=FILE_HELP,
    )


def add_glob(parser: argparse._ActionsContainer) -> None:
    """Add --glob."""
    add_option(
        parser,
        "--glob PATTERN",
        "more files, sorted by name; ** matches any folders",
        default=[],
        action="append",
    )


def add_force(parser: argparse._ActionsContainer) -> None:
    """Add --force."""
    add_option(parser, "--force", "replace existing outputs; inputs are never replaced")


def add_output(parser: argparse._ActionsContainer) -> None:
    """Add -o, which is standard output by default."""
    add_option(parser, "-o --output FILE", "default and - : standard output", default="-")


def add_chunk_size(parser: argparse._ActionsContainer, default: int = CHUNK_SIZE) -> None:
    """Add --chunk-size. default: in bytes."""
    add_option(
        parser,
        "--chunk-size SIZE",
        f"bytes to read at a time (default: {default >> 10}KiB)",
        parse_chunk_size,
        default,
    )


def add_errors(parser: argparse._ActionsContainer, default: str = "strict") -> None:
    """Add --errors."""
    add_option(
        parser,
        "--errors",
        "for bytes that are not UTF-8: raise an error, replace them with U+FFFD, or keep them "
        f"(default: {default})",
        default=default,
        choices=("strict", "replace", "surrogateescape"),
    )
