"""Texts on several threads: many, shared out by size, and large ones, cut where that changes no id.

The core encodes without the GIL; which thread takes which text, or part of one, is decided as they
go (`_core`). Here are the threads themselves, and the texts that must be encoded one by one because
something about them is out of the ordinary.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._core.encode import Batch, LargeText, check_policy, size_of
from ..engines.protocol import Engine, encode_whole
from .threads import check_threads, run_in_threads, usable_cores

if TYPE_CHECKING:
    from .._core.encode import Cuts, Encoder, SpecialMatcher
    from .._types import Text

__all__ = ["LARGE", "encode_batch", "encode_large"]

LARGE = 1 << 20  # characters or bytes of a text that is shared between threads
PART = 1 << 18  # of its parts, about: the ids of one fit into the cache of a core
PER_THREAD = 1 << 17  # characters or bytes for which it pays to start another thread


def encode_batch(
    engine: Engine,
    encoder: Encoder,
    cuts: Cuts | None,
    texts: Sequence[Text],
    matcher: SpecialMatcher,
    errors: str,
    num_threads: int,
) -> list[list[int]]:
    """The ids of each text. More threads than cores are not started.

    encoder, cuts: of the engine; cuts is None where texts must go through it one by one. Raises
    what encoding them one after the other would raise first.
    """
    num_threads = check_threads(num_threads)
    check_policy(errors)
    texts = list(texts)
    if cuts is None:
        return [encode_whole(engine, text, matcher, errors, "list") for text in texts]
    n_threads = min(num_threads, usable_cores())
    limit = LARGE if n_threads > 1 else sys.maxsize
    batch = Batch(encoder, matcher, texts, errors, limit)
    large = [
        encode_large(encoder, cuts, texts[i], matcher, errors, "list", n_threads)
        for i in batch.large
    ]
    n_threads = max(1, min(n_threads, batch.size // PER_THREAD))
    batch.share(n_threads)
    run_in_threads(batch.work, n_threads, batch.stop)
    results = batch.lists()
    for i, ids in zip(batch.large, large, strict=True):
        results[i] = ids
    return [
        encode_whole(engine, text, matcher, errors, "list") if ids is None else ids
        for text, ids in zip(texts, results, strict=True)
    ]


def encode_large(
    encoder: Encoder,
    cuts: Cuts | None,
    text: Text,
    matcher: SpecialMatcher,
    errors: str,
    into: str,
    num_threads: int,
) -> Any:
    """What `Engine.encode` gives, from several threads; None where it must be asked itself.

    That is so for texts that are small, that cannot be cut, or that may need repair. A text that is
    only counted goes in parts in one thread, too, so that no copy of all of it is needed.
    """
    check_policy(errors)
    num_threads = min(check_threads(num_threads), usable_cores())
    needs_parts = num_threads > 1 or (into == "count" and not isinstance(text, bytes))
    if not needs_parts or cuts is None or size_of(text) < LARGE:
        return None
    large = LargeText(encoder, cuts, matcher, text, errors, into, PART)
    if large.n_parts < 2:
        return None
    num_threads = min(num_threads, large.n_parts)
    run_in_threads(large.work, num_threads, large.stop)
    return large.result()
