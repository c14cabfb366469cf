"""Shows how one pre-token is merged, step by step, by observing a run of the reference.

Pairs, ranks, versions and the heap are those of `reference/heap_merge.py`; the core's table says
which pairs merge. The result is compared with the core's ids before it is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...reference.heap_merge import HeapMerge, MergeEvent
from ...vocabulary.table import NO_ID
from .merge_table import MergeTable, merge_table
from .result import Result
from .visible import visible

if TYPE_CHECKING:
    from ...encoding import Encoding

LONGEST = 400  # bytes: each step has a copy of all parts and of the heap


@dataclass(frozen=True, slots=True)
class Part(Result):
    """A node of the list: `at` is the offset of its first byte, `version` counts its changes."""

    at: int
    bytes: bytes
    shown: str
    id: int | None  # None: a token that is emitted only as its bytes
    version: int


@dataclass(frozen=True, slots=True)
class HeapEntry(Result):
    """A candidate pair: the offsets of two nodes, and their versions when it was pushed."""

    rank: int
    left: int
    right: int
    left_version: int
    right_version: int
    is_stale: bool


@dataclass(frozen=True, slots=True)
class MergeStep(Result):
    """A step, with the linked list and the heap after it. The heap is in array order.

    kind: "pushed", "stale" (dropped) or "merged".
    """

    kind: str
    candidate: HeapEntry
    parts: list[Part]
    heap: list[HeapEntry]


@dataclass(frozen=True, slots=True)
class MergeTrace(Result):
    """All steps of one pre-token, and its ids."""

    encoding: str
    pretoken: bytes
    start: list[Part]  # the single bytes
    steps: list[MergeStep]
    ids: list[int]  # from the engine
    is_whole_token: bool  # found by a lookup before any merge; merges may not produce it

    _also = ("shown", "merges", "stale")

    @property
    def shown(self) -> str:
        return visible(self.pretoken)

    @property
    def merges(self) -> int:
        return sum(step.kind == "merged" for step in self.steps)

    @property
    def stale(self) -> int:
        return sum(step.kind == "stale" for step in self.steps)


def pretokens(encoding: Encoding, text: str) -> list[str]:
    """list[str]: the pre-tokens of a text, for `trace_merges`.

    Special tokens are plain text. Raises ValueError if the encoding changes text before cutting it.
    """
    if not (encoding.definition.texts.is_plain or encoding.pattern is None):
        raise ValueError(f"{encoding.name} changes its text before it is cut into pre-tokens")
    return [text[start:end] for start, end in encoding.definition.pretoken_spans(text)]


def trace_merges(encoding: Encoding, pretoken: str | bytes) -> MergeTrace:
    """MergeTrace: each step of merging one pre-token. The pattern is not applied to it.

    Raises ValueError for more than `LONGEST` bytes, since every step has a copy of the whole state,
    and for an encoding without merges.
    """
    data = pretoken.encode() if isinstance(pretoken, str) else bytes(pretoken)
    if len(data) > LONGEST:
        raise ValueError(
            f"the pre-token has {len(data)} bytes; at most {LONGEST} can be followed step by step"
        )
    model = encoding.definition.vocabulary.model
    if model is not None:
        raise ValueError(f"{encoding.name!r} has the pieces of {model.kind}, which merges nothing")
    table = merge_table(encoding)
    steps: list[MergeStep] = []

    def merged(left: int, right: int) -> tuple[int, int] | None:
        number = table.merged(left, right)
        return None if number is None else (table.rank(number), number)

    def observe(merge: HeapMerge[int], event: MergeEvent) -> None:
        steps.append(
            MergeStep(
                event.kind,
                HeapEntry(*event.candidate, event.kind == "stale"),
                _parts(table, merge),
                [HeapEntry(*one, merge.is_stale(one)) for one in merge.heap],
            )
        )

    merge = HeapMerge([table.single(byte) for byte in data], merged, observe)
    start = _parts(table, merge)
    numbers = merge.run()
    ids = encoding.definition.encoder.encode_pretoken(data)
    whole = [table.number_of[ids[0]]] if len(ids) == 1 and ids[0] in table.number_of else []
    is_whole_token = bool(whole) and table.tokens[whole[0]] == data
    if not is_whole_token and _ids(encoding, table, numbers) != ids:
        raise RuntimeError(f"the merges of {data!r} differ from the engine's ids")
    return MergeTrace(encoding.name, data, start, steps, ids, is_whole_token)


def _ids(encoding: Encoding, table: MergeTable, numbers: list[int]) -> list[int]:
    ids: list[int] = []
    byte_ids = encoding.definition.vocabulary.byte_ids
    for number in numbers:
        if table.ids[number] != NO_ID or byte_ids is None:
            ids.append(table.ids[number])
        else:
            ids += [int(byte_ids[byte]) for byte in table.tokens[number]]
    return ids


def _parts(table: MergeTable, merge: HeapMerge[int]) -> list[Part]:
    made = []
    for at, node in enumerate(merge.nodes):
        if not node.is_gone:
            token, id = table.tokens[node.part], table.ids[node.part]
            made.append(Part(at, token, visible(token), None if id == NO_ID else id, node.version))
    return made
