"""The ids that a template puts around a text.

A model's own tokenizer may begin each text with a token such as `<s>` and end it with another, as
Hugging Face's post-processors and `add_bos_token` in a configuration do. Here, such ids are added
only on request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from .source_units import SourceText

    Offsets = npt.NDArray[np.int64]

__all__ = ["NO_TEMPLATE", "Template"]


class Template(NamedTuple):
    """Ids to add before and after those of any text; none by default."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of ids in the template."""
        return len(self.before) + len(self.after)

    def around(self, ids: Any) -> Any:
        """`ids` (a list, an array, or their number) with the ids of the template around them."""
        if isinstance(ids, int):
            return ids + self.size
        if isinstance(ids, list):
            return [*self.before, *ids, *self.after]
        before, after = (np.array(part, np.uint32) for part in self)
        return np.concatenate([before, ids, after])

    def around_spans(self, spans: Offsets, source: SourceText, unit: str) -> Offsets:
        """The spans, with empty spans for the template's ids at the two ends of the text."""
        after = np.empty((len(self.after), 2), np.int64)
        if self.after:
            after[:] = source.in_unit(np.array([(source.end, source.end)]), unit)
        return np.concatenate([np.zeros((len(self.before), 2), np.int64), spans, after])


NO_TEMPLATE = Template()
