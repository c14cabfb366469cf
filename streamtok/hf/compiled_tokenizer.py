"""What a real tokenizer is compiled to: an encoding, and what the real one puts around its ids.

Whatever is not certain is asked of the real tokenizer: what its template adds, of which type its
ids are, and the ids of a few texts. Where an answer is another than streamtok's, the real one stays
in charge.
"""

from __future__ import annotations

import json
import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import is_normalized

import numpy as np
from tokenizers import Tokenizer as RealTokenizer  # also where streamtok's is in its place
from tokenizers.pre_tokenizers import ByteLevel

from .._core.encode import ALL
from .._core.hf_rows import pairs, span_rows
from ..engines.added_tokens import can_overlap
from ..engines.rules import MARK
from ..errors import StreamtokError
from ..formats.tokenizer_objects import from_object
from ..normalizers.char_sets import one_of, ranges_of
from ..vocabulary.byte_alphabet import to_bytes
from ..vocabulary.table import NO_ID

if TYPE_CHECKING:
    import numpy.typing as npt

    from .._types import IdArray
    from ..encoding import Encoding

__all__ = ["Compiled", "Frame", "Piece", "Refusal", "compile_tokenizer"]

_PROBES = (
    "", "a", " a", "Hello, world! It's 2024.\n\n  def f(x):\treturn x", "naïve e\u0301 日本語 ﬁ Ａ",
    "🎉\U0001f468\u200d\U0001f469 \u2581x  \u00a0", "  ", "Don't stop   at 12345678 <s> [MASK] ",
)  # fmt: skip


_MOST_IDS = 1 << 22  # for which tables by id are made


