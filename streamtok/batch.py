"""Texts on several threads: many, spread by size, and large ones, cut where it makes no difference.

The core encodes without the GIL; which thread takes which text, or part of one, is decided as they
go (`_core/batch.pxi`, `_core/parallel.pxi`). Here are the threads themselves, and what is done one
by one because something about the text is out of the ordinary.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ._core.encode import Batch, LargeText, check_policy, size_of

if TYPE_CHECKING:
    from ._core.encode import SpecialMatcher
    from .encoding import Encoding, Text

__all__ = ["encode_batch", "encode_large", "map_in_threads", "run_in_threads", "usable_cores"]

LARGE = 1 << 20  # characters or bytes of a text that is shared between threads
PART = 1 << 18  # of its parts, about: the ids of one fit into the cache of a core
PER_THREAD = 1 << 17  # characters or bytes for which it pays to start another thread

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """int: the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def encode_batch(
    encoding: Encoding,
    texts: Sequence[Text],
    matcher: SpecialMatcher,
    errors: str,
    num_threads: int,
) -> list[list[int]]:
    """list[list[int]]: the ids of each text. More threads than cores are not started.

    Raises what encoding them one after the other would raise first.
    """
    _check_threads(num_threads)
    check_policy(errors)
    texts = list(texts)
    if encoding.pattern is None or encoding._rules.normalizer is not None:
        return [_encode_one(encoding, text, matcher, errors) for text in texts]
    n_threads = min(num_threads, usable_cores())
    limit = LARGE if n_threads > 1 else sys.maxsize
    batch = Batch(encoding._encoder, matcher, texts, errors, limit)
    large = [
        encode_large(encoding, texts[i], matcher, errors, "list", n_threads) for i in batch.large
    ]
    n_threads = max(1, min(n_threads, batch.size // PER_THREAD))
    batch.share(n_threads)
    run_in_threads(batch.work, n_threads, batch.stop)
    results = batch.lists()
    for i, ids in zip(batch.large, large, strict=True):
        results[i] = ids
    return [
        _encode_one(encoding, text, matcher, errors) if ids is None else ids
        for text, ids in zip(texts, results, strict=True)
    ]


def _encode_one(encoding: Encoding, text: Text, matcher: SpecialMatcher, errors: str) -> list[int]:
    ids: list[int] = encoding._run(text, matcher, errors, "list")
    return ids


def encode_large(
    encoding: Encoding,
    text: Text,
    matcher: SpecialMatcher,
    errors: str,
    into: str,
    num_threads: int,
) -> Any:
    """What `Encoder.encode` gives, from several threads; None where it must be asked itself.

    That is so for texts that are small, that can nowhere be cut, or that may need repair. What is
    counted goes in parts in one thread, too, so that no copy of it is needed as a whole.
    """
    _check_threads(num_threads)
    check_policy(errors)
    num_threads = min(num_threads, usable_cores())
    needs_parts = num_threads > 1 or (into == "count" and not isinstance(text, bytes))
    if not needs_parts or size_of(text) < LARGE or (cuts := encoding._cuts) is None:
        return None
    large = LargeText(encoding._encoder, cuts, matcher, text, errors, into, PART)
    if large.n_parts < 2:
        return None
    num_threads = min(num_threads, large.n_parts)
    run_in_threads(large.work, num_threads, large.stop)
    if large.begin_list():
        run_in_threads(large.fill, num_threads)
    return large.result()


def run_in_threads(
    work: Callable[[], None], num_threads: int, stop: Callable[[], None] = lambda: None
) -> None:
    """Call `work` in up to num_threads threads at the same time, this one among them.

    Raises what it raises in one of them, when all are back. `stop` is called before that, so that
    they come back soon.
    """
    errors: list[BaseException] = []

    def help_out() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
            stop()

    threads: list[threading.Thread] = []
    try:
        for _ in range(num_threads - 1):
            thread = threading.Thread(target=help_out)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more
                break
            threads.append(thread)
        work()
        for thread in threads:
            thread.join()
    except BaseException:
        stop()
        raise
    finally:
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], num_threads: int
) -> list[Result]:
    """list: function(item) for each, in order. Raises what the first that fails raises.

    ValueError if num_threads is not positive.
    """
    _check_threads(num_threads)
    if num_threads == 1 or len(items) < 2:
        return [function(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(num_threads, len(items))) as pool:
        return list(pool.map(function, items))


def _check_threads(num_threads: int) -> None:
    if num_threads <= 0:
        raise ValueError(f"num_threads must be positive, not {num_threads}")
