"""What a real tokenizer is compiled to: an encoding, and what the real one puts around its ids.

Whatever is not certain is asked of the real tokenizer: what its template adds, of which type its
ids are, and the ids of a few texts. Where an answer is another than streamtok's, the real one stays
in charge.
"""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenizers import Tokenizer as RealTokenizer  # also where streamtok's is in its place

from ..engines.changing import can_overlap
from ..engines.rules import MARK
from ..errors import StreamtokError
from ..formats.tokenizer_objects import from_object
from ..vocabulary.byte_alphabet import to_bytes
from ..vocabulary.table import NO_ID

if TYPE_CHECKING:
    from ..encoding import Encoding

__all__ = ["Compiled", "Frame", "Piece", "Refusal", "compile_tokenizer"]

_PROBES = (
    "", "a", " a", "Hello, world! It's 2024.\n\n  def f(x):\treturn x", "naïve e\u0301 日本語 ﬁ Ａ",
    "🎉\U0001f468\u200d\U0001f469 \u2581x  \u00a0", "  ", "Don't stop   at 12345678 <s> [MASK] ",
)  # fmt: skip


_MOST_IDS = 1 << 22  # for which tables by id are made


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


class Piece(NamedTuple):
    """What an id gives to a stream of text."""

    data: bytes  # of nothing if there is no such id, or it is skipped
    text: str | None  # of these bytes; None where they are not whole characters, or `is_byte`
    is_byte: bool  # a byte of byte_fallback, whose neighbours say what it is


class Compiled:
    """An encoding with the two frames of a tokenizer: with special tokens, and without.

    It never changes, and neither does what it says of the real tokenizer.
    """

    def __init__(
        self, encoding: Encoding, frames: tuple[Frame, Frame], json_text: str, bare: Any
    ) -> None:
        """json_text: the tokenizer's JSON. bare: a real tokenizer of the same parts that is this
        object's own.
        """
        settings = json.loads(json_text)
        self.encoding = encoding
        self._json = json_text
        self._shared: Any = bare  # until a part of it may change
        self._own: Any = None  # a tokenizer of the JSON, once one is needed after that
        self._lock = threading.Lock()  # for these
        self.plain, self.framed = frames
        added = settings["added_tokens"]
        self.special_ids = frozenset(token["id"] for token in added if token["special"])
        self.special_hides = _special_hides(added, settings["normalizer"])
        # The real one calls a token that it finds with spaces, or in changed text, by that text.
        # One of the byte alphabet's letters is decoded as bytes, which ours is not.
        self.renamed = frozenset(
            token["id"]
            for token in added
            if token["lstrip"]
            or token["rstrip"]
            or token["normalized"]
            or not (token["content"].isascii() or to_bytes(token["content"]) is None)
        )
        decoder = settings["decoder"] or {}
        self.decodes_bytes = decoder.get("type") == "ByteLevel"
        self.decodes_spaces = _is_of_spaces(decoder)
        # Whether the text of ids is that of each, one after the other.
        self.decodes_pieces = self.decodes_bytes or self.decodes_spaces
        self.drops_space = self.decodes_spaces and len(decoder["decoders"]) == 4
        self.texts: list[bytes | None] = []  # of each id, for such a decoder
        self._byte_ids: frozenset[int] = frozenset()
        self._added = {token["id"]: token["content"] for token in added}
        if self.decodes_spaces:
            self._read_texts(settings["model"]["vocab"])
        self._pieces: tuple[dict[int, Piece], dict[int, Piece]] = {}, {}

    def _read_texts(self, vocab: Any) -> None:
        """Set the text of each id, None where there is none; vocab: as a tokenizer.json has it."""
        if isinstance(vocab, list):  # of Unigram: the ids are places in it
            vocab = {token: id for id, (token, _) in enumerate(vocab)}
        names = {id: token for token, id in vocab.items()} | self._added
        self.texts = [None] * (max(names, default=-1) + 1)
        for id, token in names.items():
            self.texts[id] = token.replace(MARK, " ").encode()
        found = {id: _byte_of(token) for id, token in names.items() if token[:3] == "<0x"}
        self._byte_ids = frozenset(id for id, byte in found.items() if byte is not None)
        for id in self._byte_ids:
            self.texts[id] = found[id]

    def encode_again(self, origin: Any) -> Any:
        """The real encoding of a text, without padding. origin: an `Origin`."""
        with self._lock:
            real = self._real()
            real.encode_special_tokens = origin.encode_special_tokens
            if origin.truncation is None:
                real.no_truncation()
            else:
                real.enable_truncation(**origin.truncation._asdict())
            if origin.has_offsets:
                return real.encode(origin.text, add_special_tokens=origin.add_special_tokens)
            (made,) = real.encode_batch_fast(
                [origin.text], add_special_tokens=origin.add_special_tokens
            )
            return made

    def _real(self) -> Any:
        """A real tokenizer of the same parts as when this was compiled. Under the lock."""
        if self._shared is not None:
            return self._shared
        if self._own is None:
            self._own = RealTokenizer.from_str(self._json)
        return self._own

    def let_go(self) -> None:
        """The real tokenizer, or a part of it, may change from now on."""
        with self._lock:
            self._shared = None

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
        if skip_special_tokens and id in self.special_ids and self._skips(id):
            return _NOTHING
        name = self._added.get(id)
        if id in self.renamed:
            with self._lock:
                name = self._real().id_to_token(id)
        is_byte = False
        if name is None and self.decodes_bytes:
            try:
                data = self.encoding.definition.decoder.token_bytes(id)
            except KeyError:
                return _NOTHING
        elif name is None:
            found = self.texts[id] if id < len(self.texts) else None
            if found is None:
                return _NOTHING
            is_byte, data = id in self._byte_ids, found
        elif self.decodes_bytes:
            letters = to_bytes(name)
            data = name.encode() if letters is None else letters
        else:
            byte = _byte_of(name)
            is_byte, data = byte is not None, byte or name.replace(MARK, " ").encode()
        if is_byte:
            return Piece(data, None, True)
        try:
            return Piece(data, data.decode(), False)
        except UnicodeDecodeError:
            return Piece(data, None, False)

    def _skips(self, id: int) -> bool:
        """Whether the real one skips a special token: it may not know one as special that its
        normalizer changes.
        """
        if id not in self.renamed:
            return True
        with self._lock:
            return not self._real().decode([id, id], True)  # without the first one's space

    def frame(self, add_special_tokens: bool) -> Frame:
        return self.framed if add_special_tokens else self.plain


_NOTHING = Piece(b"", None, False)


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
    if encoding.max_token_value >= _MOST_IDS:
        raise Refusal(f"ids from {_MOST_IDS} on are too large for tables by id")
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
    return Compiled(encoding, frames, text, bare)


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
    template = (
        encoding.definition.template if add_special_tokens else type(encoding.definition.template)()
    )
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


def _special_hides(added: list[dict[str, Any]], normalizer: Any) -> bool:
    """Whether a special token, found but read as text, may hide another token that begins in it."""
    special = [token["content"] for token in added if token["special"]]
    others = [token["content"] for token in added if not token["special"]]
    if others and normalizer and any(token["special"] and token["normalized"] for token in added):
        return True  # what it is found as is not known
    return can_overlap(special, others)


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
_BYTE = re.compile("<0x([0-9A-Fa-f+][0-9A-Fa-f])>")  # Rust reads +5 as a number, too


def _byte_of(token: str) -> bytes | None:
    """The byte that a token stands for, None for other tokens."""
    found = _BYTE.fullmatch(token)
    return None if found is None else bytes([int(found[1], 16)])