class Frame(NamedTuple):
    """The ids around those of a text with their tokens, and the type of each part."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    before_tokens: tuple[str, ...]
    after_tokens: tuple[str, ...]
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
        self._bare = bare  # until its vocabulary may change
        self._is_fixed = True  # until its parts may change
        self._again: Any = None  # a tokenizer of the JSON, once it may
        self._lock = threading.Lock()  # for these
        self.plain, self.framed = frames
        self.names_are_tokens = settings["model"]["type"] in ("BPE", "WordPiece", "WordLevel")
        added = settings["added_tokens"]
        self.special_ids = frozenset(token["id"] for token in added if token["special"])
        self.special_hides = _special_hides(added, settings["normalizer"])
        # A token that is found with spaces around it, or in changed text, is called by that text.
        # One of the byte alphabet's letters is decoded as bytes, which ours is not.
        self.renamed = frozenset(
            token["id"]
            for token in added
            if token["lstrip"]
            or token["rstrip"]
            or token["normalized"]
            or not (token["content"].isascii() or to_bytes(token["content"]) is None)
        )
        steps = _steps(settings["normalizer"], "normalizers")
        self._removed = [re.compile(step["pattern"]["Regex"]) for step in steps if _removes(step)]
        self._changes = bool(steps)
        self._forms = [step["type"] for step in steps if step["type"] in _FORMS]
        keeps = all(step["type"] in _FORMS or step == _SPACES_AS_LETTERS for step in steps)
        self._sizes = _sizes(settings) if keeps else None
        self._makes_marks = not _is_byte_level(settings)
        trims = _trims(settings)
        self._trims, self.keeps_first = trims or (None, False)
        self._has_spans = (
            _tells_places(settings)
            and not any(token["lstrip"] or token["rstrip"] for token in added)
            and all(map(_keeps_places, steps))
            and trims is not None
        )
        decoder = settings["decoder"] or {}
        self.decodes_bytes = decoder.get("type") == "ByteLevel"
        self.decodes_spaces = _is_of_spaces(decoder)
        # Whether the text of ids is that of each, one after the other.
        self.decodes_pieces = self.decodes_bytes or self.decodes_spaces
        self.drops_space = self.decodes_spaces and len(decoder["decoders"]) == 4
        self.texts: list[bytes | None] = []  # of each id, for such a decoder
        contents = {token["content"]: token["id"] for token in added}
        if self.decodes_spaces:
            self.texts = texts_of(_ids_of(settings["model"]["vocab"]) | contents)
        self._added_ids = frozenset(contents.values())
        # Ids whose text in a decoded one may be other than what the encoding decodes them to.
        self.decodes_otherwise = self.renamed
        if self.decodes_bytes:
            self.decodes_otherwise |= {
                id
                for text, id in contents.items()
                if not text.isascii() and to_bytes(text) is not None
            }
        self._names: dict[int, str] = {}  # of ids that were asked for
        self._pieces: tuple[dict[int, Piece], dict[int, Piece]] = {}, {}

    def spans(self, text: str, encode_special_tokens: bool) -> list[tuple[int, int]] | None:
        """The characters of each id of a text; None where those of the real one may be others."""
        if not self._has_spans:
            return None
        special: Any = {"allowed_special": ALL}
        if encode_special_tokens:
            special = {"disallowed_special": ()}
        if self._sizes is not None:
            ids = self.encoding.encode_to_numpy(text, **special)
            (spans,) = self.spans_of([text], ids, np.array([len(ids)], np.int64))
            if spans is not None:
                return spans
        if self._changes and (
            _unsteady().search(text) or any(one.search(text) for one in self._removed)
        ):
            return None
        ids, places = self.encoding.encode_with_offsets(text, **special)
        return pairs(places, ids, self._trims, self.keeps_first)

    def spans_of(
        self, texts: list[str], ids: IdArray, ends: npt.NDArray[np.int64]
    ) -> list[list[tuple[int, int]] | None]:
        """The characters of each id of each text, of ids in a row that end at `ends`; None for a
        text where `spans` must be asked.

        In bytes that are tokens as they stand, each stands for the characters that it touches.
        """
        sizes = self._sizes
        if sizes is None or not self._has_spans:
            return [None] * len(texts)
        kept: list[str | None] = [*texts]
        if self._makes_marks:  # of spaces: the sizes are of these, not of marks in the text
            kept = [None if MARK in text else text for text in texts]
        if self._forms:
            steady = (all(is_normalized(form, text) for form in self._forms) for text in texts)
            kept = [text if keeps else None for text, keeps in zip(kept, steady, strict=True)]
        return span_rows(ids, ends, kept, sizes, self._trims, self.keeps_first)

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
        """A real tokenizer as this was compiled of. Under the lock."""
        if self._is_fixed:
            return self._bare
        if self._again is None:
            self._again = RealTokenizer.from_str(self._json)
        return self._again

    def _name(self, id: int) -> Any:
        """The token of an id, or None. Under the lock."""
        return (self._bare if self._bare is not None else self._real()).id_to_token(id)

    def let_go_of_parts(self) -> None:
        """Somebody may change a part of the real tokenizer from now on."""
        with self._lock:
            self._is_fixed = False

    def let_go(self) -> None:
        """The real tokenizer is about to change."""
        with self._lock:
            self._is_fixed = False
            self._bare = None

    def names_of(self, ids: list[int]) -> list[str] | None:
        """The tokens of these ids in an encoding; None where an id does not tell."""
        if not self.names_are_tokens or (self.renamed and not self.renamed.isdisjoint(ids)):
            return None
        names = self._names
        try:
            return [*map(names.__getitem__, ids)]
        except KeyError:
            with self._lock:
                names.update((id, self._name(id)) for id in {*ids}.difference(names))
            return [*map(names.__getitem__, ids)]

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
        if self.decodes_bytes and id not in self._added_ids:
            try:
                data = self.encoding.definition.decoder.token_bytes(id)
            except KeyError:
                return _NOTHING
        else:
            with self._lock:
                name = self._name(id)
                is_skipped = skip_special_tokens and id in self.special_ids
                # A token that its normalizer changes is not known to be special there.
                if is_skipped and id in self.renamed:
                    is_skipped = not self._real().decode([id, id], True)  # less its first space
            if name is None or is_skipped:
                return _NOTHING
            if self.decodes_bytes:
                letters = to_bytes(name)
                data = name.encode() if letters is None else letters
            else:
                found = _BYTE.fullmatch(name)
                if found is not None:
                    return Piece(bytes.fromhex(found[1]), None, True)
                data = name.replace(MARK, " ").encode()
        try:
            return Piece(data, data.decode(), False)
        except UnicodeDecodeError:
            return Piece(data, None, False)

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
    tokens: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
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
            tokens = tuple(found.tokens[:n_before]), tuple(found.tokens[end:])
            types = tuple(found_types[:n_before]), *inner, tuple(found_types[end:])
    if not types:
        raise Refusal("no text has ids")
    return Frame(template.before, template.after, *tokens, *types)


def _steps(part: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    """What a normalizer or a post-processor is made of."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [step for inner in part[name] for step in _steps(inner, name)]
    return [part]


def _tells_places(settings: dict[str, Any]) -> bool:
    """Whether the real one says of each token where its characters are. Its BPE counts wrongly
    behind characters that it does not know, and so does what several pre-tokenizers or another
    model leave of Metaspace and ByteLevel.
    """
    cuts = {step["type"] for step in _steps(settings["pre_tokenizer"], "pretokenizers")}
    if "Metaspace" in cuts and settings["pre_tokenizer"]["type"] == "Sequence":
        return False
    model = settings["model"]
    if model["type"] != "BPE":
        return "ByteLevel" not in cuts
    if model["continuing_subword_prefix"] or model["end_of_word_suffix"]:
        return False
    letters = {*ByteLevel.alphabet()} if "ByteLevel" in cuts else _BYTE_TOKENS
    return letters <= {*model["vocab"]}


def _special_hides(added: list[dict[str, Any]], normalizer: Any) -> bool:
    """Whether a special token, found but read as text, may hide another token that begins in it."""
    special = [token["content"] for token in added if token["special"]]
    others = [token["content"] for token in added if not token["special"]]
    if others and normalizer and any(token["special"] and token["normalized"] for token in added):
        return True  # what it is found as is not known
    return can_overlap(special, others)


