"""The open end of a stream: the bytes that wait, and where the walk over them stands.

A `Tail` takes chunks of any size and gives the ids that no later chunk can change. What it keeps
is the *tail*: an unfinished UTF-8 sequence, what may begin a special token, and the open piece as
far as its tokens are not certain yet.

A pattern may look arbitrarily far ahead: after a newline, cl100k's `\\s*[\\r\\n]` takes a run of blanks
into the same piece if another newline follows, and leaves it to the next piece if not. Then there
are two hypotheses: the piece goes on (`scan`), or it ended where the pattern accepted last, and
another one began there (`other`). If the encoding under the first has a token boundary at that
place, both agree on the tokens before it. From there on both merge the same bytes from the same
boundary inside one piece, so what the frontier rule says is final is final under both, and memory
stays bounded. Where there is no such boundary the answer really depends on what follows, and the
bytes wait, up to the caller's limit.

Every call works on the tail in place and notes where it stood before: an exception puts that
back, so that a failed call has not happened.
"""

cimport cython

import struct

import numpy as np

from cpython.unicode cimport PyUnicode_Check
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memmove

from streamtok._core.cells cimport Work, Workspace, commit_window, emit, encode_rest, reserve
from streamtok._core.encoder cimport Encoder, commit_open, encode_span
from streamtok._core.frontier cimport WINDOW, stable_tokens
from streamtok._core.output cimport foresee, ids_to_array, ids_to_list
from streamtok._core.scanner cimport Scan, ScanTables, scan_begin, walk
from streamtok._core.special cimport ALLOWED, DISALLOWED, PARTIAL, Found, SpecialMatcher
from streamtok._core.text cimport Text, explain, text_close, text_open
from streamtok._core.types cimport NONE, i32, i64, st_enter, st_leave, u8, u16, u32, u64
from streamtok._core.utf8 cimport INCOMPLETE, valid_bytes
from streamtok._core.vocab cimport Tokens, find_token

from streamtok.errors import PendingLimitExceeded, StateError, StreamInUseError

cdef enum:
    SLICE = 1 << 16         # bytes of a chunk that are taken in at a time
    SLACK = 64              # bytes beyond the tail that may be read
    RELEASE_FROM = 4096     # bytes from which the GIL is released
    SHRINK_FROM = 1 << 18   # a buffer beyond this is given back when it is no longer needed


