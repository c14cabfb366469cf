"""Code that a new Python runs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any


def python(code: str, *args: object, **settings: Any) -> str:
    """What it prints. It fails here if it fails there."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    return done.stdout
