"""Split patterns as tables: what a scanner needs to cut text into pieces, and nothing else.

A `Pattern` is a deterministic automaton over character classes. To cut a text, begin at state 1 and
look at one character after the other; let c be its class. If `accepts[state, c]`, the piece may end
before it: remember the place. Then go to `transitions[state, c]`. In state 0 nothing can follow any
more: the piece ends at the place last remembered, and the next one begins there, again at state 1.
At the end of the text, the last column of `accepts` decides. `Pattern.findall` does just that. (To
be in state 1 is not proof of being at the start of a piece: `a*b` returns to it.)

The pieces are those of `find_iter` in tiktoken. A character that no piece can begin with is
skipped, as there: it leaves no trace in the output. `is_total` tells that this cannot happen, as in
all patterns that OpenAI has published.

Compiling takes some tens of milliseconds (`patterns/syntax.py`, `patterns/dfa.py`), so the tables of
well-known patterns come with the package (`tools/make_patterns.py`). Not here: the scanner itself,
which is Cython, and patterns that no such automaton can follow, which raise
`UnsupportedPatternError` with the name and position of what is to blame.
"""

from __future__ import annotations

import os
import zlib
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Uint8 = npt.NDArray[np.uint8]
    Uint16 = npt.NDArray[np.uint16]
    Bools = npt.NDArray[np.bool_]

__all__ = ["CODE_POINTS_PER_BLOCK", "Pattern", "pack_tables"]

CODE_POINTS_PER_BLOCK = 128
MAX_WINDOW_CLASSES = 16  # of characters, of left halves and of right halves: one nibble each

_PACKED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "patterns.bin")
_MAGIC = b"streamtok patterns 2\n"
_FIELDS = (
    ("transitions", np.uint16),
    ("accepts", np.uint8),
    ("class_pages", np.uint16),
    ("class_blocks", np.uint8),
)

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Tables(NamedTuple):
    """The arrays of a `Pattern`."""

    transitions: Uint16
    accepts: Uint8
    class_pages: Uint16
    class_blocks: Uint8


class Windows(NamedTuple):
    """Decisions about windows of four ASCII characters.

    `decisions[lefts[a, b], rights[c, d]]` says whether a piece begins before the third of four
    characters of the classes a, b, c, d. No decision holds where one of the four, or of the `reach`
    characters before them, is a follower right after the trigger. Characters of the class `counted`
    that follow each other are pieces of `run` each. See `patterns/windows.py`.
    """

    classes: Uint8  # (128,): class of an ASCII character; above 127: it is a follower, too
    lefts: Uint8  # (16, 16): what the first two amount to
    rights: Uint8  # (16, 16): what the last two amount to
    decisions: Uint8  # (16, 16): 0: none does, 1: one does, 2: undecided
    trigger: int  # an ASCII character, or 255: there is none
    reach: int
    counted: int  # a class, or 255: there is none
    run: int

    def to_bytes(self) -> bytes:
        """bytes [900]: all fields in a row."""
        return b"".join(array.tobytes() for array in self[:4]) + bytes(self[4:])

    @classmethod
    def from_bytes(cls, data: bytes) -> Windows:
        """What `to_bytes` gave."""
        size = MAX_WINDOW_CLASSES
        halves = np.frombuffer(data, np.uint8, 3 * size * size, 128).reshape(3, size, size)
        lefts, rights, decisions = halves
        classes = np.frombuffer(data, np.uint8, 128)
        return cls(classes, lefts, rights, decisions, *data[-4:])


