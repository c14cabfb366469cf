"""What a real tokenizer is compiled to: an encoding, and what the real one puts around its ids.

Whatever is not certain is asked of the real tokenizer: what its template adds, of which type its
ids are, and the ids of a few texts. Where an answer is another than streamtok's, the real one stays
in charge.
"""

from __future__ import annotations

import json
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import is_normalized

from tokenizers import Tokenizer as RealTokenizer  # also where streamtok's is in its place
from tokenizers.pre_tokenizers import ByteLevel

from .._core.encode import ALL, NO_SPECIAL
from ..engines.changing import can_overlap
from ..engines.rules import MARK
from ..errors import StreamtokError
from ..formats.loading import BYTE_TEXTS
from ..formats.tokenizer_objects import from_object
from ..vocabulary.byte_alphabet import to_bytes
from ..vocabulary.table import NO_ID

if TYPE_CHECKING:
    from ..encoding import Encoding
    from ..formats.chat_template import ChatTemplate

__all__ = ["Compiled", "Frame", "Piece", "Refusal", "compile_tokenizer"]

_PROBES = (
    "", "a", " a", "Hello, world! It's 2024.\n\n  def f(x):\treturn x", "naïve e\u0301 日本語 ﬁ Ａ",
    "🎉\U0001f468\u200d\U0001f469 \u2581x  \u00a0", "  ", "Don't stop   at 12345678 <s> [MASK] ",
)  # fmt: skip


class Frame(NamedTuple):
    """The ids around those of a text."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    has_types: bool = False  # whether an id may be of another type than 0

    @property
    def size(self) -> int:
        """How many ids it adds."""
        return len(self.before) + len(self.after)


class Refusal(Exception):
    """Why a tokenizer is not compiled."""


class Piece(NamedTuple):
    """What an id gives to a stream of text."""

    data: bytes  # of nothing if there is no such id, or it is skipped
    text: str | None  # of these bytes; None where they are not whole characters, or `is_byte`
    is_byte: bool  # a byte of byte_fallback, whose neighbours say what it is


_NOTHING = Piece(b"", None, False)


class Compiled:
    """An encoding with the two frames of a tokenizer: with special tokens, and without.

    It never changes, and neither does what it says of the real tokenizer.
    """

    def __init__(self, encoding: Encoding, frames: tuple[Frame, Frame], json_text: str) -> None:
        """json_text: the tokenizer's JSON."""
        settings = json.loads(json_text)
        self.encoding = encoding
        self._json = json_text
        self._copy: Any = None  # a real tokenizer that nobody else has, once it is needed
        self._lock = threading.Lock()  # for it
        self.plain, self.framed = frames
        added = settings["added_tokens"]
        self.special_ids = frozenset(token["id"] for token in added if token["special"])
        self.special_hides = _special_hides(added, settings["normalizer"])
        # A token that is found with spaces around it, or in changed text, is called by that text.
        # One of the byte alphabet's letters is decoded as bytes, which ours is not. The text of
        # these may be other than what the encoding decodes them to.
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
        self._forms = [step["type"] for step in steps]  # where it has offsets
        decoder = settings["decoder"] or {}
        self.decodes_bytes = decoder.get("type") == "ByteLevel"
        # By SentencePiece's decoder, unless tokens are letters of bytes, or a token may be the name
        # of a byte that Rust alone reads.
        cuts = [cut["type"] for cut in _steps(settings["pre_tokenizer"], "pretokenizers")]
        is_known = decoder.get("decoders") in (_SPACES, [*_SPACES, _FIRST_SPACE])
        self.decodes_spaces = is_known and "ByteLevel" not in cuts
        self.byte_ids: frozenset[int] = frozenset()  # those of byte_fallback there
        if self.decodes_spaces:
            names = [(token["content"], token["id"]) for token in added]
            vocabulary = settings["model"]["vocab"]
            if isinstance(vocabulary, dict):
                names += vocabulary.items()
            else:  # Unigram's ids are places
                names += [(token, id) for id, (token, _) in enumerate(vocabulary)]
            named = {token: id for token, id in names if token.startswith("<0x")}
            self.decodes_spaces = named.keys() <= BYTE_TEXTS.keys()
            self.byte_ids = frozenset(named.values())
        # Whether the text of ids is that of each, one after the other.
        self.decodes_pieces = self.decodes_bytes or self.decodes_spaces
        self.drops_space = self.decodes_spaces and len(decoder["decoders"]) == 4
        self._pieces: tuple[dict[int, Piece], dict[int, Piece]] = {}, {}
        self.chat_template = lru_cache(maxsize=8)(self._chat_template)

    def frame(self, add_special_tokens: bool) -> Frame:
        return self.framed if add_special_tokens else self.plain

    def offsets(self, text: str, encode_special_tokens: bool) -> list[tuple[int, int]] | None:
        """The characters that each id of a text stands for; None where the real tokenizer must be
        asked: it counts otherwise where normal forms join characters.
        """
        if not (self._has_offsets and all(is_normalized(form, text) for form in self._forms)):
            return None
        allowed: Any = NO_SPECIAL if encode_special_tokens else ALL
        _, spans = self.encoding.encode_with_offsets(
            text, allowed_special=allowed, disallowed_special=()
        )
        return list(zip(*spans.T.tolist(), strict=True))

    def encode_again(self, call: Any, row: int) -> Any:
        """The real encoding of a text, without padding. call: a `Call`."""
        with self._lock:
            real = self._real()
            real.encode_special_tokens = call.now.encode_special_tokens
            if call.now.truncation is None:
                real.no_truncation()
            else:
                real.enable_truncation(**call.now.truncation._asdict())
            text, add_special_tokens = call.texts[row], call.add_special_tokens
            if call.has_offsets:
                return real.encode(text, add_special_tokens=add_special_tokens)
            return real.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0]

    def _real(self) -> Any:
        """A real tokenizer as the one that this was compiled of then was. Under the lock."""
        if self._copy is None:
            self._copy = RealTokenizer.from_str(self._json)
        return self._copy

    def _chat_template(self, source: str) -> ChatTemplate:
        """A chat template, compiled once. Raises MissingLibraryError without jinja2."""
        from ..formats.chat_template import ChatTemplate

        return ChatTemplate(source, self.encoding)

    def piece(self, id: int, skip_special_tokens: bool) -> Piece:
        """What an id gives to a text, where `decodes_pieces`."""
        pieces = self._pieces[skip_special_tokens]
        try:
            return pieces[id]
        except KeyError:
            if not 0 <= id <= self.encoding.max_token_value:
                return _NOTHING
            found = pieces[id] = self._piece(id, skip_special_tokens)
            return found

    def _piece(self, id: int, skip_special_tokens: bool) -> Piece:
        is_skipped = skip_special_tokens and id in self.special_ids
        name: str | None = None
        if id in self.renamed:
            with self._lock:
                real = self._real()
                name = real.id_to_token(id)
                # One that its normalizer changes is not known to be special there. The first of two
                # may lose a space.
                is_skipped = is_skipped and not real.decode([id, id], True)
        if is_skipped:
            return _NOTHING
        try:
            data = self.encoding.definition.decoder.token_bytes(id)
        except KeyError:
            return _NOTHING
        if name is not None and id not in self.byte_ids:
            data = (to_bytes(name) if self.decodes_bytes else None) or name.encode()
        if not data:
            return _NOTHING
        if id in self.byte_ids:
            return Piece(data, None, True)
        if self.decodes_spaces:
            data = data.replace(MARK.encode(), b" ")
        try:
            return Piece(data, data.decode(), False)
        except UnicodeDecodeError:
            return Piece(data, None, False)


