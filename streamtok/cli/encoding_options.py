"""Options that choose an encoding and its special tokens, and functions that read them."""

from __future__ import annotations

import argparse
from typing import Any

from ..chunker import DEFAULT_MAX_PENDING, StreamEncoder
from ..encoding import Encoding
from ..errors import StreamtokError
from ..formats.opening import open_encoding
from ..jobs.argument_types import parse_size
from ..special_tokens import SPECIAL_POLICIES, special_settings
from .messages import Refused
from .options import add_errors, add_option

DEFAULT_ENCODING = "cl100k_base"


def add_encoding(
    parser: argparse.ArgumentParser,
    default: str | None = DEFAULT_ENCODING,
    otherwise: str = DEFAULT_ENCODING,
) -> None:
    """Add -e. otherwise: how the help describes the default."""
    add_option(
        parser,
        "-e --encoding NAME",
        "an encoding (streamtok list has the names), a vocabulary file such as "
        "tokenizer.json, x.model or x.tiktoken@cl100k, a model's folder, org/model on Hugging "
        f"Face's hub, or an OpenAI model such as gpt-4o; default: {otherwise}",
        default=default,
    )


def add_text_options(
    parser: argparse.ArgumentParser,
    max_pending: int | None = DEFAULT_MAX_PENDING,
    special: str | None = "plain",
    otherwise: str = "",
    errors: str = "strict",
) -> None:
    """Add -e, --special, --errors and --max-pending.

    max_pending: the default in bytes; None leaves the option out. special, errors: defaults.
    otherwise: how the help describes the default of --special, if it depends on other options.
    """
    add_encoding(parser)
    group = parser.add_argument_group("text and special tokens")
    add_option(
        group,
        "--special",
        "the text of a special token, such as <|endoftext|>, is plain text, becomes the token "
        f"(allow), or is an error (default: {otherwise or special})",
        default=special,
        choices=SPECIAL_POLICIES,
    )
    add_errors(group, errors)
    if max_pending is None:
        return
    add_option(
        group,
        "--max-pending SIZE",
        "bytes that may be held back until later text decides their ids "
        f"(default: {max_pending >> 20}MiB)",
        parse_size,
        max_pending,
    )


def add_template(parser: argparse.ArgumentParser) -> None:
    """Add --add-special-tokens, for commands that count."""
    add_option(
        parser,
        "--add-special-tokens",
        "also count the special tokens that the vocabulary's file puts around a text, such as <s>",
    )


def load_encoding(name: str) -> Encoding:
    """Load the encoding that -e names. Raises Refused."""
    try:
        return open_encoding(name)
    except StreamtokError as error:
        raise Refused(" ".join(str(error).split())) from None
    except ValueError as error:
        raise Refused(str(error)) from None


def stream_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `Encoding.stream_encoder`."""
    return {**text_settings(args), "max_pending": args.max_pending}


def text_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `Encoding.encode`."""
    return special_settings(args.special) | {"errors": args.errors}


def open_stream(args: argparse.Namespace, encoding: Encoding) -> StreamEncoder:
    """A stream encoder with the settings of the command line."""
    return encoding.stream_encoder(**stream_settings(args))
