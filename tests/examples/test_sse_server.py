"""The example of server-sent events, with a real server and a real client on the loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from ..cli.test_cli import POSIX
from ..serve_clients import ENV

pytestmark = POSIX
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_events_of_an_answer(tmp_path: Path) -> None:
    import httpx

    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "sse_server:app"]
    server = subprocess.Popen(
        [*command, "--uds", str(tmp_path / "socket")], env=ENV, stderr=subprocess.PIPE, text=True
    )
    try:
        transport = httpx.HTTPTransport(uds=str(tmp_path / "socket"))
        with httpx.Client(transport=transport, base_url="http://localhost") as client:
            wait_for(tmp_path / "socket", server)
            with client.stream("GET", "/answer", params={"prompt": "日本 é"}) as response:
                assert response.headers["content-type"].startswith("text/event-stream")
                blocks = "".join(response.iter_text()).removesuffix("\n\n").split("\n\n")
    finally:
        server.terminate()
        server.communicate(timeout=20)
    assert blocks[-1].startswith("event: end\ndata: ")
    end = json.loads(blocks.pop().partition("data: ")[2])
    texts = [json.loads(block.removeprefix("data: "))["text"] for block in blocks]
    wanted = "You said: 日本 é 👍"
    assert "".join(texts) == wanted
    assert len(texts) > 3
    assert end["reason"] == "stop"
    assert end["stop"] == ["\nUser:", len(wanted)]


def wait_for(socket: Path, server: subprocess.Popen[str]) -> None:
    """Return when the server listens."""
    until = time.monotonic() + 30
    while not socket.exists():
        assert server.poll() is None, server.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.05)
