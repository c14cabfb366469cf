"""The compiled form of a real tokenizer: an encoding, and the ids around those of a text.

Whatever is uncertain is compared with the real tokenizer: the ids that its template adds, their
types, and the ids of a few texts. If there is a difference, the real tokenizer does all the work.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import is_normalized

from tokenizers import Tokenizer as RealTokenizer  # before a program replaces it
from tokenizers.pre_tokenizers import ByteLevel

from .._core.encode import ALL, NO_SPECIAL
from ..engines.changing import can_overlap
from ..engines.rules import MARK
from ..errors import StreamtokError
from ..formats.loading import BYTE_TEXTS
from ..formats.tokenizer_objects import from_object
from ..threads import cached_property
from ..vocabulary.byte_alphabet import to_bytes
from ..vocabulary.table import NO_ID

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..formats.chat_template import ChatTemplate

__all__ = ["NOTHING", "Compiled", "Frame", "Piece", "Refusal", "compile_tokenizer"]

_PROBES = (
    "", "a", " a", "Hello, world! It's 2024.\n\n  def f(x):\treturn x", "naïve e\u0301 日本語 ﬁ Ａ",
    "🎉\U0001f468\u200d\U0001f469 \u2581x  \u00a0", "  ", "Don't stop   at 12345678 <s> [MASK] ",
)  # fmt: skip


class Frame(NamedTuple):
    """The ids before and after those of a text."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    has_types: bool = False  # whether an id may have a type other than 0

    @property
    def size(self) -> int:
        """The number of ids that the frame adds."""
        return len(self.before) + len(self.after)


class Refusal(Exception):
    """The reason why a tokenizer is not compiled."""


class Piece(NamedTuple):
    """The part of a stream of text that comes from one id."""

    data: bytes  # empty if there is no such id, or it is skipped
    text: str | None  # that of `data`; None if it is not whole characters, or if `is_byte`
    is_byte: bool  # a byte of byte_fallback, whose meaning depends on its neighbours


NOTHING = Piece(b"", None, False)


