"""Token ids over a Unix socket in a program of your own, for systemd, and a client.

    python socket_service.py serve /run/streamtok/socket
    python socket_service.py ask /run/streamtok/socket < book.txt

`streamtok.service` beside this file is a unit for `streamtok serve`. This service also tells
systemd when it is ready: a unit for it has `Type=notify` and this command. On SIGTERM it lets
clients finish. The client sends text while it reads ids, so that a text of any length passes
through buffers of constant size.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

import streamtok
from streamtok.serve import serve

ERROR = 0xFFFFFFFF  # never an id: a message follows


def notify(message: str) -> None:
    """Tell systemd, if it has started this process (the protocol of sd_notify)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            to.connect("\0" + address[1:] if address[0] == "@" else address)
            to.sendall(message.encode())


async def run(path: str, encoding: str) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    server = await serve(
        streamtok.get_encoding(encoding),
        path=path,
        mode=0o660,
        format="u32",
        errors="replace",
        disallowed_special=(),
    )
    async with server:
        notify("READY=1")
        await stopped.wait()
        notify("STOPPING=1")


def ask(path: str, text: BinaryIO) -> Iterator[np.ndarray]:
    """Yield the ids of the text as they become final, in uint32 arrays.

    Raises RuntimeError with the service's message.
    """
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)

        def send() -> None:
            with contextlib.suppress(OSError):  # then the service says why
                while block := text.read(1 << 16):
                    client.sendall(block)
                client.shutdown(socket.SHUT_WR)

        threading.Thread(target=send, daemon=True).start()
        held = b""
        while block := client.recv(1 << 16):
            held += block
            ids = np.frombuffer(held[: len(held) & ~3], "<u4")
            marks = np.flatnonzero(ids == ERROR)
            if len(marks):
                ids = ids[: marks[0]]
            held = held[len(ids) * 4 :]
            if len(ids):
                yield ids
            if len(marks):
                message = held[4:] + client.makefile("rb").read()
                raise RuntimeError(message.decode("utf-8", "replace").strip())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("what", choices=("serve", "ask"))
    parser.add_argument("path", help="of the Unix socket")
    parser.add_argument("-e", "--encoding", default="cl100k_base")
    args = parser.parse_args()
    if args.what == "serve":
        asyncio.run(run(args.path, args.encoding))
        return
    try:
        for ids in ask(args.path, sys.stdin.buffer):
            sys.stdout.write("".join(f"{id}\n" for id in ids.tolist()))
            sys.stdout.flush()
    except RuntimeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
