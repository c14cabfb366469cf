"""Runs tiktoken's own tests with streamtok in its place, without a network.

    pip download --no-binary tiktoken --no-deps tiktoken==0.14.0
    tar xf tiktoken-0.14.0.tar.gz
    python -m tests.long.tiktoken_suite tiktoken-0.14.0/tests

`import tiktoken` gives streamtok there, in processes that the tests start, too. What follows the
folder goes to pytest. The exit code is pytest's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import streamtok

__all__ = ["run"]

_SHIM = """\
import sys

import streamtok

sys.modules[__name__] = streamtok
"""
# A test that asks for the network fails, and says so.
_CONFTEST = """\
import socket

import tiktoken


def refuse(*arguments, **options):
    raise OSError("tiktoken's tests must pass without a network")


socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse


def pytest_report_header():
    return [f"tiktoken: {tiktoken.__name__} of {tiktoken.__file__}"]
"""


def run(folder: Path, options: list[str]) -> int:
    """pytest's exit code for the tests in `folder`, of which a copy is run."""
    if not any(folder.glob("test_*.py")):
        raise SystemExit(f"{folder}: expected the folder `tests` of tiktoken, with its test_*.py")
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "suite", "tests")
        shutil.copytree(folder, copy)
        (copy / "__init__.py").touch()
        (copy.parent / "conftest.py").write_text(_CONFTEST)
        shim = Path(scratch, "shim")
        shim.mkdir()
        (shim / "tiktoken.py").write_text(_SHIM)
        here = Path(streamtok.__file__).resolve().parents[1]
        path = [str(shim), str(here), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", "."]
        return subprocess.run(
            [*command, *options, "tests"], cwd=copy.parent, env=environment, check=False
        ).returncode


def main() -> int:
    """Read the arguments and run the tests."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.long.tiktoken_suite", description=__doc__
    )
    parser.add_argument("folder", type=Path, help="the folder `tests` of tiktoken's source")
    arguments, options = parser.parse_known_args()
    return run(arguments.folder, options)


if __name__ == "__main__":
    sys.exit(main())
