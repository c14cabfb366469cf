"""Find pre-tokens: walk the DFA of the split pattern. The walk can stop and resume at any byte.

The tables come from `pattern.Pattern`. Each step reads one character. If the pre-token may end before
it, the position is saved; then the state changes. Without a next state, the pre-token ends at the
saved position and the walk restarts there. If the saved position is the current one, ending and
restarting are one step. ASCII takes one look-up per byte; other characters are decoded and classified
first. A character that is cut off by the end of the buffer is left for later, unless `final`.

`scan` skips the walk where windows of four characters decide (`patterns/windows.py`,
`scan/windows.h`, `scan/marks.pxi`), and walks the pre-tokens that they leave open.

Each byte that is not UTF-8 counts as a character of the surrogates' class, as after
`bytes.decode("utf-8", "surrogateescape")`.
"""

cdef enum:                  # one step: next state << STEP_BITS | flags
    ENDS = 1                # the pre-token ends before this character, which begins the next one
    ACCEPTS = 2             # the pre-token may end before this character
    STUCK = 4               # no transition: go back to the last position where the pre-token may end
    STEP_BITS = 3
    ASCII_COLUMNS = 128


cdef enum:
    DENSE = 12              # if at least this many of 64 positions are open, the whole block is walked
    SEEN_AGAIN = 32         # the most walked bytes of an open pre-token that windows may read again
    LOOK_TURNS = (1 << 12) - 1  # turns between two checks for signals, less one


cdef size_t walk(const ScanTables* t, Scan* s, const u8* buffer, size_t end, bint final,
                 i64* ends, size_t capacity, Watch* watch) except? -1 nogil:
    """Write the ends of up to `capacity` pre-tokens of buffer[s.start:end] to `ends`; return their number.

    Checks for signals unless `watch` is NULL, because a pattern such as x*y|x reads the rest of the
    text for each pre-token.

    A negative end closes a segment that no pre-token covers: some patterns skip characters. If there
    are fewer than `capacity` ends, nothing more can be decided: the open pre-token is buffer[s.start:],
    which is empty if `final`. If s.committed, the first end closes a pre-token whose beginning was
    already encoded; its rest may be empty.
    """
    cdef size_t start = s.start, accept = s.accept, position = s.position, limit
    cdef u32 row_bits = t.row_bits, state = s.state << row_bits, step, column
    cdef size_t count = 0
    cdef int size
    cdef i32 code
    cdef u8 byte
    cdef bint committed = s.committed
    cdef size_t turns = 0
    while count < capacity:
        turns += 1
        if turns & LOOK_TURNS == 0 and watch != NULL:
            look(watch)
        # A character closes at most one pre-token, so there is room for all ends before `limit`.
        limit = end if end - position < capacity - count else position + (capacity - count)
        step = 0
        while position < limit:
            byte = buffer[position]
            column = byte
            size = 1
            if byte >= 0x80:
                code = decode_common(buffer + position, end - position, &size)
                if code >= 0:
                    column = ASCII_COLUMNS + t.bmp[code]
                else:
                    code = decode_one(buffer + position, end - position, &size)
                    if code >= 0:
                        column = t.blocks[(<u32>t.pages[code >> 7] << 7) | (code & 127)]
                    elif code == INCOMPLETE and not final:
                        break
                    else:
                        size = 1
                        column = t.surrogate
                    column += ASCII_COLUMNS
            # No branch depends on where pre-tokens end, which is too irregular to predict.
            step = t.steps[state + column]
            if step & STUCK:
                break
            ends[count] = <i64>position
            count += step & ENDS
            accept = position if step & ACCEPTS else accept
            state = step >> STEP_BITS
            position += size
        else:
            if position < end:
                continue
        if count == capacity:           # the next call continues at `position`
            break
        if count:
            start = <size_t>(ends[count - 1] if ends[count - 1] >= 0 else -ends[count - 1])
            committed = False
            if accept < start:
                accept = start
        if not step & STUCK:
            # The bytes end here, or inside a character.
            if not final or (start == end and not committed):
                break
            if t.final[state >> row_bits]:
                accept = position
        elif step & ACCEPTS:
            accept = position
        # No transition: the pre-token ends at the last accepting position.
        if accept > start or committed:
            ends[count] = <i64>accept
            committed = False
        else:                       # no pre-token begins here: skip one character
            if decode_one(buffer + start, end - start, &size) < 0:
                size = 1
            accept = start + size
            ends[count] = -<i64>accept
        count += 1
        start = position = accept
        state = 1 << row_bits
    if count:
        start = <size_t>(ends[count - 1] if ends[count - 1] >= 0 else -ends[count - 1])
        committed = False
        if accept < start:
            accept = start
    s.start = start
    s.accept = accept
    s.position = position
    s.state = state >> row_bits
    s.committed = committed
    return count


