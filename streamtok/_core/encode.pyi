from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, final

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, disjoint_base

from ..prompts import Prompt

_Method = TypeVar("_Method", bound=Callable[..., Any])
_Result = TypeVar("_Result")

@disjoint_base
class OneCall:
    _kind: ClassVar[str]

def one_call(function: _Method) -> _Method: ...

@final
class OneCallMethod:
    def __init__(self, function: Callable[..., Any]) -> None: ...
    def __get__(self, instance: OneCall | None, owner: type | None = None, /) -> Any: ...
    def __call__(self, instance: OneCall, /, *args: Any, **kwargs: Any) -> Any: ...

@final
class ArrayView: ...

POLICIES: tuple[str, ...]

def has_surrogate(text: str, start: int, stop: int) -> bool: ...
def bytes_of(data: Buffer) -> bytes: ...
def check_policy(errors: object) -> None: ...
def size_of(text: Any) -> int: ...
def unfinished_size(data: bytes) -> int: ...
def repaired(text: str, errors: str) -> str: ...
def text_bytes(data: str | Buffer, errors: str) -> bytes: ...
def utf8_size(text: str) -> int: ...
def spell(
    lefts: npt.NDArray[np.uint32], rights: npt.NDArray[np.uint32], spelled: bytes | memoryview
) -> tuple[bytes, npt.NDArray[np.uint32]]: ...

MODEL_KINDS: dict[str, int]
CUT_BEHAVIORS: dict[str, int]

@final
class PieceModel:
    max_id: int
    def __new__(
        cls,
        kind: str,
        blob: bytes,
        offsets: npt.NDArray[np.uint32],
        ids: npt.NDArray[np.uint32],
        unknown: int,
        prefix: bytes = b"",
        most_characters: int = 0,
        scores: npt.NDArray[np.float64] | None = None,
        byte_ids: npt.NDArray[np.uint32] | None = None,
        stages: tuple[tuple[Any, ...], ...] = (),
    ) -> PieceModel: ...

@final
class TokenTable:
    max_id: int
    is_dense: bool
    def __new__(
        cls,
        blob: bytes,
        offsets: npt.NDArray[np.uint32],
        ids: npt.NDArray[np.uint32],
        lefts: npt.NDArray[np.uint32] | None = None,
        byte_ids: npt.NDArray[np.uint32] | None = None,
        ties: npt.NDArray[np.uint32] | None = None,
        parts: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]] | None = None,
        model: PieceModel | None = None,
    ) -> TokenTable: ...
    def prepare_prefixes(self) -> None: ...
    def find(self, token: bytes) -> int | None: ...
    def lefts(self) -> npt.NDArray[np.uint32]: ...
    def parts(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
    @property
    def longest(self) -> int: ...
    @property
    def longest_unreachable(self) -> int: ...

def find_parts(
    blob: bytes, offsets: npt.NDArray[np.uint32], merges: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32], bool]: ...
def find_rows(
    names: list[str], merges: list[Any], prefix: str = ""
) -> tuple[npt.NDArray[np.uint32], int]: ...
def gather_tokens(
    blob: bytes, offsets: npt.NDArray[np.uint32], order: npt.NDArray[np.uint32]
) -> tuple[bytes, npt.NDArray[np.uint32]]: ...

@final
class Scanner:
    n_states: int
    def __new__(cls, pattern: Any, substitutes: npt.NDArray[np.uint8] | None) -> Scanner: ...

def make_steps(
    accepts: npt.NDArray[np.bool_], transitions: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]: ...
def check_special_size(text: bytes) -> None: ...

@final
class SpecialMatcher:
    specials: tuple[str, ...]
    allowed: frozenset[str]
    disallowed: frozenset[str]
    is_empty: bool
    def __new__(
        cls,
        specials: Sequence[tuple[str, int]],
        allowed: AbstractSet[str],
        disallowed: Collection[str],
    ) -> SpecialMatcher: ...
    @property
    def reach(self) -> int: ...
    def split(self, data: bytes) -> list[tuple[int, int, int | None]]: ...
    def finds(
        self, data: bytes, start: int, stop: int, final: bool
    ) -> tuple[int, list[tuple[int, int, int]]]: ...

@final
class Workspace:
    def __new__(cls, table: TokenTable) -> Workspace: ...

@final
class Spares: ...

@final
class Output(Generic[_Result]):
    @staticmethod
    def into(out: Buffer, start: int = 0) -> Output[int]: ...
    def of(self, ids: npt.NDArray[np.uint32]) -> _Result: ...

LIST: Output[list[int]]
ARRAY: Output[npt.NDArray[np.uint32]]
COUNT: Output[int]
ID_SPANS: Output[tuple[Any, ...]]

