"""The two pictures of `how_it_works.md` show what the library computes."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree

import streamtok
from streamtok.reference.heap_merge import Candidate, HeapMerge, MergeEvent

from ..doc_blocks import DOCS

SVG = "{http://www.w3.org/2000/svg}"
ENC = streamtok.get_encoding("cl100k_base")
RANKS = ENC._mergeable_ranks
PRETOKEN = b"coast"
CHUNKS = [b"At the caf\xc3", b"\xa9 by the riv", b"er.<|endof", b"text|>"]
Box = tuple[str, str]  # its class, its words


class MergeStep(NamedTuple):
    """What was popped, and the state after: the heap in order of rank."""

    event: MergeEvent | None
    nodes: list[str]
    heap: list[Candidate]


def shown_steps(picture: str) -> list[list[Box]]:
    """The boxes of each step of a picture."""
    root = ElementTree.parse(DOCS / "explanation" / picture).getroot()
    found = []
    for step in root.findall(f"{SVG}g[@class='step']"):
        found.append([
            (group.attrib["class"], " ".join(words(text) for text in group.findall(f"{SVG}text")))
            for group in step.findall(f"{SVG}g")
        ])  # fmt: skip
    return found


def words(text: ElementTree.Element) -> str:
    return "".join(text.itertext())


def merged(left: bytes, right: bytes) -> tuple[int, bytes] | None:
    rank = RANKS.get(left + right)
    return None if rank is None else (rank, left + right)


def run_merge() -> tuple[list[MergeStep], dict[Candidate, tuple[str, str]]]:
    """The steps, and of which two tokens each candidate was made."""
    steps = [MergeStep(None, [], [])]
    pairs: dict[Candidate, tuple[str, str]] = {}

    def observe(merge: HeapMerge[bytes], event: MergeEvent) -> None:
        if event.kind == "pushed":
            left, right = (merge.nodes[at].part.decode() for at in event.candidate[1:3])
            pairs[event.candidate] = left, right
        else:
            steps.append(MergeStep(event, [], []))
        steps[-1].nodes[:] = [
            f"{node.part.decode()} {node.version}" for node in merge.nodes if not node.is_gone
        ]
        steps[-1].heap[:] = sorted(merge.heap)

    parts = HeapMerge([bytes([byte]) for byte in PRETOKEN], merged, observe).run()
    assert [RANKS[part] for part in parts] == ENC.encode(PRETOKEN.decode()) == [1030, 561]
    return steps, pairs


def test_the_heap_is_what_the_merge_has() -> None:
    steps, pairs = run_merge()
    shown = shown_steps("merge_heap.svg")
    assert len(shown) == len(steps) == 6
    for number, step in enumerate(steps):
        boxes = [("node", node) for node in step.nodes]
        for k, candidate in enumerate(step.heap):
            (left, right), (rank, *_, left_version, right_version) = pairs[candidate], candidate
            kind = "candidate"
            if k == 0:
                following = steps[number + 1].event
                assert following is not None
                assert following.candidate == candidate
                kind += {"merged": " merges", "stale": " stale"}[following.kind]
            boxes.append((kind, f"{rank} {left}{left_version} {right}{right_version}"))
        assert shown[number] == boxes


def cells(data: bytes) -> str:
    """The characters; bytes that make none are hexadecimal."""
    text = data.decode("utf-8", "surrogateescape")
    shown = (f"{ord(c) - 0xDC00:02X}" if "\udc80" <= c <= "\udcff" else c for c in text)
    return "".join(shown).replace(" ", "␣")


def test_the_reserve_is_what_the_stream_keeps() -> None:
    stream = ENC.stream_encoder(allowed_special="all")
    shown = shown_steps("tail_reserve.svg")
    assert len(shown) == len(CHUNKS)
    reserve = b""
    for step, chunk in zip(shown, CHUNKS, strict=True):
        boxes = [("reserve", cells(reserve))] if reserve else []
        boxes.append(("chunk", cells(chunk)))
        ids = stream.encode(chunk)
        boxes += [("token", f"{cells(ENC.decode_bytes([id]))} {id}") for id in ids]
        both = reserve + chunk
        reserve = both[len(both) - stream.pending :]
        assert ENC.decode_bytes(ids) + reserve == both
        boxes += [("reserve", cells(reserve))] if reserve else []
        assert step == boxes
    assert stream.flush() == []