cdef inline bint can_begin(const ScanTables* t, const u8* p, size_t n) noexcept nogil:
    """Whether a pre-token can begin with the first character of p[:n]. Needs `t.begins`."""
    cdef i32 code
    cdef int size
    if p[0] < 0x80:
        return t.begins[p[0]]
    code = decode_one(p, n, &size)
    if code < 0:
        return t.begins[ASCII_COLUMNS + t.surrogate]
    return t.begins[ASCII_COLUMNS + t.blocks[(<u32>t.pages[code >> 7] << 7) | (code & 127)]]


cdef void tell_gaps(const ScanTables* t, const u8* buffer, size_t start, size_t end, i64* ends,
                    size_t count) noexcept nogil:
    """Negate the ends of the gaps among `count` segments from buffer[start] on: no pre-token can begin there."""
    cdef size_t i, stop
    for i in range(count):
        stop = <size_t>ends[i]
        ends[i] = <i64>stop if can_begin(t, buffer + start, end - start) else -<i64>stop
        start = stop


cdef size_t scan(const ScanTables* t, Scan* s, Marks* marks, const u8* buffer, size_t end,
                 bint final, i64* ends, size_t capacity, Watch* watch) except? -1 nogil:
    """As `walk`, but with the window tables where they decide. capacity >= 64.

    `marks` is for this buffer and these bytes only; `marks_begin` initializes it. Unless
    marks.tells_gaps, the ends of skipped characters are not always negative.
    """
    cdef size_t count = 0, start, base, block, dense, found
    cdef u64 begins, open = 0, after
    if t.windows == NULL or end - s.start < t.marked_from:
        return walk(t, s, buffer, end, final, ends, capacity, watch)
    while True:
        start = s.start
        if start + 1 - marks.base >= marks.blocks << 6:
            if end - start < t.marked_from or (marks.is_squeezed and end - start < MARKED_FROM):
                return count + walk(t, s, buffer, end, final, ends + count, capacity - count, watch)
            # Continue a walk to the end of its pre-token if it has gone far or little text follows.
            # Otherwise the windows read its bytes again.
            if (
                s.committed or s.position - start > SEEN_AGAIN or end - s.position < t.marked_from or
                not mark_from(t, marks, buffer, start, end)
            ):
                if walk(t, s, buffer, end, final, ends + count, 1, watch) == 0:
                    return count
                count += 1
                scan_begin(s, s.start)
                if count > capacity - 64:
                    return count
                continue
        base = marks.base
        block = (start + 1 - base) >> 6
        after = <u64>-1 << ((start + 1 - base) & 63)
        base += block << 6
        while block < marks.blocks and count <= capacity - 64:
            begins = marks.begins[block] & after
            open = marks.open[block] & after
            if open:
                begins &= (open & (~open + 1)) - 1      # before the first open position
            if begins:
                found = t.put_positions(begins, base, ends + count)
                if t.begins != NULL and marks.tells_gaps:
                    tell_gaps(t, buffer, start, end, ends + count, found)
                count += found
                start = <size_t>llabs(ends[count - 1])
            if open:
                break
            after = <u64>-1
            base += 64
            block += 1
        scan_begin(s, start)
        if count > capacity - 64:
            return count
        if block == marks.blocks:
            # The pre-token may be longer than all marked blocks: marking from its start again
            # would not find its end.
            if walk(t, s, buffer, end, final, ends + count, 1, watch) == 0:
                return count
            count += 1
            scan_begin(s, s.start)
            continue
        dense = st_ones(open)
        if dense < DENSE:
            dense = 1
        else:
            dense = capacity - count if capacity - count < dense else dense
        found = walk(t, s, buffer, end, final, ends + count, dense, watch)
        count += found
        if found < dense:           # nothing more can be decided
            return count
        if count > capacity - 64:
            return count
        scan_begin(s, s.start)


