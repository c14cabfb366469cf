"""StreamEncoder and StreamDecoder: text and ids in chunks, exact at every cut.

The law: however `data` is cut into chunks, the ids from `encode` over the chunks plus those of
`flush` equal `Encoding.encode(data)`, and likewise for decoding. Text whose ids are not yet certain
is carried over to the next chunk: the *tail reserve*. As with the standard library's incremental
codecs, a stream is fresh again after `final` or `flush`.

Each chunk is appended to the reserve. Added tokens are found, text is normalized, ids that have
become final are emitted, and the rest is the new reserve. The whole reserve is one object, a `Tail`
of the core: text that later text may still change (`_core/stream/changing.pxi`), then the bytes of
the open pre-token (`_core/stream/tail.pxi`). A call works on a draft, which replaces the old tail
once nothing can fail any more.
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

    A chunk is str or bytes-like; bytes may be cut anywhere, even inside a character. In a stream
    made with disallowed_special=(), it may also be a `Control`, a `Prompt` or a t-string; from then
    on, text never becomes a control token (`Encoding.control_tokens`). The ids that `encode`
    returns are final: no later chunk can change them. An exception leaves the stream as it was
    before the call. One thread at a time: a call during another one raises StreamInUseError.

    >>> stream = enc.stream_encoder()
    >>> stream.encode("hello wor") + stream.encode("ld", final=True)
    [31373, 995]
    """

    # More are in `_core/stream/fast_path.pxi`.
    __slots__ = {
        "_encoding": None,
        "_settings": None,
        "_template": None,
        "matcher": "SpecialMatcher: which special tokens text may contain, and which are refused.",
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
        """max_pending: how many bytes may be pending (64 MiB) before PendingLimitExceeded is
        raised.

        errors: "strict" raises UnicodeDecodeError with the offset in the stream, "replace" is
        `bytes.decode("utf-8", "replace")`, and "surrogateescape" keeps every byte.
        add_special_tokens: the first call also returns the template's ids that precede a text, and
        the final call those that follow it. Raises UnsupportedPatternError if the pre-tokenization
        pattern has no tables.
        """
        check_policy(errors)
        self.max_pending = DEFAULT_MAX_PENDING if max_pending is None else max_pending
        if not isinstance(allowed_special, str):
            allowed_special = frozenset(allowed_special)
        if disallowed_special is None:
            disallowed_special = ()
        if not isinstance(disallowed_special, str):
            disallowed_special = frozenset(disallowed_special)
        self._encoding = encoding
        self._settings = (allowed_special, disallowed_special, errors)
        # An empty template is the same as none, even in saved states.
        self._template = encoding.definition.template if add_special_tokens else NO_TEMPLATE
        self.matcher = encoding.definition.specials.matcher(allowed_special, disallowed_special)
        self._go_on(self._new_tail())

    def _new_tail(self) -> Tail:
        engine = self._encoding.definition.engine
        return engine.tail(self.matcher, self.errors, self._template)

    def _prompt_tail(self) -> Tail:
        """A copy of the tail that accepts a Control or a Prompt.

        From then on, text never becomes a control token, not even an added token. So any earlier
        text must have been encoded as it would be in a prompt.
        """
        tail, definition = self._tail, self._encoding.definition
        if tail.finder is not None:
            return tail.copy()
        allowed, disallowed, errors = self._settings
        if allowed or disallowed:
            raise ValueError(
                "this stream looks for special tokens in text: for a Control or a Prompt, make "
                "it with disallowed_special=() and without allowed_special"
            )
        prompts = definition.prompts
        if not (tail.bytes_in or tail.tokens_out):
            return prompts.tail(errors, self._template)
        if tail.changer is not None or prompts.control & definition.specials.added.keys():
            raise ValueError(
                "this stream has encoded text outside a prompt, so control tokens in it may have "
                "become ids: begin a stream of a prompt with a Control or a Prompt, such as "
                "stream.encode(Prompt())"
            )
        return tail.with_finder(prompts.finder)

    def flush(self) -> list[int]:
        """list[int]: the remaining ids; the same as encode(b"", final=True)."""
        return self.encode(b"", final=True)

    def encode_with_offsets(
        self, chunk: Text | Prompt, final: bool = False, *, unit: str = "character"
    ) -> tuple[IdArray, npt.NDArray[np.int64]]:
        """(ids, spans): as `Encoding.encode_with_offsets`; offsets count from the stream's start.

        This must be the first call to the stream, since counting begins with the first chunk.
        Counting makes every call slower. Such a stream can be copied, but not saved or pickled. If
        the encoding changes text, the last id is held back: text that follows may be removed, which
        makes its span longer. The ids of `add_special_tokens` have empty spans at the start and
        end. Raises ValueError if the stream already has text.

        >>> stream = enc.stream_encoder()
        >>> stream.encode_with_offsets("hello world")[1].tolist()
        [[0, 5]]
        """
        from .engines.source_units import check_unit

        check_unit(unit)
        ids, spans = self._follow(chunk, final, unit, None)
        return ids, spans

    def take(self, chunk: Text | Prompt, final: bool, output: Output[Result]) -> Result:
        """The ids that become final with `chunk`, in the form of `output`."""
        if self._trace is not None:
            result: Result = self._follow(chunk, final, "byte", output)
            return result
        if self._tail.finder is None and prompt_of(chunk) is None:
            return self._tail.encode(chunk, final, output, self.max_pending)
        return self._take_prompt(chunk, final, output)

    @one_call
    def _take_prompt(self, chunk: Any, final: bool, output: Output[Result]) -> Result:
        """`take` for a prompt. After its end, the stream is one of text again."""
        tail = self._prompt_tail()
        found = tail.encode(chunk, final, output, self.max_pending)
        self._go_on(self._new_tail() if final else tail)
        return found

    @one_call
    def _follow(
        self, chunk: Text | Prompt, final: bool, unit: str, output: Output[Any] | None
    ) -> Any:
        """`take` for a stream that tracks spans. Without `output`, returns (ids, spans)."""
        from .engines.trace import BEGINNING

        tail, trace = self._tail, self._trace
        if trace is None:
            if tail.bytes_in or tail.tokens_out or self.pending:
                raise ValueError(
                    "this stream has encoded text without counting its characters; call "
                    "encode_with_offsets from the first chunk on"
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
        """str: how bytes that are not UTF-8 are handled."""
        return self._settings[2]

    @property
    def pending(self) -> int:
        """int: bytes received whose ids have not been emitted yet."""
        return self._tail.pending if self._trace is None else self._trace.pending

    @property
    def bytes_in(self) -> int:
        """int: bytes (of UTF-8, for str) received since the stream began."""
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
        """As `reset`, but the next text is at byte `offset`: the text before it was encoded
        elsewhere.

        `offset` must be a clean cut of the text. Not for encodings that change text before it is
        cut, and not with a template.
        """
        assert self._tail.changer is None
        assert self._template == NO_TEMPLATE
        self._tail.begin_at(offset)

    def forget_partial(self) -> None:
        """Forget the bytes of an unfinished character, as if they had never arrived."""
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
        """Begin a new stream, and forget pending text."""
        from .engines.trace import BEGINNING

        if self._trace is not None:
            self._go_on(self._new_tail(), BEGINNING)
        elif self._tail.finder is not None:
            self._go_on(self._new_tail())
        else:
            self._tail.reset()

    def policy(self) -> list[Any]:
        """The settings for special tokens and `errors`, as JSON values."""
        allowed, disallowed, errors = self._settings
        sets = [x if isinstance(x, str) else sorted(x) for x in (allowed, disallowed)]
        return [*sets, errors]

    def _state_key(self, is_prompt: bool) -> bytes:
        """Identifies the encoding and the settings. is_prompt: for a stream of a prompt."""
        import hashlib

        *sets, errors = self.policy()
        template = "" if self._template == NO_TEMPLATE else f" {tuple(self._template)!r}"
        if is_prompt:
            template += f" {sorted(self._encoding.definition.control_tokens)!r}"
        return hashlib.sha256(
            f"{self._encoding.digest} {sets!r} {errors}{template}".encode("utf-8", "surrogatepass")
        ).digest()

    def getstate(self) -> bytes:
        """bytes: everything needed to continue elsewhere from input offset `bytes_in`.

        They carry a version and a digest of the vocabulary, the pattern and the settings. Raises
        StateError for a stream that tracks offsets (`encode_with_offsets`): it cannot be saved.
        """
        if self._trace is not None:
            raise StateError(
                "a stream that tracks offsets cannot be saved or pickled: copy() it, or begin the "
                "text again"
            )
        return seal(self._state_key(self._tail.finder is not None) + self._reserve())

    def setstate(self, state: bytes) -> None:
        """Continue where `getstate` was called.

        Raises StateError for bytes that are damaged, or come from a different version, or from a
        stream with a different vocabulary, pattern or settings; this stream then stays as it was.
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
            self._tail.setstate(body[32:])
            return
        definition = self._encoding.definition
        tail = (
            definition.prompts.tail(self.errors, self._template) if is_prompt else self._new_tail()
        )
        tail.setstate(body[32:])
        self._go_on(tail)

    def setstate_of(self, state: bytes, policy: list[Any]) -> None:
        """As `setstate`, for the state of a stream with this `policy`; our own applies to new text.

        The beginning of a special token that the other stream took as plain text stays plain text.
        """
        if policy == self.policy():
            self.setstate(state)
            return
        allowed, disallowed, errors = policy
        other = StreamEncoder(
            self._encoding,
            allowed_special=allowed,
            disallowed_special=disallowed,
            errors=errors,
            add_special_tokens=self._template != NO_TEMPLATE,
        )
        other.setstate(state)
        self._tail.setstate(other._reserve())

    def _reserve(self) -> bytes:
        """The tail reserve as plain data."""
        return self._tail.getstate()

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

    # More are in `_core/decode/stream_decoder.pxi`.
    __slots__ = ("_encoding", "_errors", "_skip")

    _settles = False

    def __init__(
        self,
        encoding: Defined,
        *,
        errors: str = "replace",
        skip_special_tokens: bool = False,
    ):
        """errors: any of Python's error handlers; skip_special_tokens: leave out their text."""
        codecs.lookup_error(errors)
        self._encoding = encoding
        self._errors = errors
        self._skip = skip_special_tokens
        drops_space = encoding.definition.rules.drops_first_space
        decoder = encoding.definition.decoder
        self._set_decoder(decoder, errors, skip_special_tokens, drops_space, self._settles)
        self.reset()

    def flush(self) -> str:
        """str: the rest, if a character is unfinished; the same as decode([], final=True)."""
        return self.decode([], final=True)

    @property
    def errors(self) -> str:
        """str: how tokens that are not UTF-8 are handled."""
        return self._errors

    def copy(self) -> StreamDecoder:
        """StreamDecoder: an independent stream in the same state."""
        twin = StreamDecoder(self._encoding, errors=self._errors, skip_special_tokens=self._skip)
        twin._set_reached(*self._reached())
        return twin

    __copy__ = copy

    def getstate(self) -> bytes:
        """bytes: everything needed to continue elsewhere after `tokens_in` ids."""
        tokens_in, bytes_out, is_begun, held, *_ = self._reached()
        bytes_out |= is_begun << 63
        counters = tokens_in.to_bytes(8, "little") + bytes_out.to_bytes(8, "little")
        return seal(bytes.fromhex(self._encoding.digest) + counters + held)

    def setstate(self, state: bytes) -> None:
        """Continue where `getstate` was called. Raises StateError for bytes that are damaged, or
        come from a different version or a decoder of a different encoding; this one then stays as
        it was.
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