@cython.final
cdef class Tail:
    """The state of one stream. One call at a time: a second one raises StreamInUseError."""

    def __cinit__(self, Encoder encoder not None, SpecialMatcher matcher not None, str errors):
        self.encoder = encoder
        self.matcher = matcher
        self.errors = errors
        self.policy = REFUSE if errors == "strict" else REPAIR if errors == "replace" else KEEP
        self.capacity = 0
        self.clear()

    def __dealloc__(self):
        free(self.bytes)

    cdef void clear(self):
        self.mark.size = self.mark.valid = self.mark.searched = 0
        scan_begin(&self.mark.scan, 0)
        scan_begin(&self.mark.other, 0)
        self.mark.has_other = False
        self.mark.retry_at = WINDOW
        self.mark.fork_at = 2 * WINDOW
        self.mark.offset = self.mark.bytes_in = self.mark.tokens_out = 0

    @property
    def pending(self):
        """Bytes held back."""
        return self.mark.size - self.mark.scan.start

    @property
    def bytes_in(self):
        """Bytes taken in since the stream began."""
        return self.mark.bytes_in

    @property
    def tokens_out(self):
        """Ids given out since the stream began."""
        return self.mark.tokens_out

    def reset(self):
        """Forget everything but the settings."""
        enter(self)
        try:
            self.clear()
        finally:
            st_leave(&self.busy)

    def begin_at(self, u64 offset):
        """Forget everything but the settings; what comes next is at byte `offset` of the stream."""
        enter(self)
        try:
            self.clear()
            self.mark.offset = self.mark.bytes_in = offset
        finally:
            st_leave(&self.busy)

    def copy(self):
        """An independent Tail in the same state."""
        cdef Tail twin = Tail(self.encoder, self.matcher, self.errors)
        enter(self)
        try:
            grow(twin, self.mark.size)
            if self.mark.size:
                memcpy(twin.bytes, self.bytes, self.mark.size)
            twin.mark = self.mark
        finally:
            st_leave(&self.busy)
        return twin

    def encode(self, chunk, bint final, str into, out, size_t limit):
        """Take `chunk` in; the ids that became certain.

        into: "list", "array" or "buffer" (then `out` is a writable uint16 or uint32 buffer, and the
        number of ids is returned). limit: bytes that may be left waiting. Returns (offset, text)
        where a disallowed special token stands; the stream is then as before.
        """
        return self.feed(chunk, final, into, out, limit)

    cdef object feed(self, object chunk, bint final, str into, object out, size_t limit):
        cdef Text text
        cdef Workspace workspace = None
        cdef Mark before
        cdef bytes saved = None
        cdef Found refused
        cdef object result
        cdef u64 offset
        cdef bint is_text, is_clean
        cdef bint is_array = into == "array"
        enter(self)
        try:
            before = self.mark
            is_text = PyUnicode_Check(chunk)
            workspace = self.encoder.take()
            try:
                # The policy is applied below, where sequences may go on from the chunk before.
                text_open(&text, &workspace.c.room, chunk, "surrogateescape" if not is_text or
                          self.errors == "surrogateescape" else "strict")
                try:
                    if is_text and before.size > before.valid and text.size:
                        raise UnicodeDecodeError(
                            "utf-8", self.bytes[before.valid:before.size],
                            before.offset + before.valid, before.offset + before.size,
                            "a str chunk follows bytes that end inside a character",
                        )
                    is_clean = is_text and before.size == before.valid
                    if text.size > SLICE:
                        saved = self.bytes[:before.size]
                    if is_array:
                        foresee(self.encoder._spares, &workspace.c, text.size // 3)
                    refused.kind = PARTIAL
                    if text.size >= RELEASE_FROM:
                        with nogil:
                            take_in(self, &workspace.c, text.data, text.size, is_clean, final,
                                    &refused)
                    else:
                        take_in(self, &workspace.c, text.data, text.size, is_clean, final,
                                &refused)
                    if refused.kind == DISALLOWED:
                        offset = self.mark.offset + refused.start
                        result = (offset, self.bytes[refused.start:refused.end].decode("utf-8"))
                        self.restore(&before, saved)
                        return result
                    if self.mark.size - self.mark.scan.start > limit:
                        raise PendingLimitExceeded(
                            f"{self.mark.size - self.mark.scan.start} bytes from offset "
                            f"{self.mark.offset + self.mark.scan.start} of the stream would have "
                            f"to wait, max_pending allows {limit}",
                            offset=self.mark.offset + self.mark.scan.start,
                            pending=self.mark.size - self.mark.scan.start, limit=limit,
                        )
                    if is_array:
                        result = ids_to_array(self.encoder._spares, &workspace.c)
                    elif into == "list":
                        result = ids_to_list(self.encoder.table, workspace.c.out, workspace.c.count)
                    else:
                        result = fill(out, workspace.c.out, workspace.c.count)
                    self.mark.bytes_in += text.size
                    self.mark.tokens_out += workspace.c.count
                    if final:
                        self.clear()
                    else:
                        compact(self)
                    return result
                except BaseException:
                    self.restore(&before, saved)
                    raise
                finally:
                    text_close(&text)
            finally:
                self.encoder.give(workspace)
        finally:
            st_leave(&self.busy)

    cdef int restore(self, const Mark* before, bytes saved) except -1:
        if saved is not None:
            memcpy(self.bytes, <const u8*><const char*>saved, len(saved))
        self.mark = before[0]
        return 0

    def getstate(self):
        """bytes: everything that the next call depends on but the settings."""
        cdef Mark* m = &self.mark
        enter(self)
        try:
            return STATE.pack(
                m.valid, m.searched, m.retry_at, m.fork_at, m.offset, m.bytes_in, m.tokens_out,
                m.scan.start, m.scan.accept, m.scan.position, m.scan.state, m.scan.committed,
                m.other.start, m.other.accept, m.other.position, m.other.state, m.other.committed,
                m.has_other,
            ) + self.bytes[:m.size]
        finally:
            st_leave(&self.busy)

    def setstate(self, bytes state):
        """Continue where `getstate` was called. StateError if the bytes are damaged."""
        cdef Mark m
        cdef size_t size = len(state)
        if size < <size_t>STATE.size:
            raise StateError(f"a saved stream state has at least {STATE.size} bytes, not {size}")
        (m.valid, m.searched, m.retry_at, m.fork_at, m.offset, m.bytes_in, m.tokens_out,
         m.scan.start, m.scan.accept, m.scan.position, m.scan.state, m.scan.committed,
         m.other.start, m.other.accept, m.other.position, m.other.state, m.other.committed,
         m.has_other) = STATE.unpack_from(state)
        m.size = size - STATE.size
        if (m.valid > m.size or m.searched > m.size or not self.fits(&m.scan, m.size)
                or not self.fits(&m.other, m.size)):
            raise StateError("the saved stream state is damaged: positions beyond its bytes")
        enter(self)
        try:
            grow(self, m.size)
            memcpy(self.bytes, <const u8*><const char*>state + <size_t>STATE.size, m.size)
            self.mark = m
        finally:
            st_leave(&self.busy)

    cdef bint fits(self, const Scan* s, size_t size):
        return (s.start <= s.accept <= size and s.start <= s.position <= size
                and 0 < s.state < <u32>self.encoder.scanner.n_states)


STATE = struct.Struct("<7Q3QIB3QIBB")


cdef int enter(Tail tail) except -1:
    if st_enter(&tail.busy):
        raise StreamInUseError("this stream is being used by another thread; use one per thread")
    return 0


cdef int grow(Tail tail, size_t size) except -1 nogil:
    """Room for `size` bytes, and for loads that reach a little beyond."""
    cdef size_t capacity
    cdef u8* bytes
    if size + SLACK <= tail.capacity:
        return 0
    capacity = size + size // 2 + 4 * SLACK
    bytes = <u8*>realloc(tail.bytes, capacity)
    if bytes == NULL:
        raise MemoryError(f"no memory to hold {size} bytes of the stream")
    tail.bytes = bytes
    tail.capacity = capacity
    return 0


cdef void compact(Tail tail) noexcept nogil:
    """Drop the bytes before the open piece, and memory that is no longer needed."""
    cdef Mark* m = &tail.mark
    cdef size_t gone = m.scan.start
    cdef u8* bytes
    # Moving a long tail for a few bytes would make one-byte chunks quadratic.
    if gone == 0 or (gone < m.size - gone and gone < WINDOW):
        return
    memmove(tail.bytes, tail.bytes + gone, m.size - gone)
    m.size -= gone
    m.valid -= gone
    m.searched -= gone
    m.offset += gone
    shift(&m.scan, gone)
    if m.has_other:
        shift(&m.other, gone)
    if tail.capacity > SHRINK_FROM and m.size < tail.capacity // 8:
        bytes = <u8*>realloc(tail.bytes, m.size + SHRINK_FROM // 4 + SLACK)
        if bytes != NULL:
            tail.bytes = bytes
            tail.capacity = m.size + SHRINK_FROM // 4 + SLACK


cdef inline void shift(Scan* s, size_t gone) noexcept nogil:
    s.start -= gone
    s.accept -= gone
    s.position -= gone


cdef int take_in(Tail tail, Work* w, const u8* p, size_t n, bint is_clean, bint final,
                 Found* refused) except -1 nogil:
    """Encode p[:n] behind the tail, slice by slice. `is_clean`: with the tail, it is UTF-8."""
    cdef size_t step
    while True:
        step = n if n < SLICE else SLICE
        append(tail, p, step, is_clean, final and step == n)
        p += step
        n -= step
        encode_tail(tail, w, final and n == 0, refused)
        if refused.kind == DISALLOWED or n == 0:
            return 0
        compact(tail)


cdef int append(Tail tail, const u8* p, size_t n, bint is_clean, bint final) except -1 nogil:
    """Put p[:n] behind the tail's bytes, well-formed as the policy wants it."""
    cdef Mark* m = &tail.mark
    cdef i32 why = 0
    cdef int length = 0
    cdef size_t fine, rest
    grow(tail, m.size + n)
    memcpy(tail.bytes + m.size, p, n)
    m.size += n
    if is_clean or tail.policy == KEEP:
        m.valid = m.size
        return 0
    while True:
        fine = valid_bytes(tail.bytes + m.valid, m.size - m.valid, &why, &length)
        m.valid += fine
        if why == 0 or (why == INCOMPLETE and not final):
            return 0
        if tail.policy == REFUSE:
            with gil:
                raise UnicodeDecodeError(
                    "utf-8", tail.bytes[m.valid:m.valid + length],
                    m.offset + m.valid, m.offset + m.valid + length,
                    explain(tail.bytes[m.valid], why),
                )
        # U+FFFD has three bytes; what it replaces, one to three.
        rest = m.size - m.valid - length
        grow(tail, m.size + 2)
        memmove(tail.bytes + m.valid + 3, tail.bytes + m.valid + length, rest)
        tail.bytes[m.valid] = 0xEF
        tail.bytes[m.valid + 1] = 0xBF
        tail.bytes[m.valid + 2] = 0xBD
        m.size += 3 - length
        m.valid += 3


cdef int encode_tail(Tail tail, Work* w, bint final, Found* refused) except -1 nogil:
    cdef Mark* m = &tail.mark
    cdef Found found
    cdef size_t start
    while True:
        found = tail.matcher.find(tail.bytes, m.searched, m.size, final)
        if found.kind == DISALLOWED:
            refused[0] = found
            return 0
        start = m.scan.start
        advance(tail, w, found.start, final or found.kind == ALLOWED)
        if m.scan.start != start:       # another piece is open now
            m.retry_at = WINDOW
            m.fork_at = 2 * WINDOW
        m.searched = found.start
        if found.kind != ALLOWED:
            break
        reserve(w, 1)
        w.out[w.count] = tail.matcher.ids[found.which]
        w.count += 1
        m.searched = found.end
        scan_begin(&m.scan, found.end)
    if not final:
        if not m.has_other:
            commit_open(tail.encoder, w, tail.bytes, &m.scan, &m.retry_at)
            fork(tail, w)
        if m.has_other:
            commit_both(tail, w)
    return 0


cdef int advance(Tail tail, Work* w, size_t end, bint final) except -1 nogil:
    """Encode what can be decided of the bytes up to `end`."""
    cdef Mark* m = &tail.mark
    cdef i64[1] closed
    cdef size_t start = m.scan.start, count
    if m.has_other:
        # m.scan.accept == start stands for the acceptance at the fork.
        count = walk(tail.encoder.scanner.tables(), &m.scan, tail.bytes, end, final, closed, 1)
        if count == 0 and m.scan.accept == start:
            return 0
        m.has_other = False
        if count and <size_t>closed[0] == start:
            m.scan = m.other
        elif count:
            encode_rest(tail.encoder.table, w, tail.bytes + start, <size_t>closed[0] - start)
    return encode_span(tail.encoder, w, tail.bytes, m.size + SLACK, end, final, &m.scan)


cdef int fork(Tail tail, Work* w) except -1 nogil:
    """Follow two hypotheses if the walk is far beyond the last acceptance and both agree so far."""
    cdef Mark* m = &tail.mark
    cdef Scan* s = &m.scan
    cdef const Tokens* t = tail.encoder.table.tokens()
    cdef size_t size = s.accept - s.start, stable, bytes = 0
    cdef Py_ssize_t count, kept = 0
    cdef u32 token
    if (tail.encoder.scanner.tables().settled[s.state] or s.position - s.accept < m.fork_at
            or (size == 0 and not s.committed)):
        return 0
    m.fork_at = 2 * (s.position - s.accept)
    if not s.committed and s.position - s.start <= t.longest_unreachable:
        return 0
    if t.sorted == NULL:
        with gil:
            tail.encoder.table.prepare_prefixes()
    count = stable_tokens(t, &w.merger, &w.scratch, tail.bytes + s.start, size + WINDOW, &stable)
    while bytes < size and kept < count:
        token = w.merger.result[kept]
        bytes += t.offsets[token + 1] - t.offsets[token]
        kept += 1
    if bytes != size:
        return 0
    if not s.committed:
        # If the piece ended here and were a token, its merges would not be asked.
        token = find_token(t, tail.bytes + s.start, size)
        if token != NONE and (kept != 1 or w.merger.result[0] != token):
            return 0
    emit(t, w, w.merger.result, kept)
    scan_begin(&m.other, s.accept)
    s.start = s.accept
    s.committed = True
    m.has_other = True
    m.fork_at = 2 * WINDOW
    return 0


cdef int commit_both(Tail tail, Work* w) except -1 nogil:
    """Emit what is final under both hypotheses."""
    cdef Mark* m = &tail.mark
    cdef const Tokens* t = tail.encoder.table.tokens()
    cdef const ScanTables* tables = tail.encoder.scanner.tables()
    cdef Scan trial
    cdef i64[1] closed
    cdef size_t sure, done
    if m.scan.position - m.scan.start < m.fork_at:
        return 0
    m.fork_at = 2 * (m.scan.position - m.scan.start)
    trial = m.other
    if walk(tables, &trial, tail.bytes, m.scan.position, False, closed, 1):
        return 0            # pieces end under one hypothesis and not under the other: wait
    m.other = trial
    sure = trial.position if tables.settled[trial.state] else trial.accept
    if not trial.committed and sure < trial.start + t.longest_unreachable + 1:
        return 0
    while sure >= m.scan.start + WINDOW:
        done = commit_window(tail.encoder.table, w, tail.bytes + m.scan.start, WINDOW)
        if done == 0:
            return 0
        m.scan.start += done
        m.scan.accept = m.scan.start
        m.other.start = m.scan.start
        if m.other.accept < m.other.start:
            m.other.accept = m.other.start
        m.other.committed = True
        m.fork_at = 2 * WINDOW
    return 0


cdef object fill(object out, const u32* ids, size_t count):
    """Copy the ids into a writable buffer of uint16 or uint32; their number."""
    cdef u16[::1] narrow
    cdef u32[::1] wide
    cdef size_t i
    view = memoryview(out)
    if view.readonly:
        raise ValueError("out must be writable")
    if view.format not in ("H", "I", "<H", "<I", "=H", "=I", "L") or view.itemsize not in (2, 4):
        raise ValueError(f"out must hold uint16 or uint32, not {view.format!r}")
    if view.ndim != 1 or not view.c_contiguous:
        raise ValueError("out must be one contiguous row")
    if <size_t>view.shape[0] < count:
        raise ValueError(f"out has room for {view.shape[0]} ids, {count} are ready")
    if count == 0:
        return 0
    target = np.frombuffer(out, dtype=np.uint16 if view.itemsize == 2 else np.uint32)
    if view.itemsize == 4:
        wide = target
        memcpy(&wide[0], ids, count * sizeof(u32))
        return count
    for i in range(count):
        if ids[i] > 0xFFFF:
            raise OverflowError(f"id {ids[i]} does not fit into uint16")
    narrow = target
    for i in range(count):
        narrow[i] = <u16>ids[i]
    return count