@cython.final
cdef class Scanner:
    """The tables of a `pattern.Pattern`. Immutable.

    substitutes: uint8 [0x10000], the ASCII substitute of each code point, 0 if it has none; or None.
    """

    def __cinit__(self, pattern, substitutes):
        cdef ScanTables* t = &self.c
        states, classes = pattern.n_states, pattern.n_classes
        if states > 32767 or classes > 256:
            raise ValueError(f"{states} states and {classes} classes do not fit")
        self.n_states = states
        accepts = np.asarray(pattern.accepts, dtype=bool)
        transitions = np.asarray(pattern.transitions, dtype=np.uint32)
        steps = make_steps(accepts, transitions)
        pages = np.ascontiguousarray(pattern.class_pages, dtype=np.uint16)
        blocks = np.ascontiguousarray(pattern.class_blocks, dtype=np.uint8)
        t.row_bits = 8 if ASCII_COLUMNS + classes <= 256 else 9
        rows = np.full((states, 1 << t.row_bits), STUCK, dtype=np.uint32)
        rows[:, :ASCII_COLUMNS] = steps[:, blocks[pages[0]]]
        rows[:, ASCII_COLUMNS : ASCII_COLUMNS + classes] = steps[:, :classes]
        rows = np.ascontiguousarray((rows >> STEP_BITS << (t.row_bits + STEP_BITS)) | (rows & 7))
        bmp = np.ascontiguousarray(blocks[pages[: 0x10000 >> 7]]).reshape(-1)
        final = np.ascontiguousarray(accepts[:, classes], dtype=np.uint8)
        settled = np.ascontiguousarray(pattern.settled)
        self._owners = []
        t.steps = <const u32*>self.own(rows, UINT32, "steps", 2)
        t.bmp = <const u8*>self.own(bmp, UINT8, "bmp", 1)
        t.final = <const u8*>self.own(final, UINT8, "final", 1)
        t.pages = <const u16*>self.own(pages, UINT16, "class_pages", 1)
        t.blocks = <const u8*>self.own(blocks, UINT8, "class_blocks", 2)
        t.settled = <const u8*>self.own(settled, UINT8, "settled", 1)
        t.n_classes = classes
        t.windows = NULL
        t.substitutes = NULL
        t.begins = NULL
        if substitutes is not None:
            if substitutes.shape != (0x10000,):
                raise ValueError(f"ASCII substitutes are for 65536 code points, not {substitutes.shape}")
            substitutes = np.append(substitutes, np.zeros(ST_SUBSTITUTES_SIZE - 0x10000, np.uint8))
            substitutes[0x80:][substitutes[0x80:] == 0] = ST_NO_SUBSTITUTE
            t.substitutes = <const u8*>self.own(substitutes, UINT8, "substitutes", 1)
        if pattern.windows is not None:
            t.mark = st_mark_tier(ST_ANY)
            t.marked_from = st_marked_from(ST_ANY, &t.extra_from)
            closed = pattern.closed
            closed_steps = make_steps(np.asarray(closed.accepts, dtype=bool),
                                      np.asarray(closed.transitions, dtype=np.uint32))
            margins = make_margins(closed_steps, blocks[pages[0]])
            if closed is not pattern:
                begins = np.asarray(pattern.begins, dtype=np.uint8)
                begins = np.concatenate([begins[blocks[pages[0]]], begins])
                t.begins = <const u8*>self.own(begins, UINT8, "begins", 1)
            t.margins = <const u64*>self.own(margins, UINT64, "margins", 1)
            t.put_positions = st_positions_tier(ST_ANY)
            t.squeeze = st_squeeze_tier(ST_ANY)
            t.deposit = st_deposit_tier(ST_ANY)
            t.windows = &self.windows
            fill_windows(&self.windows, pattern.windows)
        t.surrogate = blocks[pages[0xDC80 >> 7]][0xDC80 & 127]

    cdef const void* own(self, array, Kind kind, str name, int dimensions) except NULL:
        """The memory of an array, which this object keeps alive."""
        cdef ArrayView view = read_array(array, kind, name, dimensions)
        self._owners.append(view)
        return view.data

    cdef const ScanTables* tables(self) noexcept nogil:
        return &self.c


