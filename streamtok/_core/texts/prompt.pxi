"""Encode whole prompts: sequences of texts and given tokens. `stream/tail.pxi` encodes streams of them.

The texts between two given tokens are joined and encoded as one text. Given tokens of a second level are
found inside such a text, so a prompt that has any is encoded as a stream.
"""

@cython.final
cdef class PromptRules:
    """How the prompts of an encoding are encoded. Immutable.

    kinds: the types of prompts, whose `spans` are pairs of a text and whether it is control. finder: its
    `of_run(text)` returns the texts and given tokens of a run of control, and its dict `known` caches some
    of them. rules: for the text between given tokens.
    """

    cdef tuple kinds
    cdef object finder
    cdef dict known
    cdef ChangeRules rules

    def __cinit__(self, tuple kinds not None, finder, ChangeRules rules not None):
        self.kinds, self.finder, self.known, self.rules = kinds, finder, finder.known, rules

    def encode(self, Encoder encoder not None, prompt, str errors not None, Output output not None):
        """The ids of a prompt."""
        return encode_prompt(encoder, self, prompt, errors, output.form)


cdef object encode_prompt(Encoder encoder, PromptRules prompts, object prompt, str errors, Form form):
    cdef ChangeRules rules = prompts.rules
    cdef list parts = []
    cdef size_t total, capacity = 0
    cdef Levels levels
    cdef Workspace workspace
    for text, is_control in <tuple?>prompt.spans:
        if is_control:
            parts += prompts.known.get(text) or prompts.finder.of_run(text)
        else:
            parts.append(text)
    for part in parts:
        if PyUnicode_Check(part):
            capacity += st_transcode_capacity(part)
        elif type(part) is not GivenToken:
            capacity += <size_t>len(<bytes?>part)
    need_scanner(encoder)
    workspace = encoder.take()
    enter_rules(rules)
    try:
        buffer_ensure(&workspace.c.buffer, capacity + SLACK)
        begin_whole(&workspace.c, &levels, form == AS_COUNT, &total)
        encode_parts(encoder, &workspace.c, rules, &levels, parts, errors, &total)
        total += workspace.c.count + workspace.c.forgotten
        if form == AS_COUNT:
            return total
        return ids_as(form, encoder.table, encoder._spares, &workspace.c, None)
    finally:
        leave_rules(rules)
        encoder.give(workspace)


cdef int encode_parts(Encoder encoder, Work* w, ChangeRules rules, Levels* levels, list parts, str errors,
                      size_t* total) except -1:
    """Encode the parts. The buffer must have capacity for all of their text."""
    cdef TokenSet tokens = rules.first_tokens
    cdef GivenToken given
    cdef u8* p = w.buffer.bytes
    cdef size_t n = 0, size
    for part in parts:
        if PyUnicode_Check(part):
            size = transcode_str(part, p + n)
            if size == <size_t>-1:
                part = repaired(str.__str__(part), errors).encode("utf-8", "surrogateescape")
                size = len(<bytes>part)
                memcpy(p + n, PyBytes_AS_STRING(part), size)
            n += size
            continue
        if type(part) is not GivenToken:
            size = len(<bytes>part)
            memcpy(p + n, PyBytes_AS_STRING(part), size)
            n += size
            continue
        given = <GivenToken>part
        levels.next_flags = given.flags
        levels.is_before_word = tokens.words is not None and tokens.is_word_at(given.p, 0, given.size)
        encode_segment_of(encoder, w, rules, levels, p, n, total)
        n = 0
        put_id(w, given.id, 0, 0)
        levels.where[0] = levels.where[1] = PLACE_BEGIN
        levels.takes_blanks = given.flags & RSTRIP != 0
        levels.is_after_word = tokens.words is not None and tokens.is_word_at(
            given.p, utf8_before(given.p, 0, given.size, given.size), given.size
        )
    levels.next_flags, levels.is_before_word = 0, False
    encode_segment_of(encoder, w, rules, levels, p, n, total)
    return 0


cdef int encode_segment_of(Encoder encoder, Work* w, ChangeRules rules, Levels* levels, const u8* p, size_t n,
                           size_t* total) except -1:
    """Encode p[:n], the text between two given tokens. A few bytes after it may be read."""
    if n >= RELEASE_FROM:
        with nogil:
            encode_level(encoder, w, rules, rules.first_tokens, rules.first_table, 0, levels, p, n, n + 16, total)
    elif n:
        encode_level(encoder, w, rules, rules.first_tokens, rules.first_table, 0, levels, p, n, n + 16, total)
    return 0
