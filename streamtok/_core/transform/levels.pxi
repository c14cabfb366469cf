"""Change the text of a stream before the pattern cuts it: find added tokens, and apply steps between them.

A *level* finds its tokens in its input and changes the *segments* between them. If some tokens are found in
changed text, a second level takes the segments of the first as its input. A `Sink` receives the output:
text of segments, and the tokens between them.

Of the matches that begin leftmost, the matcher's preferred one is taken, and the search resumes after it. A
match of a `single_word` token is skipped if it touches a word. `lstrip` and `rstrip` let a token take the
whitespace before and after it. The search still resumes right after the token itself, so a token may be
found in whitespace that another token took, and text begins again after it. (All of this is as in the crate
`tokenizers` 0.23, `added_vocabulary.rs`, Apache-2.0; some of it was found by experiment.)

After a chunk, these stay pending: a prefix of a token; a `single_word` token at the end; whitespace at the
end if a token has `lstrip`; and text whose change is not final yet (`element_walk.pxi`).
"""

cdef enum TokenFlag:
    LSTRIP = 1
    RSTRIP = 2
    SINGLE_WORD = 4


@cython.final
cdef class TokenSet:
    """Added and special tokens with their flags. Immutable."""

    cdef readonly SpecialMatcher matcher
    cdef u8* flags              # [n] TokenFlag of each of the matcher's specials
    cdef bytes words            # bit set of code points: those that occur in words
    cdef const u8* word_bits    # in `words`
    cdef bint wants_blanks      # some token takes the whitespace before it
    cdef bint is_plain          # no token has flags

    def __cinit__(self, SpecialMatcher matcher not None, flags, words, bint wants_blanks=False):
        """flags: one for each of `matcher.specials`. words: one bit for each code point, lowest first; None
        if no token needs them. wants_blanks: whether a `GivenToken` may take the whitespace before it.
        """
        cdef size_t i
        self.matcher = matcher
        self.words = words
        if words is not None:
            self.word_bits = <const u8*>PyBytes_AS_STRING(words)
        if len(flags) != len(matcher.specials):
            raise ValueError(f"expected {len(matcher.specials)} flags, found {len(flags)}")
        self.flags = <u8*>memory_for(len(flags), 1, b"flags of tokens")
        self.is_plain = not any(flags)
        self.wants_blanks = wants_blanks
        for i, one in enumerate(flags):
            self.flags[i] = one
            self.wants_blanks |= one & LSTRIP != 0
            if one & SINGLE_WORD and (words is None or len(words) != CODE_POINTS // 8):
                raise ValueError("expected a bit for each code point")

    def __dealloc__(self):
        free(self.flags)

    cdef bint is_word_at(self, const u8* p, size_t i, size_t n) noexcept nogil:
        """Whether the character at p[i] is a word character."""
        cdef int size = 0
        cdef u32 code = utf8_at(p, i, n, &size)
        return self.word_bits[code >> 3] >> (code & 7) & 1


@cython.final
cdef class GivenToken:
    """A token that the caller passes in place of text: it is a token whatever surrounds it.
    Immutable.
    """

    cdef readonly u32 id
    cdef readonly bytes text
    cdef u8 flags               # TokenFlag
    cdef u8 level               # whose tokens it belongs to
    cdef const u8* p            # `text`
    cdef size_t size

    def __cinit__(self, u32 id, bytes text not None, u8 flags=0, bint is_normalized=False):
        """is_normalized: whether it is a token of the second level, which must exist. flags: as for
        `TokenSet`.
        """
        if not text:
            raise ValueError("a given token has no text")
        self.id, self.text, self.flags, self.level = id, text, flags, is_normalized
        self.p, self.size = <const u8*>PyBytes_AS_STRING(text), len(text)


cdef inline bint is_blank(u32 code) noexcept nogil:
    """Unicode's White_Space."""
    if code < 0x80:
        return code == 32 or 9 <= code <= 13
    if code < 0x2000:
        return code == 0x85 or code == 0xA0 or code == 0x1680
    return (code <= 0x200A or code == 0x2028 or code == 0x2029 or code == 0x202F or code == 0x205F
            or code == 0x3000)


cdef size_t blanks_end(const u8* p, size_t start, size_t stop, size_t n) noexcept nogil:
    """Where the whitespace at the start of p[start:stop] ends."""
    cdef int size = 0
    while start < stop and is_blank(utf8_at(p, start, n, &size)):
        start += size
    return start


cdef size_t blanks_begin(const u8* p, size_t start, size_t stop, size_t n) noexcept nogil:
    """Where the whitespace at the end of p[start:stop] begins."""
    cdef int size = 0
    cdef size_t at
    while stop > start:
        at = utf8_before(p, start, stop, n)
        if not is_blank(utf8_at(p, at, n, &size)):
            break
        stop = at
    return stop


@cython.final
cdef class ChangeRules:
    """How text is changed before the pattern cuts it: which special and added tokens are found, and which
    steps change the text between them. Immutable; shared by threads.
    """

    cdef readonly TokenSet first_tokens
    cdef readonly ElementTable first_table      # or None
    cdef readonly TokenSet second_tokens        # None if there is no second level
    cdef readonly ElementTable second_table     # or None
    cdef bint is_plain          # no token has flags, and nothing is changed
    cdef bint keeps_ascii       # ASCII text between tokens is not changed
    cdef readonly bint can_cut  # whether a text can have clean cuts: see `is_cut_in_changed`

    def __init__(self, TokenSet first_tokens not None, ElementTable first_table=None,
                 TokenSet second_tokens=None, ElementTable second_table=None):
        self.first_tokens, self.first_table = first_tokens, first_table
        self.second_tokens, self.second_table = second_tokens, second_table
        if second_tokens is None and second_table is not None:
            raise ValueError("without tokens in changed text, both normalizers are one table")
        self.is_plain = first_tokens.is_plain and first_table is None and second_tokens is None
        self.keeps_ascii = second_tokens is None and (first_table is None or first_table.keeps_ascii())
        # Steps that look at the ends of a segment would mistake a cut for an end, and a token of the second
        # level may have formed across a cut.
        self.can_cut = first_tokens.is_plain and not any(
            table is not None and (table.asks_for_begin or table.asks_for_end)
            for table in (first_table, second_table)
        )
        if second_tokens is not None and (first_table is not None or not second_tokens.is_plain):
            self.can_cut = False


cdef inline void enter_rules(ChangeRules rules):
    """Keep the tables' cached elements alive until `leave_rules`."""
    if rules.first_table is not None:
        enter_table(rules.first_table)
    if rules.second_table is not None:
        enter_table(rules.second_table)


cdef inline void leave_rules(ChangeRules rules):
    if rules.first_table is not None:
        leave_table(rules.first_table)
    if rules.second_table is not None:
        leave_table(rules.second_table)


cdef class Sink:
    """Receives the changed text."""

    cdef int put_text(self, const u8* p, size_t n, bint ends) except -1:
        """Receive text of a segment. ends: the segment ends with it."""
        raise NotImplementedError

    cdef int put_token(self, u32 id, size_t size) except -1:
        """Receive a token of `size` bytes."""
        raise NotImplementedError

    cdef int refuse(self, int level, const u8* p, size_t size, size_t rest) except -1:
        """Raise an error for a disallowed token. rest: the number of bytes from its start to the end of the
        level's text.
        """
        raise NotImplementedError


@cython.final
cdef class Changer:
    """Passes a text through the levels. Only one call may run at a time."""

    cdef ChangeRules rules
    cdef int n_levels
    cdef Level[2] levels
    cdef LevelMark[2] draft
    cdef Watch watch
    cdef readonly str errors    # error policy for bytes that are not UTF-8
    cdef Intake intake          # as committed
    cdef Intake intake_draft
    cdef bint is_ended          # the text has ended; its rows are kept until the next call

    def __cinit__(self, ChangeRules rules not None, str errors not None):
        self.rules, self.errors = rules, errors
        self.n_levels = 1 if rules.second_tokens is None else 2
        self.levels[0].mark.where = self.levels[1].mark.where = PLACE_BEGIN | PLACE_FIRST

    def __dealloc__(self):
        cdef int i
        for i in range(2):
            free(self.levels[i].bytes)
            alignment_free(&self.levels[i].rows)

    cdef void reset(self) noexcept:
        """Forget everything except the rules."""
        cdef int i
        cdef Level* level
        memset(&self.intake, 0, sizeof(Intake))
        self.is_ended = False
        for i in range(2):
            level = &self.levels[i]
            memset(&level.mark, 0, sizeof(LevelMark))
            level.mark.where = PLACE_BEGIN | PLACE_FIRST
            level.rows.n = 0
            level.rows.segment = NO_ROW
            if level.capacity > SHRINK_FROM:
                free(level.bytes)
                level.bytes, level.capacity = NULL, 0

    cdef Changer copy(self):
        """An independent Changer in the same state."""
        cdef Changer twin = Changer(self.rules, self.errors)
        cdef Level* to
        cdef const Level* level
        cdef size_t size
        cdef int i
        twin.intake = self.intake
        for i in range(2):
            level, to = &self.levels[i], &twin.levels[i]
            size = level.mark.size + SLACK
            to.bytes = <u8*>memory_for(size, 1, b"bytes of the stream")
            to.rows.rows = <Row*>memory_for(level.rows.n + 1, sizeof(Row), b"rows of a changed text")
            if level.mark.size:
                memcpy(to.bytes, level.bytes, level.mark.size)
            if level.rows.n:
                memcpy(to.rows.rows, level.rows.rows, level.rows.n * sizeof(Row))
            to.capacity, to.mark = size, level.mark
            to.rows.n, to.rows.capacity = level.rows.n, level.rows.n + 1
            to.rows.segment, to.rows.last_size = level.rows.segment, level.rows.last_size
        return twin

    cdef void begin_draft(self) noexcept:
        cdef int i
        if self.is_ended:
            self.reset()
        self.intake_draft = self.intake
        for i in range(2):
            self.draft[i] = self.levels[i].mark

    cdef void roll_back(self) noexcept:
        """Remove the rows that the draft added."""
        cdef int i
        cdef Level* level
        for i in range(2):
            level = &self.levels[i]
            level.rows.n = level.mark.n_rows
            level.rows.segment, level.rows.last_size = level.mark.segment, level.mark.last_size
            if level.rows.n:
                level.rows.rows[level.rows.n - 1] = level.mark.last_row

    cdef void commit_draft(self, u64 reached, bint forgets) noexcept:
        """Make the draft the state. reached: where the tail's pending text begins. forgets: whether to drop
        the rows before that.
        """
        cdef int i
        cdef Level* level
        cdef LevelMark* m
        self.intake = self.intake_draft
        for i in reversed(range(self.n_levels)):
            if forgets:
                reached = forget_rows(&self.levels[i].rows, &self.draft[i], reached)
        for i in range(2):
            level, m = &self.levels[i], &self.draft[i]
            # If many bytes were moved to drop a few, small chunks would take quadratic time.
            if m.begin and m.size - m.begin <= m.begin:
                memmove(level.bytes, level.bytes + m.begin, m.size - m.begin)
                m.size -= m.begin
                m.searched -= m.begin
                if m.walked:
                    m.walked -= m.begin
                m.begin = 0
            m.n_rows, m.segment, m.last_size = level.rows.n, level.rows.segment, level.rows.last_size
            if level.rows.n:
                m.last_row = level.rows.rows[level.rows.n - 1]
            level.mark = m[0]

    def back(self, spans, bint final):
        """(count, int64 [n, 2]): spans of the changed text, mapped to the source; the first `count` of them
        are final.

        spans: int64 [n, 2], in bytes, of text since the last `forget`. Every call since then must have
        asked for id spans.
        """
        cdef object found = np.array(spans, np.int64).reshape(-1, 2)
        cdef i64* ranges = <i64*>array_memory(found.reshape(-1), INT64)
        cdef size_t n = len(found), certain = n, k
        cdef u64 end
        cdef int i
        for i in reversed(range(self.n_levels)):
            if not final:
                end = certain_end(self, i)
                for k in range(certain):
                    if ranges[2 * k + 1] > <i64>end:
                        certain = k
                        break
            spans_back(&self.levels[i].rows, &self.levels[i].mark, ranges, n)
        return certain, found

    def forget(self, u64 offset):
        """int: where the source of the changed text at `offset` begins, including text that was removed at
        the start of the open segment. Forgets the rows before that.
        """
        cdef int i
        cdef Level* level
        cdef u64 end
        for i in reversed(range(self.n_levels)):
            level = &self.levels[i]
            end = rows_end(&level.rows, &level.mark)
            offset = min(offset, end)
            if offset == end and level.rows.segment == ROW_WITHOUT_TEXT:
                end = level.rows.rows[level.rows.n - 1].before
            else:
                end = 0
            offset = forget_rows(&level.rows, &level.mark, offset) - end
            level.mark.n_rows = level.rows.n
            if level.rows.n:
                level.mark.last_row = level.rows.rows[level.rows.n - 1]
        return offset

    cdef bytes getstate(self):
        """Everything that the next call depends on, except the rules."""
        cdef Level* level
        cdef LevelMark* m
        cdef size_t k
        cdef int i
        if self.is_ended:
            self.reset()
        parts = [INTAKE.pack(self.intake.n_partial, self.intake.bytes_in, self.intake.grown),
                 self.intake.partial[:self.intake.n_partial]]
        for i in range(self.n_levels):
            level = &self.levels[i]
            m = &level.mark
            parts.append(LEVEL.pack(
                m.size - m.begin, m.searched - m.begin, m.where, m.after_word, m.takes_blanks,
                m.segment, m.last_size, level.rows.n, m.begins_now, m.begins_before,
            ))
            if m.size > m.begin:
                parts.append(level.bytes[m.begin:m.size])
            for k in range(level.rows.n):
                parts.append(ROW.pack(level.rows.rows[k].now, level.rows.rows[k].before))
        return b"".join(parts)

    cdef Changer from_state(self, bytes state, u64 done, u64 reached):
        """A Changer with the same rules in the state that `getstate` saved. Raises StateError if the bytes
        are damaged. reached: the number of bytes of changed text so far. done: how many of them are no
        longer pending.
        """
        cdef Changer c = Changer(self.rules, self.errors)
        cdef size_t at = 0
        cdef Level* level
        cdef LevelMark* m
        cdef size_t size, n_rows, k, held
        cdef u64 before, end
        cdef int i
        held, c.intake.bytes_in, c.intake.grown = unpack(INTAKE, state, &at)
        if held > 3 or (c.intake.bytes_in | c.intake.grown) >> 62:
            raise damaged("its counts are beyond what any stream has")
        partial = cut(state, &at, held)
        hold_partial(&c.intake, partial, held)
        if unfinished_at_end(partial, held) != held:
            raise damaged("it ends with bytes that do not begin a character")
        for i in range(c.n_levels):
            level = &c.levels[i]
            m = &level.mark
            (size, m.searched, m.where, m.after_word, m.takes_blanks, m.segment, m.last_size, n_rows,
             m.begins_now, m.begins_before) = unpack(LEVEL, state, &at)
            if (m.searched > size or m.where not in (0, PLACE_BEGIN, PLACE_BEGIN | PLACE_FIRST)
                    or m.segment > ROWS_WITH_TEXT or (m.begins_now | m.begins_before) >> 62):
                raise damaged("positions are beyond its bytes, or not in order")
            pending = cut(state, &at, size)
            if self.errors != "surrogateescape":
                check_utf8(pending)
            level.bytes = <u8*>memory_for(size + SLACK, 1, b"bytes of the stream")
            level.capacity = size + SLACK
            memcpy(level.bytes, <const u8*>pending, size)
            m.size = size
            for k in range(n_rows):
                now, before_it = unpack(ROW, state, &at)
                if now >> 61 or (before_it >> 61 and before_it != SAME) or k >> 32:
                    raise damaged("its rows are too long")
                alignment_push(&level.rows, now, before_it)
            check_rows(&level.rows, m)
            level.rows.segment, level.rows.last_size = m.segment, m.last_size
            m.n_rows = level.rows.n
            if level.rows.n:
                m.last_row = level.rows.rows[level.rows.n - 1]
        end = c.intake.bytes_in + c.intake.grown - c.intake.n_partial
        for i in range(c.n_levels):
            level = &c.levels[i]
            before = level.mark.begins_before
            for k in range(level.rows.n):
                before += size_before(&level.rows.rows[k])
            if before + level.mark.size != end:
                raise damaged("its rows are of another text")
            end = rows_end(&level.rows, &level.mark)
        if end != reached or c.levels[c.n_levels - 1].mark.begins_now > done:
            raise damaged("its rows are of another text")
        c.begin_draft()
        c.intake.pending = <size_t>(c.intake.bytes_in + c.intake.grown - c.source_of(done))
        if at != <size_t>len(state):
            raise damaged("it is too long")
        return c

    cdef u64 source_of(self, u64 offset) noexcept:
        """Where the source of the changed text at `offset` begins, according to the draft."""
        cdef int i
        for i in reversed(range(self.n_levels)):
            offset = row_start(&self.levels[i].rows, &self.draft[i], offset)
        return offset

    cdef TokenSet tokens_of(self, int i):
        return self.rules.second_tokens if i else self.rules.first_tokens

    cdef ElementTable table_of(self, int i):
        return self.rules.second_table if i else self.rules.first_table


cdef int feed_level(Changer c, int i, const u8* p, size_t n, bint ends, Sink sink) except -1:
    """Append p[:n] to the bytes of level `i`, and emit what is final. ends: the text (in level 1: the
    segment) ends here.
    """
    cdef Level* level = &c.levels[i]
    cdef LevelMark* m = &c.draft[i]
    if m.size + n + SLACK > level.capacity:
        level.bytes = <u8*>grown(level.bytes, &level.capacity, m.size + n + SLACK, 1, b"bytes of the stream")
    if n:
        memcpy(level.bytes + m.size, p, n)
    m.size += n
    find_tokens(c, i, ends, None, sink)
    if ends:                # what follows is another segment or another text
        m.begin = m.size
        m.searched = m.size
        m.after_word = m.takes_blanks = False
    return 0


cdef int feed_given(Changer c, int i, GivenToken given, Sink sink) except -1:
    """Feed a given token to level `i`. All of the level's pending bytes become final."""
    cdef LevelMark* m = &c.draft[i]
    cdef TokenSet tokens = c.tokens_of(i)
    find_tokens(c, i, False, given, sink)
    m.begin = m.searched = m.size
    if tokens.words is not None:
        m.after_word = tokens.is_word_at(given.p, utf8_before(given.p, 0, given.size, given.size), given.size)
    return 0


cdef int find_tokens(Changer c, int i, bint ends, GivenToken given, Sink sink) except -1:
    """Find tokens in a level's pending bytes, and emit what is final. given: the token that follows, or
    None.
    """
    cdef Level* level = &c.levels[i]
    cdef LevelMark* m = &c.draft[i]
    cdef TokenSet tokens = c.tokens_of(i)
    cdef const u8* p = level.bytes
    cdef size_t size = m.size, start = m.begin, search_from = m.searched, at, stop, sure
    cdef Found found
    cdef u8 flags
    cdef bint is_blank_again, is_last = ends or given is not None
    while True:
        tokens.matcher.search(&c.watch, p, search_from, size, is_last, &found)
        if found.kind == DISALLOWED:
            return sink.refuse(i, p + found.start, found.end - found.start, size - found.start)
        at, stop = found.start, found.end
        if found.kind != ALLOWED:
            break
        flags = tokens.flags[found.which]
        if flags & SINGLE_WORD:
            if stop == size and not is_last:
                break                           # a word may follow
            if (tokens.is_word_at(p, utf8_before(p, m.begin, at, size), size) if at > m.begin
                    else m.after_word) or (stop < size and tokens.is_word_at(p, stop, size)) or (
                    stop == size and given is not None and tokens.is_word_at(given.p, 0, given.size)):
                search_from = stop
                continue
        if m.takes_blanks:
            start = take_blanks(c, i, start, at, sink)
        if m.takes_blanks:
            # The whitespace taken extends up to this match. If the match itself is only whitespace and
            # takes whitespace before it, it is just more whitespace. Any other match is a token.
            is_blank_again = flags & LSTRIP and blanks_end(p, at, stop, size) == stop
            if is_blank_again:
                put_blanks(c, i, stop - start, sink)
            else:
                end_with_token(c, i, tokens.matcher.ids[found.which], stop - start, sink)
        else:
            if flags & LSTRIP:
                at = blanks_begin(p, start, at, size)
            change_segment(c, i, start, at, True, sink)
            end_with_token(c, i, tokens.matcher.ids[found.which], stop - at, sink)
        start = search_from = stop
        m.takes_blanks = flags & RSTRIP != 0
    if m.takes_blanks:
        start = take_blanks(c, i, start, at, sink)
    if given is not None:
        return put_given(c, i, start, given, sink)
    sure = at
    if tokens.wants_blanks and not ends and not m.takes_blanks:
        sure = blanks_begin(p, start, at, size)
    start += change_segment(c, i, start, sure, ends, sink)
    if tokens.words is not None and start > m.begin:
        m.after_word = tokens.is_word_at(p, utf8_before(p, m.begin, start, size), size)
    m.begin, m.searched = start, at
    return 0


cdef int put_given(Changer c, int i, size_t start, GivenToken given, Sink sink) except -1:
    """Emit the bytes of a level from `start`, which contain no token, then a given token."""
    cdef Level* level = &c.levels[i]
    cdef LevelMark* m = &c.draft[i]
    cdef size_t stop = m.size
    if given.level > i:                 # at this level, the token is text
        m.takes_blanks = False
        if start < stop and change_segment(c, i, start, stop, False, sink) != stop - start:
            raise AssertionError("text waits before a given token of the second level")
        alignment_add_same(&level.rows, given.p, given.size)
        m.where = 0
        return feed_given(c, i + 1, given, sink)
    if not m.takes_blanks:
        if given.flags & LSTRIP:
            stop = blanks_begin(level.bytes, start, stop, m.size)
        change_segment(c, i, start, stop, True, sink)
    end_with_token(c, i, given.id, m.size - stop + given.size, sink)
    m.takes_blanks = given.flags & RSTRIP != 0
    return 0


cdef size_t take_blanks(Changer c, int i, size_t start, size_t stop, Sink sink) except? 0:
    """Give the last token the whitespace at the start of start:stop. Returns where that whitespace ends."""
    cdef LevelMark* m = &c.draft[i]
    cdef size_t end = blanks_end(c.levels[i].bytes, start, stop, m.size)
    if end < stop:
        m.takes_blanks = False
    if end > start:
        put_blanks(c, i, end - start, sink)
    return end


cdef int put_blanks(Changer c, int i, size_t size, Sink sink) except -1:
    """Add whitespace to the last token. The whitespace is no longer text, and has no id of its own."""
    cdef Alignment* rows = &c.levels[i].rows
    c.draft[i].where = PLACE_BEGIN
    if i + 1 < c.n_levels:
        c.draft[i + 1].where = PLACE_BEGIN
    if rows.n:
        if rows.rows[rows.n - 1].before == SAME:
            raise AssertionError("blanks are taken after text")
        rows.rows[rows.n - 1].before += size
        return 0
    return alignment_push(rows, 0, size)


cdef int end_with_token(Changer c, int i, u32 id, size_t size, Sink sink) except -1:
    """Emit a token of level `i`, which ends the segment."""
    cdef int k
    for k in range(i, c.n_levels):      # at earlier levels, the segment continues
        c.draft[k].where = PLACE_BEGIN
        alignment_add_token(&c.levels[k].rows, size)
    sink.put_token(id, size)
    return 0


cdef size_t change_segment(Changer c, int i, size_t start, size_t stop, bint ends, Sink sink) except? 0:
    """Change the bytes start:stop of a segment, and emit what is final. Returns the number of bytes
    consumed.
    """
    cdef Level* level = &c.levels[i]
    cdef LevelMark* m = &c.draft[i]
    cdef ElementTable table = c.table_of(i)
    cdef const u8* p = level.bytes + start
    cdef size_t n = stop - start
    cdef ElementWalk w
    if table is None:
        alignment_add_same(&level.rows, p, n)
        if n or ends:
            emit_text(c, i, p, n, ends, sink)
        m.where = PLACE_BEGIN if ends else 0 if n else m.where
        return n
    if m.walked and not ends and extends_to(table, m, level.bytes, stop):
        return 0
    m.walked = 0
    element_walk_begin(table, &w, p, n, m.where, ends, &level.rows)
    enter_table(table)
    try:
        if n >= RELEASE_FROM:
            with nogil:
                walk_elements(table, &w)
        else:
            walk_elements(table, &w)
        if not w.is_changed:
            w.size = w.taken
        if w.is_later and m.where & PLACE_FIRST and i + 1 < c.n_levels:
            c.draft[i + 1].where &= <u8>~PLACE_FIRST
        if w.taken:
            m.where = 0
        elif n and w.is_open and not ends:
            m.walked, m.open = stop, w.open
        if w.is_changed:
            p = w.out
        if w.size or ends:
            emit_text(c, i, p, w.size, ends, sink)
        if ends:
            m.where = PLACE_BEGIN
        return w.taken
    finally:
        element_walk_free(&w)
        leave_table(table)


cdef bint extends_to(ElementTable t, LevelMark* m, const u8* p, size_t stop) noexcept:
    """Whether the open element extends up to `stop`. Resumes at `walked`, so each byte is walked only once."""
    cdef int size = 0
    cdef CharKind kind
    while m.walked < stop:
        kind = kind_at(t, utf8_at(p, m.walked, stop, &size))
        if kind.flags & KIND_UNKNOWN or not is_joined(m.open, kind):
            return False
        m.open = kind_of_both(m.open, kind)
        m.walked += size
    return may_join(t, m.open)


cdef int emit_text(Changer c, int i, const u8* p, size_t n, bint ends, Sink sink) except -1:
    if i + 1 < c.n_levels:
        feed_level(c, i + 1, p, n, ends, sink)
    else:
        sink.put_text(p, n, ends)
    return 0


cdef u64 row_start(const Alignment* a, const LevelMark* m, u64 offset) noexcept nogil:
    """Where the source of the row at `offset` begins; if the row is unchanged text, where the source of the
    byte at `offset` is.
    """
    cdef u64 now = m.begins_now, before = m.begins_before
    cdef size_t i
    for i in range(a.n):
        if now + a.rows[i].now > offset:
            return before + (offset - now) if a.rows[i].before == SAME else before
        now += a.rows[i].now
        before += a.rows[i].now if a.rows[i].before == SAME else a.rows[i].before
    return before


cdef u64 forget_rows(Alignment* a, LevelMark* m, u64 reached) noexcept:
    """Forget the rows before `reached`, but keep the last row, since text that is removed next may belong
    to it. Returns where the source of `reached` begins.
    """
    cdef size_t i = 0
    cdef u64 start = row_start(a, m, reached), more
    cdef Row* row
    while i + 1 < a.n and m.begins_now + a.rows[i].now <= reached:
        row = &a.rows[i]
        m.begins_now += row.now
        m.begins_before += row.now if row.before == SAME else row.before
        i += 1
    if i > 0 and (i >= a.n // 2 or i > 1024):
        memmove(a.rows, a.rows + i, (a.n - i) * sizeof(Row))
        a.n -= i
    elif i > 0:         # not yet: moving a few rows each time would take quadratic time
        while i > 0:
            i -= 1
            row = &a.rows[i]
            m.begins_now -= row.now
            m.begins_before -= row.now if row.before == SAME else row.before
    row = &a.rows[0]
    if a.n and row.before == SAME and m.begins_now < reached:
        more = row.now if a.n > 1 else row.now - a.last_size
        more = more if more < reached - m.begins_now else reached - m.begins_now
        row.now -= more
        m.begins_now += more
        m.begins_before += more
    return start


cdef struct RowCursor:
    const Row* row
    const Row* first
    const Row* stop
    u64 now                 # where the row begins in the changed text,
    u64 before              # and in the text before the change


cdef inline u64 size_before(const Row* row) noexcept nogil:
    return row.now if row.before == SAME else row.before


cdef void seek_row(RowCursor* c, u64 offset) noexcept nogil:
    """Move to the row that contains the byte at `offset`, or to the end."""
    while c.row > c.first and c.now > offset:
        c.row -= 1
        c.now -= c.row.now
        c.before -= size_before(c.row)
    while c.row < c.stop and c.now + c.row.now <= offset:
        c.now += c.row.now
        c.before += size_before(c.row)
        c.row += 1


cdef void spans_back(const Alignment* a, const LevelMark* m, i64* spans, size_t n) noexcept nogil:
    """Map n spans (start, end) of a level's output to its input, in place."""
    cdef RowCursor starts
    cdef RowCursor ends
    cdef size_t i
    cdef u64 start, end
    starts.row = starts.first = a.rows
    starts.stop = a.rows + a.n
    starts.now, starts.before = m.begins_now, m.begins_before
    ends = starts
    for i in range(n):
        start, end = <u64>spans[2 * i], <u64>spans[2 * i + 1]
        seek_row(&starts, start)
        spans[2 * i] = <i64>starts.before
        if starts.row < starts.stop and starts.row.before == SAME:
            spans[2 * i] += <i64>(start - starts.now)
        spans[2 * i + 1] = spans[2 * i]
        if start < end:
            seek_row(&ends, end - 1)
            spans[2 * i + 1] = <i64>ends.before
            if ends.row < ends.stop:
                spans[2 * i + 1] += <i64>(end - ends.now if ends.row.before == SAME else ends.row.before)


cdef u64 certain_end(Changer c, int i) noexcept:
    """The position up to which the ends of spans in a level's output are final. After it, text that is
    removed next may still belong to the last character, and whitespace to the last token.
    """
    cdef const Alignment* a = &c.levels[i].rows
    cdef const LevelMark* m = &c.levels[i].mark
    cdef u64 end = rows_end(a, m)
    if a.n and a.segment == ROWS_WITH_TEXT and c.table_of(i) is not None:
        return end - (a.last_size if a.rows[a.n - 1].before == SAME else a.rows[a.n - 1].now)
    if a.n and a.segment == NO_ROW and m.takes_blanks:
        return end - a.rows[a.n - 1].now
    return end


cdef u64 rows_end(const Alignment* a, const LevelMark* m) noexcept:
    """Where the last row ends in a level's output."""
    cdef u64 now = m.begins_now
    cdef size_t i
    for i in range(a.n):
        now += a.rows[i].now
    return now


INTAKE = struct.Struct("<B2Q")
LEVEL = struct.Struct("<2Q5B3Q")
ROW = struct.Struct("<2Q")


cdef tuple unpack(layout, bytes state, size_t* at):
    cdef size_t size = layout.size
    return layout.unpack(cut(state, at, size))


cdef bytes cut(bytes state, size_t* at, size_t size):
    """The next `size` bytes of a state. Raises StateError if there are fewer."""
    if size > <size_t>len(state) - at[0]:
        raise damaged("it is too short")
    at[0] += size
    return state[at[0] - size:at[0]]


cdef int check_utf8(bytes data) except -1:
    cdef i32 why = 0
    cdef int size = 0
    valid_bytes(data, len(data), &why, &size)
    if why != 0:
        raise damaged("the bytes that it holds are not UTF-8")
    return 0


cdef int check_rows(const Alignment* a, const LevelMark* m) except -1:
    """Raise StateError unless the rows fit the open segment that the mark describes."""
    cdef const Row* last
    cdef u64 total = 0
    cdef size_t i
    for i in range(a.n):
        total |= a.rows[i].now | (0 if a.rows[i].before == SAME else a.rows[i].before)
    if total and a.n and (total << 1) > (<u64>1 << 62) // a.n:
        raise damaged("its rows are too long")
    if m.takes_blanks and (m.segment != NO_ROW or a.n and a.rows[a.n - 1].before == SAME):
        raise damaged("a token takes blanks after text")
    if m.segment == NO_ROW:
        return 0
    if a.n == 0:
        raise damaged("its rows are missing")
    last = &a.rows[a.n - 1]
    if (last.now == 0) != (m.segment == ROW_WITHOUT_TEXT):
        raise damaged("its rows are not in order")
    if last.before == SAME and not (1 <= m.last_size <= 4 and m.last_size <= last.now):
        raise damaged("its last character is longer than its row")
    return 0
