"""A socket server that encodes the text of each connection as a stream of its own.

A client sends UTF-8 bytes and then closes its sending side. The server sends each id as soon as no
later text can change it: in decimal, one per line (`text`), or as little-endian u32. After the last
id it closes the connection. Errors are sent over the same connection, because ids that stop early
would look complete: in `text` as a last line `error: …`, in `u32` as the word 0xFFFFFFFF, which is
never an id, followed by a message.

`server.py` starts and stops the server; `connection.py` handles one client; `listening.py` opens
Unix sockets and raises system limits; `counters.py` holds the counters, which `metrics.py` exposes
to Prometheus; `log.py` writes to standard error. `http_app.py` is another service, over HTTP.

The server does not authenticate clients and does not encrypt.

    async with await serve(enc, host="127.0.0.1", port=0) as server:
        await server.serve_forever()
"""

from .connection import ERROR_MARK
from .counters import Counters
from .server import DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_PENDING, DEFAULT_PORT, Server, run, serve

__all__ = [
    "DEFAULT_MAX_CONNECTIONS",
    "DEFAULT_MAX_PENDING",
    "DEFAULT_PORT",
    "ERROR_MARK",
    "Counters",
    "Server",
    "run",
    "serve",
]
