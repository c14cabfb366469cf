"""Prompts that grow, fork and lose their tails: what they begin with is encoded once.

A text is cut every few thousand characters, and a stream is fed block by block. What it gives for
a block, and its state after it, depend on nothing that comes later. So texts that begin alike
share blocks, in a tree, and a new text goes on after the last block that it shares. There is
nothing to guess: the ids are those of a stream, which are those of the whole text at every cut.
"""

from __future__ import annotations

import heapq
import itertools
import os
import sys
import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import ALL
from .._core.prompts import Block, shared_size
from ..engines.template import NO_TEMPLATE
from ..parallel.texts import check_budget
from .prefixes import feed

if TYPE_CHECKING:
    from ..definition import EncodingDefinition

__all__ = ["CacheStats", "PromptCache", "PromptChange"]

_BLOCK = 4096  # characters: what is encoded again at the end of a prompt, at most
_SMALL = 512  # bytes that may wait wherever a stream's state is kept
_BLOCK_BYTES = 500  # of a block beside its text, ids and state: itself, and what refers to it


class CacheStats(NamedTuple):
    """What a `PromptCache` has done: ids that were known, ids that were encoded, bytes it holds."""

    hits: int
    misses: int
    bytes: int


class PromptChange(NamedTuple):
    """The ids of a text after those of another: the first `kept` of these, and then `added`."""

    kept: int
    added: list[int]


