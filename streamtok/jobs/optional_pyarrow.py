"""Loads pyarrow, an optional dependency, to read and write Parquet."""

from __future__ import annotations

from typing import Any

from ..errors import MissingLibraryError
from .stores.object_reader import ObjectReader
from .stores.urls import is_url

_WINDOW = 1 << 21  # bytes to request from a store at a time


def load_pyarrow() -> Any:
    """Import pyarrow, limited to one thread. Raises MissingLibraryError if it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingLibraryError("Parquet", "pyarrow", "arrow", error) from None
    # More threads would each keep memory of their own, and encoding is the slower part anyway.
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    return pyarrow


def open_for_pyarrow(path: str) -> Any:
    """Open a file or an object in a store, for pyarrow to read. Raises OSError."""
    pa = load_pyarrow()
    if is_url(path):  # pyarrow's own stores would need settings of their own
        return pa.PythonFile(ObjectReader(path, _WINDOW), mode="r")
    return pa.OSFile(path)  # given the bare path, pyarrow would read some paths as URIs