class Compiled:
    """An encoding with the two frames of a tokenizer: with special tokens, and without.

    It never changes, even if the real tokenizer does.
    """

    def __init__(self, encoding: Encoding, frames: tuple[Frame, Frame], json_text: str) -> None:
        """json_text: the tokenizer's JSON."""
        settings = json.loads(json_text)
        self.encoding = encoding
        self._json = json_text
        self._lock = threading.Lock()  # for `_real`
        self.plain, self.framed = frames
        added = settings["added_tokens"]
        self.special_ids = frozenset(token["id"] for token in added if token["special"])
        self.special_hides = _special_hides(added, settings)
        # Tokens that the real tokenizer may not decode to the same text as the encoding: those
        # found with spaces around them or in normalized text, and those in the byte alphabet.
        self.renamed = frozenset(
            token["id"]
            for token in added
            if token["lstrip"]
            or token["rstrip"]
            or token["normalized"]
            or not (token["content"].isascii() or to_bytes(token["content"]) is None)
        )
        self._has_offsets = _has_offsets(settings)
        steps = _steps(settings["normalizer"], "normalizers")
        self._keep_offsets = [_KEEP_OFFSETS[x["type"]] for x in steps if x["type"] in _KEEP_OFFSETS]
        decoder = settings["decoder"] or {}
        self.decodes_bytes = decoder.get("type") == "ByteLevel"
        self.decodes_words = decoder.get("type") == "WordPiece"
        # `decodes_spaces` is true with SentencePiece's decoder, unless tokens are in the byte
        # alphabet, or one may name a byte in a form that only Rust accepts.
        cuts = [cut["type"] for cut in _steps(settings["pre_tokenizer"], "pretokenizers")]
        is_known = decoder.get("decoders") in (_SPACES, [*_SPACES, _FIRST_SPACE])
        self.decodes_spaces = is_known and "ByteLevel" not in cuts
        self.byte_ids: frozenset[int] = frozenset()  # its ids of byte_fallback
        if self.decodes_spaces:
            names = [(token["content"], token["id"]) for token in added]
            vocabulary = settings["model"]["vocab"]
            if isinstance(vocabulary, dict):
                names += vocabulary.items()
            else:  # Unigram's ids are positions
                names += [(token, id) for id, (token, _) in enumerate(vocabulary)]
            named = {token: id for token, id in names if token.startswith("<0x")}
            self.decodes_spaces = named.keys() <= BYTE_TEXTS.keys()
            self.byte_ids = frozenset(named.values())
        # Whether decoding is a plain concatenation of tokens, of which the first may differ.
        self.decodes_pieces = self.decodes_bytes or self.decodes_spaces or self.decodes_words
        self.drops_space = self.decodes_spaces and len(decoder["decoders"]) == 4
        self._pieces: tuple[dict[int, Piece], dict[int, Piece]] = {}, {}
        self.chat_template = lru_cache(maxsize=8)(self._chat_template)

    def frame(self, add_special_tokens: bool) -> Frame:
        return self.framed if add_special_tokens else self.plain

    def offsets(self, text: str, encode_special_tokens: bool) -> list[tuple[int, int]] | None:
        """The span of each id in characters of the text; None if the real tokenizer may have
        different offsets, as it does where normalizers join or remove characters.
        """
        if not (self._has_offsets and all(keep(text) for keep in self._keep_offsets)):
            return None
        allowed: Any = NO_SPECIAL if encode_special_tokens else ALL
        _, spans = self.encoding.encode_with_offsets(
            text, allowed_special=allowed, disallowed_special=()
        )
        return list(zip(*spans.T.tolist(), strict=True))

    def encode_again(self, call: Any, row: int) -> Any:
        """The real encoding of one text of a `Call`, without padding."""
        with self._lock:
            real = self._real
            real.encode_special_tokens = call.now.encode_special_tokens
            if call.now.truncation is None:
                real.no_truncation()
            else:
                real.enable_truncation(**call.now.truncation._asdict())
            text, add_special_tokens = call.texts[row], call.add_special_tokens
            if call.has_offsets:
                return real.encode(text, add_special_tokens=add_special_tokens)
            return real.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0]

    @cached_property
    def _real(self) -> Any:
        """A copy of the real tokenizer as it was when compiled. The lock must be held."""
        return RealTokenizer.from_str(self._json)

    def _chat_template(self, source: str) -> ChatTemplate:
        """A compiled chat template. Raises MissingLibraryError without jinja2."""
        from ..formats.chat_template import ChatTemplate

        return ChatTemplate(source, self.encoding)

    def piece(self, id: int, skip_special_tokens: bool) -> Piece:
        """The piece of an id; only if `decodes_pieces` is true."""
        pieces = self._pieces[skip_special_tokens]
        try:
            return pieces[id]
        except KeyError:
            if not 0 <= id <= self.encoding.max_token_value:
                return NOTHING
            found = pieces[id] = self._piece(id, skip_special_tokens)
            return found

    def at_start(self, text: str, id: int, skip_special_tokens: bool) -> str:
        """The start of a decoded text. text: what it would be elsewhere; id: its last id."""
        if self.decodes_words:
            with self._lock:
                return self._real.decode([id], skip_special_tokens)  # type: ignore[no-any-return]
        return text.removeprefix(" ") if self.drops_space else text

    def _piece(self, id: int, skip_special_tokens: bool) -> Piece:
        if self.decodes_words:
            with self._lock:
                first, both = (self._real.decode([id] * n, skip_special_tokens) for n in (1, 2))
            text = both[len(first) :]
            return Piece(text.encode(), text, False) if both else NOTHING
        is_skipped = skip_special_tokens and id in self.special_ids
        name: str | None = None
        if id in self.renamed:
            with self._lock:
                real = self._real
                name = real.id_to_token(id)
                # tokenizers does not skip a special token that its normalizer changes. The first of
                # two ids may lose a space, so two are decoded.
                is_skipped = is_skipped and not real.decode([id, id], True)
        if is_skipped:
            return NOTHING
        try:
            data = self.encoding.definition.decoder.token_bytes(id)
        except KeyError:
            return NOTHING
        if name is not None and id not in self.byte_ids:
            data = (to_bytes(name) if self.decodes_bytes else None) or name.encode()
        if not data:
            return NOTHING
        if id in self.byte_ids:
            return Piece(data, None, True)
        if self.decodes_spaces:
            data = data.replace(MARK.encode(), b" ")
        try:
            return Piece(data, data.decode(), False)
        except UnicodeDecodeError:
            return Piece(data, None, False)


def compile_tokenizer(real: Any) -> Compiled:
    """Compile a `tokenizers.Tokenizer`, which is not changed. Raises Refusal."""
    try:
        bare = _without_settings(real)
        text = bare.to_str()
    except Exception as error:  # a part is written in Python
        raise Refusal(str(error)) from None
    try:
        encoding = from_object(bare, None)
    except StreamtokError as error:
        raise Refusal(str(error)) from None
    assert encoding is not None
    model, settings = encoding.definition.vocabulary.model, json.loads(text)
    if model is not None and model.unknown == NO_ID:
        raise Refusal("the model has no token for unknown text, which is an error")
    ids = settings["model"]["vocab"]
    if isinstance(ids, dict) and len(set(ids.values())) < len(ids):
        raise Refusal("an id has two texts, and the real tokenizer chooses one of them")
    try:
        frames = _frame(bare, encoding, False), _frame(bare, encoding, True)
        # In tokenizers, a special token that is added again without the flag stays special.
        added = [token["id"] for token in settings["added_tokens"]]
        if real.decode(added, True) != bare.decode(added, True):
            raise Refusal("an added token was special before it was added again")
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # it does not derive from Exception
            raise
        raise Refusal(f"the real tokenizer panics: {error}") from None
    return Compiled(encoding, frames, text)


