"""What the processes of samples have in common: where they find modules, and their peak memory."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(folder: Path) -> dict[str, str]:
    """dict: ours, with a place for compiled modules, in which this checkout is found.

    So modules are compiled once, as where a package is installed.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONPATH": path}


def peak_memory() -> int:
    """The most bytes that this process had resident since it began.

    The kernel's other figure, `ru_maxrss`, begins with the size of the parent.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024)
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