@final
class IdBlock: ...

@final
class Encoder:
    table: TokenTable
    scanner: Scanner | None
    def __new__(cls, table: TokenTable, scanner: Scanner | None) -> Encoder: ...
    def spare_bytes(self) -> int: ...
    def cache_bytes(self) -> int: ...
    def release(self) -> None: ...
    def encode(
        self, data: str | Buffer, rules: ChangeRules, errors: str, output: Output[_Result]
    ) -> _Result: ...
    def encode_split(
        self, data: Buffer, ends: npt.NDArray[np.int64], output: Output[_Result]
    ) -> _Result: ...
    def encode_pretoken(self, pretoken: Buffer) -> list[int]: ...

@final
class PromptRules:
    def __new__(cls, kinds: tuple[type, ...], finder: Any, rules: ChangeRules) -> PromptRules: ...
    def encode(
        self, encoder: Encoder, prompt: Any, errors: str, output: Output[_Result]
    ) -> _Result: ...

def token_spans(
    ids: npt.NDArray[np.uint32],
    sizes: npt.NDArray[np.uint16],
    id_spans: npt.NDArray[np.int64],
    start: int,
) -> npt.NDArray[np.int64]: ...
def spans_in(
    is_utf16: bool, spans: npt.NDArray[np.int64], data: bytes
) -> npt.NDArray[np.int64]: ...

class UnknownId(KeyError):
    id: int
    position: int
    def __init__(self, id: int, position: int) -> None: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class ElementTable:
    elements: Any
    asks_for_begin: bool
    asks_for_end: bool
    joins_any: bool
    n_caring: int
    def __new__(cls, elements: Any) -> ElementTable: ...

def change_elements(
    t: ElementTable, text: bytes, begins: int, ends: bool, wants_rows: bool
) -> tuple[bytes, bytes, bool, list[tuple[int, int]] | None]: ...

@final
class TokenSet:
    matcher: SpecialMatcher
    def __new__(
        cls,
        matcher: SpecialMatcher,
        flags: Sequence[int],
        words: bytes | None,
        wants_blanks: bool = False,
    ) -> TokenSet: ...

@final
class GivenToken:
    id: int
    text: bytes
    def __new__(
        cls, id: int, text: bytes, flags: int = 0, is_normalized: bool = False
    ) -> GivenToken: ...

@final
class ChangeRules:
    first_tokens: TokenSet
    first_table: ElementTable | None
    second_tokens: TokenSet | None
    second_table: ElementTable | None
    can_cut: bool
    def __init__(
        self,
        first_tokens: TokenSet,
        first_table: ElementTable | None = None,
        second_tokens: TokenSet | None = None,
        second_table: ElementTable | None = None,
    ) -> None: ...

@disjoint_base
class Sink: ...

@final
class TailSink(Sink): ...

@final
class Changer:
    errors: str
    def __new__(cls, rules: ChangeRules, errors: str) -> Changer: ...
    def back(
        self, spans: npt.NDArray[np.int64], final: bool
    ) -> tuple[int, npt.NDArray[np.int64]]: ...
    def forget(self, offset: int) -> int: ...

@final
class Decoder:
    def __new__(
        cls,
        table: TokenTable,
        specials: dict[int, bytes],
        decode_only: dict[int, bytes] | None = None,
        firsts: dict[int, bytes] | None = None,
        begins_with_text: bool = False,
    ) -> Decoder: ...
    def token_bytes(self, id: int) -> bytes: ...
    def decode(
        self, ids: Iterable[int] | npt.NDArray[Any], skip_special: bool = False
    ) -> bytes: ...

@final
class Tail:
    errors: str
    def __new__(
        cls,
        encoder: Encoder,
        matcher: SpecialMatcher,
        errors: str,
        before: tuple[int, ...] = (),
        after: tuple[int, ...] = (),
        rules: ChangeRules | None = None,
        finder: Any = None,
    ) -> Tail: ...
    changer: Changer | None
    finder: Any
    @property
    def pending(self) -> int: ...
    @property
    def bytes_in(self) -> int: ...
    @property
    def reached(self) -> int: ...
    @property
    def tokens_out(self) -> int: ...
    def reset(self) -> None: ...
    def begin_at(self, offset: int) -> None: ...
    def forget_partial(self) -> None: ...
    def hurry(self) -> None: ...
    def copy(self) -> Tail: ...
    def with_finder(self, finder: Any) -> Tail: ...
    def encode(
        self,
        chunk: Any,
        final: bool,
        output: Output[_Result],
        limit: int,
    ) -> _Result: ...
    def getstate(self) -> bytes: ...
    def setstate(self, state: bytes) -> None: ...

