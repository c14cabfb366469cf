"""Finds pieces: a walk of the split pattern's DFA that can stop and go on at any byte.

The tables come from `pattern.Pattern`. One step looks at one character: if the pattern may end a
piece before it, that place is remembered; then the state changes. When no state is left, the piece
ends at the place remembered last, and the walk goes on from there. ASCII takes one look-up a byte;
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
    cdef size_t start = s.start, accept = s.accept, position = s.position
    cdef u32 state = s.state, step
    cdef size_t count = 0
    cdef int size
    cdef i32 code
    cdef u8 byte
    cdef bint committed = s.committed
    if room == 0:
        return 0
    while True:
        if position < end:
            byte = buffer[position]
            if byte < 0x80:
                step = t.ascii[(state << 7) | byte]
                size = 1
            else:
                code = decode_one(buffer + position, end - position, &size)
                if code >= 0:
                    step = t.blocks[(<u32>t.pages[code >> 7] << 7) | (code & 127)]
                elif code == INCOMPLETE and not final:
                    break
                else:
                    size = 1
                    step = t.surrogate
                step = t.classes[state * t.columns + step]
            if step & 1:
                accept = position
            state = step >> 1
            if state:
                position += size
                continue
        else:
            if not final or (start == end and not committed):
                break
            if t.classes[state * t.columns + t.columns - 1] & 1:
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
        state = 1
        if count == room:
            break
    s.start = start
    s.accept = accept
    s.position = position
    s.state = state
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
        accepts = np.asarray(pattern.accepts, dtype=np.uint16)
        steps = np.zeros((states, classes + 1), dtype=np.uint16)
        steps[:, :classes] = np.asarray(pattern.transitions, dtype=np.uint16) << 1
        steps |= accepts
        pages = np.ascontiguousarray(pattern.class_pages, dtype=np.uint16)
        blocks = np.ascontiguousarray(pattern.class_blocks, dtype=np.uint8)
        ascii_classes = blocks[pages[0]]
        ascii_steps = np.ascontiguousarray(steps[:, ascii_classes])
        settled = np.ascontiguousarray(settled_states(accepts, steps[:, :classes] >> 1))
        self._owners = (steps, ascii_steps, pages, blocks, settled)
        cdef const u16[:, ::1] steps_view = steps
        cdef const u16[:, ::1] ascii_view = ascii_steps
        cdef const u16[::1] pages_view = pages
        cdef const u8[:, ::1] blocks_view = blocks
        cdef const u8[::1] settled_view = settled
        t.classes = &steps_view[0, 0]
        t.ascii = &ascii_view[0, 0]
        t.pages = &pages_view[0]
        t.blocks = &blocks_view[0, 0]
        t.settled = &settled_view[0]
        t.columns = classes + 1
        t.surrogate = blocks[pages[0xDC80 >> 7]][0xDC80 & 127]

    cdef const ScanTables* tables(self) noexcept nogil:
        return &self.c


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
