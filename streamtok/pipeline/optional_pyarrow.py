"""Loads pyarrow, an optional dependency, for the Parquet reader and the Parquet and Arrow sinks."""

from __future__ import annotations

from typing import Any

from ..errors import MissingLibraryError


def load_pyarrow() -> Any:
    """Import pyarrow, limited to one thread. Raises MissingLibraryError if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise MissingLibraryError("Parquet and Arrow", "pyarrow", "arrow") from None
    # Each of its threads keeps memory of its own, and encoding takes longer than their work.
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    return pyarrow
