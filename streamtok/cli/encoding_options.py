"""The options that choose an encoding and its special tokens, and what they select."""

from __future__ import annotations

import argparse
import contextlib
import re
from typing import Any

from ..chunker import DEFAULT_MAX_PENDING, StreamEncoder
from ..encoding import Encoding
from ..errors import StreamtokError
from ..formats.opening import open_encoding
from .argument_types import parse_size
from .messages import Refused
from .options import add_errors, add_option

DEFAULT_ENCODING = "cl100k_base"
_SPECIAL = {"allow": ("all", "none"), "plain": ("none", "none"), "refuse": ("none", "all")}


def add_encoding(
    parser: argparse.ArgumentParser,
    default: str | None = DEFAULT_ENCODING,
    otherwise: str = DEFAULT_ENCODING,
) -> None:
    """Add -e. otherwise: the default, for the help."""
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
    plain_specials: bool = False,
    errors: str = "strict",
) -> None:
    """Add -e, the special tokens, --errors and, unless its default in bytes is None, --max-pending.

    plain_specials: for commands that take the text of special tokens for plain text unless told
    otherwise, with --special. errors: the default of --errors.
    """
    add_encoding(parser)
    group = parser.add_argument_group("text and special tokens")
    if plain_specials:
        add_option(
            group,
            "--special",
            "the text of a special token is one token, plain text, or an error (default: plain)",
            default="plain",
            choices=tuple(_SPECIAL),
        )
    add_option(
        group,
        "--allowed-special all|none|NAME,...",
        "special tokens whose text becomes their id "
        f"(default: {'as --special says' if plain_specials else 'none'})",
        default=None if plain_specials else "none",
    )
    add_option(
        group,
        "--disallowed-special all|none|NAME,...",
        "special tokens whose text is an error "
        f"(default: {'as --special says' if plain_specials else 'all that are not allowed'})",
        default=None if plain_specials else "all",
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


def load_encoding(args: argparse.Namespace) -> Encoding:
    """Load the encoding of -e. Raises Refused."""
    return load_named(args.encoding)


def load_named(name: str) -> Encoding:
    """Load the encoding that -e names. Raises Refused."""
    try:
        return open_encoding(name)
    except StreamtokError as error:
        raise Refused(" ".join(str(error).split())) from None
    except ValueError as error:
        raise Refused(str(error)) from None


def stream_settings(args: argparse.Namespace, encoding: Encoding) -> dict[str, Any]:
    """The keyword arguments of `Encoding.stream_encoder`. Raises Refused."""
    return {**text_settings(args, encoding), "max_pending": args.max_pending}


def text_settings(args: argparse.Namespace, encoding: Encoding) -> dict[str, Any]:
    """The keyword arguments of `Encoding.encode`. Raises Refused."""
    allowed, disallowed = _SPECIAL[getattr(args, "special", "refuse")]
    if args.allowed_special is not None:
        allowed = args.allowed_special
    if args.disallowed_special is not None:
        disallowed = args.disallowed_special
    return {
        "allowed_special": _specials(allowed, encoding),
        "disallowed_special": _specials(disallowed, encoding),
        "errors": args.errors,
    }


def open_stream(args: argparse.Namespace, encoding: Encoding) -> StreamEncoder:
    """A stream encoder with the settings of the command line. Raises Refused."""
    return encoding.stream_encoder(**stream_settings(args, encoding))


def _specials(given: str, encoding: Encoding) -> Any:
    if given == "all":
        return given
    if given == "none":
        return frozenset()
    names = frozenset(given.split(","))
    for name in sorted(names):
        if name not in encoding.special_tokens_set:
            raise Refused(
                f"{name!r} is not a special token of {encoding.name}{_list_specials(encoding)}"
            )
    return names


def special_id(name: str | None, encoding: Encoding) -> int | None:
    """The id of a special token, or of an id in decimal; None for None. Raises Refused."""
    if name is None:
        return None
    if name in encoding.special_tokens_set:
        return encoding.encode_single_token(name)
    if re.fullmatch(r"[0-9]{1,18}", name):
        with contextlib.suppress(KeyError, OverflowError):
            encoding.decode_single_token_bytes(int(name))
            return int(name)
    raise Refused(
        f"{name!r} is neither a special token nor an id of {encoding.name}"
        f"{_list_specials(encoding)}"
    )


def _list_specials(encoding: Encoding) -> str:
    """The end of a message that lists the special tokens."""
    known = sorted(encoding.special_tokens_set)
    if not known:
        return ", which has no special tokens"
    more = f" and {len(known) - 8} more" if len(known) > 8 else ""
    return f": its special tokens are {', '.join(known[:8])}{more}"
