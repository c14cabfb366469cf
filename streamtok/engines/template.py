"""The ids that a template puts around a whole text, and streams that do so.

A model's own tokenizer may begin each text with a token such as `<s>`, and end it with another:
Hugging Face's post-processors do, and `add_bos_token` of a configuration. Here it is done only on
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.encode import OneCall, one_call
from ..errors import StateError

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import Text
    from .protocol import EngineStream
    from .source_units import SourceText

    Offsets = npt.NDArray[np.int64]

__all__ = ["NO_TEMPLATE", "Template", "TemplateStream", "fill"]


class Template(NamedTuple):
    """Ids before and after those of a text; none by default. It does not look at the text."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many ids these are."""
        return len(self.before) + len(self.after)

    def around(self, ids: Any, into: str) -> Any:
        """The ids with those of the template; `into`: as for `Engine.encode`."""
        if into == "count":
            return ids + self.size
        if into == "list":
            return [*self.before, *ids, *self.after]
        before, after = (np.array(part, np.uint32) for part in self)
        return np.concatenate([before, ids, after])

    def around_spans(self, spans: Offsets, source: SourceText, unit: str, errors: str) -> Offsets:
        """The spans, with empty ones for the template: at the beginning, and at the end."""
        after = np.empty((len(self.after), 2), np.int64)
        if self.after:
            end = np.array([source.end])
            after[:] = source.in_unit(end, end, unit, errors)[0][0]
        return np.concatenate([np.zeros((len(self.before), 2), np.int64), spans, after])


NO_TEMPLATE = Template()


class TemplateStream(OneCall):
    """Another stream, with the template around its ids.

    The beginning belongs to the first call, whatever that takes in: no later input can change it.
    The end belongs to the final call. Both kinds of calls work on a copy of the inner stream, which
    takes the place of the old one when nothing can fail any more.
    """

    __slots__ = ("_begun", "_template")

    _kind = "stream"

    fast = None  # the core knows no template
    path = None
    _begun: tuple[EngineStream, bool]  # the inner stream, and whether the beginning was given out

    def __init__(self, inner: EngineStream, template: Template, is_begun: bool = False) -> None:
        self._template = template
        self._begun = inner, is_begun

    @property
    def pending(self) -> int:
        return self._begun[0].pending

    @property
    def bytes_in(self) -> int:
        return self._begun[0].bytes_in

    @property
    def tokens_out(self) -> int:
        inner, is_begun = self._begun
        return inner.tokens_out + len(self._template.before) * is_begun

    @one_call
    def encode(self, chunk: Text, final: bool, into: str, out: Any, limit: int) -> Any:
        """See `EngineStream`."""
        inner, is_begun = self._begun
        if is_begun and not final:
            return inner.encode(chunk, False, into, out, limit)
        draft = inner.copy()
        ids = draft.encode(chunk, final, "array" if into == "buffer" else into, None, limit)
        if type(ids) is tuple:
            return ids  # a special token is refused
        added = Template(
            () if is_begun else self._template.before, self._template.after if final else ()
        )
        result = added.around(ids, into)
        if into == "buffer":
            draft.encode(b"", False, into, out, limit)  # raises if `out` is no such buffer
            result = fill(out, result)
        self._begun = draft, not final
        return result

    def copy(self) -> TemplateStream:
        inner, is_begun = self._begun
        return TemplateStream(inner.copy(), self._template, is_begun)

    def reset(self) -> None:
        fresh = self._begun[0].copy()
        fresh.reset()
        self._begun = fresh, False

    def getstate(self) -> tuple[str, bytes]:
        """See `EngineStream`. The state is that of the inner stream, after one byte."""
        inner, is_begun = self._begun
        half, state = inner.getstate()
        return half, bytes([is_begun]) + state

    def setstate(self, state: bytes, half: str) -> None:
        """See `EngineStream`."""
        if state[:1] not in (b"\0", b"\1"):
            raise StateError("the saved stream state is damaged: it does not say if it has begun")
        loaded = self._begun[0].copy()
        loaded.setstate(state[1:], half)
        is_begun = state[0] == 1
        if not is_begun and (loaded.bytes_in or loaded.pending or loaded.tokens_out or half):
            raise StateError("the saved stream state is damaged: it has text before its beginning")
        self._begun = loaded, is_begun


def fill(out: Any, ids: Any) -> int:
    """Copy an array of ids into a writable buffer of uint16 or uint32; their number."""
    view = memoryview(out)
    if len(view) < len(ids):
        raise ValueError(f"out has room for {len(view)} ids, {len(ids)} are ready")
    if view.itemsize == 2 and len(ids) and ids.max() > 0xFFFF:
        raise OverflowError(f"id {ids[ids > 0xFFFF][0]} does not fit into uint16")
    if len(ids):
        room = np.frombuffer(view, np.uint16 if view.itemsize == 2 else np.uint32)
        room[: len(ids)] = ids
    return len(ids)