class Pattern:
    """A compiled split pattern; immutable, and free to be shared between threads.

    >>> Pattern.compile(r"\\p{L}+|\\s+(?!\\S)|[^\\p{L}]").findall("tea  for 2")
    ['tea', ' ', ' ', 'for', ' ', '2']
    """

    source: str
    is_composed = False  # whether `source` is more than one regular expression, see `patterns/sequence.py`
    transitions: Uint16  # (n_states, n_classes): the next state, 0 when nothing can follow
    accepts: Uint8  # (n_states, n_classes + 1): 1 if the piece may end before a class, or at end
    class_pages: Uint16  # (0x110000 / 128,): the block of code point >> 7
    class_blocks: Uint8  # (n_blocks, 128): the class of a code point

    def __init__(self, source: str, tables: Tables) -> None:
        self.source = source
        self.transitions, self.accepts, self.class_pages, self.class_blocks = tables
        for table in tables:
            table.setflags(write=False)

    @classmethod
    def compile(cls, source: str) -> Pattern:
        """The tables of `source`, ready-made or freshly computed.

        Raises `PatternError` where `source` is no pattern, and `UnsupportedPatternError` where it
        is one that cannot be followed by a finite automaton of reasonable size.
        """
        return cls(source, _packed_tables(source) or _fresh_tables(source))

    @classmethod
    def compile_afresh(cls, source: str) -> Pattern:
        """As `compile`, without the tables that come with the package."""
        return cls(source, _fresh_tables(source))

    @property
    def n_states(self) -> int:
        """How many states there are, the dead state 0 included; 1 is the start."""
        return int(self.transitions.shape[0])

    @property
    def n_classes(self) -> int:
        """How many classes of characters the pattern tells apart."""
        return int(self.transitions.shape[1])

    @property
    def surrogate_class(self) -> int:
        """The class of all surrogate code points, which stand for bytes that are not UTF-8."""
        return self.class_of(0xD800)

    def class_of(self, point: int) -> int:
        """The class of a code point."""
        page, offset = divmod(point, CODE_POINTS_PER_BLOCK)
        return int(self.class_blocks[self.class_pages[page], offset])

    def findall(self, text: str) -> list[str]:
        """The pieces of `text`: the slow walk that says what the tables mean."""
        transitions, accepts = self.transitions.tolist(), self.accepts.tolist()
        classes = [self.class_of(ord(char)) for char in text]
        at_end = self.n_classes
        pieces = []
        start = 0
        while start < len(text):
            state = 1
            end = position = start
            while state and position < len(text):
                following = classes[position]
                if accepts[state][following]:
                    end = position
                state = transitions[state][following]
                position += 1
            if state and accepts[state][at_end]:
                end = len(text)
            if end > start:
                pieces.append(text[start:end])
            start = max(end, start + 1)  # no piece begins with this character: skip it
        return pieces

    @cached_property
    def is_total(self) -> bool:
        """Whether every character of every text is part of a piece, so that none is skipped."""
        queue = [1]  # states in which a piece has begun and could not have ended yet
        seen = {1}
        for state in queue:
            rest = self.transitions[state][self.accepts[state, :-1] == 0]
            new = set(rest.tolist())
            if not self.accepts[sorted(new), -1].all():  # the dead state does not accept either
                return False
            queue += sorted(new - seen)
            seen |= new
        return True

    @cached_property
    def settled(self) -> Uint8:
        """(n_states,): 1 where, whatever follows, the piece ends here or later.

        The tables may leave an acceptance out where a later one is certain, so what was accepted
        last can lie far behind the bytes that surely belong to the piece. A state is settled if at
        the end of input it accepts, and before every class it accepts or goes on to a settled
        state: the largest set of states for which that holds, since every text has an end.
        """
        from .minimise import surely_ending

        return _read_only(surely_ending(self.transitions, self.accepts).astype(np.uint8))

    @cached_property
    def windows(self) -> Windows | None:
        """What four characters in a row tell about where pieces begin; None if too little."""
        packed = _packed_windows(self.source)
        if packed is None:
            from .windows import derive_windows

            return derive_windows(self)
        return Windows.from_bytes(packed) if packed else None

    @cached_property
    def cut_pairs(self) -> Bools:
        """(n_classes, n_classes): whether no piece ever holds class a directly before class b.

        Whatever came before, offline encoding has a boundary between the two. The pieces before
        it may still depend on what follows it (see `clean_cut_pairs`); those after it depend on
        nothing before it.
        """
        dead = self.transitions == 0
        pairs = np.ones((self.n_classes, self.n_classes), bool)
        for row in self.transitions:  # every state is reachable
            pairs &= dead[row] | (row == 0)[:, None]
        return _read_only(pairs)

    @cached_property
    def clean_cut_pairs(self) -> Bools:
        """The `cut_pairs` where, besides, the text before the cut may be encoded on its own.

        Seen from the text before it, class b then acts as the end of input does. With the pattern
        of GPT-2, newline and letter are a cut, but not a clean one: a newline at the end of input
        joins the blanks before it, and one before a letter does not.
        """
        as_at_end = self.accepts[:, :-1] == self.accepts[:, -1:]
        pairs = self.cut_pairs.copy()
        for row in self.transitions:
            pairs &= as_at_end[row] | (row == 0)[:, None]
        return _read_only(pairs)

    def is_universal_cut(self, class_a: int, class_b: int) -> bool:
        """Whether a piece boundary surely lies between class a and class b; see `cut_pairs`."""
        return bool(self.cut_pairs[class_a, class_b])

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern.compile, (self.source,)

    def __repr__(self) -> str:
        return f"<Pattern {self.n_states} states, {self.n_classes} classes: {self.source[:40]!r}>"


