"""A round: an encoding, some texts, and every call; see `__init__.py`."""

from __future__ import annotations

import collections
import random

from streamtok import StreamtokError

from .calls import Ask, narrow_paths
from .refusals import EVERY, REFUSALS
from .subjects import any_subject
from .texts import random_size, random_text

TEXTS = 8  # of one encoding
# Characters: of a longer text, some calls are asked. Where text is changed before it is cut into
# pre-tokens, part of that is done in Python.
ASKED_OF_ALL, ASKED_OF_ALL_CHANGED = 5_000, 600
LONGEST_CHANGED = 20_000


def one_round(
    seed: int, family: str | None = None, most: int = 1 << 23
) -> collections.Counter[str]:
    """Make an encoding and texts, and ask for their ids; what was asked how often."""
    rng = random.Random(seed)
    counts: collections.Counter[str] = collections.Counter()
    subject = any_subject(rng, family)
    asked_of_all = ASKED_OF_ALL
    if subject.encoding.definition.texts.cuts is None:
        most, asked_of_all = min(most, LONGEST_CHANGED), ASKED_OF_ALL_CHANGED
    size = 0
    for _ in range(TEXTS):
        if size > 1 << 20:  # enough for this encoding
            break
        text: str | bytes = random_text(rng, subject, random_size(rng, most))
        size += len(text)
        errors = "strict"
        if rng.random() < 0.2:
            errors = rng.choice(["strict", "replace", "surrogateescape"])
            at = rng.randint(0, len(text))
            text = text[:at].encode() + rng.randbytes(rng.randint(1, 9)) + text[at:].encode()
        options = {
            "allowed_special": "all" if rng.random() < 0.7 else frozenset(),
            "disallowed_special": () if rng.random() < 0.8 else "all",
            "errors": errors,
        }
        ask = Ask(subject, text, options, rng.choice([1, 2, 4]), rng)
        try:
            ask.plain(text)
            calls = EVERY
            if errors == "strict" and isinstance(text, bytes):
                ask.text = text = text.decode()  # parts of it may end anywhere
        except (StreamtokError, ValueError, OverflowError):
            calls = REFUSALS
            counts["texts that are refused"] += 1
        names = [*calls]
        if len(text) > asked_of_all:
            names = rng.sample(names, min(len(names), 3 if len(text) < 1 << 19 else 2))
        for name in names:
            with narrow_paths(rng, ask.threads):
                try:
                    calls[name](ask)
                except AssertionError as error:
                    shown = text if len(text) < 200 else f"{len(text)} of {text[:100]!r}…"
                    raise AssertionError(
                        f"{subject.kind}, {name}: {error}\n  text {shown!r}\n  {options}"
                    ) from error
            counts[name] += 1
        counts["answers"] += ask.asked
        counts["texts"] += 1
        counts["characters"] += len(text)
    counts[f"of {subject.kind}"] += 1
    return counts