def _without_settings(real: Any) -> Any:
    """A tokenizer of the same parts, with settings of its own: it neither truncates nor pads."""
    bare = RealTokenizer(real.model)
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        part = getattr(real, name)
        if part is not None:
            setattr(bare, name, part)
    added = real.get_added_tokens_decoder()
    bare.add_tokens([added[id] for id in sorted(added)])
    ids = {id: token.content for id, token in bare.get_added_tokens_decoder().items()}
    if ids != {id: token.content for id, token in added.items()}:
        raise Refusal("the added tokens have other ids than tokenizers would give them")
    return bare


def _frame(real: Any, encoding: Encoding, add_special_tokens: bool) -> Frame:
    template = encoding.definition.template
    before, after = (template.before, template.after) if add_special_tokens else ((), ())
    n_before, n_after = len(before), len(after)
    types: set[int] = set()
    for text in _PROBES:
        ids = encoding.encode(text, allowed_special="all")
        found = real.encode(text, add_special_tokens=add_special_tokens)
        if found.ids != [*before, *ids, *after]:
            raise Refusal(f"streamtok gives other ids for {text!r}")
        n = len(ids)
        types.update(found.type_ids)
        if (
            found.special_tokens_mask != [1] * n_before + [0] * n + [1] * n_after
            or found.sequence_ids != [None] * n_before + [0] * n + [None] * n_after
            or found.attention_mask != [1] * len(found)
            or found.n_sequences != 1
            or found.overflowing
        ):
            raise Refusal("the post-processor does more than add special tokens")
    return Frame(before, after, types != {0})


def _steps(part: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    """The steps of a normalizer or another part; nested sequences are flattened."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [step for inner in part[name] for step in _steps(inner, name)]
    return [part]


def _special_hides(added: list[dict[str, Any]], settings: dict[str, Any]) -> bool:
    """Whether a special token, found but read as text, may hide another token that starts in it, or
    be in the real tokenizer's ids after all, as a pre-token that is looked up.
    """
    model = settings["model"]
    special = [token["content"] for token in added if token["special"]]
    others = [token["content"] for token in added if not token["special"]]
    if model.get("ignore_merges") and not model["vocab"].keys().isdisjoint(special):
        return True
    if others and settings["normalizer"] and any(x["special"] and x["normalized"] for x in added):
        return True  # its normalized text is unknown
    return can_overlap(special, others)


def _has_offsets(settings: dict[str, Any]) -> bool:
    """Whether streamtok has the right offsets in text for which all of `_KEEP_OFFSETS` are true.

    It has them only with BERT's models and with BPE that has all bytes, if normalizers do nothing
    that is not known here.
    """
    model = settings["model"]
    steps = _steps(settings["normalizer"], "normalizers")
    cuts = {cut["type"] for cut in _steps(settings["pre_tokenizer"], "pretokenizers")}
    after = _steps(settings["post_processor"], "processors")
    if (
        any(token["lstrip"] or token["rstrip"] for token in settings["added_tokens"])
        or not {step["type"] for step in after} <= _TEMPLATES
        or any(step.get("trim_offsets") for step in after)
        or not all(step["type"] in _KEEP_OFFSETS or step in _MARKING for step in steps)
    ):
        return False
    if model["type"] == "WordPiece":
        return cuts <= {"BertPreTokenizer"}
    is_byte_level = "ByteLevel" in cuts
    return (
        model["type"] == "BPE"
        and not model["continuing_subword_prefix"]
        and not model["end_of_word_suffix"]
        and (is_byte_level or model["byte_fallback"])
        and {*(ByteLevel.alphabet() if is_byte_level else BYTE_TEXTS)} <= {*model["vocab"]}
        and cuts - {"ByteLevel" if is_byte_level else "Metaspace"} <= _CUTS
    )


# Functions that are false for a text from which a normalizer may remove or join characters. Of
# BertNormalizer these are few: ASCII, Latin letters and punctuation are enough for many texts.
_KEEP_OFFSETS: dict[str, Callable[[str], Any]] = {
    "BertNormalizer": re.compile("[\t\n\r -~\xa0-\xac\xae-\u02ff\u2010-\u2027]*").fullmatch,
    **{form: partial(is_normalized, form) for form in ("NFC", "NFD", "NFKC", "NFKD")},
}
_MARKING = (
    {"type": "Replace", "pattern": {"String": " "}, "content": MARK},
    {"type": "Prepend", "prepend": MARK},
)
_CUTS = {"Split", "Digits", "Punctuation"}
_TEMPLATES = {"ByteLevel", "TemplateProcessing", "BertProcessing"}
_SPACES = [
    {"type": "Replace", "pattern": {"String": MARK}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
]
_FIRST_SPACE = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
