"""`streamtok serve`: encodes the text of socket clients and sends the ids back."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from . import encoding_options, options
from .argument_types import parse_mode, parse_positive, parse_seconds, parse_size, parse_tcp_address
from .messages import Misused, Refused, say
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
    where.add_argument(
        "--tcp", type=parse_tcp_address, metavar="HOST:PORT", help="default: 127.0.0.1:7654"
    )
    where.add_argument("--unix", metavar="PATH", help="a Unix socket that only you may use")
    address.add_argument(
        "--unix-mode",
        type=parse_mode,
        metavar="OCTAL",
        help="permissions of that socket, such as 660 for its group (default: 600)",
    )
    web = parser.add_argument_group("HTTP")
    web.add_argument(
        "--http",
        action="store_true",
        help="answer /tokenize and /detokenize as vLLM does, at --tcp (needs streamtok[web])",
    )
    web.add_argument(
        "--max-request",
        type=parse_size,
        default=16 << 20,
        metavar="SIZE",
        help="bytes of a request (default: 16MiB)",
    )
    web.add_argument(
        "--prompt-cache",
        type=parse_size,
        default=1 << 28,
        metavar="SIZE",
        help="bytes for prompts that begin alike (default: 256MiB)",
    )
    web.add_argument(
        "--max-model-len",
        type=parse_positive,
        metavar="N",
        help="what /tokenize says of the model",
    )
    encoding_options.add_text_options(parser, max_pending=1 << 20)
    parser.add_argument(
        "--format",
        choices=("text", "u32"),
        default="text",
        help="ids as lines of text, or as 4 bytes each",
    )
    clients = parser.add_argument_group("clients")
    clients.add_argument(
        "--max-connections",
        type=parse_positive,
        metavar="N",
        help="default: 1000, or fewer if the limit of open files requires it",
    )
    clients.add_argument(
        "--idle-timeout",
        type=parse_seconds,
        default=300.0,
        metavar="SECONDS",
        help="how long a client may neither send nor read (default: 300; 0: forever)",
    )
    clients.add_argument(
        "--max-lifetime",
        type=parse_seconds,
        default=0.0,
        metavar="SECONDS",
        help="how long a connection may last (default: 0, forever)",
    )
    clients.add_argument(
        "--grace",
        type=parse_seconds,
        default=5.0,
        metavar="SECONDS",
        help="how long clients may continue to send after SIGTERM (default: 5)",
    )
    parser.add_argument(
        "--metrics",
        type=parse_tcp_address,
        metavar="HOST:PORT",
        help="answer Prometheus at http://HOST:PORT/metrics (needs streamtok[metrics])",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print the address")


def run(args: argparse.Namespace) -> int:
    from .. import serve
    from ..serve.log import Log

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
                **encoding_options.stream_settings(args, encoding),
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
