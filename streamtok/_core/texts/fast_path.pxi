"""The fast path: encode or count a small text in one step.

Encoding a prompt or a log line of 100 bytes takes less time than a few Python calls. So `Encoding.encode`,
`encode_ordinary`, `encode_to_numpy`, `count` and `decode` are defined here. They first check for the usual
case: a small, well-formed text and the usual settings. Other texts go to `_encode_any` of the derived
class, which takes any text and raises the errors; anything that is not a text goes to its `_encode_other`.
"""

cdef enum:
    SMALL_TEXT = 4096            # bytes of the largest text for the fast path, which holds the GIL
    PADDED = 128                 # bytes of the largest text that is copied so that more may be read


ALL = "all"                 # default settings; compared by identity here, by value elsewhere
NO_SPECIAL = frozenset()
cdef object all_special = ALL
cdef object no_special = NO_SPECIAL
cdef object strict = "strict"
cdef object replace = "replace"
cdef object nothing = ()
cdef object one = 1
cdef str NOT_READY = "this Encoding was not made by its own __init__"


cdef class FastEncoding:
    """The base class of `Encoding`: the calls that have a fast path, and what they need. The only methods
    of a derived class that it calls are `_encode_any` and `_encode_other`.
    """

    cdef Encoder encoder            # None if there is no fast path
    cdef object find_rules
    cdef ChangeRules refusing       # for calls that refuse special tokens; None until the first
    cdef ChangeRules ordinary       # for calls that treat them as plain text,
    cdef ChangeRules allowing       # and for calls that allow all of them
    cdef Decoder decoder
    cdef PromptRules prompts        # None until the first prompt
    cdef bint drops_space           # the text begins with a space that decoding removes

    def _set_parts(self, Decoder decoder not None, bint drops_space, Encoder encoder=None, find_rules=None):
        """encoder: None for an encoding whose pattern has no tables. find_rules: returns ChangeRules for
        the values of `allowed_special` and `disallowed_special`.

        Raises ValueError if called a second time: other threads may be using the parts.
        """
        if self.decoder is not None:
            raise ValueError("this Encoding is made already: call __init__ once")
        if encoder is not None:
            need_scanner(encoder)
        self.encoder, self.decoder, self.drops_space = encoder, decoder, drops_space
        self.find_rules = find_rules

    def encode_ordinary(self, text, *, errors="strict", max_tokens=None):
        """list[int]: the ids of `text`; special tokens in it are plain text.

        max_tokens: as for `encode`.

        >>> enc.encode_ordinary("hello world")
        [31373, 995]
        """
        need_text(text)                 # not a Prompt: its control says which special tokens are meant
        if max_tokens is None:
            ids = self.try_fast_path(text, no_special, nothing, errors, AS_LIST)
            if ids is not None:
                return ids
        return self.slow_path(text, no_special, nothing, errors, AS_LIST, False, one, max_tokens)

    def encode(self, text, *, allowed_special=NO_SPECIAL, disallowed_special=ALL, errors="strict",
               max_tokens=None, add_special_tokens=False):
        """list[int]: the ids of `text`, which may be a `Prompt`, a `Control` or a t-string.

        In a prompt, only control becomes control tokens, and `disallowed_special` is ignored.

        allowed_special: special tokens (or "all") whose text becomes their id. disallowed_special: texts
        (or "all": every special token that is not allowed) that raise ValueError where they occur; () lets
        them pass as plain text. errors: for bytes that are not UTF-8, "strict" (raises UnicodeDecodeError),
        "replace" or "surrogateescape" (keeps them). Lone surrogates in a str become U+FFFD, as in tiktoken.
        max_tokens: return only the first ids, at most this many; text far after them is not read and costs
        nothing. add_special_tokens: put the ids of the encoding's template around those of the text
        (docs/formats.md); most encodings have none.

        >>> enc.encode("<|endoftext|>", allowed_special="all")
        [50256]
        """
        if max_tokens is None and add_special_tokens is False:
            ids = self.try_fast_path(text, allowed_special, disallowed_special, errors, AS_LIST)
            if ids is not None:
                return ids
        return self.slow_path(text, allowed_special, disallowed_special, errors, AS_LIST,
                           add_special_tokens, one, max_tokens)

    def encode_to_numpy(self, text, *, allowed_special=NO_SPECIAL, disallowed_special=ALL,
                        errors="strict", add_special_tokens=False, num_threads=1):
        """numpy.uint32 [n]: like `encode`, but without building a list.

        num_threads: a text of a megabyte or more is cut where that changes no id, and shared between at
        most this many threads, but no more than there are cores. A text that other code can write to
        meanwhile (bytearray, mmap) is copied first.
        """
        if add_special_tokens is False and num_threads is one:
            ids = self.try_fast_path(text, allowed_special, disallowed_special, errors, AS_ARRAY)
            if ids is not None:
                return ids
        return self.slow_path(text, allowed_special, disallowed_special, errors, AS_ARRAY,
                           add_special_tokens, num_threads, None)

    def count(self, text, *, allowed_special=NO_SPECIAL, disallowed_special=(), errors="strict",
              add_special_tokens=False, num_threads=1):
        """int: len(encode(text, …)), without storing the ids. docs/howto/counting.md lists the cases in
        which the text is copied.

        Special tokens in the text are plain text unless you say otherwise, as in all methods that count
        (`counter`, `fits`, `truncate`, `split`). num_threads: as for `encode_to_numpy`.

        >>> enc.count("hello world")
        2
        """
        if add_special_tokens is False and num_threads is one:
            n = self.try_fast_path(text, allowed_special, disallowed_special, errors, AS_COUNT)
            if n is not None:
                return n
        return self.slow_path(text, allowed_special, disallowed_special, errors, AS_COUNT,
                           add_special_tokens, num_threads, None)

    @cython.final
    cdef object try_fast_path(self, object text, object allowed_special, object disallowed_special,
                              object errors, Form form):
        """The result of the fast path, or None if the fast path does not apply, as for the first prompt."""
        cdef ChangeRules rules
        if errors is not strict or self.encoder is None:
            return None
        if allowed_special is no_special:
            if disallowed_special is all_special:
                rules = self.refusing
            elif disallowed_special is nothing:
                rules = self.ordinary
            else:
                return None
        elif allowed_special is all_special and (disallowed_special is all_special or disallowed_special is nothing):
            rules = self.allowing
        else:
            return None
        if rules is None:
            rules = self.keep_rules(allowed_special, disallowed_special)
        found = encode_small(self.encoder, rules, text, form)
        if found is None and self.prompts is not None and type(text) in self.prompts.kinds:
            return encode_prompt(self.encoder, self.prompts, text, strict, form)
        return found

    def _keep_prompts(self, PromptRules prompts):
        """Use these rules for prompts with the usual settings from now on."""
        with cython.critical_section(self):
            self.prompts = self.prompts or prompts      # keep the first: others may be reading it

    @cython.final
    cdef ChangeRules keep_rules(self, object allowed_special, object disallowed_special):
        """Make the rules for these settings, and keep them for later calls."""
        cdef ChangeRules rules = self.find_rules(allowed_special, disallowed_special)
        with cython.critical_section(self):     # keep the first: others may be reading it
            if allowed_special is all_special:
                self.allowing = self.allowing or rules
            elif disallowed_special is all_special:
                self.refusing = self.refusing or rules
            else:
                self.ordinary = self.ordinary or rules
        return rules

    @cython.final
    cdef object slow_path(self, object text, object allowed_special, object disallowed_special,
                          object errors, Form form, object add_special_tokens, object num_threads,
                          object max_tokens):
        if self.decoder is None:
            raise ValueError(NOT_READY)
        if not is_text_like(text):
            return self._encode_other(text, allowed_special, disallowed_special, errors,
                                      outputs[<int>form], add_special_tokens, num_threads, max_tokens)
        return self._encode_any(text, allowed_special, disallowed_special, errors, outputs[<int>form],
                                add_special_tokens, num_threads, max_tokens)

    def decode_bytes(self, tokens):
        """bytes: the tokens, concatenated. tokens: an iterable of int, or an integer array.

        Raises KeyError for an id that is not in the vocabulary, and OverflowError for one that is not a
        uint32; the message gives its position.
        """
        return self.decoded(tokens)

    def decode(self, tokens, errors="replace"):
        """str: the bytes of `decode_bytes` as text. errors: the name of any of Python's error handlers.

        >>> enc.decode([31373, 995])
        'hello world'
        """
        if (errors is replace and not self.drops_space and self.decoder is not None
                and self.decoder.firsts is None):
            text = self.decoder.unpack(tokens, False, b"replace")
            if text is not None:
                return text
        return self.decoded(tokens).decode("utf-8", errors)

    @cython.final
    cdef bytes decoded(self, object tokens):
        cdef bint is_begun
        if self.decoder is None:
            raise ValueError(NOT_READY)
        if self.decoder.firsts is not None:
            tokens = settled_ids(tokens)
        data = self.decoder.unpack(tokens, False, NULL)
        if data is None:
            data = self.decoder.decode_slowly(tokens, False)
        if self.decoder.firsts is not None:
            return self.decoder.as_first(data, tokens, False, self.drops_space, &is_begun)
        return data.removeprefix(b" ") if self.drops_space else data


