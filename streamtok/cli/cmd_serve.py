"""`streamtok serve`: ids through a socket."""

from __future__ import annotations

import argparse
import re
from typing import Any

from . import options
from .report import Misused, Refused


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "serve",
        run,
        "encode what comes through a socket; ids go back",
        ["@ --tcp 127.0.0.1:7654", "@ --unix /run/streamtok/socket --format u32"],
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--tcp", type=options.address_of, metavar="HOST:PORT", help="default: 127.0.0.1:7654"
    )
    where.add_argument("--unix", metavar="PATH", help="a socket that only you may use")
    parser.add_argument(
        "--unix-mode",
        type=_mode,
        metavar="OCTAL",
        help="permissions of that socket, such as 660 for its group (default: 600)",
    )
    options.add_text_options(parser, max_pending=1 << 20)
    parser.add_argument(
        "--format", choices=("text", "u32"), default="text", help="ids as lines or 4 bytes each"
    )
    parser.add_argument(
        "--max-connections",
        type=options.positive_of,
        metavar="N",
        help="default: 1000, or as many as the limit of open files allows",
    )
    parser.add_argument(
        "--idle-timeout",
        type=options.seconds_of,
        default=300.0,
        metavar="SECONDS",
        help="how long a client may neither send nor read (default: 300; 0: for ever)",
    )
    parser.add_argument(
        "--max-lifetime",
        type=options.seconds_of,
        default=0.0,
        metavar="SECONDS",
        help="how long a connection may last (default: 0, for ever)",
    )
    parser.add_argument(
        "--grace",
        type=options.seconds_of,
        default=5.0,
        metavar="SECONDS",
        help="how long clients that still send may go on after SIGTERM (default: 5)",
    )
    parser.add_argument(
        "--metrics",
        type=options.address_of,
        metavar="HOST:PORT",
        help="answer Prometheus at http://HOST:PORT/metrics (needs streamtok[metrics])",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not say where it listens")


def run(args: argparse.Namespace) -> int:
    from .. import serve
    from ..serve.log import Log

    encoding = options.load_encoding(args)
    options.open_stream(args, encoding)  # refuses what no connection could use
    if args.unix_mode is not None and args.unix is None:
        raise Misused("--unix-mode is for --unix")
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
                **options.stream_settings(args, encoding),
            )
    except ModuleNotFoundError as error:
        raise Refused(str(error)) from None


def _mode(text: str) -> int:
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no mode such as 660")
    return int(text, 8)
