"""Settings that all answers share: special tokens, errors, budgets."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .._core.encode import NO_SPECIAL, check_policy
from ..engines.protocol import NO_LIMIT
from ..engines.source_units import check_unit
from ..engines.template import NO_TEMPLATE, Template
from ..engines.texts import check_budget
from ..engines.trace import BEGINNING
from ..prompts import Prompt, prompt_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .._core.encode import Output, Tail
    from .._types import AllowedSpecial, DisallowedSpecial, IdArray, Text
    from ..definition import Defined
    from ..engines.prompt_encoder import PromptEncoder
    from ..engines.protocol import Result
    from .text_window import TextWindow

__all__ = ["Settings"]


class Settings:
    """An encoding and the settings of a call: which special tokens are matched, how invalid bytes
    are handled, and which ids go before and after those of the text (`template`).
    """

    prompts: PromptEncoder | None = None  # set for prompts only

    def __init__(
        self,
        encoding: Defined,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = (),
        errors: str = "strict",
        add_special_tokens: bool = False,
    ) -> None:
        """By default, special tokens are plain text.

        Raises the errors of `Encoding.encode` for bad values.
        """
        check_policy(errors)
        self.definition = definition = encoding.definition
        self.errors = errors
        self.template = definition.template if add_special_tokens else NO_TEMPLATE
        self.matcher = definition.specials.matcher(allowed_special, disallowed_special)
        self._allowed = allowed_special

    def of(self, text: Any) -> tuple[Settings, Any]:
        """(settings, text): for a Prompt or t-string, the settings for prompts and the Prompt.

        Anything else is returned unchanged. Raises UnsupportedPromptError, and ValueError for
        settings that contradict a prompt.
        """
        prompt = prompt_of(text)
        if prompt is None:
            return self, text
        from ..engines.prompt_encoder import check_allowed

        check_allowed(self._allowed)
        twin = copy.copy(self)
        twin.prompts = self.definition.prompts
        twin.matcher = twin.prompts.matcher
        return twin, prompt

    def opened(self, source: Any) -> tuple[Settings, TextWindow]:
        """As `of`, for a text or for chunks, which form a prompt if the first chunk is one."""
        from .text_window import TextWindow  # a counter needs neither this nor its imports

        text = TextWindow(source)
        return self.of(text.at(0, 0))[0], text

    def encode(self, text: Text | Prompt, output: Output[Result]) -> Result:
        """The ids of a whole text, without those of the template.

        Raises the errors of `Encoding.encode`.
        """
        if self.prompts is not None:
            return self.prompts.encode(text, self.errors, output)
        assert not isinstance(text, Prompt)
        return self.definition.engine.encode(text, self.matcher, self.errors, output)

    def tail(self, template: Template = NO_TEMPLATE) -> Tail:
        """The tail of a new stream with these settings.

        Raises the errors of `Encoding.stream_encoder`.
        """
        if self.prompts is not None:
            return self.prompts.tail(self.errors, template)
        return self.definition.engine.tail(self.matcher, self.errors, template)

    def encode_with_offsets(
        self, text: Text | Prompt, unit: str
    ) -> tuple[IdArray, npt.NDArray[np.int64]]:
        """See `Encoding.encode_with_offsets`; for streams, see `engines/trace.py`."""
        check_unit(unit)
        settings, text = self.of(text)
        tracer = settings.definition.tracer(settings.errors, settings.template)
        tail = settings.tail(settings.template)  # a stream of one chunk
        ids, spans, _ = tracer.encode(tail, BEGINNING, text, True, unit, NO_LIMIT)
        return ids, spans

    def budget(self, max_tokens: Any, least: int = 0) -> int:
        """How many of `max_tokens` ids are left for the text.

        Raises the errors of `check_budget`, and ValueError if the template leaves fewer than
        `least`.
        """
        left = check_budget("max_tokens", max_tokens, least) - self.template.size
        if left < least:
            raise ValueError(
                f"max_tokens must be at least {self.template.size + least}, not {max_tokens}: "
                f"add_special_tokens adds {self.template.size} ids to every text"
            )
        return left