cdef object encode_small(Encoder encoder, ChangeRules rules, object text, Form form):
    """The ids of a whole text, or None if it is large or must be repaired or refused."""
    cdef Workspace workspace
    cdef Scan s
    cdef Py_ssize_t size = 0
    cdef size_t readable
    cdef const u8* p
    cdef u8[PADDED + 16] padded
    cdef i32 why
    cdef int length
    cdef size_t written, total
    cdef bint is_plain = rules.is_plain
    if PyUnicode_CheckExact(text):
        if PyUnicode_GET_LENGTH(text) > SMALL_TEXT:
            return None
        p = <const u8*>st_ready_utf8(text, &size)
        if p != NULL and size == PyUnicode_GET_LENGTH(text):
            is_plain = rules.keeps_ascii
    elif PyBytes_CheckExact(text):
        p = <const u8*>PyBytes_AS_STRING(text)
        size = PyBytes_GET_SIZE(text)
        if size > SMALL_TEXT:
            return None
        valid_bytes(p, size, &why, &length)
        if why:
            return None
    else:
        return None
    if size > SMALL_TEXT:
        return None
    workspace = encoder.take()
    if p == NULL:
        # For a text that is not ASCII, only the slow path makes the buffer larger.
        written = <size_t>-1
        if st_transcode_capacity(text) <= workspace.c.buffer.size:
            written = transcode_str(text, workspace.c.buffer.bytes)
        if written > SMALL_TEXT:         # or there is a lone surrogate
            encoder.give(workspace)
            return None
        p = workspace.c.buffer.bytes
        size = written
        readable = size + 16        # st_transcode_capacity
    elif size <= PADDED:
        # Keys are loaded 16 bytes at a time where that many may be read. Copy the text, since no bytes may
        # be read after the end of a str.
        st_copy_few(padded, p, size)
        p = padded
        readable = size + 16
    else:
        readable = size
    if is_plain and rules.first_tokens.matcher.find(p, 0, size, True).kind == NOTHING:
        # If an error is raised from here on, the workspace is left to the garbage collector.
        scan_begin(&s, 0)
        encode_span(encoder, &workspace.c, p, readable, size, True, &s)
        ids = ids_as(form, encoder.table, encoder._spares, &workspace.c, None)
        encoder.give(workspace)
        return ids
    enter_rules(rules)
    try:
        encode_whole(encoder, &workspace.c, rules, p, size, readable, False, False, &total)
        return ids_as(form, encoder.table, encoder._spares, &workspace.c, None)
    finally:
        leave_rules(rules)
        encoder.give(workspace)
