"""Added tokens in a whole text, the obvious way: the oracle of `engines/added_tokens.py`."""

from __future__ import annotations

import regex

from streamtok.engines.rules import TokenFlags

_BLANKS = regex.compile(r"\p{White_Space}*")
_WORD = regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]")


def find_added_tokens(
    text: str, tokens: dict[str, tuple[int, TokenFlags]]
) -> list[tuple[int | None, str]]:
    """(id, "") of each token and (None, text) of each stretch, as `tokenizers` finds them."""
    found: list[tuple[int | None, str]] = []
    done = at = 0
    while at < len(text):
        here = [token for token in tokens if text.startswith(token, at)]
        if not here:
            at += 1
            continue
        token = max(here, key=len)
        start, stop = at, at + len(token)
        at = stop
        id, flags = tokens[token]
        if flags.single_word and (_WORD.match(text[:start][-1:]) or _WORD.match(text[stop:][:1])):
            continue
        if flags.lstrip:
            blanks = _BLANKS.match(text[:start][::-1])
            assert blanks
            start = max(start - blanks.end(), done)
        if flags.rstrip:
            blanks = _BLANKS.match(text[stop:])
            assert blanks
            stop += blanks.end()
        if done < start:
            found.append((None, text[done:start]))
        if start < stop:  # not one with lstrip among blanks that the token before it took
            found.append((id, ""))
        done = stop
    if done < len(text):
        found.append((None, text[done:]))
    return found
