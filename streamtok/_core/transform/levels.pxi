"""From the text of a stream to the text that the pattern cuts: added tokens, and steps between them.

A *level* finds its tokens in its text, and changes the *stretches* between them. There is a second level
where some tokens are found in changed text: it takes the stretches of the first one. What comes out goes
to a `Sink`: text of stretches, and tokens between them.

Of the tokens that begin leftmost, the one that the matcher prefers is taken, and the search goes on after
it. One with `single_word` is passed over where it touches a word. `lstrip` and `rstrip` let a token take
the blanks before and after it. The search still goes on after the token itself: so blanks that a token
took may be tokens once more, and then what follows them is text again. (All as in the crate `tokenizers`
0.23, `added_vocabulary.rs`, Apache-2.0, found by experiment, too.)

What waits: what may begin a token; a token with `single_word` that ends the text; if there is a token with
`lstrip`, the blanks at the end; and what the table is not certain about (`element_walk.pxi`).
"""

cdef enum TokenFlag:
    LSTRIP = 1
    RSTRIP = 2
    SINGLE_WORD = 4


@cython.final
cdef class TokenSet:
    """Added and special tokens with flags. Immutable."""

    cdef SpecialMatcher matcher
    cdef u8* flags              # TokenFlag of each of its specials
    cdef bytes words            # a bit for each code point: whether it is in a word
    cdef bint wants_blanks      # some token takes those before it

    def __cinit__(self, SpecialMatcher matcher not None, flags, words):
        """flags: of each of `matcher.specials`. words: a bit for each code point, the lowest first; None
        if no token needs it.
        """
        cdef size_t i
        self.matcher = matcher
        self.words = words
        if len(flags) != len(matcher.specials):
            raise ValueError(f"expected {len(matcher.specials)} flags, found {len(flags)}")
        self.flags = <u8*>malloc(len(flags) + 1)
        if self.flags == NULL:
            raise MemoryError("no memory for the flags of tokens")
        for i, one in enumerate(flags):
            self.flags[i] = one
            self.wants_blanks |= one & LSTRIP != 0
            if one & SINGLE_WORD and (words is None or len(words) != CODE_POINTS // 8):
                raise ValueError("expected a bit for each code point")

    def __dealloc__(self):
        free(self.flags)

    cdef bint is_word_at(self, const u8* p, size_t i, size_t n) noexcept:
        """Whether the character at p[i] is in a word."""
        cdef int size = 0
        cdef u32 code = utf8_at(p, i, n, &size)
        return (<const u8*><const char*>self.words)[code >> 3] >> (code & 7) & 1


cdef inline bint is_blank(u32 code) noexcept nogil:
    """Unicode's White_Space."""
    if code < 0x80:
        return code == 32 or 9 <= code <= 13
    if code < 0x2000:
        return code == 0x85 or code == 0xA0 or code == 0x1680
    return (code <= 0x200A or code == 0x2028 or code == 0x2029 or code == 0x202F or code == 0x205F
            or code == 0x3000)


cdef size_t blanks_end(const u8* p, size_t start, size_t stop, size_t n) noexcept nogil:
    """Where the blanks that p[start:stop] begins with end."""
    cdef int size = 0
    while start < stop and is_blank(utf8_at(p, start, n, &size)):
        start += size
    return start


cdef size_t blanks_begin(const u8* p, size_t start, size_t stop, size_t n) noexcept nogil:
    """Where the blanks that p[start:stop] ends with begin."""
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
    """What is done to the text of streams before the tail. Immutable; shared by threads."""

    cdef readonly TokenSet first_tokens
    cdef readonly ElementTable first_table      # or None
    cdef readonly TokenSet second_tokens        # None: there is no second level
    cdef readonly ElementTable second_table     # or None

    def __init__(self, TokenSet first_tokens not None, ElementTable first_table,
                 TokenSet second_tokens=None, ElementTable second_table=None):
        self.first_tokens, self.first_table = first_tokens, first_table
        self.second_tokens, self.second_table = second_tokens, second_table
        if second_tokens is None and second_table is not None:
            raise ValueError("without tokens in changed text, both normalizers are one table")


cdef struct LevelMark:      # where a level stands
    size_t begin            # of its bytes: before that, all was passed on
    size_t size
    size_t searched         # up to which no token begins that is not certain
    size_t walked           # up to which the element at `begin` goes on; 0: not known
    CharKind last           # of the last character there
    u8 where                # PLACE_BEGIN | PLACE_FIRST of what comes next; 0: inside a stretch
    bint after_word         # the character before `begin` is in a word
    bint takes_blanks       # for a token that was passed on: the blanks that come next
    u8 stretch, last_size   # of its rows, as in `Alignment`
    size_t n_rows
    Row last_row


cdef struct Level:
    u8* bytes
    size_t capacity
    Alignment rows          # of what was passed on and is not final
    LevelMark mark          # as committed


cdef class Sink:
    """What takes the text that comes out."""

    cdef int put_text(self, const u8* p, size_t n, bint ends) except -1:
        """Text of a stretch. ends: the stretch does."""
        raise NotImplementedError

    cdef int put_token(self, u32 id, size_t size) except -1:
        """A token of so many bytes."""
        raise NotImplementedError

    cdef int refuse(self, int level, const u8* p, size_t size, size_t rest) except -1:
        """A disallowed token; `rest` bytes are from where it begins to the end of the level's text."""
        raise NotImplementedError


@cython.final
cdef class Changer:
    """A text on its way through the levels. One call at a time."""

    cdef ChangeRules rules
    cdef int n_levels
    cdef Level[2] levels
    cdef LevelMark[2] draft
    cdef Watch watch

    def __cinit__(self, ChangeRules rules not None):
        self.rules = rules
        self.n_levels = 1 if rules.second_tokens is None else 2
        self.levels[0].mark.where = self.levels[1].mark.where = PLACE_BEGIN | PLACE_FIRST

    def __dealloc__(self):
        cdef int i
        for i in range(2):
            free(self.levels[i].bytes)
            alignment_free(&self.levels[i].rows)

    cdef void begin_draft(self) noexcept:
        cdef int i
        for i in range(2):
            self.draft[i] = self.levels[i].mark

    cdef void roll_back(self) noexcept:
        """Forget what the draft added to the rows."""
        cdef int i
        cdef Level* level
        for i in range(2):
            level = &self.levels[i]
            level.rows.n = level.mark.n_rows
            level.rows.stretch, level.rows.last_size = level.mark.stretch, level.mark.last_size
            if level.rows.n:
                level.rows.rows[level.rows.n - 1] = level.mark.last_row

    cdef void commit_draft(self) noexcept:
        cdef int i
        cdef Level* level
        cdef LevelMark* m
        for i in range(2):
            level, m = &self.levels[i], &self.draft[i]
            # Moving much for a few bytes would make small chunks quadratic.
            if m.begin and m.size - m.begin <= m.begin:
                memmove(level.bytes, level.bytes + m.begin, m.size - m.begin)
                m.size -= m.begin
                m.searched -= m.begin
                if m.walked:
                    m.walked -= m.begin
                m.begin = 0
            m.n_rows, m.stretch, m.last_size = level.rows.n, level.rows.stretch, level.rows.last_size
            if level.rows.n:
                m.last_row = level.rows.rows[level.rows.n - 1]
            level.mark = m[0]

    cdef TokenSet tokens_of(self, int i):
        return self.rules.second_tokens if i else self.rules.first_tokens

    cdef ElementTable table_of(self, int i):
        return self.rules.second_table if i else self.rules.first_table


cdef int take_text(Changer c, int i, const u8* p, size_t n, bint ends, Sink sink) except -1:
    """Take p[:n] into level `i`, and pass on what is certain. ends: nothing more comes (in level 1: of the
    stretch).
    """
    cdef Level* level = &c.levels[i]
    cdef LevelMark* m = &c.draft[i]
    cdef u8* larger
    cdef size_t capacity
    if m.size + n + SLACK > level.capacity:
        capacity = m.size + n + (m.size + n) // 2 + 4 * SLACK
        larger = <u8*>realloc(level.bytes, capacity)
        if larger == NULL:
            raise MemoryError("no memory for the text that waits")
        level.bytes, level.capacity = larger, capacity
    if n:
        memcpy(level.bytes + m.size, p, n)
    m.size += n
    find_tokens(c, i, ends, sink)
    if ends:                # what comes next is another stretch, or another text
        m.begin = m.size
        m.searched = m.size
        m.after_word = m.takes_blanks = False
    return 0


cdef int find_tokens(Changer c, int i, bint ends, Sink sink) except -1:
    """Pass on what is certain of a level's bytes."""
    cdef Level* level = &c.levels[i]
    cdef LevelMark* m = &c.draft[i]
    cdef TokenSet tokens = c.tokens_of(i)
    cdef const u8* p = level.bytes
    cdef size_t size = m.size, start = m.begin, search_from = m.searched, at, stop, sure
    cdef Found found
    cdef u8 flags
    cdef bint is_blank_again
    while True:
        tokens.matcher.search(&c.watch, p, search_from, size, ends, &found)
        if found.kind == DISALLOWED:
            return sink.refuse(i, p + found.start, found.end - found.start, size - found.start)
        at, stop = found.start, found.end
        if found.kind != ALLOWED:
            break
        flags = tokens.flags[found.which]
        if flags & SINGLE_WORD:
            if stop == size and not ends:
                break                           # what comes may be a word
            if (tokens.is_word_at(p, utf8_before(p, m.begin, at, size), size) if at > m.begin
                    else m.after_word) or (stop < size and tokens.is_word_at(p, stop, size)):
                search_from = stop
                continue
        if m.takes_blanks:
            start = take_blanks(c, i, start, at, sink)
        if m.takes_blanks:
            # They reach up to here: a token may be among them, but not one that has them all.
            is_blank_again = flags & LSTRIP and blanks_end(p, at, stop, size) == stop
            if is_blank_again:
                put_blanks(c, i, stop - start, sink)
            else:
                end_with_token(c, i, tokens.matcher.ids[found.which], stop - start, sink)
        else:
            if flags & LSTRIP:
                at = blanks_begin(p, start, at, size)
            change_stretch(c, i, start, at, True, sink)
            end_with_token(c, i, tokens.matcher.ids[found.which], stop - at, sink)
        start = search_from = stop
        m.takes_blanks = flags & RSTRIP != 0
    if m.takes_blanks:
        start = take_blanks(c, i, start, at, sink)
    sure = at
    if tokens.wants_blanks and not ends and not m.takes_blanks:
        sure = blanks_begin(p, start, at, size)
    start += change_stretch(c, i, start, sure, ends, sink)
    if tokens.words is not None and start > m.begin:
        m.after_word = tokens.is_word_at(p, utf8_before(p, m.begin, start, size), size)
    m.begin, m.searched = start, at
    return 0


cdef size_t take_blanks(Changer c, int i, size_t start, size_t stop, Sink sink) except? 0:
    """Give the token that was passed on last the blanks that start:stop begins with; where these end."""
    cdef LevelMark* m = &c.draft[i]
    cdef size_t end = blanks_end(c.levels[i].bytes, start, stop, m.size)
    if end < stop:
        m.takes_blanks = False
    if end > start:
        put_blanks(c, i, end - start, sink)
    return end


cdef int put_blanks(Changer c, int i, size_t size, Sink sink) except -1:
    """Blanks that the last token takes: they are not text, and no id stands for them alone."""
    cdef Alignment* rows = &c.levels[i].rows
    c.draft[i].where = PLACE_BEGIN
    if i + 1 < c.n_levels:
        c.draft[i + 1].where = PLACE_BEGIN
    if rows.n:
        if rows.rows[rows.n - 1].before == SAME:
            raise AssertionError("blanks are taken after text")
        rows.rows[rows.n - 1].before += size
        return 0
    if not alignment_push(rows, 0, size):
        no_memory()
    return 0


cdef int end_with_token(Changer c, int i, u32 id, size_t size, Sink sink) except -1:
    """Pass on a token of level i, which has ended its stretch."""
    cdef int k
    for k in range(c.n_levels):
        c.draft[k].where = PLACE_BEGIN
        if k >= i and not alignment_add_token(&c.levels[k].rows, size):
            no_memory()
    sink.put_token(id, size)
    return 0


cdef size_t change_stretch(Changer c, int i, size_t start, size_t stop, bint ends, Sink sink) except? 0:
    """Change the bytes start:stop of a stretch, and pass on what is certain: how many were taken in."""
    cdef Level* level = &c.levels[i]
    cdef LevelMark* m = &c.draft[i]
    cdef ElementTable table = c.table_of(i)
    cdef const u8* p = level.bytes + start
    cdef size_t n = stop - start
    cdef ElementWalk w
    if table is None:
        if not alignment_add_same(&level.rows, p, n):
            no_memory()
        if n or ends:
            pass_on(c, i, p, n, ends, sink)
        m.where = PLACE_BEGIN if ends else 0 if n else m.where
        return n
    if m.walked and not ends and goes_on_to(table, m, level.bytes, stop):
        return 0
    m.walked = 0
    element_walk_begin(table, &w, p, n, m.where, ends, True)
    with cython.critical_section(table):
        table.n_calls += 1
    try:
        if n >= RELEASE_FROM:
            with nogil:
                walk_elements(table, &w)
        else:
            walk_elements(table, &w)
        if not w.is_changed:
            w.size = w.taken
        if not alignment_append(&level.rows, &w.rows, w.out if w.is_changed else p):
            no_memory()
        if w.is_later and i + 1 < c.n_levels:
            c.draft[i + 1].where &= <u8>~PLACE_FIRST
        if w.taken:
            m.where = 0
        elif n and w.is_open and not ends:
            m.walked, m.last = stop, w.last
        if w.size or ends:
            pass_on(c, i, w.out if w.is_changed else p, w.size, ends, sink)
        if ends:
            m.where = PLACE_BEGIN
        return w.taken
    finally:
        element_walk_free(&w)
        with cython.critical_section(table):
            table.n_calls -= 1


cdef bint goes_on_to(ElementTable t, LevelMark* m, const u8* p, size_t stop) noexcept:
    """Whether the element that is open goes on up to `stop`; it is walked so far only once."""
    cdef int size = 0
    cdef CharKind kind
    while m.walked < stop:
        kind = kind_at(t, utf8_at(p, m.walked, stop, &size))
        if kind.flags & KIND_UNASKED or not is_joined(m.last, kind):
            return False
        m.last = kind
        m.walked += size
    return may_join(t, m.last)


cdef int pass_on(Changer c, int i, const u8* p, size_t n, bint ends, Sink sink) except -1:
    if i + 1 < c.n_levels:
        take_text(c, i + 1, p, n, ends, sink)
    else:
        sink.put_text(p, n, ends)
    return 0
