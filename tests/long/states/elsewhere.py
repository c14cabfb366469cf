"""Another process, which a pickled stream goes to."""

from __future__ import annotations

import pickle
import subprocess
import sys

import streamtok

ELSEWHERE = """
import pickle, sys
stream, rest = pickle.load(sys.stdin.buffer)
sys.stdout.buffer.write(pickle.dumps((stream.bytes_in, stream.encode(rest, final=True))))
"""


def finished_elsewhere(
    stream: streamtok.StreamEncoder, rest: bytes
) -> subprocess.CompletedProcess[bytes]:
    """A process that has given the stream its rest, and has printed (bytes_in, ids), pickled."""
    return subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        input=pickle.dumps((stream, rest)),
        capture_output=True,
        check=False,
    )
