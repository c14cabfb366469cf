"""`streamtok serve`: ids through a socket."""

from __future__ import annotations

import argparse
from typing import Any

from . import options
from .report import say


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers, "serve", run, "encode what comes through a socket; ids go back"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--tcp", type=options.address_of, metavar="HOST:PORT", help="default: 127.0.0.1:7654"
    )
    where.add_argument("--unix", metavar="PATH", help="a socket that only you may use")
    options.add_text_options(parser, max_pending=1 << 20)
    parser.add_argument("--format", choices=("text", "u32"), default="text")
    parser.add_argument("--max-connections", type=options.positive_of, default=64, metavar="N")
    parser.add_argument(
        "--idle-timeout", type=options.seconds_of, default=300.0, metavar="SECONDS", help="0: none"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not say where it listens")


def run(args: argparse.Namespace) -> int:
    from .. import serve

    encoding = options.load_encoding(args)
    options.open_stream(args, encoding)  # refuses what no connection could use
    host, port = args.tcp or ("127.0.0.1", serve.DEFAULT_PORT)
    return serve.run(
        encoding,
        host=host,
        port=port,
        path=args.unix,
        on_ready=None if args.quiet else lambda where: say(f"listening on {where}"),
        format=args.format,
        max_connections=args.max_connections,
        idle_timeout=args.idle_timeout,
        **options.stream_settings(args, encoding),
    )
