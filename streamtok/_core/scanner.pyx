"""Finds pieces: a walk of the split pattern's DFA that can stop and go on at any byte.

The tables come from `pattern.Pattern`. One step looks at one character: if the pattern may end a
piece before it, that place is remembered; then the state changes. When no state is left, the piece
ends at the place remembered last, and the walk goes on from there; where that place is right here, both
are one step. ASCII takes one look-up a byte;
other characters are decoded and classified first. A character that is cut off by the end of the
buffer is left for later, unless `final`.

Bytes that are not UTF-8 count as one character each of the surrogates' class, which is what
`bytes.decode("utf-8", "surrogateescape")` makes of them.
"""

cimport cython

import numpy as np

from streamtok._core.types cimport i32, i64, u8, u16, u32
from streamtok._core.utf8 cimport INCOMPLETE, decode_one


cdef size_t scan(const ScanTables* t, Scan* s, const u8* buffer, size_t end, bint final,
                 i64* ends, size_t room) noexcept nogil:
    """Put the ends of up to `room` closed pieces of buffer[s.start:end] into `ends`.

    A negative end is that of a stretch which no piece covers (a pattern that skips characters).
    Fewer than `room`: all that can be decided was; the open piece is buffer[s.start:], and empty
    after `final`. If s.committed, the first piece closed is the rest of one whose beginning was
    encoded before; that rest may be empty.
    """
    cdef size_t start = s.start, accept = s.accept, position = s.position, limit
    cdef u32 state = s.state << 7, step
    cdef size_t count = 0
    cdef int size
    cdef i32 code
    cdef u8 byte
    cdef bint committed = s.committed
    while count < room:
        # A character closes one piece at the most: so far there is room without looking.
        limit = end if end - position < room - count else position + (room - count)
        step = 0
        while position < limit:
            byte = buffer[position]
            if byte >= 0x80:
                code = decode_one(buffer + position, end - position, &size)
                if code >= 0:
                    step = t.blocks[(<u32>t.pages[code >> 7] << 7) | (code & 127)]
                elif code == INCOMPLETE and not final:
                    break
                else:
                    size = 1
                    step = t.surrogate
                step = t.classes[(state >> 7) * t.columns + step]
                if step & STUCK:
                    break
                ends[count] = <i64>position
                count += step & ENDS
                accept = position if step & ACCEPTS else accept
                state = (step >> STEP_BITS) << 7
                position += size
                continue
            # No branch depends on where pieces end: they are too irregular to be predicted.
            step = t.ascii[state + byte]
            if step & STUCK:
                break
            ends[count] = <i64>position
            count += step & ENDS
            accept = position if step & ACCEPTS else accept
            state = step >> STEP_BITS
            position += 1
        else:
            if position < end:
                continue
        if count == room:           # what comes next is looked at again by the next call
            break
        if count:
            start = <size_t>(ends[count - 1] if ends[count - 1] >= 0 else -ends[count - 1])
            committed = False
            if accept < start:
                accept = start
        if not step & STUCK:
            # The end of the bytes, or of what they hold of a character.
            if not final or (start == end and not committed):
                break
            if t.final[state >> 7]:
                accept = position
        elif step & ACCEPTS:
            accept = position
        # No way on: the piece ends at the last accepting position.
        if accept > start or committed:
            ends[count] = <i64>accept
            committed = False
        else:                       # no piece begins here: pass over one character
            if decode_one(buffer + start, end - start, &size) < 0:
                size = 1
            accept = start + size
            ends[count] = -<i64>accept
        count += 1
        start = position = accept
        state = 1 << 7
    if count:
        start = <size_t>(ends[count - 1] if ends[count - 1] >= 0 else -ends[count - 1])
        committed = False
        if accept < start:
            accept = start
    s.start = start
    s.accept = accept
    s.position = position
    s.state = state >> 7
    s.committed = committed
    return count


@cython.final
cdef class Scanner:
    """Immutable; made from a `pattern.Pattern`."""

    def __cinit__(self, pattern):
        cdef ScanTables* t = &self.c
        states, classes = pattern.n_states, pattern.n_classes
        if states > 32767:
            raise ValueError(f"{states} states do not fit")
        self.n_states = states
        accepts = np.asarray(pattern.accepts, dtype=bool)
        transitions = np.asarray(pattern.transitions, dtype=np.uint32)
        steps = make_steps(accepts, transitions)
        pages = np.ascontiguousarray(pattern.class_pages, dtype=np.uint16)
        blocks = np.ascontiguousarray(pattern.class_blocks, dtype=np.uint8)
        ascii_steps = steps[:, blocks[pages[0]]]
        ascii_steps = (ascii_steps >> STEP_BITS << (7 + STEP_BITS)) | (ascii_steps & 7)
        ascii_steps = np.ascontiguousarray(ascii_steps)
        final = np.ascontiguousarray(accepts[:, classes], dtype=np.uint8)
        settled = np.ascontiguousarray(settled_states(accepts, transitions))
        self._owners = (steps, ascii_steps, final, pages, blocks, settled)
        cdef const u32[:, ::1] steps_view = steps
        cdef const u32[:, ::1] ascii_view = ascii_steps
        cdef const u8[::1] final_view = final
        cdef const u16[::1] pages_view = pages
        cdef const u8[:, ::1] blocks_view = blocks
        cdef const u8[::1] settled_view = settled
        t.classes = &steps_view[0, 0]
        t.ascii = &ascii_view[0, 0]
        t.final = &final_view[0]
        t.pages = &pages_view[0]
        t.blocks = &blocks_view[0, 0]
        t.settled = &settled_view[0]
        t.columns = classes
        t.surrogate = blocks[pages[0xDC80 >> 7]][0xDC80 & 127]

    cdef const ScanTables* tables(self) noexcept nogil:
        return &self.c


def make_steps(accepts, transitions):
    """uint32 [n_states, n_classes]: one step of the walk.

    Where a piece ends before a character that begins the next one, both are one step: the walk goes
    on from the state that the character leads to at the start of a piece.
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


def settled_states(accepts, transitions):
    """uint8 [n_states]: 1 where, whatever follows, the piece ends here or later.

    The tables may leave an acceptance out where a later one is certain, so what was accepted last
    can lie far behind the bytes that surely belong to the piece. A state is settled if at the end
    of input it accepts, and before every class it accepts or goes on to a settled state: the
    largest set of states for which that holds, since every text has an end.
    """
    accepting = np.asarray(accepts, dtype=bool)
    settled = accepting[:, -1].copy()
    settled[0] = False
    while True:
        fewer = settled & (accepting[:, :-1] | settled[transitions]).all(axis=1)
        if (fewer == settled).all():
            return settled.astype(np.uint8)
        settled = fewer
