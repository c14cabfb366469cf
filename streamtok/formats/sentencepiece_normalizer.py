"""What a SentencePiece model does to a text before it merges: the settings of its normalizer.

A "▁" becomes a space, and a space is put before the text. `LongestMap` is the map, if there is one,
and `JoinedSpaces` is "remove_extra_whitespaces".

SentencePiece looks for user-defined symbols twice. In the text, the map leaves them as they are.
After the normalizer, what is one then becomes its id; so it need not have been one in the text.

These raise an error that names them: "escape_whitespaces" that is false; beside a map or
"remove_extra_whitespaces", user-defined symbols with spaces; beside both, a replacement with two
spaces, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..engines.rules import MARK, TextRules, TokenFlags
from ..errors import VocabularyError
from ..normalizers import JoinedSpaces, LongestMap, Normalizer, Prepend, Replace, Step
from .loading import errors_at, shown
from .protobuf import BYTES, VARINT, Value

__all__ = ["CHARSMAP", "DUMMY", "EXTRA", "KINDS", "changes_spaces_only", "flags_of", "rules_of"]

# Field numbers in sentencepiece_model.proto.
_NAME, CHARSMAP, DUMMY, EXTRA, _ESCAPE = range(1, 6)
KINDS = {_NAME: BYTES, CHARSMAP: BYTES, DUMMY: VARINT, EXTRA: VARINT, _ESCAPE: VARINT}
_TO_SPACES = Replace(MARK, " ")


def rules_of(
    settings: Mapping[int, Value],
    added: Mapping[str, int],
    unknown: Normalizer | None,
    source: str,
    symbols: tuple[str, ...] | None = None,
) -> TextRules:
    """The rules of a model, by its normalizer's settings and its user-defined symbols.

    unknown: what is done to unknown characters; None where they become the ids of bytes. symbols:
    user-defined ones of a model of pieces and finds them itself, in place of `added`.
    Missing settings have the defaults of sentencepiece_model.proto. By them, spaces at both ends
    and runs of spaces are removed, and a space is put before the text. Raises VocabularyError for
    settings that are not supported, and for a damaged map.
    """
    if not settings.get(_ESCAPE, 1):
        raise VocabularyError(f"{source}: escape_whitespaces=false is not supported")
    charsmap = settings.get(CHARSMAP, b"")
    puts, removes = bool(settings.get(DUMMY, 1)), bool(settings.get(EXTRA, 1))
    tokens = tuple(added.items())
    symbols = tuple(added) if symbols is None else symbols
    for symbol in symbols:
        if " " in symbol and (charsmap or removes):
            raise VocabularyError(
                f"{source}: the user-defined symbol {shown(symbol)} has a space, which is not "
                "supported beside a normalizer with a map or remove_extra_whitespaces"
            )
    steps: list[Step] = []
    if charsmap:
        assert isinstance(charsmap, bytes)
        try:
            step = LongestMap(bytes(charsmap), symbols, puts and not removes)
        except ValueError as error:
            raise VocabularyError(f"{source}: the normalizer's map is damaged: {error}") from None
        steps.append(step)
        if removes and any("  " in text for text in step.replacements()):
            raise VocabularyError(
                f"{source}: a map with two spaces in a row is not supported beside "
                "remove_extra_whitespaces"
            )
    steps.append(JoinedSpaces() if removes else _TO_SPACES)
    if puts and (removes or not charsmap):  # else the map does, also before a text that it drops
        steps.append(Prepend(" ", True))
    with errors_at(source):
        return TextRules(
            tokens,
            normalizer=Normalizer(steps),
            token_flags=flags_of(added),
            second_normalizer=unknown,
            drops_first_space=puts or removes,
            drops_first_spaces=removes,
        )


def flags_of(added: Iterable[str]) -> tuple[tuple[str, TokenFlags], ...]:
    """SentencePiece finds its symbols in the changed text."""
    return tuple((text, TokenFlags(normalized=True)) for text in added)


def changes_spaces_only(rules: TextRules) -> bool:
    """Whether the rules of a model change spaces and nothing else."""
    first = rules.normalizer.spec[0] if rules.normalizer else ()
    return first == _TO_SPACES.spec and rules.second_normalizer is None
