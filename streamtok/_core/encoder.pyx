"""Pieces to ids: the whole-piece look-up, the cache of short pieces, long pieces in windows.

A piece that is a token is that token, as in tiktoken, whether or not its merges would build it.
Pieces of up to 15 bytes go through a hash table that holds the piece as a 16-byte key and up to
four ids in 32 bytes; it begins with all tokens of that length and learns what is merged. When it
is full it is wiped back to the tokens, so memory is bounded. Pieces beyond a window of 4096 bytes
are encoded window by window with the certificate of `frontier.pyx`, so time is linear.

An `Encoder` is immutable but for its pool of workspaces: any number of threads may use one, each
call takes a workspace of its own.
"""

cimport cython

import numpy as np

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.long cimport PyLong_FromUnsignedLong
from cpython.ref cimport Py_INCREF
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from streamtok._core.frontier cimport WINDOW, stable_tokens
from streamtok._core.merge cimport Merger, merge, merger_free
from streamtok._core.scanner cimport Scan, ScanTables, Scanner, scan, scan_begin
from streamtok._core.special cimport ALLOWED, DISALLOWED, Found, SpecialMatcher
from streamtok._core.text cimport Text, text_close, text_open
from streamtok._core.types cimport (
    NONE,
    SHORT_PIECE,
    ST_PREFETCH,
    i64,
    st_free_table,
    st_load64,
    st_load_part,
    st_mix,
    st_new_table,
    u8,
    u16,
    u32,
    u64,
)
from streamtok._core.vocab cimport TokenTable, Tokens, find_token

cdef enum:
    RELEASE_FROM = 4096     # bytes from which the GIL is released: below, handing it over costs more
    SMALLEST_CACHE = 1 << 15
    LONG_CELLS = 1 << 16
    ARENA = 1 << 20         # uint32s

cdef u64 KEY_MASK = 0x0FFFFFFFFFFFFFFF


@cython.final
cdef class Workspace:
    """Scratch memory of one encoding thread, and its cache of short pieces."""

    def __cinit__(self, TokenTable table):
        cdef Work* w = &self.c
        cdef const Tokens* t = table.tokens()
        cdef u64 cells = SMALLEST_CACHE
        while cells < <u64>t.n * 5 // 2:
            cells *= 2
        w.cells = <Cell*>st_new_table(cells * sizeof(Cell))
        w.long_cells = <LongCell*>calloc(LONG_CELLS, sizeof(LongCell))
        w.arena = <u32*>malloc(ARENA * sizeof(u32))
        w.window = <u8*>malloc(WINDOW)
        w.window_ids = <u32*>malloc(WINDOW * sizeof(u32))
        if (w.cells == NULL or w.long_cells == NULL or w.arena == NULL or w.window == NULL
                or w.window_ids == NULL):
            raise MemoryError("no memory for an encoding workspace")
        w.cell_mask = cells - 1
        w.cells_limit = cells * 5 // 8
        with nogil:
            seed_cells(t, w)

    def __dealloc__(self):
        free(self.c.out)
        st_free_table(self.c.cells)
        free(self.c.long_cells)
        free(self.c.arena)
        free(self.c.window)
        free(self.c.window_ids)
        merger_free(&self.c.merger)
        merger_free(&self.c.scratch)


cdef int reserve(Work* w, size_t more) except -1 nogil:
    """Room for `more` ids, and for the four that a cell stores at once."""
    cdef size_t wanted = w.count + more + CELL_IDS
    cdef u32* out
    if wanted <= w.capacity:
        return 0
    wanted += wanted // 2 + 256
    out = <u32*>realloc(w.out, wanted * sizeof(u32))
    if out == NULL:
        raise MemoryError(f"no memory for {wanted} ids")
    w.out = out
    w.capacity = wanted
    return 0


cdef inline u64 cell_home(u64 low, u64 high) noexcept nogil:
    return st_mix(low ^ <u64>0x9E3779B97F4A7C15, high ^ <u64>0xD6E8FEB86659FD93)


