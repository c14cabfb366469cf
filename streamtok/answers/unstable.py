"""`encode_with_unstable` and `_encode_bytes`, as tiktoken defines them: slow, for small texts.

tiktoken calls the tokens before the last pre-token stable, and lists ways in which the rest may
continue: every token that begins with the unstable bytes, every token that straddles their end, and
the rest with its last blank split off. tiktoken's own comments call this a quick and dirty fix; it
is here so that programs written for tiktoken get the same answers. `StreamEncoder` returns ids that
are final.
"""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING

from .._core.encode import LIST, text_bytes
from ..vocabulary.table import NO_ID

if TYPE_CHECKING:
    from .._core.encode import SpecialMatcher
    from .._types import Text
    from ..definition import Definition

_BLANKS = b" \n\t"
_MOST = 1 << 10  # bytes of the rest, which has thousands of completions, each encoded by itself


def encode_with_unstable(
    definition: Definition, text: Text, matcher: SpecialMatcher
) -> tuple[list[int], list[list[int]]]:
    """(stable ids, completions) of `text`.

    Raises the errors of `Encoding.encode`, and ValueError if the last pre-token is too long.
    """
    merge = definition.encoder.encode_pretoken
    stable, rest = _stable_and_rest(definition, text, matcher)
    if len(rest) > _MOST:
        raise ValueError(
            f"encode_with_unstable takes a last pre-token of at most {_MOST} bytes; this one "
            f"has {len(rest)}. A stream_encoder has no such limit"
        )
    if not rest:
        return stable, []
    vocabulary = definition.vocabulary
    ids = dict(zip(vocabulary.to_list(), vocabulary.ids.tolist(), strict=True))
    tokens = sorted(token for token, id in ids.items() if id != NO_ID)

    def starting_with(prefix: bytes) -> list[bytes]:
        first = bisect.bisect_left(tokens, prefix)
        return list(itertools.takewhile(lambda token: token.startswith(prefix), tokens[first:]))

    found: set[tuple[int, ...]] = {(ids[token],) for token in starting_with(rest)}
    for cut in range(1, len(rest)):
        for token in starting_with(rest[cut:]):
            found.add(_first_ids(definition, rest[:cut] + token, len(rest)))
    for size in range(1, 5):
        try:
            last = rest[-size:].decode()
        except UnicodeDecodeError:
            continue
        if len(rest) > size and last.isspace() and last not in "\x1c\x1d\x1e\x1f":
            found.add((*merge(rest[:-size]), *merge(rest[-size:])))
        break
    return stable, [list(one) for one in found]


def encode_bytes(definition: Definition, data: bytes) -> list[int]:
    """The ids of `data`. Everything from the first byte that is not UTF-8 joins the pre-token
    before it. Otherwise a truncated character would be merged separately.
    """
    ordinary = definition.specials.ordinary
    try:
        return definition.engine.encode(data, ordinary, "strict", LIST)
    except UnicodeDecodeError as error:
        valid = error.start
    stable, rest = _stable_and_rest(definition, data[:valid], ordinary)
    return stable + definition.encoder.encode_pretoken(rest + data[valid:])


def _stable_and_rest(
    definition: Definition, text: Text, matcher: SpecialMatcher
) -> tuple[list[int], bytes]:
    """The ids before the last pre-token, and its bytes, which are empty after a special token.

    If it begins with a blank token, its bytes include blank tokens before it, since
    `\\s*[\\r\\n]+` looks ahead.
    """
    data = text_bytes(text, "strict")
    ids = definition.engine.encode(data, matcher, "strict", LIST)
    start, end, _ = matcher.split(data)[-1]
    segment = data[start:end].decode()
    pretokens = [segment[first:last] for first, last in definition.pretoken_spans(segment)]
    if not pretokens:
        return ids, b""

    def is_blank(id: int) -> bool:
        is_special = id in definition.specials.ids
        return not is_special and not definition.decoder.token_bytes(id).strip(_BLANKS)

    first = len(ids) - len(definition.encoder.encode_pretoken(pretokens[-1].encode()))
    if is_blank(ids[first]):
        while first and is_blank(ids[first - 1]):
            first -= 1
    return ids[:first], definition.decoder.decode(ids[first:])


def _first_ids(definition: Definition, data: bytes, size: int) -> tuple[int, ...]:
    """The first ids of `data` that cover at least `size` bytes."""
    try:
        ordinary = definition.specials.ordinary
        ids = definition.engine.encode(data.decode(), ordinary, "strict", LIST)
    except UnicodeDecodeError:
        ids = definition.encoder.encode_pretoken(data)
    ends = itertools.accumulate(len(definition.decoder.token_bytes(id)) for id in ids)
    count = next((n for n, end in enumerate(ends, 1) if end >= size), len(ids))
    return tuple(ids[:count])
