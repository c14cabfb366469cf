"""StreamEncoder and StreamDecoder: text and ids in chunks, exact at every cut.

The law: for every way of cutting `data` into chunks, the ids from `encode` over the chunks plus
those of `flush` equal `Encoding.encode(data)`, and the same for decoding. What cannot be decided
yet is carried from one chunk to the next: the *tail reserve*. The contract is that of the standard
library's incremental codecs: after `final` or `flush` a stream is fresh again.

Each chunk goes the same way: it is put after the reserve, added tokens are found and text is
normalized, the core says which ids are final, these are emitted, and the rest is the new reserve.
All of the reserve is in one object, a `Tail` of the core: the open pre-token with the bytes that it
holds (`_core/stream/tail.pxi`), and before that the text that later text may still change
(`_core/stream/changing.pxi`). A call works on a draft, which takes the old one's place when nothing
can fail any more.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any

from ._core.encode import (
    FastStreamDecoder,
    FastStreamEncoder,
    check_policy,
    one_call,
)
from .engines.template import NO_TEMPLATE
from .errors import StateError
from .prompts import prompt_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._core.encode import Output, Tail
    from ._types import AllowedSpecial, DisallowedSpecial, IdArray, Text
    from .definition import Defined
    from .engines.protocol import Result
    from .prompts import Prompt

DEFAULT_MAX_PENDING = 1 << 26
_STATE_MAGIC = b"streamtok stream 1\n"


class StreamEncoder(FastStreamEncoder):
    """Encodes one stream of text, chunk by chunk.

    A chunk is str or bytes-like; bytes may be cut anywhere, also inside a character. In a stream
    made with disallowed_special=(), it may also be a `Control`, a `Prompt` or a t-string; from then
    on to the end, text makes no control token (`Encoding.control_tokens`). What `encode` returns is
    final: no later chunk can change it. An exception leaves the stream as it was
    before the call. One thread at a time: a call during another one raises StreamInUseError.

    >>> stream = enc.stream_encoder()
    >>> stream.encode("hello wor") + stream.encode("ld", final=True)
    [31373, 995]
    """

    # And those of `_core/stream/fast_path.pxi`.
    __slots__ = {
        "_encoding": None,
        "_settings": None,
        "_template": None,
        "matcher": "SpecialMatcher: which special tokens a text may have, and which are refused.",
    }

    _kind = "stream"

    def __init__(
        self,
        encoding: Defined,
        *,
        allowed_special: AllowedSpecial = frozenset(),
        disallowed_special: DisallowedSpecial = "all",
        errors: str = "strict",
        max_pending: int | None = None,
        add_special_tokens: bool = False,
    ):
        """max_pending: bytes that may wait before PendingLimitExceeded is raised (64 MiB).

        errors: "strict" raises UnicodeDecodeError with the offset in the stream, "replace" is
        `bytes.decode("utf-8", "replace")`, "surrogateescape" keeps every byte. add_special_tokens:
        the beginning of the encoding's template comes with the first call, its end with the final
        one. Raises UnsupportedPatternError for an encoding whose pre-tokenization pattern has no
        tables.
        """
        check_policy(errors)
        if max_pending is None:
            max_pending = DEFAULT_MAX_PENDING
        self.max_pending = max_pending
        if not isinstance(allowed_special, str):
            allowed_special = frozenset(allowed_special)
        if disallowed_special is None:
            disallowed_special = ()
        if not isinstance(disallowed_special, str):
            disallowed_special = frozenset(disallowed_special)
        self._encoding = encoding
        self._settings = (allowed_special, disallowed_special, errors)
        # A template of nothing is none: the streams and their states are the same.
        self._template = encoding.definition.template if add_special_tokens else NO_TEMPLATE
        matcher = encoding.definition.specials.matcher(allowed_special, disallowed_special)
        self.matcher = matcher
        self._go_on(self._new_tail())

    def _new_tail(self) -> Tail:
        engine = self._encoding.definition.engine
        return engine.tail(self.matcher, self.errors, self._template)

    def _prompt_tail(self) -> Tail:
        """A copy of the tail that takes a Control or a Prompt.

        From then on, text makes no control token, also where added tokens are control. So text that
        came before must mean the same as in a prompt, whatever it was.
        """
        tail, definition = self._tail, self._encoding.definition
        if tail.finder is not None:
            return tail.copy()
        allowed, disallowed, errors = self._settings
        if allowed or disallowed:
            raise ValueError(
                "this stream looks for special tokens in text: one that takes a Control or a "
                "Prompt is made with disallowed_special=() and without allowed_special"
            )
        prompts = definition.prompts
        if not (tail.bytes_in or tail.tokens_out):
            return prompts.tail(errors, self._template)
        if tail.changer is not None or prompts.control & definition.specials.added.keys():
            raise ValueError(
                "this stream took text in as no part of a prompt, so control tokens in it may have "
                "become ids: begin a stream of a prompt with a Control or a Prompt, such as "
                "stream.encode(Prompt())"
            )
        return tail.with_finder(prompts.finder)

    def flush(self) -> list[int]:
        """list[int]: the ids that are left; the same as encode(b"", final=True)."""
        return self.encode(b"", final=True)

    def encode_with_offsets(
        self, chunk: Text | Prompt, final: bool = False, *, unit: str = "character"
    ) -> tuple[IdArray, npt.NDArray[np.int64]]:
        """(ids, spans): as `Encoding.encode_with_offsets`; offsets are those in the stream.

        A stream counts from its first chunk on, so the first call must be this one; it costs more
        from then on. Such a stream can be copied, not saved or pickled. Where text is changed, the
        last id waits for the next text, which may be left out and so make its span longer. The ids
        of `add_special_tokens` have empty spans, at the beginning and at the end. Raises ValueError
        where text came in before.

        >>> stream = enc.stream_encoder()
        >>> stream.encode_with_offsets("hello world")[1].tolist()
        [[0, 5]]
        """
        from .engines.source_units import check_unit

        check_unit(unit)
        ids, spans = self._follow(chunk, final, unit, None)
        return ids, spans

    def take(self, chunk: Text | Prompt, final: bool, output: Output[Result]) -> Result:
        """The ids that `chunk` makes certain, as `output` gives them."""
        if self._trace is not None:
            result: Result = self._follow(chunk, final, "byte", output)
            return result
        if self._tail.finder is None and prompt_of(chunk) is None:
            return self._tail.encode(chunk, final, output, self.max_pending)
        return self._take_prompt(chunk, final, output)

    @one_call
    def _take_prompt(self, chunk: Any, final: bool, output: Output[Result]) -> Result:
        """`take` of a stream of a prompt. After the end, it is one of text again."""
        tail = self._prompt_tail()
        found = tail.encode(chunk, final, output, self.max_pending)
        self._go_on(self._new_tail() if final else tail)
        return found

    @one_call
    def _follow(
        self, chunk: Text | Prompt, final: bool, unit: str, output: Output[Any] | None
    ) -> Any:
        """`take` of a stream that knows where its ids came from; without `output`, (ids, spans)."""
        from .engines.trace import BEGINNING

        tail, trace = self._tail, self._trace
        if trace is None:
            if tail.bytes_in or tail.tokens_out or self.pending:
                raise ValueError(
                    "this stream took text in before its offsets were asked for, and did not count "
                    "its characters; call encode_with_offsets from the first chunk on"
                )
            trace = BEGINNING
        draft = tail.copy() if prompt_of(chunk) is None else self._prompt_tail()
        tracer = self._encoding.definition.tracer(self.errors, self._template)
        ids, spans, trace = tracer.encode(draft, trace, chunk, final, unit, self.max_pending)
        result = (ids, spans) if output is None else output.of(ids)
        self._go_on(self._new_tail() if final and draft.finder is not None else draft, trace)
        return result

    @property
    def encoding(self) -> Any:
        """The `Encoding` that this stream encodes for."""
        return self._encoding

    @property
    def errors(self) -> str:
        """str: what happens to bytes that are not UTF-8."""
        return self._settings[2]

    @property
    def pending(self) -> int:
        """int: bytes taken in whose ids have not been emitted yet."""
        return self._tail.pending if self._trace is None else self._trace.pending

    @property
    def bytes_in(self) -> int:
        """int: bytes (of UTF-8, for str) taken in since the stream began."""
        return self._tail.bytes_in

    @property
    def tokens_out(self) -> int:
        """int: ids emitted since the stream began."""
        held = () if self._trace is None else self._trace.held
        return self._tail.tokens_out - len(held)

    def twin(self) -> StreamEncoder:
        """StreamEncoder: a new stream with the same settings."""
        allowed, disallowed, errors = self._settings
        return StreamEncoder(
            self._encoding,
            allowed_special=allowed,
            disallowed_special=disallowed,
            errors=errors,
            max_pending=self.max_pending,
            add_special_tokens=self._template != NO_TEMPLATE,
        )

    def begin_at(self, offset: int) -> None:
        """As `reset`, but what comes next is at byte `offset`: another has encoded what is before.

        That must end where the text may be cut. Not where a format changes text before it is cut,
        and not with a template.
        """
        assert self._tail.changer is None
        assert self._template == NO_TEMPLATE
        self._tail.begin_at(offset)

    def forget_partial(self) -> None:
        """Forget the bytes of a character that is not complete, as if they had not come in."""
        self._tail.forget_partial()

    def copy(self) -> StreamEncoder:
        """StreamEncoder: an independent stream in the same state."""
        twin = StreamEncoder.__new__(StreamEncoder)
        twin._encoding = self._encoding
        twin.matcher = self.matcher
        twin._settings = self._settings
        twin._template = self._template
        twin._go_on(self._tail.copy(), self._trace)
        twin.max_pending = self.max_pending
        return twin

    __copy__ = copy

    def reset(self) -> None:
        """Begin a new stream; what was pending is forgotten."""
        from .engines.trace import BEGINNING

        if self._trace is not None:
            self._go_on(self._new_tail(), BEGINNING)
        elif self._tail.finder is not None:
            self._go_on(self._new_tail())
        else:
            self._tail.reset()

    def policy(self) -> list[Any]:
        """What text that comes is checked for, as JSON values: special tokens, and `errors`."""
        allowed, disallowed, errors = self._settings
        sets = [x if isinstance(x, str) else sorted(x) for x in (allowed, disallowed)]
        return [*sets, errors]

    def _state_key(self, is_prompt: bool) -> bytes:
        """is_prompt: of the state of a stream that took control in."""
        import hashlib

        *sets, errors = self.policy()
        template = "" if self._template == NO_TEMPLATE else f" {tuple(self._template)!r}"
        if is_prompt:
            template += f" {sorted(self._encoding.definition.control_tokens)!r}"
        return hashlib.sha256(
            f"{self._encoding.digest} {sets!r} {errors}{template}".encode("utf-8", "surrogatepass")
        ).digest()

    def getstate(self) -> bytes:
        """bytes: all that is needed to continue elsewhere from input offset `bytes_in`.

        They carry a version and a digest of the vocabulary, the pattern and the settings. Raises
        StateError for a stream that gives offsets (`encode_with_offsets`): it cannot be saved.
        """
        if self._trace is not None:
            raise StateError(
                "a stream that gives offsets cannot be saved or pickled: copy() it, or begin the "
                "text again"
            )
        return seal(self._state_key(self._tail.finder is not None) + self._reserve())

    def setstate(self, state: bytes) -> None:
        """Continue where `getstate` was called.

        Raises StateError for bytes that are damaged, that come from another version, or from a
        stream with another vocabulary, pattern or settings; the stream is then as before.
        """
        body = unseal(state)
        key = body[:32]
        is_prompt = key != self._state_key(False)
        if is_prompt and (any(self._settings[:2]) or key != self._state_key(True)):
            raise StateError(
                f"the saved state is of another encoding than {self._encoding.name!r}, or of a "
                "stream with other settings"
            )
        if self._trace is None and is_prompt == (self._tail.finder is not None):
            self._adopt(body[32:])
            return
        definition = self._encoding.definition
        tail = (
            definition.prompts.tail(self.errors, self._template) if is_prompt else self._new_tail()
        )
        tail.setstate(body[32:])
        self._go_on(tail)

    def setstate_of(self, state: bytes, policy: list[Any]) -> None:
        """As `setstate`, of a stream with this `policy`: text that comes follows that of this one.

        Of a special token that has come only in part, the beginning counts as seen.
        """
        if policy == self.policy():
            self.setstate(state)
            return
        allowed, disallowed, errors = policy
        sets: list[Any] = [x if isinstance(x, str) else set(x) for x in (allowed, disallowed)]
        other = StreamEncoder(
            self._encoding,
            allowed_special=sets[0],
            disallowed_special=sets[1],
            errors=errors,
            add_special_tokens=self._template != NO_TEMPLATE,
        )
        other.setstate(state)
        self._adopt(other._reserve())

    def _reserve(self) -> bytes:
        """The tail reserve as plain data, for `_adopt`."""
        return self._tail.getstate()

    def _adopt(self, reserve: bytes) -> None:
        """Go on with the reserve of another stream, which may have other settings."""
        self._tail.setstate(reserve)

    def __getstate__(self) -> object:
        settings = *self._settings, self._template != NO_TEMPLATE
        return self._encoding, settings, self.max_pending, self.getstate()

    def __setstate__(self, value: Any) -> None:
        encoding, (allowed, disallowed, errors, add_special_tokens), max_pending, state = value
        self.__init__(  # type: ignore[misc]
            encoding,
            allowed_special=allowed,
            disallowed_special=disallowed,
            errors=errors,
            max_pending=max_pending,
            add_special_tokens=add_special_tokens,
        )
        self.setstate(state)

    def __repr__(self) -> str:
        return (
            f"<StreamEncoder of {self._encoding.name!r}: {self.bytes_in} bytes in, "
            f"{self.tokens_out} tokens out, {self.pending} bytes pending>"
        )


class StreamDecoder(FastStreamDecoder):
    """Decodes one stream of ids. Holds at most 3 bytes: those of an unfinished character.

    An exception leaves the stream as it was before the call. One thread at a time: a call during
    another one raises StreamInUseError.

    >>> decoder = enc.stream_decoder()
    >>> decoder.decode([31373]) + decoder.decode([995]) + decoder.flush()
    'hello world'
    """

    # And those of `_core/decode/stream_decoder.pxi`.
    __slots__ = ("_encoding", "_errors", "_skip")

    _settles = False

    def __init__(
        self,
        encoding: Defined,
        *,
        errors: str = "replace",
        skip_special_tokens: bool = False,
    ):
        """errors: any of Python's error handlers; skip_special_tokens: leave their text out."""
        codecs.lookup_error(errors)
        self._encoding = encoding
        self._errors = errors
        self._skip = skip_special_tokens
        drops_space = encoding.definition.rules.drops_first_space
        decoder = encoding.definition.decoder
        self._set_decoder(decoder, errors, skip_special_tokens, drops_space, self._settles)
        self.reset()

    def flush(self) -> str:
        """str: what an unfinished character leaves; the same as decode([], final=True)."""
        return self.decode([], final=True)

    @property
    def errors(self) -> str:
        """str: what happens to tokens that are not UTF-8."""
        return self._errors

    def copy(self) -> StreamDecoder:
        """StreamDecoder: an independent stream in the same state."""
        twin = StreamDecoder(self._encoding, errors=self._errors, skip_special_tokens=self._skip)
        twin._set_reached(*self._reached())
        return twin

    __copy__ = copy

    def getstate(self) -> bytes:
        """bytes: all that is needed to continue elsewhere after `tokens_in` ids."""
        tokens_in, bytes_out, is_begun, held, *_ = self._reached()
        bytes_out |= is_begun << 63
        counters = tokens_in.to_bytes(8, "little") + bytes_out.to_bytes(8, "little")
        return seal(bytes.fromhex(self._encoding.digest) + counters + held)

    def setstate(self, state: bytes) -> None:
        """Continue where `getstate` was called. Raises StateError, as StreamEncoder.setstate; the
        stream is then as before.
        """
        body = unseal(state)
        if body[:32] != bytes.fromhex(self._encoding.digest):
            raise StateError(f"the saved state is of another encoding than {self._encoding.name!r}")
        if not 48 <= len(body) <= 51:
            raise StateError("the saved state is not that of a StreamDecoder")
        tokens_in = int.from_bytes(body[32:40], "little")
        bytes_out = int.from_bytes(body[40:48], "little")
        is_begun, bytes_out = bool(bytes_out >> 63), bytes_out & (1 << 63) - 1
        try:
            self._set_reached(tokens_in, bytes_out, is_begun, body[48:], None, False)
        except ValueError as error:
            raise StateError(f"the saved stream state is damaged: {error}") from None

    def __getstate__(self) -> object:
        return self._encoding, self._errors, self._skip, self.getstate()

    def __setstate__(self, value: Any) -> None:
        encoding, errors, skip, state = value
        self.__init__(encoding, errors=errors, skip_special_tokens=skip)  # type: ignore[misc]
        self.setstate(state)


def seal(body: bytes) -> bytes:
    import zlib

    return _STATE_MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def unseal(state: bytes) -> bytes:
    import zlib

    if not isinstance(state, bytes | bytearray | memoryview):
        raise TypeError(f"a saved stream state is bytes, not {type(state).__name__}")
    state = bytes(state)
    start = len(_STATE_MAGIC)
    if state[:start] != _STATE_MAGIC:
        raise StateError("these bytes are not a saved stream state of this version")
    body = state[start + 4 :]
    if zlib.crc32(body).to_bytes(4, "little") != state[start : start + 4] or len(body) < 33:
        raise StateError("the saved stream state is damaged")
    return body