cdef void store_cell(Work* w, u64 low, u64 high, const u32* ids, size_t filled,
                     u64 count) noexcept nogil:
    cdef u64 at = cell_home(low, high) & w.cell_mask
    cdef size_t i
    while w.cells[at].high != 0:
        at = (at + 1) & w.cell_mask
    w.cells[at].low = low
    w.cells[at].high = high | (count << 60)
    for i in range(filled):
        w.cells[at].ids[i] = ids[i]
    w.cells_used += 1


cdef void seed_cells(const Tokens* t, Work* w) noexcept nogil:
    """Back to the beginning: every token of up to 15 bytes is a piece of one id."""
    cdef u32 token, size
    cdef const u8* p
    cdef u64 low, high
    if w.cells_used:
        memset(w.cells, 0, (w.cell_mask + 1) * sizeof(Cell))
        memset(w.long_cells, 0, LONG_CELLS * sizeof(LongCell))
    w.cells_used = w.long_used = w.arena_used = 0
    for token in range(t.n):
        size = t.offsets[token + 1] - t.offsets[token]
        if size <= SHORT_PIECE and t.ids[token] != NONE:
            p = t.blob + t.offsets[token]
            low = st_load_part(p, size if size < 8 else 8)
            high = (st_load_part(p + 8, size - 8) if size > 8 else 0) | (<u64>size << 56)
            store_cell(w, low, high, &t.ids[token], 1, 1)


