"""Tries again what a store could not do just now, with growing pauses, until patience ends.

A request may fail for a reason that passes: a server is restarted, a connection is cut, an answer
is a 5xx or ends too early. Others will fail forever: there is no such object, or no permission.
The libraries under fsspec try some of them again, too, each in its own way and for some seconds.
"""

from __future__ import annotations

import errno
import os
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = "STREAMTOK_STORE_PATIENCE"  # seconds, in the environment
_PATIENCE = 60.0
_FIRST, _LONGEST = 0.1, 5.0  # seconds of a pause
_FINAL = (
    FileNotFoundError,
    PermissionError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    ImportError,
    NotImplementedError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    MemoryError,
)
# Of botocore, whose exceptions have no class in common with Python's.
_FINAL_NAMES = {"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"}
_PASSING = {408, 409, 425, 429}  # of the 4xx of HTTP; S3 says 409 if two create one object
_EXISTS = 412  # the answer to If-None-Match: *


def patience() -> float:
    """Seconds that a request may fail before it is given up. Raises OSError."""
    text = os.environ.get(PATIENCE)
    try:
        found = _PATIENCE if text is None else float(text)
        if found >= 0:
            return found
    except ValueError:
        pass
    raise OSError(errno.EINVAL, f"it must be a number of seconds, not {text!r}", PATIENCE)


def retried(url: str, request: Callable[[], T], stopped: threading.Event | None = None) -> T:
    """What `request` returns, tried again until `patience()` ends. Raises OSError with the URL.

    stopped: give up when it is set.
    """
    stopped = stopped or threading.Event()
    end = time.monotonic() + patience()
    pause = _FIRST
    while True:
        try:
            return request()
        except Exception as error:
            is_late = time.monotonic() + pause > end
            if is_late or is_final(error) or stopped.wait(pause * random.uniform(0.5, 1)):
                raise _named(error, url) from error
        pause = min(2 * pause, _LONGEST)


def is_final(error: BaseException) -> bool:
    """Whether the same request would fail again."""
    import asyncio  # only here: each start of the command line would pay 27 ms for it

    status = _status(error)
    if status is not None:
        return 400 <= status < 500 and status not in _PASSING
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and isinstance(cause, (OSError, TimeoutError)):
        return is_final(cause)  # fsspec's HTTP says so for whatever went wrong
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return False
    return isinstance(error, _FINAL) or type(error).__name__ in _FINAL_NAMES


def _status(error: BaseException) -> int | None:
    """The status of the HTTP answer that an error or its cause tells, if any."""
    if type(error).__module__.startswith("gcsfs"):
        found = getattr(error, "code", None)
        return found if isinstance(found, int) else None
    for one in (error, error.__cause__):
        answer = getattr(one, "response", None)
        if isinstance(answer, dict):  # of botocore
            found = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        else:  # of aiohttp, Azure, huggingface_hub
            found = getattr(one, "status", None) or getattr(one, "status_code", None)
            found = found or getattr(answer, "status_code", None)
        if isinstance(found, int):
            return found
    return None


def _named(error: Exception, url: str) -> Exception:
    """The error as an OSError that names the object, if it is about the store."""
    if _status(error) == _EXISTS:
        return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), url)
    for kind, number in (
        (FileNotFoundError, errno.ENOENT),
        (PermissionError, errno.EACCES),
        (FileExistsError, errno.EEXIST),
        (IsADirectoryError, errno.EISDIR),
    ):
        if isinstance(error, kind):
            return OSError(number, os.strerror(number), url)  # Python chooses the class
    if isinstance(error, MemoryError):
        return error
    text = str(error).strip().partition("\n")[0]
    name = type(error).__name__
    return OSError(errno.EIO, f"the store failed: {text or name}", url)
