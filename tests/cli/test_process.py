"""The process of a command: what it does before and after `main`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ENV = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}


def python(code: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, env=ENV | env, capture_output=True, text=True, check=False)


def test_numpy_starts_no_threads(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("hello world")
    code = """
import os, sys
from streamtok.cli.main import main
assert "numpy" not in sys.modules
assert main(["count", sys.argv[1]]) == 0
assert "numpy" in sys.modules
print(os.environ["OPENBLAS_NUM_THREADS"])
if sys.platform == "linux":
    assert len(os.listdir("/proc/self/task")) == 1, os.listdir("/proc/self/task")
"""
    done = python(code, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "1"


def test_what_the_user_says_about_threads_is_kept():
    code = """
import os
from streamtok.cli.main import main
assert main(["list"]) == 0
print(os.environ["OPENBLAS_NUM_THREADS"])
"""
    assert python(code, OPENBLAS_NUM_THREADS="3").stdout.splitlines()[-1] == "3"


@pytest.mark.parametrize(
    ("args", "code"), [(["list"], 0), (["count", "no such file"], 1), (["nothing"], 2)]
)
def test_the_exit_code_is_that_of_main(args, code):
    program = """
import atexit, gc
@atexit.register
def tell():
    # Cycles are found during the run, if not as often; at the end nobody looks for them.
    print(gc.isenabled(), gc.get_threshold()[0] < 100_000, gc.get_freeze_count() > 1000)
from streamtok.cli.process import run
run()
"""
    done = python(program, *args)
    assert done.returncode == code
    # argparse ends the process by itself when it is used wrongly
    assert done.stdout.splitlines()[-1] == f"True True {code != 2}"
