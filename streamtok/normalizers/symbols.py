"""The step that writes a text in the symbols that a model of words merges.

Such a model of `tokenizers` takes characters, or letters for bytes, and says more with them than
what they are: one that is not the first of its pre-token has a prefix, the last one has a suffix,
and one that the vocabulary does not have becomes an unknown token, or nothing at all. So a text is
cut into pre-tokens here, and each becomes a row of *symbols*: characters for private use, one for
each token that a merge may begin with. The core merges these. A pre-token that is a token in
whole (`whole`) may be one symbol, too. After each pre-token stands a border, if there are splits.

A pre-token waits for its end, because its last character is another symbol. Without splits, what
waits is at most two characters, and text that may be a whole. Of several characters that are one
unknown symbol, the last one is where it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..patterns.split_walk import BEGIN
from ..vocabulary.byte_alphabet import CHARACTERS
from .growth import Growth, growth_of, n_bytes, ratio
from .pretokens import later_stage, step_of_stage, walk_of
from .step import Blocks, State, text_of, whole_block

__all__ = ["BORDER", "MOST_SYMBOLS", "Symbols", "symbol"]

BORDER = "\U000f0000"
MOST_KNOWN, LONGEST_KNOWN = 1 << 14, 32  # pre-tokens whose rows are kept, and their characters
MOST_SYMBOLS = 0x10FFFD - 0xF0000


def symbol(number: int) -> str:
    """The character that stands for the symbol of this number."""
    if number >= MOST_SYMBOLS:
        raise ValueError(f"more than {MOST_SYMBOLS} symbols are not possible")
    return chr(0xF0001 + number)


class Symbols:
    """Symbols for the characters of pre-tokens, as a model of Hugging Face's takes them."""

    __slots__ = (
        "_byte_codes", "_codes", "_known", "_later", "_letters", "_longest", "_unknown", "_walk",
        "_whole", "fuses", "growth", "prefix", "spec", "suffix",
    )  # fmt: skip

    def __init__(
        self,
        symbols: tuple[str, ...],
        prefix: str,
        suffix: str,
        unknown: str,
        fuses: bool,
        has_fallback: bool,
        is_byte_level: bool,
        whole: tuple[tuple[str, str], ...],
        stages: tuple[tuple[str, ...], ...],
    ) -> None:
        """symbols: their texts, by number. prefix, suffix: of characters that are not the first,
        and that are the last. unknown: the symbol that others become, "" for none. fuses: several
        in a row become one. has_fallback: a character becomes <0x00> … <0xFF> of its bytes if all
        are symbols. is_byte_level: bytes are symbols, in their alphabet, instead of characters.
        whole: what pre-tokens become that are looked up. stages: what cuts the text, if anything:
        ("Split", pattern, behavior), and after the first one also ("MetaspaceText", …),
        ("PrefixSpace",) and ("ByteLetters",), which change each pre-token.
        """
        self.spec = (
            "Symbols", symbols, prefix, suffix, unknown, fuses, has_fallback, is_byte_level,
            whole, stages,
        )  # fmt: skip
        self._codes = {text: symbol(number) for number, text in enumerate(symbols)}
        self._unknown = self._codes[unknown] if unknown else ""
        self.prefix, self.suffix, self.fuses = prefix, suffix, fuses
        names = [f"<0x{byte:02X}>" for byte in range(256)] if has_fallback else []
        self._byte_codes = {
            byte: self._codes[name] for byte, name in enumerate(names) if name in self._codes
        }
        self._letters = CHARACTERS if is_byte_level else None
        self._whole = dict(whole)
        self._longest = max(map(len, self._whole), default=0)
        self._walk = walk_of(*stages[0][1:]) if stages else None
        self._known: dict[str, str] = {}  # the rows of pre-tokens that were met
        self._later = [later_stage(*stage) for stage in stages[1:]]
        self.growth = self._growth(stages[1:], has_fallback)

    def interest(self) -> None:
        """See `Step`."""

    def row_of(self, pretoken: str) -> str:
        """The symbols of one pre-token."""
        blocks: Blocks = []
        self._add(blocks, pretoken, False, "", "", True)
        return text_of(blocks)

    def begin(self, is_first: bool) -> State:
        """See `Step`. With splits, the state is that of the walk along them. Else it is what waits,
        whether anything has come out, the character whose unknown symbol waits for the next one
        ("": none does), and its symbols before that.
        """
        return BEGIN if self._walk else ("", False, "", "")

    def feed(self, state: State, text: str, final: bool) -> tuple[State, Blocks]:
        blocks: Blocks = []
        if self._walk is not None:
            state, stretches = self._walk.feed(state, text, final)
            for stretch, is_pretoken in stretches:
                blocks += whole_block(self._rows_of(stretch) if is_pretoken else "", stretch)
            return state, blocks
        held, is_begun, waits, symbols = state
        text = held + text
        if final:
            if text or waits:
                self._add(blocks, text, is_begun, waits, symbols, True)
            return self.begin(False), _joined(blocks)
        kept = len(text)
        if is_begun or len(text) > self._longest:
            kept = min(1, kept) if self.suffix else 0
        part = text[: len(text) - kept]
        if part:
            waits, symbols = self._add(blocks, part, is_begun, waits, symbols, False)
        return (text[len(part) :], is_begun or bool(part), waits, symbols), _joined(blocks)

    def held(self, state: State) -> str:
        return self._walk.held(state) if self._walk is not None else str(state[2] + state[0])

    def check_state(self, value: Any) -> State:
        if self._walk is not None:
            return self._walk.check_state(value)
        types = [*map(type, value)] if isinstance(value, (list, tuple)) else []
        if types != [str, bool, str, str]:
            raise ValueError("expected what waits, whether text came out, and an unknown symbol")
        held, is_begun, waits, symbols = value
        most = (1 if self.suffix else 0) if is_begun else max(self._longest, bool(self.suffix))
        can_wait = is_begun and self._unknown and len(waits) == 1
        is_known = set(symbols) <= {*self._codes.values()}
        is_known = is_known and len(symbols) <= (self.growth.factor or 0)
        if len(held) > most or not (can_wait and is_known if waits else not symbols):
            raise ValueError("expected no more text than waits for the rest of its pre-token")
        return held, is_begun, waits, symbols

    def _growth(self, later: tuple[tuple[str, ...], ...], has_fallback: bool) -> Growth:
        """The size of rows: a symbol has four bytes, and a pre-token one byte or more."""
        each = 1
        if has_fallback:  # the bytes of an affix become symbols with each character
            each += n_bytes(self.prefix) + n_bytes(self.suffix) + (self._letters is not None)
        steps = [step.growth for step in map(step_of_stage, later) if step is not None]
        row = growth_of([*steps, Growth(4.0 * each)])
        return Growth(max(row, ratio(self._whole.items())) + len(BORDER.encode()))

    def _rows_of(self, pretoken: str) -> str:
        """The symbols of a pre-token of the first stage, with a border after each row."""
        rows = self._known.get(pretoken)
        if rows is None:
            rows = "".join([self.row_of(part) + BORDER for part in self._cut(pretoken)])
            longest = max(len(pretoken), len(rows) // 4)
            if longest <= LONGEST_KNOWN and len(self._known) < MOST_KNOWN:
                self._known[pretoken] = rows
        return rows

    def _cut(self, pretoken: str) -> list[str]:
        """What later stages make of a pre-token of the first."""
        pretokens = [pretoken]
        for stage in self._later:
            pretokens = [part for pretoken in pretokens for part in stage(pretoken)]
        return pretokens

    def _add(
        self, blocks: Blocks, text: str, is_begun: bool, waits: str, symbols: str, ends: bool
    ) -> tuple[str, str]:
        """Append the blocks of characters of one pre-token; what waits then (see `begin`).

        is_begun: it has characters before these. ends: these are its last.
        """
        if not is_begun and ends and text in self._whole:
            blocks += whole_block(self._whole[text], text)
            return "", ""
        codes, letters, prefix = self._codes, self._letters, self.prefix
        last = len(text) - 1
        before = prefix if is_begun else ""
        for at, char in enumerate(text):
            out, is_own = "", False  # is_own: the unknown symbol of this character waits
            units = char if letters is None else _letters_of(char, letters)
            for place, unit in enumerate(units, 1):
                name = before + unit
                before = prefix
                if ends and at == last and place == len(units):
                    name += self.suffix
                code = codes.get(name)
                fallback = self._fallback(name) if code is None else None
                if code is None and fallback is None and not self._unknown:
                    continue
                # Before a fallback it goes on waiting, as in tokenizers.
                comes_out = fallback is None and (code is not None or not self.fuses)
                if waits:
                    blocks.append((symbols + (self._unknown if comes_out else ""), waits))
                    waits, is_own = "", not comes_out
                elif is_own and comes_out:
                    out += self._unknown
                    is_own = False
                out += code or fallback or ""
                is_own = is_own or (code is None and fallback is None)
            if is_own:
                waits, symbols = char, out
            else:
                blocks.append((out, char))
        if ends and waits:
            blocks.append((symbols + self._unknown, waits))
            waits = ""
        return waits, symbols if waits else ""

    def _fallback(self, name: str) -> str | None:
        if not self._byte_codes:
            return None
        found = [self._byte_codes.get(byte) for byte in name.encode("utf-8", "surrogateescape")]
        return None if None in found else "".join(code for code in found if code)


def _letters_of(char: str, letters: Mapping[int, str]) -> list[str]:
    return [letters[byte] for byte in char.encode("utf-8", "surrogateescape")]


def _joined(blocks: Blocks) -> Blocks:
    """The same with fewer blocks: neighbours with one symbol for one character are one."""
    joined: Blocks = []
    run: list[tuple[str, str]] = []
    for block in [*blocks, None]:
        if block is not None and len(block[0]) == len(block[1]) == 1:
            run.append(block)
            continue
        if run:
            joined.append(("".join([text for text, _ in run]), "".join([x for _, x in run])))
            run = []
        if block is not None and block != ("", ""):
            joined.append(block)
    return joined
