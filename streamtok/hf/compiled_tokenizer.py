"""What a real tokenizer is compiled to: an encoding, and what the real one puts around its ids.

Whatever is not certain is asked of the real tokenizer: what its template adds, of which type its
ids are, and the ids of a few texts. Where an answer is another than streamtok's, the real one stays
in charge.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.encode import ALL, NO_SPECIAL, token_spans
from .._core.hf_rows import pairs
from ..errors import StreamtokError
from ..formats.tokenizer_objects import from_object

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["Compiled", "Frame", "Refusal", "compile_tokenizer", "texts_of"]

_PROBES = (
    "", "a", " a", "Hello, world! It's 2024.\n\n  def f(x):\treturn x", "naïve e\u0301 日本語 ﬁ Ａ",
    "🎉\U0001f468\u200d\U0001f469 \u2581x  \u00a0", "  ", "Don't stop   at 12345678 <s> [MASK] ",
)  # fmt: skip


class Frame(NamedTuple):
    """The ids around those of a text, and the type of each part."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    before_types: tuple[int, ...]
    type: int
    after_types: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many ids it adds."""
        return len(self.before) + len(self.after)


class Refusal(Exception):
    """Why a tokenizer is not compiled."""


class Compiled:
    """An encoding with the two frames of a tokenizer: with special tokens, and without."""

    def __init__(self, encoding: Encoding, frames: tuple[Frame, Frame], settings: Any) -> None:
        """settings: the tokenizer's JSON without its vocabulary."""
        self.encoding = encoding
        self.plain, self.framed = frames
        self.names_are_tokens = settings["model"]["type"] in ("BPE", "WordPiece", "WordLevel")
        added = settings["added_tokens"]
        self.special_ids = frozenset(token["id"] for token in added if token["special"])
        # A token that is found with spaces around it, or in changed text, is called by that text.
        self.renamed = frozenset(
            token["id"]
            for token in added
            if token["lstrip"] or token["rstrip"] or token["normalized"]
        )
        self.has_spans = (
            encoding._is_plain
            and encoding.pattern is not None
            and encoding.pattern.is_total
            and settings["normalizer"] is None
            and not any(token["lstrip"] or token["rstrip"] for token in added)
            and _keeps_offsets(settings["post_processor"])
        )
        decoder = settings["decoder"] or {}
        self.decodes_bytes = decoder.get("type") == "ByteLevel"
        self.decodes_spaces = _is_of_spaces(decoder)
        self.drops_space = self.decodes_spaces and len(decoder["decoders"]) == 4
        self.texts: list[bytes | None] = []  # of each id, for such a decoder; when it is needed
        self.names: dict[int, str] = {}  # of ids that were asked for
        self._pieces: tuple[dict[int, tuple[str, str] | None], ...] = {}, {}
        self.json: str | None = None  # of the tokenizer as it was, once it has changed

    def spans(self, text: str, encode_special_tokens: bool) -> list[tuple[int, int]]:
        """The characters of each id of a text. Only where `has_spans`: then they are the real ones.

        In bytes that are tokens as they stand, each stands for the characters that it touches.
        """
        allowed: Any = NO_SPECIAL if encode_special_tokens else ALL
        sizes = self.encoding._token_sizes.table
        if sizes is None or self.encoding._vocabulary.model is not None:
            _, spans = self.encoding.encode_with_offsets(
                text, allowed_special=allowed, disallowed_special=()
            )
            return pairs(spans)
        # The tokens are all of the text, so their sizes say where they are.
        ids = self.encoding.encode_to_numpy(text, allowed_special=allowed, disallowed_special=())
        spans = token_spans(ids, sizes, None if text.isascii() else text, False)
        return pairs(spans)

    def piece(self, id: int, skip_special_tokens: bool) -> tuple[str, str] | None:
        """The text of an id after whole characters, and that of the id alone; None where it is not
        sure, or the id ends inside a character.
        """
        pieces = self._pieces[skip_special_tokens]
        try:
            return pieces[id]
        except KeyError:
            if not 0 <= id <= self.encoding.max_token_value:
                return None
            found = pieces[id] = self._piece(id, skip_special_tokens)
            return found

    def _piece(self, id: int, skip_special_tokens: bool) -> tuple[str, str] | None:
        if id in self.renamed or (skip_special_tokens and id in self.special_ids):
            return None
        try:
            data = self.encoding._decoder.token_bytes(id) if self.decodes_bytes else self.texts[id]
            text = data.decode() if data is not None else ""
        except (KeyError, IndexError, UnicodeDecodeError):
            return None
        if not text or text.endswith("\ufffd"):
            return None
        return text, text.removeprefix(" ") if self.drops_space else text

    def frame(self, add_special_tokens: bool) -> Frame:
        return self.framed if add_special_tokens else self.plain