def compile_tokenizer(real: Any) -> Compiled:
    """real: a `tokenizers.Tokenizer`, which stays as it is. Raises Refusal."""
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
        raise Refusal("the model has no token for unknown text, and the real error is wanted")
    ids = settings["model"]["vocab"]
    if isinstance(ids, dict) and len(set(ids.values())) < len(ids):
        raise Refusal("the real tokenizer chooses one of two texts of an id")
    try:
        frames = _frame(bare, encoding, False), _frame(bare, encoding, True)
        # One that is added again, no longer as special, stays so there. No flag of it says that.
        added = [token["id"] for token in settings["added_tokens"]]
        if real.decode(added, True) != bare.decode(added, True):
            raise Refusal("an added token was special before it was added again")
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # it is not an Exception
            raise
        raise Refusal(f"the real tokenizer panics: {error}") from None
    return Compiled(encoding, frames, text)


def _without_settings(real: Any) -> Any:
    """A tokenizer of the same parts that neither truncates nor pads. Its settings are its own."""
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
            raise Refusal("the post-processor does more than to add special tokens")
    return Frame(before, after, types != {0})


def _steps(part: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    """What a normalizer or a post-processor is made of."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [step for inner in part[name] for step in _steps(inner, name)]
    return [part]


def _special_hides(added: list[dict[str, Any]], normalizer: Any) -> bool:
    """Whether a special token, found but read as text, may hide another token that begins in it."""
    special = [token["content"] for token in added if token["special"]]
    others = [token["content"] for token in added if not token["special"]]
    if others and normalizer and any(token["special"] and token["normalized"] for token in added):
        return True  # what it is found as is not known
    return can_overlap(special, others)


def _has_offsets(settings: dict[str, Any]) -> bool:
    """Whether the offsets are those of streamtok, in text that normal forms leave as it is.

    So they are with byte-level BPE only, where no step removes text or counts it twice, and no text
    changes but into a normal form.
    """
    model = settings["model"]
    cuts = _steps(settings["pre_tokenizer"], "pretokenizers")
    after = _steps(settings["post_processor"], "processors")
    forms = {step["type"] for step in _steps(settings["normalizer"], "normalizers")}
    return not (
        model["type"] != "BPE"
        or model["continuing_subword_prefix"]
        or model["end_of_word_suffix"]
        or not {*ByteLevel.alphabet()} <= {*model["vocab"]}
        or [step["type"] for step in cuts].count("ByteLevel") != 1
        or not {step["type"] for step in cuts} <= {"ByteLevel", "Split", "Digits", "Punctuation"}
        or any(step.get("behavior") == "Removed" for step in cuts)
        or not forms <= {"NFC", "NFD", "NFKC", "NFKD"}
        or any(token["lstrip"] or token["rstrip"] for token in settings["added_tokens"])
        or not {step["type"] for step in after} <= {"ByteLevel", "TemplateProcessing"}
        or any(step.get("trim_offsets") for step in after)
    )


_SPACES = [
    {"type": "Replace", "pattern": {"String": MARK}, "content": " "},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
]
_FIRST_SPACE = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