cdef int fill_windows(st_windows* w, windows) except -1:
    fill_bytes(w.classes, 128, windows.classes, "classes")
    fill_bytes(w.lefts, 256, windows.lefts.ravel(), "lefts")
    fill_bytes(w.rights, 256, windows.rights.ravel(), "rights")
    fill_bytes(w.decisions, 256, windows.decisions.ravel(), "decisions")
    w.trigger = windows.trigger
    w.reach = windows.reach
    w.counted = windows.counted
    w.count = windows.run
    st_fill_tables(w)
    return 0


cdef int fill_bytes(u8* out, size_t size, object array, str name) except -1:
    cdef ArrayView view = read_array(array, UINT8, name)
    if view.size != size:
        raise ValueError(f"{view.size} {name} of windows, not {size}")
    memcpy(out, view.data, size)
    return 0


def make_steps(accepts, transitions):
    """uint32 [n_states, n_classes]: the steps of the walk.

    If a pre-token ends before a character that begins the next one, a single step ends it and leads to
    the state after that character.
    """
    accepting = accepts[:, :-1]
    dead = transitions == 0
    begun = np.broadcast_to(transitions[1], transitions.shape)
    ends = dead & accepting & (begun != 0)
    stuck = dead & ~ends
    following = np.where(ends, begun, transitions).astype(np.uint32)
    steps = following << STEP_BITS
    steps |= np.where(ends, ENDS, 0).astype(np.uint32)
    steps |= np.where(accepting & ~ends, ACCEPTS, 0).astype(np.uint32)
    steps |= np.where(stuck, STUCK, 0).astype(np.uint32)
    return np.ascontiguousarray(steps)


# Texts after which a new pre-token begins: with the usual patterns, one of these works for nearly
# every next character.
cdef tuple ENDINGS = (b"aaaaaaa", b"aaaaaa0", b"aaaaaa!", b"aaaaa!\n", b"!!!!!!!", b"\n\n\n\n\n\n\n")


cdef object make_margins(object steps, object classes):
    """uint64 [128]: for each ASCII character, seven bytes and the character, as one word in memory.

    Windows read bytes before the first position that they decide. At the beginning of a text, or of
    a stream's tail, there are none. The windows then read these seven bytes: a pre-token is certain to
    begin after them, so they do not change the result. 0: none of `ENDINGS` works.
    """
    margins = np.zeros((128, 8), np.uint8)
    is_left = np.ones(128, bool)
    columns = classes.tolist()
    for ending in ENDINGS:
        state = 1
        for byte in ending:
            step = int(steps[state, columns[byte]])
            if step & STUCK:
                break
            state = step >> STEP_BITS
        else:
            fits = is_left & (steps[state, classes] & ENDS != 0)
            margins[fits] = [*ending, 0]
            is_left &= ~fits
            if not is_left.any():
                break
    margins[:, 7] = np.arange(128)
    margins[is_left] = 0
    return margins.view(np.uint64).reshape(-1)
