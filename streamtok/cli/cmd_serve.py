"""`streamtok serve`: encodes the text of socket clients and sends the ids back."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from . import encoding_options, options
from .argument_types import parse_mode, parse_positive, parse_seconds, parse_size, parse_tcp_address
from .messages import Misused, Refused, say
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
    add_option(
        web,
        "--prompt-cache SIZE",
        "bytes for prompts that begin alike (default: 256MiB)",
        parse_size,
        1 << 28,
    )
    add_option(web, "--max-model-len N", "what /tokenize says of the model", parse_positive)
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
        "default: 1000, or fewer if the limit of open files requires it",
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


def run(args: argparse.Namespace) -> int:
    from .. import serve
    from ..serve.log import Log

    if args.special is None:
        args.special = "plain" if args.http else "refuse"
    if args.http:
        return _run_http(args)
    encoding = encoding_options.load_encoding(args)
    encoding_options.open_stream(args, encoding)  # raises if no connection could have a stream
    if args.unix_mode is not None and args.unix is None:
        raise Misused("--unix-mode needs --unix")
    host, port = args.tcp or ("127.0.0.1", serve.DEFAULT_PORT)
    try:
        with Log() as log:
            return serve.run(
                encoding,
                host=host,
                port=port,
                path=args.unix,
                mode=0o600 if args.unix_mode is None else args.unix_mode,
                on_ready=None if args.quiet else lambda where: log.say(f"listening on {where}"),
                format=args.format,
                max_connections=args.max_connections,
                idle_timeout=args.idle_timeout,
                max_lifetime=args.max_lifetime,
                grace=args.grace,
                metrics=args.metrics,
                **encoding_options.stream_settings(args),
            )
    except ModuleNotFoundError as error:
        raise Refused(str(error)) from None


def _run_http(args: argparse.Namespace) -> int:
    from .. import serve
    from ..serve.http_app import make_http_app
    from ..view.web_server import Server

    for name, value in (("--unix", args.unix), ("--metrics", args.metrics)):
        if value is not None:
            raise Misused(f"{name} is not for --http")
    host, port = args.tcp or ("127.0.0.1", serve.DEFAULT_PORT)
    app = make_http_app(
        encoding_options.load_encoding(args),
        prompt_cache=args.prompt_cache,
        max_request=args.max_request,
        max_model_len=args.max_model_len,
    )
    server = Server(app, host, port, args.max_connections or serve.DEFAULT_MAX_CONNECTIONS)

    def ready(url: str) -> None:
        if not args.quiet:
            say(f"listening on {url}")

    with contextlib.suppress(Signals.Stopped):
        server.run(ready)
    return 0
