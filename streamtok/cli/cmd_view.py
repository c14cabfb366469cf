"""`streamtok view`: serves a page that shows tokens, streams and how encodings differ."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import secrets
from typing import Any

from ..jobs.argument_types import parse_port
from . import encoding_options, options
from .messages import Misused, print_now, say
from .options import add_option
from .stop_signals import Signals

_LOOPBACK = "127.0.0.1"


def add_parser(subparsers: Any) -> None:
    parser = options.add_command(
        subparsers,
        "view",
        run,
        "show tokens and streams in a page on this machine",
        ["@", "@ -e tokenizer.json book.txt"],
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help=f"a file or a URL that the page shows at first; {options.UNPACKED}",
    )
    encoding_options.add_encoding(parser)
    address = parser.add_argument_group("address")
    add_option(address, "--port PORT", "default: any free port", parse_port, 0)
    add_option(
        address,
        "--host ADDRESS",
        f"default: {_LOOPBACK}, which only this machine reaches",
        default=_LOOPBACK,
    )
    add_option(parser, "-q --quiet", "print only the URL")


def run(args: argparse.Namespace) -> int:
    from ..view import Server, make_app
    from ..view.given import read_given
    from ..view.guard import LOOPBACK

    encoding = encoding_options.load_encoding(args.encoding)
    token = secrets.token_urlsafe(24)
    hosts = LOOPBACK if _is_loopback(args.host) else None
    if args.file == "-":
        raise Misused("view reads a file, not standard input: streamtok show takes a live feed")
    given = None if args.file is None else read_given(args.file)
    app = make_app(token=token, encoding=encoding, hosts=hosts, given=given)
    server = Server(app, args.host, args.port)
    if hosts is None:
        say(
            f"warning: other machines can reach {args.host}; anyone with the URL sees the page, "
            "and nothing is encrypted"
        )
    with contextlib.suppress(Signals.Stopped):
        print_now(f"{server.url}?token={token}")
        if not args.quiet:
            say("serving until Ctrl-C; anyone with this URL can open the page")
        server.run()
    return 0


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
