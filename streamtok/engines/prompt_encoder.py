"""Encode prompts, by the rules of `reference/renaming.py`.

A `ControlFinder` finds the control tokens in each run of control. The core does the rest: it takes
a sequence of texts and tokens (`Tail.encode`) and finds only the added tokens that are not control.
So added tokens, normalizers, pre-tokens and merges may cross the borders of spans.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.encode import (
    LIST,
    GivenToken,
    PromptRules,
    SpecialMatcher,
    check_policy,
    repaired,
    text_bytes,
)
from ..errors import UnsupportedPromptError
from ..prompts import Control, Prompt
from ..threads import check_threads
from .changing import ChangingEngine
from .control_finder import ControlFinder, SoughtToken
from .plain import CoreEngine
from .protocol import NO_LIMIT
from .rules import MARK, TokenFlags
from .template import NO_TEMPLATE, Template
from .texts import TextEncoder, check_budget, first_ids

if TYPE_CHECKING:
    from .._core.encode import Encoder, Output, Tail
    from .._types import AllowedSpecial, DisallowedSpecial, Text
    from ..normalizers import Normalizer
    from ..patterns.pattern import Pattern
    from ..special_tokens import SpecialTokens
    from .protocol import Engine, Result
    from .rules import TextRules

__all__ = ["PlainTexts", "PromptEncoder", "is_blank", "repaired_prompt"]

_NO_FLAGS = TokenFlags()
_BLANKS = f" \t\n\r{MARK}"


class PlainTexts:
    """Encodes texts in which some tokens of an encoding are plain text."""

    def __init__(
        self,
        engine: Engine,
        encoder: Encoder,
        pattern: Pattern | None,
        specials: SpecialTokens,
        rules: TextRules,
        control: frozenset[str],
    ) -> None:
        """engine, encoder, pattern: as for `TextEncoder`. control: the tokens to treat as plain
        text, like all special tokens.
        """
        flags = dict(rules.token_flags)
        self.tokens = [
            SoughtToken(text, id, flags.get(text, _NO_FLAGS), text in control)
            for text, id in specials.preferred
            if text in control or text in specials.added
        ]
        others = [(token.text, token.id) for token in self.tokens if not token.is_control]
        self.matcher = SpecialMatcher(others, frozenset(text for text, _ in others), ())
        if isinstance(engine, ChangingEngine):
            given = [token.flags for token in self.tokens if token.is_control]
            engine = ChangingEngine(encoder, rules, others, given)
        self.engine = engine
        self.texts = TextEncoder(engine, encoder, pattern, specials, NO_TEMPLATE)

    def made(self, tokens: Mapping[str, int], shapes: Sequence[str]) -> frozenset[str]:
        """The tokens that plain text can produce.

        A token is one of them if its id occurs in the ids of one of these shapes, with the token's
        text in place of "*".
        """
        texts = [shape.replace("*", text) for text in tokens for shape in shapes]
        rows = iter(self.texts.encode_batch(texts, self.matcher, "strict", 1))
        return frozenset(
            text
            for text, id in tokens.items()
            if any([id in row for row in itertools.islice(rows, len(shapes))])
        )


class PromptEncoder(PlainTexts):
    """Encodes the prompts of an encoding. Immutable, shared by threads."""

    def __init__(self, *parts: Any, unknown: Collection[int | str] = ()) -> None:
        """parts: as for `PlainTexts`. unknown: the ids or texts of tokens for unknown text.

        Raises UnsupportedPromptError for an encoding that cannot keep control and text apart,
        because a control token is found in normalized text only, or plain text can produce one.
        """
        super().__init__(*parts)
        rules, self.control = parts[-2:]
        first, late = self.tokens, []
        if isinstance(self.engine, ChangingEngine):
            first = [token for token in self.tokens if not token.flags.normalized]
            late = [token for token in self.tokens if token.flags.normalized]
            if rules.normalizer:
                _check_normalized(late, rules.normalizer)
        self.finder = ControlFinder(first, late)
        # None: prompts are encoded as streams, since normalized text may contain control tokens.
        self.rules: PromptRules | None = None
        if self.texts.is_direct and not any(token.is_control for token in late):
            change = self.engine.rules(self.matcher)
            self.rules = PromptRules((Control, Prompt), self.finder, change)
        protected = {
            token.text: token.id
            for token in self.tokens
            if token.is_control and token.id not in unknown and token.text not in unknown
        }
        made = [*self.made(protected, ["*", " *", "a*", "a * a"])]
        if isinstance(self.engine, ChangingEngine):
            # In those shapes, a normalizer may join something to the token, such as "▁", but
            # not in the middle of a text, where the pattern may cut around it.
            bare = CoreEngine(self.texts.encoder)
            for text, id in protected.items():
                middle = text
                for normalizer in filter(None, (rules.normalizer, rules.second_normalizer)):
                    middle = normalizer.apply(middle, 0)
                if id in bare.encode(middle, self.matcher, "strict", LIST):
                    made.append(text)
        for text in made:
            raise UnsupportedPromptError(
                f"the model can also make the control token {text!r} from plain text, so this "
                "encoding cannot keep control and text apart; with_control_tokens can leave it out"
            )

    def encode_any(
        self,
        prompt: Prompt,
        template: Template,
        allowed_special: AllowedSpecial,
        _: DisallowedSpecial,
        errors: str,
        output: Output[Any],
        add_special_tokens: bool = False,
        num_threads: int = 1,
        max_tokens: int | None = None,
    ) -> Any:
        """Like `TextEncoder.encode`. Raises ValueError for settings that contradict a prompt."""
        check_allowed(allowed_special)
        check_policy(errors)
        check_threads(num_threads)
        if not add_special_tokens:
            template = NO_TEMPLATE
        if max_tokens is None:
            return template.around(self.encode(prompt, errors, output))
        budget = check_budget("max_tokens", max_tokens)
        return first_ids(repaired_prompt(prompt), self.tail(errors, template), budget)

    def tail(self, errors: str, template: Template = NO_TEMPLATE) -> Tail:
        """A new stream of prompts in the core; its chunks may also be text.

        Raises UnsupportedPatternError for a pattern that cuts whole texts only.
        """
        return self.engine.tail(self.matcher, errors, template, self.finder)

    def encode(self, prompt: Prompt | Text, errors: str, output: Output[Result]) -> Result:
        """The ids of a whole prompt in the form of `output`."""
        if not self.texts.is_direct:
            return output.of(self._by_segments(prompt, errors))
        if self.rules is None or not isinstance(prompt, Prompt):
            return self.tail(errors).encode(prompt, True, output, NO_LIMIT)
        return self.rules.encode(self.texts.encoder, prompt, errors, output)

    def _by_segments(self, prompt: Prompt | Text, errors: str) -> Any:
        """The ids if the pattern cuts whole texts only; text between tokens counts as whole."""
        parts, _, _ = self.finder.parts(prompt, None, True)
        ids: list[int] = []
        for is_token, group in itertools.groupby(parts, lambda part: type(part) is GivenToken):
            if is_token:
                ids += [token.id for token in group]
                continue
            text = b"".join([text_bytes(part, errors) for part in group if part is not None])
            made: list[int] = self.engine.encode(text, self.matcher, errors, LIST)
            ids += made
        return np.array(ids, np.uint32)


def check_allowed(allowed_special: AllowedSpecial) -> None:
    """Raise ValueError for a setting that contradicts a prompt."""
    if allowed_special != "all" and allowed_special:
        raise ValueError(
            'for a Prompt, allowed_special must be the default or "all", not '
            f"{allowed_special!r}: its control says which special tokens are meant"
        )


def is_blank(text: str) -> bool:
    """Whether a token consists of spaces, tabs and line ends."""
    return not text.strip(_BLANKS)


def repaired_prompt(prompt: Prompt) -> Prompt:
    """The prompt without surrogates other than escaped bytes, so that no cut divides a pair."""
    parts = [(repaired(text, "surrogateescape"), control) for text, control in prompt.spans]
    return Prompt(*[Control(text) if control else text for text, control in parts])


def _check_normalized(tokens: Iterable[SoughtToken], normalizer: Normalizer) -> None:
    """Raise UnsupportedPromptError if one of `tokens`, found in normalized text only, is control.

    The only steps allowed replace a single character by another; neither may occur in a token.
    """
    control = [token.text for token in tokens if token.is_control]
    kept = {*"".join([token.text for token in tokens])}
    for kind, *replaced in normalizer.spec if control else ():
        if kind != "Replace" or [*map(len, replaced)] != [1, 1] or kept.intersection(replaced):
            raise UnsupportedPromptError(
                f"the control token {control[0]!r} is found in normalized text only, where it and "
                "the text around it may have changed, so this encoding cannot keep control and "
                "text apart; with_control_tokens can leave it out"
            )