def _sizes(settings: dict[str, Any]) -> npt.NDArray[np.uint16] | None:
    """The bytes of a text that each id of BPE stands for; None for another model, and where a text
    may have as many bytes as its ids though not all of it is in them.
    """
    model = settings["model"]
    cuts = _steps(settings["pre_tokenizer"], "pretokenizers")
    is_again = sum(step["type"] == "ByteLevel" for step in cuts) > 1
    if model["type"] != "BPE" or is_again or any(map(_leaves_out, cuts)):
        return None
    if _is_byte_level(settings):
        found = {id: len(token) for token, id in model["vocab"].items()}
    else:
        texts = enumerate(texts_of(model["vocab"]))
        found = {id: len(text) for id, text in texts if text is not None}
    added = {token["id"]: len(token["content"].encode()) for token in settings["added_tokens"]}
    if any(found.get(id, size) != size for id, size in added.items()):
        return None
    sizes = added | found
    table = np.zeros(max(sizes, default=0) + 1, np.uint16)
    table[[*sizes]] = [*sizes.values()]
    return table


def _is_byte_level(settings: dict[str, Any]) -> bool:
    steps = _steps(settings["pre_tokenizer"], "pretokenizers")
    return any(step["type"] == "ByteLevel" for step in steps)


def _leaves_out(step: dict[str, Any]) -> bool:
    """Whether a pre-tokenizer may leave text out."""
    return step.get("behavior") == "Removed" or step["type"] in (
        "BertPreTokenizer", "CharDelimiterSplit", "Whitespace", "WhitespaceSplit",
    )  # fmt: skip


def _trims(settings: dict[str, Any]) -> tuple[npt.NDArray[np.uint16] | None, bool] | None:
    """How many spaces each id begins and ends with that its offsets leave out, or None if they
    leave out none; and whether one space counts at the beginning of a text. None where the
    post-processor does something else with the offsets of a text's ids.
    """
    steps = _steps(settings["post_processor"], "processors")
    trimming = [step for step in steps if step.get("trim_offsets")]
    kinds = {step["type"] for step in steps}
    if not kinds <= {"ByteLevel", "RobertaProcessing", "TemplateProcessing", "BertProcessing"}:
        return None
    if not trimming:
        return None, False
    added = settings["added_tokens"]
    if (
        trimming != steps[:1]
        or settings["model"]["type"] != "BPE"
        or any(token["content"] != token["content"].strip(_SPACE) for token in added)
    ):
        return None
    vocabulary = settings["model"]["vocab"]
    table = np.zeros((max([*vocabulary.values(), *(token["id"] for token in added)]) + 1, 2), "H")
    for token, id in vocabulary.items():
        if token[:1] in _SPACE or token[-1:] in _SPACE:
            size = len(token)
            table[id] = size - len(token.lstrip(_SPACE)), size - len(token.rstrip(_SPACE))
    return table, trimming[0]["add_prefix_space"]


def _keeps_places(normalizer: dict[str, Any]) -> bool:
    """Whether each character of a steady text becomes one or more, which depend on nothing else."""
    if normalizer["type"] == "Replace":
        pattern = normalizer["pattern"]
        is_one = len(pattern.get("String", "")) == 1 or pattern.get("Regex") in _ONE_CHARACTER
        return (is_one and len(normalizer["content"]) == 1) or _removes(normalizer)
    return normalizer["type"] in _STEADY


def _removes(normalizer: dict[str, Any]) -> bool:
    """Whether it removes some characters that it lists."""
    return (
        normalizer["type"] == "Replace"
        and normalizer["content"] == ""
        and _LISTED.fullmatch(normalizer["pattern"].get("Regex", "")) is not None
    )


@lru_cache(maxsize=1)
def _unsteady() -> re.Pattern[str]:
    """A character that may become a part of the one before it, or vanish."""
    joins = (f"{form}_joins" for form in ("NFC", "NFD", "NFKC", "NFKD"))
    ranges = ranges_of(*joins, "accents", "bert_accents", "bert_controls")
    return re.compile(one_of(ranges))


_STEADY = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "BertNormalizer", "StripAccents", "Prepend")
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_SPACES_AS_LETTERS = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
# What Rust takes for a space, and the letter that ByteLevel writes for one.
_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000\u0120"
)
_BYTE_TOKENS = {f"<0x{byte:02X}>" for byte in range(256)}
_ONE_CHARACTER = (r"\s", r"\p{Zs}")
_LISTED = re.compile(r"\[(\\u[0-9A-Fa-f]{4})+\]")


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


def _ids_of(vocabulary: Any) -> dict[str, int]:
    """The ids of a vocabulary as a file has it: those of Unigram are places in a list."""
    if isinstance(vocabulary, dict):
        return vocabulary
    return {token: id for id, (token, _) in enumerate(vocabulary)}


def texts_of(vocabulary: dict[str, int]) -> list[bytes | None]:
    """The text of each id for such a decoder; None where it is not certain, or there is none."""
    texts: list[bytes | None] = [None] * (max(vocabulary.values(), default=-1) + 1)
    for token, id in vocabulary.items():
        found = _BYTE.fullmatch(token)
        if found is not None:
            texts[id] = bytes.fromhex(found[1])
        elif not token.startswith("<0x"):
            texts[id] = token.replace(MARK, " ").encode()
    return texts