@disjoint_base
class FastStreamDecoder:
    def _set_decoder(
        self, decoder: Decoder, errors: str, skips_special: bool, drops_space: bool, settles: bool
    ) -> None: ...
    def decode(self, ids: Iterable[int] | npt.NDArray[Any], final: bool = False) -> str: ...
    def decode_bytes(self, ids: Iterable[int] | npt.NDArray[Any], final: bool = False) -> bytes: ...
    def reset(self) -> None: ...
    @property
    def pending(self) -> int: ...
    @property
    def tokens_in(self) -> int: ...
    @property
    def bytes_out(self) -> int: ...
    @property
    def _note(self) -> Any: ...
    def _reached(self) -> tuple[int, int, bool, bytes, Any, bool]: ...
    def _set_reached(
        self,
        tokens_in: int,
        bytes_out: int,
        is_begun: bool,
        held: bytes,
        note: Any = None,
        is_over: bool = False,
    ) -> None: ...

ALL: Final = "all"
NO_SPECIAL: frozenset[str]

@disjoint_base
class FastEncoding:
    def _set_parts(
        self,
        decoder: Decoder,
        drops_space: bool,
        encoder: Encoder | None = None,
        find_rules: Callable[..., ChangeRules] | None = None,
    ) -> None: ...
    def _keep_prompts(self, prompts: PromptRules | None) -> None: ...
    def encode_ordinary(
        self, text: str | Buffer, *, errors: str = "strict", max_tokens: int | None = None
    ) -> list[int]: ...
    def encode(
        self,
        text: str | Buffer | Prompt,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        errors: str = "strict",
        add_special_tokens: bool = False,
        max_tokens: int | None = None,
    ) -> list[int]: ...
    def encode_to_numpy(
        self,
        text: str | Buffer | Prompt,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = "all",
        errors: str = "strict",
        add_special_tokens: bool = False,
        num_threads: int = 1,
    ) -> npt.NDArray[np.uint32]: ...
    def count(
        self,
        text: str | Buffer | Prompt,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = ...,
        disallowed_special: Literal["all"] | Collection[str] = (),
        errors: str = "strict",
        add_special_tokens: bool = False,
        num_threads: int = 1,
    ) -> int: ...
    def decode_bytes(self, tokens: Iterable[int] | npt.NDArray[Any]) -> bytes: ...
    def decode(self, tokens: Iterable[int] | npt.NDArray[Any], errors: str = "replace") -> str: ...

@disjoint_base
class FastStreamEncoder(OneCall):
    @property
    def max_pending(self) -> int: ...
    @max_pending.setter
    def max_pending(self, value: int) -> None: ...
    _tail: Tail
    _trace: Any
    def _go_on(self, tail: Tail, trace: Any = None) -> None: ...
    def encode(self, chunk: str | Buffer | Prompt, final: bool = False) -> list[int]: ...
    def encode_to_numpy(
        self, chunk: str | Buffer | Prompt, final: bool = False
    ) -> npt.NDArray[np.uint32]: ...
    def encode_into(
        self, chunk: str | Buffer | Prompt, out: Buffer, final: bool = False, *, start: int = 0
    ) -> int: ...
    def take(self, chunk: Any, final: bool, output: Output[_Result]) -> _Result: ...

@final
class Cuts:
    def __new__(cls, scanner: Scanner, clean_cut_pairs: npt.NDArray[np.bool_]) -> Cuts: ...
    def find(
        self,
        text: str | Buffer,
        matcher: SpecialMatcher,
        start: int,
        stop: int,
        from_end: bool = False,
    ) -> int: ...

@final
class WorkList:
    n_threads: int
    n_pieces: int
    n_runs: int
    def __new__(
        cls,
        encoder: Encoder,
        rules: ChangeRules,
        texts: list[Any],
        errors: str,
        output: Output[Any],
        n_threads: int,
        sizes: tuple[int, int],
        cuts: Cuts | None = None,
        before: int = -1,
        after: int = -1,
    ) -> WorkList: ...
    def stop(self) -> None: ...
    def work(self) -> None: ...
    def lists(self) -> list[list[int]]: ...
    def flat(self) -> tuple[Any, Any, int]: ...
    def result(self) -> Any: ...

def find_documents(data: Buffer, delimiter: bytes, start: int, wanted: int) -> tuple[int, int]: ...
def encode_delimited(
    encoder: Encoder,
    rules: ChangeRules,
    data: Buffer,
    delimiter: bytes,
    count: int,
    errors: str,
    prepend: int,
    append: int,
    skip_empty: bool,
) -> tuple[Any, Any]: ...
def cache_limit() -> int: ...
def set_cache_limit(size: int) -> None: ...
