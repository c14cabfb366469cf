"""`streamtok view`: serves the page that shows tokens, streams and differences of encodings."""

from __future__ import annotations

import argparse
import contextlib
import html
import ipaddress
import os
import secrets
import tempfile
from pathlib import Path
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
    add_option(parser, "--browser", "open the page in the default browser")
    add_option(parser, "-q --quiet", "print only the URL")


def run(args: argparse.Namespace) -> int:
    from ..view import Server, make_app
    from ..view.given import read_given
    from ..view.guard import LOOPBACK

    encoding = encoding_options.load_encoding(args)
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

    address = f"{server.url}?token={token}"
    with contextlib.ExitStack() as closing, contextlib.suppress(Signals.Stopped):
        print_now(address)
        if not args.quiet:
            say("serving until Ctrl-C; anyone with this URL can open the page")
        if args.browser:
            import webbrowser

            webbrowser.open(_write_redirect(address, closing))
        server.run()
    return 0


def _write_redirect(address: str, closing: contextlib.ExitStack) -> str:
    """The URL of a file that leads to `address`, and goes when `closing` closes.

    All users can read the arguments of a browser, which would have the token, but not the file.
    """
    folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="streamtok-"))  # mode 0700
    path = Path(folder, "page.html")
    page = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(address)}">\n'
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(page)
    return path.as_uri()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
