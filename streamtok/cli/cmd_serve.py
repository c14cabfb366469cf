"""`streamtok serve`: encodes the text of socket clients and sends the ids back."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from ..jobs.argument_types import (
    parse_hosts,
    parse_mode,
    parse_positive,
    parse_seconds,
    parse_size,
    parse_tcp_address,
)
from . import encoding_options, options
from .messages import Misused
from .options import add_option
from .stop_signals import Signals


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "serve",
        run,
        "encode the text of socket clients and send the ids back",
        [
            "@ --tcp 127.0.0.1:7654",
            "@ --unix /run/streamtok/socket --format u32",
            "@ --http -e tokenizer.json",
        ],
    )
    address = parser.add_argument_group("address")
    where = address.add_mutually_exclusive_group()
    add_option(where, "--tcp HOST:PORT", "default: 127.0.0.1:7654", parse_tcp_address)
    add_option(where, "--unix PATH", "a Unix socket that only you may use")
    add_option(
        address,
        "--unix-mode OCTAL",
        "permissions of that socket, such as 660 for its group (default: 600)",
        parse_mode,
        0o600,
    )
    web = parser.add_argument_group("HTTP")
    add_option(
        web,
        "--http",
        "answer /tokenize and /detokenize as vLLM does, at --tcp (needs streamtok[web])",
    )
    add_option(
        web, "--max-request SIZE", "bytes of a request (default: 16MiB)", parse_size, 16 << 20
    )
    add_option(web, "--chat FOLDER", "a model's folder, whose chat template encodes messages")
    add_option(web, "--max-model-len N", "max_model_len in answers of /tokenize", parse_positive)
    add_option(
        web,
        "--hosts NAME,...",
        "names that clients may use for this machine, besides its addresses and localhost",
        parse_hosts,
        (),
    )
    encoding_options.add_text_options(
        parser, 1 << 20, special=None, otherwise="refuse; plain with --http"
    )
    add_option(
        parser,
        "--format",
        "ids as lines of text, or as 4 bytes each",
        default="text",
        choices=("text", "u32"),
    )
    clients = parser.add_argument_group("clients")
    add_option(
        clients,
        "--max-connections N",
        "with --http: requests at a time; default: 1000, or fewer if the limit of open files "
        "requires it",
        parse_positive,
    )
    add_option(
        clients,
        "--idle-timeout SECONDS",
        "how long a client may neither send nor read (default: 300; 0: forever)",
        parse_seconds,
        300.0,
    )
    add_option(
        clients,
        "--max-lifetime SECONDS",
        "how long a connection may last (default: 0, forever)",
        parse_seconds,
        0.0,
    )
    add_option(
        clients,
        "--grace SECONDS",
        "how long clients may continue to send after SIGTERM (default: 5)",
        parse_seconds,
        5.0,
    )
    add_option(
        parser,
        "--metrics HOST:PORT",
        "answer Prometheus at http://HOST:PORT/metrics (needs streamtok[metrics])",
        parse_tcp_address,
    )
    add_option(parser, "-q --quiet", "do not print the address")


# Options that only one of the two services has.
_OF_SOCKET = ("unix", "unix_mode", "format", "max_pending")
_OF_HTTP = ("chat", "max_request", "max_model_len", "hosts")


def run(args: argparse.Namespace) -> int:
    from .. import serve
    from ..serve.log import Log

    if args.special is None:
        args.special = "plain" if args.http else "refuse"
    given: set[str] = getattr(args, "given_options", set())
    for name in _OF_SOCKET if args.http else _OF_HTTP:
        if name in given:
            option = f"--{name.replace('_', '-')}"
            raise Misused(f"{option} is not for --http" if args.http else f"{option} needs --http")
    encoding = encoding_options.load_encoding(args.encoding)
    host, port = args.tcp or ("127.0.0.1", serve.DEFAULT_PORT)
    settings: dict[str, Any] = {
        "host": host,
        "port": port,
        "max_connections": args.max_connections,
        "idle_timeout": args.idle_timeout,
        "max_lifetime": args.max_lifetime,
        "grace": args.grace,
        "metrics": args.metrics,
    }
    with Log() as log:
        if not args.quiet:
            settings["on_ready"] = lambda where: log.say(f"listening on {where}")
        if args.http:
            from ..serve import http_app

            chat_template = None
            if args.chat is not None:
                from ..formats.chat_template import ChatTemplate

                chat_template = ChatTemplate.from_folder(args.chat, encoding)
            with contextlib.suppress(Signals.Stopped):
                http_app.run_http(
                    encoding,
                    chat_template=chat_template,
                    hosts=args.hosts,
                    max_request=args.max_request,
                    max_model_len=args.max_model_len,
                    **settings,
                    **encoding_options.text_settings(args),
                )
            return 0
        if "unix_mode" in given and args.unix is None:
            raise Misused("--unix-mode needs --unix")
        return serve.run(
            encoding,
            path=args.unix,
            mode=args.unix_mode,
            format=args.format,
            **settings,
            **encoding_options.stream_settings(args),
        )
