"""The normalizer of a SentencePiece model, which changes a text before it is encoded.

A "▁" becomes a space, and a space is put before the text. `LongestMap` applies the map, if there is
one, and `JoinedSpaces` implements "remove_extra_whitespaces".

SentencePiece looks for user-defined symbols twice: the map leaves symbols in the original text
unchanged, and symbols in the normalized text become their ids, even where the original text had
none.

The following raise an error that names them: "escape_whitespaces" set to false; user-defined
symbols with spaces, together with a map or "remove_extra_whitespaces"; and a map that writes two
spaces in a row, together with "remove_extra_whitespaces".
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
    """The text rules of a model, from its normalizer's settings and its user-defined symbols.

    added: ids by symbol, if the symbols are to be added tokens. symbols: the symbols of a model
    that finds them itself, in place of `added`. unknown: the normalizer of unknown characters; None
    if they become the ids of bytes. Missing settings have the defaults of
    sentencepiece_model.proto: spaces at both ends are removed, runs of spaces become one, and a
    space is put before the text. Raises VocabularyError for settings that are not supported, and
    for a damaged map.
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
            step = LongestMap(charsmap, symbols, puts and not removes)
        except ValueError as error:
            raise VocabularyError(f"{source}: the normalizer's map is damaged: {error}") from None
        steps.append(step)
        if removes and any("  " in text for text in step.replacements()):
            raise VocabularyError(
                f"{source}: a map with two spaces in a row is not supported beside "
                "remove_extra_whitespaces"
            )
    steps.append(JoinedSpaces() if removes else _TO_SPACES)
    if puts and (removes or not charsmap):  # else the map puts it, even if it removes the text
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
    """The flags of user-defined symbols, which SentencePiece finds in the normalized text."""
    return tuple((text, TokenFlags(normalized=True)) for text in added)


def changes_spaces_only(rules: TextRules) -> bool:
    """Whether the text rules of a model change only spaces."""
    first = rules.normalizer.spec[0] if rules.normalizer else ()
    return first == _TO_SPACES.spec and rules.second_normalizer is None
