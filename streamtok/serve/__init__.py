"""A socket door: each connection is a stream of its own; text goes in, ids come out.

A client sends UTF-8 bytes and closes its sending side; the ids come as they become certain, in
decimal, one a line (`text`), or as little-endian u32. After the last id the server closes. What
goes wrong is told in the same channel, since ids that stop early would look complete: in text a
last line `error: …`, in u32 the word 0xFFFFFFFF, which is no id, and then the message.

`server.py` starts and stops, `connection.py` is what happens to one client, `turns.py` says whose
text is encoded next, `accepting.py` takes clients in, `listening.py` are sockets and limits of the
system, `counters.py` is what is counted, `metrics.py` shows that to Prometheus over the HTTP of
`scrape.py`, and `log.py` writes to standard error.

Nothing here knows who the clients are: no encryption, no passwords.

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