cdef int emit(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil:
    cdef size_t i
    if t.byte_ids != NULL:
        return emit_bytes(t, w, tokens, count)
    reserve(w, count)
    for i in range(count):
        w.out[w.count + i] = t.ids[tokens[i]]
    w.count += count
    return 0


cdef int emit_bytes(const Tokens* t, Work* w, const u32* tokens, size_t count) except -1 nogil:
    """`emit` where tokens without an id leave as the ids of their bytes."""
    cdef size_t i, j, size
    cdef const u8* p
    for i in range(count):
        size = t.offsets[tokens[i] + 1] - t.offsets[tokens[i]]
        p = t.blob + t.offsets[tokens[i]]
        reserve(w, size)
        if t.ids[tokens[i]] != NONE:
            w.out[w.count] = t.ids[tokens[i]]
            w.count += 1
            continue
        for j in range(size):
            w.out[w.count + j] = t.byte_ids[p[j]]
        w.count += size
    return 0


cdef size_t commit_window(Encoder encoder, Work* w, const u8* p, size_t n) except? 0 nogil:
    """Emit the tokens of p[:n] that are final whatever follows; the bytes that they cover."""
    cdef const Tokens* t = encoder.table.tokens()
    cdef size_t stable, before = w.count
    cdef Py_ssize_t count
    if n == WINDOW and w.window_stable and memcmp(p, w.window, WINDOW) == 0:
        reserve(w, w.window_count)
        memcpy(w.out + w.count, w.window_ids, w.window_count * sizeof(u32))
        w.count += w.window_count
        return w.window_stable
    if t.sorted == NULL:
        with gil:
            encoder.table.prepare_prefixes()
    count = stable_tokens(t, &w.merger, &w.scratch, p, n, &stable)
    emit(t, w, w.merger.result, count)
    if n == WINDOW and stable:
        memcpy(w.window, p, WINDOW)
        w.window_count = w.count - before
        memcpy(w.window_ids, w.out + before, w.window_count * sizeof(u32))
        w.window_stable = stable
    return stable


cdef int encode_rest(Encoder encoder, Work* w, const u8* p, size_t n) except -1 nogil:
    """Encode p[:n] by the merge loop alone, in linear time."""
    cdef size_t window = WINDOW, done
    while n > 2 * window:
        done = commit_window(encoder, w, p, window)
        if done:
            p += done
            n -= done
            window = WINDOW
        else:
            window *= 2
    return emit(encoder.table.tokens(), w, w.merger.result,
                merge(encoder.table.tokens(), &w.merger, p, n))


cdef inline u64 hash_long(const u8* p, size_t n) noexcept nogil:
    """Hash of more than 15 bytes; never 0."""
    cdef u64 h = st_mix(st_load64(p) ^ n, st_load64(p + n - 8) ^ <u64>0xD6E8FEB86659FD93)
    cdef size_t i = 8
    while i + 8 < n:
        h = st_mix(h ^ st_load64(p + i), <u64>0x9E3779B97F4A7C15)
        i += 8
    return h | 1


cdef int encode_long(Encoder encoder, Work* w, const u8* p, size_t n) except -1 nogil:
    """Encode a piece of more than 15 bytes."""
    cdef const Tokens* t = encoder.table.tokens()
    cdef LongCell* cell = NULL
    cdef u64 h = 0, at
    cdef size_t before = w.count, count, words
    cdef u32 token
    if n <= LONG_PIECE:
        h = hash_long(p, n)
        at = (h >> 32) & (LONG_CELLS - 1)
        while True:
            cell = &w.long_cells[at]
            if cell.hash == 0:
                break
            if (cell.hash == h and cell.size == n
                    and memcmp(w.arena + cell.at + cell.count, p, n) == 0):
                reserve(w, cell.count)
                memcpy(w.out + w.count, w.arena + cell.at, cell.count * sizeof(u32))
                w.count += cell.count
                return 0
            at = (at + 1) & (LONG_CELLS - 1)
    token = find_token(t, p, n)
    if token != NONE:
        emit(t, w, &token, 1)
    else:
        encode_rest(encoder, w, p, n)
    if n <= LONG_PIECE:
        count = w.count - before
        words = count + (n + 3) // 4
        if w.arena_used + words > ARENA or w.long_used >= LONG_CELLS // 8 * 5:
            seed_cells(t, w)
            return 0
        cell.hash = h
        cell.at = <u32>w.arena_used
        cell.size = <u16>n
        cell.count = <u16>count
        memcpy(w.arena + w.arena_used, w.out + before, count * sizeof(u32))
        memcpy(w.arena + w.arena_used + count, p, n)
        w.arena_used += words
        w.long_used += 1
    return 0


cdef int encode_new(Encoder encoder, Work* w, const u8* p, size_t n, u64 low,
                    u64 high) except -1 nogil:
    """Merge a short piece that the cache does not know (so it is no token), and remember it."""
    cdef const Tokens* t = encoder.table.tokens()
    cdef size_t count = merge(t, &w.merger, p, n), before = w.count
    cdef u32[2] where
    emit(t, w, w.merger.result, count)
    count = w.count - before            # of ids, which may be more than tokens
    if w.cells_used >= w.cells_limit or w.arena_used + SHORT_PIECE > ARENA:
        seed_cells(t, w)
    if count <= CELL_IDS:
        store_cell(w, low, high, w.out + w.count - count, count, count)
    else:
        where[0] = <u32>w.arena_used
        where[1] = <u32>count
        memcpy(w.arena + w.arena_used, w.out + w.count - count, count * sizeof(u32))
        w.arena_used += count
        store_cell(w, low, high, where, 2, MANY)
    return 0


cdef int encode_pieces(Encoder encoder, Work* w, const u8* buffer, size_t readable, size_t start,
                       const i64* ends, size_t count) except -1 nogil:
    """Encode the pieces that end at ends[:count], the first from `start`.

    buffer[:readable] may be read: more than the pieces, so that keys can be loaded 16 bytes at a
    time.
    """
    cdef u64[BATCH] lows
    cdef u64[BATCH] highs
    cdef u64[BATCH] homes
    cdef size_t i, at = start, end, size, count_here
    cdef u64 low, high
    cdef Cell* cell
    for i in range(count):
        end = <size_t>ends[i] if ends[i] >= 0 else at
        size = end - at
        if size <= SHORT_PIECE:
            if at + 16 <= readable:
                low = st_load64(buffer + at)
                high = st_load64(buffer + at + 8)
                if size < 8:
                    low &= (<u64>1 << (8 * size)) - 1
                    high = 0
                else:
                    high &= (<u64>1 << (8 * (size - 8))) - 1
            else:
                low = st_load_part(buffer + at, size if size < 8 else 8)
                high = st_load_part(buffer + at + 8, size - 8) if size > 8 else 0
            high |= <u64>size << 56
            lows[i] = low
            highs[i] = high
            homes[i] = cell_home(low, high) & w.cell_mask
            ST_PREFETCH(&w.cells[homes[i]])
        at = end if ends[i] >= 0 else <size_t>(-ends[i])
    reserve(w, at - start)
    at = start
    for i in range(count):
        if ends[i] < 0:             # characters that no piece covers
            at = <size_t>(-ends[i])
            continue
        end = <size_t>ends[i]
        size = end - at
        if size <= SHORT_PIECE:
            low = lows[i]
            high = highs[i]
            cell = &w.cells[homes[i]]
            while True:
                if cell.low == low and (cell.high & KEY_MASK) == high:
                    count_here = cell.high >> 60
                    if count_here == MANY:
                        count_here = cell.ids[1]
                        memcpy(w.out + w.count, w.arena + cell.ids[0], count_here * sizeof(u32))
                    else:
                        memcpy(w.out + w.count, cell.ids, CELL_IDS * sizeof(u32))
                    w.count += count_here
                    break
                if cell.high == 0:
                    encode_new(encoder, w, buffer + at, size, low, high)
                    break
                cell += 1
                if cell > w.cells + w.cell_mask:
                    cell = w.cells
        else:
            encode_long(encoder, w, buffer + at, size)
        at = end
    return 0


cdef int encode_span(Encoder encoder, Work* w, const u8* buffer, size_t readable, size_t end,
                     bint final, Scan* s) except -1 nogil:
    """Encode what can be decided of buffer[s.start:end]; `final`: nothing follows `end`.

    Afterwards s.start is where the open piece begins.
    """
    cdef i64[BATCH] ends
    cdef const ScanTables* tables = encoder.scanner.tables()
    cdef size_t count = BATCH, start
    cdef bint committed
    while count == BATCH:
        start = s.start
        committed = s.committed
        count = scan(tables, s, buffer, end, final, ends, BATCH)
        if count == 0:
            break
        if committed:
            encode_rest(encoder, w, buffer + start, <size_t>ends[0] - start)
            encode_pieces(encoder, w, buffer, readable, <size_t>ends[0], ends + 1, count - 1)
        else:
            encode_pieces(encoder, w, buffer, readable, start, ends, count)
    return 0


cdef int commit_open(Encoder encoder, Work* w, const u8* buffer, Scan* s,
                     size_t* retry_at) except -1 nogil:
    """Emit what is final of the open piece, of the bytes that surely belong to it.

    Nothing while the piece may still turn out to be a token that merges cannot build. `retry_at`
    is the size from which it is worth trying again.
    """
    cdef const Tokens* t = encoder.table.tokens()
    cdef size_t window = WINDOW, done
    cdef size_t sure = s.position if encoder.scanner.tables().settled[s.state] else s.accept
    if sure - s.start < retry_at[0] or sure < s.start:
        return 0
    if not s.committed and sure - s.start <= t.longest_unreachable:
        return 0
    while sure - s.start >= window:
        done = commit_window(encoder, w, buffer + s.start, window)
        if done:
            s.start += done
            if s.accept < s.start:      # a later acceptance is certain, or it would not be sure
                s.accept = s.start
            s.committed = True
            window = WINDOW
        else:
            window *= 2
    retry_at[0] = window
    return 0


cdef int encode_whole(Encoder encoder, Work* w, SpecialMatcher matcher, const u8* p, size_t n,
                      bint count_only, size_t* total, Found* refused) except -1 nogil:
    """Encode p[:n], all there is. Leaves the ids in w.out, or only their number in `total`."""
    cdef Scan s
    cdef Found found
    cdef size_t begin = 0, end
    total[0] = 0
    while True:
        found = matcher.find(p, begin, n, True)
        if found.kind == DISALLOWED:
            refused[0] = found
            return 0
        # In steps, so that counting needs no memory for the ids.
        scan_begin(&s, begin)
        end = begin
        while end < found.start:
            end = found.start
            if count_only and end - s.position > 1 << 16:
                end = s.position + (1 << 16)
            encode_span(encoder, w, p, n, end, end == found.start, &s)
            if count_only:
                total[0] += w.count
                w.count = 0
        if found.kind != ALLOWED:
            break
        reserve(w, 1)
        w.out[w.count] = matcher.ids[found.which]
        w.count += 1
        begin = found.end
    total[0] += w.count
    refused[0].kind = found.kind
    return 0


cdef object ids_to_list(TokenTable table, const u32* ids, size_t count):
    cdef list ready = table.ints()
    cdef object result = PyList_New(count)
    cdef object value
    cdef size_t i
    cdef u32 limit = table.max_id
    if ready is None:
        for i in range(count):
            value = PyLong_FromUnsignedLong(ids[i])
            Py_INCREF(value)
            PyList_SET_ITEM(result, i, value)
    else:
        for i in range(count):
            value = <object>ready[ids[i]] if ids[i] <= limit else PyLong_FromUnsignedLong(ids[i])
            Py_INCREF(value)
            PyList_SET_ITEM(result, i, value)
    return result


cdef object ids_to_array(const u32* ids, size_t count):
    array = np.empty(count, dtype=np.uint32)
    cdef u32[::1] view
    if count:
        view = array
        memcpy(&view[0], ids, count * sizeof(u32))
    return array


@cython.final
cdef class Encoder:
    """Tokens and pieces together: whole texts to ids. `scanner` may be None, see `encode_split`."""

    def __cinit__(self, TokenTable table not None, Scanner scanner):
        self.table = table
        self.scanner = scanner
        self._pool = []

    cdef Workspace take(self):
        try:
            return self._pool.pop()
        except IndexError:
            return Workspace(self.table)

    cdef void give(self, Workspace workspace):
        workspace.c.count = 0
        if workspace.c.capacity > 1 << 22:      # do not sit on the memory of one huge text
            free(workspace.c.out)
            workspace.c.out = NULL
            workspace.c.capacity = 0
        self._pool.append(workspace)

    def encode(self, data, SpecialMatcher matcher not None, str errors, str into):
        """The ids of a whole text.

        data: str or bytes-like; into: "list", "array" (numpy.uint32) or "count". Raises
        UnicodeEncodeError, UnicodeDecodeError, or returns (start, text) of a disallowed special.
        """
        cdef Text text
        cdef Workspace workspace
        cdef Found refused
        cdef size_t total
        cdef bint count_only = into == "count"
        text_open(&text, data, errors)
        try:
            workspace = self.take()
            try:
                if text.size >= RELEASE_FROM:
                    with nogil:
                        encode_whole(self, &workspace.c, matcher, text.data, text.size, count_only,
                                     &total, &refused)
                else:
                    encode_whole(self, &workspace.c, matcher, text.data, text.size, count_only,
                                 &total, &refused)
                if refused.kind == DISALLOWED:
                    return (refused.start, text.data[refused.start:refused.end].decode("utf-8"))
                if count_only:
                    return total
                if into == "list":
                    return ids_to_list(self.table, workspace.c.out, workspace.c.count)
                return ids_to_array(workspace.c.out, workspace.c.count)
            finally:
                self.give(workspace)
        finally:
            text_close(&text)

    def encode_split(self, const u8[::1] data, const i64[::1] ends, str into):
        """The ids of pieces that the caller found: data[0:ends[0]], data[ends[0]:ends[1]], ….

        A negative end closes bytes that belong to no piece.
        """
        cdef Workspace workspace = self.take()
        cdef size_t done = 0, step, start = 0, count = ends.shape[0]
        cdef const u8* p = NULL
        if data.shape[0]:
            p = &data[0]
        try:
            with nogil:
                while done < count:
                    step = count - done if count - done < BATCH else BATCH
                    encode_pieces(self, &workspace.c, p, data.shape[0], start, &ends[done], step)
                    done += step
                    start = <size_t>(ends[done - 1] if ends[done - 1] >= 0 else -ends[done - 1])
            if into == "count":
                return workspace.c.count
            if into == "list":
                return ids_to_list(self.table, workspace.c.out, workspace.c.count)
            return ids_to_array(workspace.c.out, workspace.c.count)
        finally:
            self.give(workspace)

    def encode_piece(self, const u8[::1] piece):
        """list[int]: the ids of one piece, whole-piece look-up first."""
        cdef i64 end = piece.shape[0]
        return self.encode_split(piece, np.array([end] if end else [], dtype=np.int64), "list")