def compile_tokenizer(real: Any) -> Compiled:
    """real: a `tokenizers.Tokenizer` without truncation and padding. Raises Refusal."""
    try:
        encoding = from_object(real, None)
    except StreamtokError as error:
        raise Refusal(str(error)) from None
    assert encoding is not None
    try:
        frames = _frame(real, encoding, False), _frame(real, encoding, True)
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # it is not an Exception
            raise
        raise Refusal(f"the real tokenizer panics: {error}") from None
    settings = json.loads(real.to_str())
    settings["model"] = {"type": settings["model"]["type"]}
    return Compiled(encoding, frames, settings)


def _frame(real: Any, encoding: Encoding, add_special_tokens: bool) -> Frame:
    template = encoding._template if add_special_tokens else type(encoding._template)()
    n_before, n_after = len(template.before), len(template.after)
    types: tuple[Any, ...] = ()
    for text in _PROBES:
        ids = encoding.encode(text, allowed_special="all")
        found = real.encode(text, add_special_tokens=add_special_tokens)
        if found.ids != [*template.before, *ids, *template.after]:
            raise Refusal(f"streamtok gives other ids for {text!r}")
        n = len(ids)
        mask = [1] * n_before + [0] * n + [1] * n_after
        sequences = [None] * n_before + [0] * n + [None] * n_after
        found_types = found.type_ids
        end = n_before + n
        inner = set(found_types[n_before:end])
        if (
            found.special_tokens_mask != mask
            or found.sequence_ids != sequences
            or found.attention_mask != [1] * len(mask)
            or found.n_sequences != 1
            or found.overflowing
            or len(inner) > 1
        ):
            raise Refusal("the post-processor does more than to add special tokens")
        if inner:
            types = tuple(found_types[:n_before]), *inner, tuple(found_types[end:])
    if not types:
        raise Refusal("no text has ids")
    return Frame(template.before, template.after, *types)


def _keeps_offsets(post_processor: dict[str, Any] | None) -> bool:
    """Whether it leaves the offsets of a text's ids as they are."""
    if post_processor is None or post_processor["type"] == "TemplateProcessing":
        return True
    if post_processor["type"] == "Sequence":
        return all(map(_keeps_offsets, post_processor["processors"]))
    return post_processor["type"] == "ByteLevel" and not post_processor["trim_offsets"]


def _is_of_spaces(decoder: dict[str, Any]) -> bool:
    """Whether it is that of SentencePiece's vocabularies: each id has a text of its own."""
    steps = decoder.get("decoders", [])
    return steps in (_SPACES, [*_SPACES, _FIRST_SPACE])


_SPACES = [
    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
]
_FIRST_SPACE = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


def texts_of(vocabulary: dict[str, int]) -> list[bytes | None]:
    """The text of each id for such a decoder; None where it is not certain, or there is none."""
    texts: list[bytes | None] = [None] * (max(vocabulary.values(), default=-1) + 1)
    for token, id in vocabulary.items():
        found = _BYTE.fullmatch(token)
        if found is not None:
            texts[id] = bytes.fromhex(found[1])
        elif not token.startswith("<0x"):
            texts[id] = token.replace("\u2581", " ").encode()
    return texts
