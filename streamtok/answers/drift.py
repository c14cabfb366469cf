"""Ids that came from a model: are they those of their text, and how does a stream continue?

A model may sample ids that no text is encoded to: their text has other ids. Special ids stay what
they are; the text between two of them is plain text. What a pattern leaves out of the ids of a
text is not in them: it cannot be known here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..chunker import StreamEncoder
from ..engines.template import NO_TEMPLATE
from ..errors import StateError
from .prefixes import feed, open_stream
from .text_settings import Settings

if TYPE_CHECKING:
    from .._types import IdArray
    from ..definition import EncodingDefinition

__all__ = ["ContinuedStream", "continue_from", "first_drift"]

_STEP = 1 << 14  # bytes that are encoded before their ids are compared


def first_drift(encoding: EncodingDefinition, ids: Iterable[int] | IdArray) -> int | None:
    """The index of the first id that the encoding of the ids' text has not; None: there is none."""
    given = _as_list(encoding, ids)
    index = 0
    for found in _encoded_again(encoding, given):
        shared = _shared(found, given, index)
        if shared < len(found):
            return index + shared
        index += len(found)
    return None if index == len(given) else index


class ContinuedStream(StreamEncoder):
    """A StreamEncoder after ids whose text it knows, as `continue_from` makes it.

    `ids[:stream.kept] + stream.corrected`, and then the ids that the stream gives, are those of the
    whole text. `kept` is how many of the ids stay: the rest is not certain yet, and the stream will
    give it again, or something else. `corrected` is empty where the ids are those of their text. A
    copy is a plain StreamEncoder.
    """

    __slots__ = ("corrected", "kept")

    kept: int
    corrected: list[int]

    def __init__(self, encoding: EncodingDefinition, **settings: Any) -> None:
        super().__init__(encoding, **settings)
        self.kept = 0
        self.corrected = []

    def __getstate__(self) -> object:
        return self.kept, self.corrected, super().__getstate__()

    def __setstate__(self, value: Any) -> None:
        kept, corrected, rest = value
        super().__setstate__(rest)
        self.kept, self.corrected = kept, corrected


def continue_from(
    encoding: EncodingDefinition, ids: Iterable[int] | IdArray, **settings: Any
) -> ContinuedStream:
    """A stream that goes on after these ids as if their text had been fed to it. settings: as for
    `StreamEncoder`.
    """
    given = _as_list(encoding, ids)
    stream = ContinuedStream(encoding, **settings)
    last = _end_of_specials(encoding, given)
    if last and not encoding._is_plain:
        _go_behind_special(encoding, stream, given[last - 1], last - 1)
    certain = [id for part in _encoded_again(encoding, given[:last]) for id in part]
    text = _text_of(encoding, given[last:], is_first=last == 0)
    certain += stream.encode(text)
    kept = _shared(certain, given, 0)
    stream.kept = kept
    stream.corrected = certain[kept:]
    return stream


def _go_behind_special(
    encoding: EncodingDefinition, stream: StreamEncoder, id: int, index: int
) -> None:
    """Let a stream be where it is after a special token, whether its settings allow that or not.

    Behind one, an encoding that changes text may do other things than at the beginning.
    """
    text = next(one for one, number in encoding._specials.special.items() if number == id)
    chain = Settings(encoding, allowed_special={text}, errors=stream.errors).chain()
    tail = chain.tail(NO_TEMPLATE)
    feed(chain, tail, text, False, "count")
    try:
        if not tail.pending:
            stream._adopt(chain.getstate(tail))
            return
    except StateError:  # the stream does not search for what takes the white space after it
        pass
    raise ValueError(
        f"the ids have the special token {text!r} at index {index}, and what comes after it "
        "decides where it ends: this encoding cannot continue there. Continue from the ids before "
        "it and some more text"
    )


def _shared(found: list[int], given: list[int], start: int) -> int:
    """How many of the first ids of `found` are those of `given` from `start` on."""
    at = 0
    for size in (1 << 12, 1 << 6, 1):  # slices are compared at once
        while (part := found[at : at + size]) and part == given[start + at : start + at + size]:
            at += len(part)
    return at


def _as_list(encoding: EncodingDefinition, ids: Any) -> list[int]:
    """A list of int. Raises KeyError for an unknown id, TypeError for no ids."""
    given: list[int] = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    encoding._decoder.decode(given)
    return given


def _end_of_specials(encoding: EncodingDefinition, ids: Sequence[int]) -> int:
    """The place after the last special id."""
    special = encoding._specials.ids
    if special.isdisjoint(ids):
        return 0
    return next((i + 1 for i in reversed(range(len(ids))) if ids[i] in special), 0)


def _text_of(encoding: EncodingDefinition, ids: list[int], is_first: bool) -> bytes:
    special = encoding._specials.special
    changed = (text for text, _ in encoding._rules.decoded_texts if text in special)
    own = {special[text]: text.encode() for text in changed}
    if own.keys().isdisjoint(ids):
        return encoding.decode_bytes(ids) if is_first else encoding._decoder.decode(ids)
    if is_first and encoding._rules.first_texts and ids[0] not in own:
        return encoding.decode_bytes(ids[:1]) + _text_of(encoding, ids[1:], False)
    # Some are found in other text than they decode to.
    data = b"".join(own.get(id) or encoding._decoder.token_bytes(id) for id in ids)
    drops = is_first and encoding._rules.decodes_without_first_space
    return data.removeprefix(b" ") if drops else data


def _encoded_again(encoding: EncodingDefinition, ids: list[int]) -> Iterator[list[int]]:
    """The ids of the text of `ids`, a part at a time."""
    special = encoding._specials
    used = special.ids.intersection(ids)
    if not encoding._is_plain:
        allowed = {text for text, id in special.special.items() if id in used}
        settings = Settings(encoding, allowed_special=allowed, errors="surrogateescape")
        yield from _in_steps(settings, _text_of(encoding, ids, is_first=True))
        return
    settings = Settings(encoding, errors="surrogateescape")
    is_first = True
    for is_special, group in itertools.groupby(ids, used.__contains__) if used else [(False, ids)]:
        part = list(group)
        if is_special:
            yield part
        else:
            yield from _in_steps(settings, _text_of(encoding, part, is_first))
        is_first = False


def _in_steps(settings: Settings, text: bytes) -> Iterator[list[int]]:
    chain, tail = open_stream(settings)
    for start in range(0, len(text), _STEP):
        stop = start + _STEP
        yield feed(chain, tail, text[start:stop], stop >= len(text), "list")
