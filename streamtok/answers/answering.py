"""The methods of `Encoding` that answer something about a text without making all of its ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from .._core.encode import ALL, NO_SPECIAL
from .._types import AllowedSpecial, DisallowedSpecial, SupportsRead, Text
from ..definition import EncodingDefinition

if TYPE_CHECKING:
    import re

    import numpy as np
    import numpy.typing as npt

    from .._types import IdArray
    from .counter import Counter
    from .document import Document
    from .drift import ContinuedStream
    from .splitting import Chunk
    from .text_settings import Settings
    from .truncation import Truncated

__all__ = ["AnsweringEncoding"]


class AnsweringEncoding(EncodingDefinition):
    """An encoding that can be asked for counts, budgets, chunks, and where ids came from.

    Special tokens in a text are plain text here unless it is said otherwise.
    """

    def counter(
        self,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = (),
        errors: str = "strict",
        max_pending: int | None = None,
        add_special_tokens: bool = False,
    ) -> Counter:
        """Counter: takes text in chunks, and says how many tokens it has so far."""
        from .counter import Counter

        return Counter(
            self,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
            add_special_tokens=add_special_tokens,
        )

    def fits(
        self, text: Text | Iterable[Text] | SupportsRead, max_tokens: int, **settings: Any
    ) -> bool:
        """bool: whether the text, or an iterable of its chunks, has at most `max_tokens` ids.

        Reads no further than it takes to know. max_tokens: 0 or more. settings: allowed_special,
        disallowed_special, errors, add_special_tokens (counts the template's ids, too).

        >>> enc.fits("hello world", 1)
        False
        """
        from .truncation import fits

        return fits(self, text, max_tokens, self._settings(**settings))

    def truncate(
        self,
        text: Text | Iterable[Text] | SupportsRead,
        max_tokens: int,
        side: Literal["right", "left"] = "right",
        boundary: Literal["character", "grapheme"] = "character",
        **settings: Any,
    ) -> Truncated:
        """Truncated(text, n_tokens, was_truncated): what is left if so many ids are the most.

        side: what is dropped, the end ("right") or the beginning ("left"). boundary: "grapheme"
        keeps whole what a reader takes for one character, such as a letter with its marks, a flag
        or a family of emoji. What is left is the most that is made of whole characters and of the
        first (last) tokens of the text and that has at most `max_tokens` ids itself, with those of
        add_special_tokens. Costs what is kept, not what is dropped. settings: as for `fits`. Raises
        ValueError where add_special_tokens alone adds more than `max_tokens` ids.

        >>> enc.truncate("hello world, how are you?", 3)
        Truncated(text='hello world,', n_tokens=3, was_truncated=True)
        """
        from .truncation import truncate

        return truncate(self, text, max_tokens, side, boundary, self._settings(**settings))

    def split(
        self,
        source: Text | Iterable[Text] | SupportsRead,
        max_tokens: int,
        overlap: int = 0,
        boundary: str | re.Pattern[Any] = "character",
        **settings: Any,
    ) -> Iterator[Chunk]:
        """Iterator[Chunk(text, start, stop, n_tokens)]: chunks of at most `max_tokens` ids each.

        overlap: how many tokens of a chunk, at most, the next one begins with. boundary: chunks
        end behind a "paragraph", "line", "pretoken", "grapheme" (a letter with its marks, a flag, a
        family of emoji), "character" or a match of a regular expression; where one of these is too
        far, behind the next finer one. Reads the source as chunks are taken, and holds no more than
        one. settings: as for `fits`.

        >>> [chunk.text for chunk in enc.split("one two three four five", 2)]
        ['one two', ' three four', ' five']
        """
        from .splitting import split

        return split(self, source, max_tokens, overlap, boundary, self._settings(**settings))

    def encode_with_offsets(
        self, text: Text, unit: str = "character", **settings: Any
    ) -> tuple[IdArray, npt.NDArray[np.int64]]:
        """(ids, spans): the ids of `encode_to_numpy`, and an int64 [n, 2] of where they came from.

        unit: "byte" (of UTF-8), "character" (of a str, also of one that bytes decode to) or
        "utf16". A span covers every character that its token touches; in bytes it is exact but
        where a character was repaired or changed by a normalizer, and all of that counts. settings:
        as for `encode`; ids of add_special_tokens have empty spans at the two ends. Raises
        as `encode`; UnsupportedPatternError where text is changed and then cut by a pattern that
        has no tables or leaves text out.

        >>> ids, spans = enc.encode_with_offsets("naïve text")
        >>> [("naïve text"[start:stop]) for start, stop in spans]
        ['na', 'ïve', ' text']
        """
        from .token_spans import encode_with_offsets

        return encode_with_offsets(self, text, unit, self._encode_settings(**settings))

    def encode_batch_with_offsets(
        self,
        texts: Sequence[Text],
        unit: str = "character",
        *,
        num_threads: int = 8,
        **settings: Any,
    ) -> list[tuple[IdArray, npt.NDArray[np.int64]]]:
        """list[(ids, spans)]: `encode_with_offsets` of each text, on several threads.

        >>> [spans.tolist() for ids, spans in enc.encode_batch_with_offsets(["a b", "é"], "byte")]
        [[[0, 1], [1, 3]], [[0, 2]]]
        """
        from ..parallel.threads import map_in_threads
        from .token_spans import encode_with_offsets

        known = self._encode_settings(**settings)
        return map_in_threads(
            lambda text: encode_with_offsets(self, text, unit, known), texts, num_threads
        )

    def document(self, text: str = "", **settings: Any) -> Document:
        """Document: a text that is edited, whose ids follow each edit.

        settings: as for `fits`.

        >>> doc = enc.document("hello wor")
        >>> doc.append("ld")
        Change(first=1, removed=1, added=[995])
        """
        from .document import Document

        return Document(self, text, self._settings(**settings))

    def is_canonical(self, ids: Iterable[int] | IdArray) -> bool:
        """bool: whether these ids are those that their text is encoded to.

        Special ids are taken for what they are. Raises KeyError for an id that there is not.
        """
        return self.first_drift(ids) is None

    def first_drift(self, ids: Iterable[int] | IdArray) -> int | None:
        """int | None: the index of the first id that encoding the ids' text would not give.

        >>> enc.first_drift([31373, 266, 1764]), enc.encode("hello world")
        (1, [31373, 995])
        """
        from .drift import first_drift

        return first_drift(self, ids)

    def continue_from(
        self,
        ids: Iterable[int] | IdArray,
        *,
        allowed_special: AllowedSpecial = NO_SPECIAL,
        disallowed_special: DisallowedSpecial = (),
        errors: str = "strict",
        max_pending: int | None = None,
    ) -> ContinuedStream:
        """ContinuedStream: a stream behind these ids, as if their text had been fed to it.

        `ids[:stream.kept] + stream.corrected`, and then what the stream gives, are the ids of all
        of the text. `corrected` is empty if the ids are those of their text. Costs O(len(ids)).

        >>> stream = enc.continue_from(enc.encode("hello wor"))
        >>> stream.kept, stream.encode("ld", final=True)
        (1, [995])
        """
        from .drift import continue_from

        return continue_from(
            self,
            ids,
            allowed_special=allowed_special,
            disallowed_special=disallowed_special,
            errors=errors,
            max_pending=max_pending,
        )

    def _encode_settings(self, **settings: Any) -> Settings:
        return self._settings(**{"disallowed_special": ALL, **settings})

    def _settings(self, **settings: Any) -> Settings:
        from .text_settings import Settings

        known: dict[str, Any] = {
            "allowed_special": NO_SPECIAL,
            "disallowed_special": (),
            "errors": "strict",
            "add_special_tokens": False,
        }
        for name in settings.keys() - known.keys():
            raise TypeError(f"unknown setting {name!r}: expected one of {', '.join(known)}")
        return Settings(self, **{**known, **settings})

    def _encode_first(
        self,
        text: Text,
        allowed_special: AllowedSpecial,
        disallowed_special: DisallowedSpecial,
        errors: str,
        max_tokens: int,
        add_special_tokens: bool = False,
    ) -> list[int]:
        """`encode` with `max_tokens`."""
        from .text_settings import Settings
        from .truncation import encode_first

        settings = Settings(self, allowed_special, disallowed_special, errors)
        ids = encode_first(self, text, max_tokens, settings)
        return self._template.around(ids, "list")[:max_tokens] if add_special_tokens else ids