def _read_only(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    array.setflags(write=False)
    return array


@lru_cache(maxsize=16)
def _fresh_tables(source: str) -> Tables:
    from .dfa import compile_tables  # a rare case, and not a cheap import

    return compile_tables(source)


def pack_tables(patterns: list[Pattern]) -> bytes:
    """The contents of `data/patterns.bin`: a line for each pattern, an empty one, the tables."""
    from .windows import derive_windows

    index = body = b""
    for pattern in patterns:
        if "\n" in pattern.source:
            raise ValueError(f"a packed pattern is one line, not {pattern.source!r}")
        windows = derive_windows(pattern)
        arrays = [getattr(pattern, name).astype(dtype) for name, dtype in _FIELDS]
        contents = b"".join(array.tobytes() for array in arrays)
        packed = zlib.compress(contents + (windows.to_bytes() if windows else b""), 9)
        numbers = len(body), len(packed), *pattern.transitions.shape, len(pattern.class_blocks)
        index += b"%d %d %d %d %d " % numbers + pattern.source.encode() + b"\n"
        body += packed
    return _MAGIC + index + b"\n" + body


def _packed_tables(source: str) -> Tables | None:
    """The tables of `source` from the package data, None if they are not there."""
    packed = _packed(source)
    return packed[0] if packed else None


def _packed_windows(source: str) -> bytes | None:
    """The windows of `source` as bytes, b"" if there are none; None: no package data."""
    packed = _packed(source)
    return packed[1] if packed else None


@lru_cache(maxsize=1)
def _packed(source: str) -> tuple[Tables, bytes] | None:
    index, body = _packed_file()
    if source not in index:
        return None
    at, size, states, classes, n_blocks = index[source]
    data = zlib.decompress(body[at : at + size])
    shapes = (
        (states, classes),
        (states, classes + 1),
        (0x110000 // CODE_POINTS_PER_BLOCK,),
        (n_blocks, CODE_POINTS_PER_BLOCK),
    )
    arrays = []
    offset = 0
    for (_, dtype), shape in zip(_FIELDS, shapes, strict=True):
        little = np.dtype(dtype).newbyteorder("<")
        array = np.ndarray(shape, little, data, offset)
        arrays.append(array.astype(dtype))
        offset += array.nbytes
    return Tables(*arrays), data[offset:]


@lru_cache(maxsize=1)
def _packed_file() -> tuple[dict[str, tuple[int, ...]], bytes]:
    """(source → place and size of its tables; states, classes and blocks), the tables."""
    try:
        with open(_PACKED, "rb") as file:
            data = file.read()
    except FileNotFoundError:  # while the file itself is being made
        return {}, b""
    lines, _, body = data.removeprefix(_MAGIC).partition(b"\n\n")
    index = {}
    for line in lines.split(b"\n"):
        *numbers, source = line.split(b" ", 5)
        index[source.decode()] = tuple(map(int, numbers))
    return index, body