class PromptCache:
    """Encodes texts of which many begin alike, and encodes what they share only once.

    For prompts of a chat that come turn by turn, for conversations that fork or are interleaved,
    and for tails that are replaced. The ids are always those of
    `encoding.encode(text, allowed_special="all")`. Any number of threads may use one.

    >>> cache = streamtok.PromptCache(enc)
    >>> cache.encode("hello world")
    [31373, 995]
    """

    def __init__(self, encoding: EncodingDefinition, max_bytes: int = 1 << 28) -> None:
        """max_bytes: of texts, ids and states that are kept; those used least recently go first.

        A token takes about 15 bytes. Raises UnsupportedPatternError for an encoding that has no
        streams.
        """
        self._encoding = encoding
        self._limit = check_budget("max_bytes", max_bytes)
        self._chain = encoding._engine.chain(encoding._matcher(ALL, ALL), "strict")
        self._begin()
        _CACHES.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._root = Block(None, "", [], self._chain.getstate(self._chain.tail(NO_TEMPLATE)), 0)
        self._leaves: list[tuple[int, int, Block]] = []  # a heap: (when used, a number, block)
        self._numbers = itertools.count()  # of entries in the heap
        self._now = 0  # calls so far
        self._bytes = 0
        # The texts of changes, by identity: the next change begins at one of them, as it is.
        self._texts: OrderedDict[int, tuple[str, Block]] = OrderedDict()
        self._text_bytes = 0
        self._hits = 0
        self._misses = 0

    @property
    def encoding(self) -> Any:
        """The `Encoding` that this cache encodes for."""
        return self._encoding

    @property
    def max_bytes(self) -> int:
        """int: how many bytes it may hold."""
        return self._limit

    @property
    def stats(self) -> CacheStats:
        """CacheStats(hits, misses, bytes): ids that were known, that were encoded; bytes held."""
        with self._lock:
            return CacheStats(self._hits, self._misses, self._bytes)

    def encode(self, text: str) -> list[int]:
        """list[int]: `encoding.encode(text, allowed_special="all")`.

        Costs a comparison with known texts, a copy of its ids, and the encoding of the rest. Raises
        TypeError if it is not a str.
        """
        text = _exact(text)
        block, tail = self._encoded(text, self._root)
        return block.ids_behind(None, tail)

    def encode_change(self, before: str, text: str) -> PromptChange:
        """PromptChange(kept, added): the change from the ids of `before` to those of `text`.

        `encode(before)[:kept] + added` is `encode(text)`, and less work: there is no list of all
        ids. `kept` counts whole blocks, so about a thousand of the ids that stay may be in
        `added`. It costs one comparison of the texts where `before` is the same object as the
        `text` of a change before. Raises TypeError if it is not a str.

        >>> cache = streamtok.PromptCache(enc)
        >>> text = "one two three. " * 1000
        >>> ids = cache.encode(text)
        >>> change = cache.encode_change(text, text + "four")
        >>> ids[: change.kept] + change.added == enc.encode(text + "four")
        True
        >>> len(ids), change.kept, len(change.added)
        (4001, 3276, 725)
        """
        before, text = _exact(before), _exact(text)
        n = shared_size(before, text)
        with self._lock:
            known = self._texts.get(id(before))
        begin = self._root if known is None else known[1].up_to(n)
        block, tail = self._encoded(text, begin if begin.is_kept else self._root)
        self._remember(text, block)
        shared = block.up_to(n)
        return PromptChange(shared.end, block.ids_behind(shared, tail))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._encoding, self._limit)  # the copy starts empty

    def __repr__(self) -> str:
        return f"<PromptCache of {self._encoding.name!r}: {self.stats.bytes:,} bytes>"

    def _remember(self, text: str, block: Block) -> None:
        """Keep a text whose last whole block this is. Texts have a quarter of all bytes."""
        size = sys.getsizeof(text)
        with self._lock:
            if id(text) in self._texts or size > self._limit // 4:
                return
            self._texts[id(text)] = text, block
            self._add_text_bytes(size)
            while self._text_bytes > self._limit // 4:
                _, (text, _) = self._texts.popitem(last=False)
                self._add_text_bytes(-sys.getsizeof(text))
            self._shrink()

    def _add_text_bytes(self, size: int) -> None:
        self._text_bytes += size
        self._bytes += size

    def _encoded(self, text: str, begin: Block) -> tuple[Block, list[int]]:
        """The last whole block of the text, and the ids after it. begin: a block that it has."""
        with self._lock:
            self._now += 1
            known = begin.walk(text, _BLOCK, self._now)
        made, tail = self._encode_behind(known, text)  # others need not wait for this
        last = made[-1] if made else known
        with self._lock:
            self._hits += known.end
            self._misses += last.end - known.end + len(tail)
            if made:
                self._keep(known, made, text)
        return last, tail

    def _encode_behind(self, known: Block, text: str) -> tuple[list[Block], list[int]]:
        """The blocks that the text has after `known`, and the ids of the rest."""
        begin = known
        while begin.state is None:
            assert begin.parent is not None  # the first block has a state
            begin = begin.parent
        chain, tail = self._chain, self._chain.tail(NO_TEMPLATE)
        half, state = begin.state
        chain.setstate(tail, state, half)
        if begin is not known:
            feed(chain, tail, text[begin.stop : known.stop], False, "count")
        made: list[Block] = []
        last, stateless = known, known.stop - begin.stop
        while last.stop + _BLOCK <= len(text):
            piece = text[last.stop : last.stop + _BLOCK]
            ids: list[int] = feed(chain, tail, piece, False, "list")
            size = _BLOCK_BYTES + sys.getsizeof(piece) + sys.getsizeof(ids)
            stateless += len(piece)
            # All that waits is in a state: with a long pre-token, not every block can have one.
            saved = chain.getstate(tail) if tail.pending <= max(_SMALL, stateless) else None
            if saved is not None:
                size += sys.getsizeof(saved[1])
                stateless = 0
            last = Block(last, piece, ids, saved, size)
            made.append(last)
        return made, feed(chain, tail, text[last.stop :], True, "list")

    def _keep(self, parent: Block, made: list[Block], text: str) -> None:
        """Keep these blocks after `parent`. What others kept in the meantime stays."""
        if not parent.is_kept:  # it was removed in the meantime
            return
        for block in made:
            found = parent.child(text, _BLOCK)
            if found is None:
                parent.add(block)
                self._bytes += block.size
                found = block
            found.used = self._now
            parent = found
        self._queue(parent)
        self._shrink()

    def _shrink(self) -> None:
        while self._bytes > self._limit:
            self._remove_oldest()

    def _queue(self, leaf: Block) -> None:
        if not leaf.is_queued:
            leaf.is_queued = True
            heapq.heappush(self._leaves, (leaf.used, next(self._numbers), leaf))

    def _remove_oldest(self) -> None:
        """Remove the leaf that was not used for longest, if it is next in the queue."""
        used, _, leaf = heapq.heappop(self._leaves)
        leaf.is_queued = False
        if not leaf.is_leaf:  # it is queued again when it is a leaf again
            return
        if leaf.used != used:
            self._queue(leaf)
            return
        parent = leaf.parent
        assert parent is not None  # the first block is never queued
        parent.remove(leaf)
        parent.used = max(parent.used, leaf.used)  # a text that begins further on passes it by
        self._bytes -= leaf.size
        if parent.is_leaf and parent is not self._root:
            self._queue(parent)


def _exact(text: Any) -> str:
    """The text without what a class of its own adds. Raises TypeError if it is not a str."""
    if type(text) is str:
        return text
    if not isinstance(text, str):
        raise TypeError(f"a prompt is a str, not {type(text).__name__}")
    return str.__str__(text)


_CACHES: weakref.WeakSet[PromptCache] = weakref.WeakSet()


def _after_fork() -> None:
    """In the new process, what another thread of the old one was just changing begins anew."""
    for cache in list(_CACHES):
        if cache._lock.locked():
            cache._begin()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
