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
from cpython.ref cimport Py_INCREF, PyObject
from libc.stdlib cimport calloc, free, labs, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from streamtok._core.frontier cimport WINDOW, stable_tokens
from streamtok._core.merge cimport Merger, merge, merge_keys, merger_free
from streamtok._core.scanner cimport Marks, Scan, ScanTables, Scanner, marks_begin, scan, scan_begin
from streamtok._core.special cimport ALLOWED, DISALLOWED, PARTIAL, Found, SpecialMatcher
from streamtok._core.text cimport Room, Text, room_trim, text_close, text_open
from streamtok._core.types cimport (
    NONE,
    SHORT_PIECE,
    ST_PREFETCH,
    i64,
    st_enter,
    st_free_block,
    st_leave,
    st_load64,
    st_load_part,
    st_mix,
    st_new_block,
    st_new_growable,
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
    AHEAD = 24              # ids whose int objects are fetched before they are needed
    GIVEN_FROM = 1 << 13    # ids from which an array takes over the memory where they are
    SPARE_LIMIT = 1 << 22   # ids of the largest block that is kept
    BATCH_ARENA = BATCH * (LONG_PIECE + LONG_PIECE // 4)    # the most that a batch may need

cdef extern from "Python.h":
    ctypedef struct PyListObject:
        PyObject** ob_item

cdef struct Batch:          # of pieces that are looked up together
    u64[2 * BATCH] keys
    Cell* cells[BATCH]      # of each piece; NULL: it is long, or none
    u32[BATCH] missed       # those that the cache does not know

cdef u64 KEY_MASK = 0x0FFFFFFFFFFFFFFF
cdef u64[32] key_masks      # for each size of a piece, which bits of 16 loaded bytes are its own


cdef void fill_key_masks() noexcept nogil:
    cdef int size
    for size in range(16):
        key_masks[2 * size] = (<u64>1 << (8 * size)) - 1 if size < 8 else <u64>-1
        key_masks[2 * size + 1] = (<u64>1 << (8 * (size - 8))) - 1 if size > 8 else 0


fill_key_masks()


@cython.final
cdef class Workspace:
    """Scratch memory of one encoding thread, and its cache of short pieces."""

    def __cinit__(self, TokenTable table):
        cdef Work* w = &self.c
        cdef const Tokens* t = table.tokens()
        cdef u64 cells = SMALLEST_CACHE
        while cells < <u64>t.n * 5 // 2:
            cells *= 2
        w.cells = <Cell*>st_new_block(cells * sizeof(Cell), 64)
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
        st_free_block(self.c.cells)
        free(self.c.long_cells)
        free(self.c.arena)
        free(self.c.window)
        free(self.c.window_ids)
        st_free_block(self.c.room.bytes)
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


cdef inline void fill_cell(Work* w, Cell* cell, u64 low, u64 high, const u32* ids, size_t filled,
                           u64 count) noexcept nogil:
    cdef size_t i
    cell.low = low
    cell.high = high | (count << 60)
    for i in range(filled):
        cell.ids[i] = ids[i]
    w.cells_used += 1


cdef void seed_cells(const Tokens* t, Work* w) noexcept nogil:
    """Back to the beginning: every token of up to 15 bytes is a piece of one id."""
    cdef u32 token, size
    cdef const u8* p
    cdef u64 low, high, at
    memset(w.cells, 0, (w.cell_mask + 1) * sizeof(Cell))
    if w.cells_used:
        memset(w.long_cells, 0, LONG_CELLS * sizeof(LongCell))
    w.cells_used = w.long_used = w.arena_used = 0
    for token in range(t.n):
        size = t.offsets[token + 1] - t.offsets[token]
        if size <= SHORT_PIECE and t.ids[token] != NONE:
            p = t.blob + t.offsets[token]
            low = st_load_part(p, size if size < 8 else 8)
            high = (st_load_part(p + 8, size - 8) if size > 8 else 0) | (<u64>size << 56)
            at = cell_home(low, high) & w.cell_mask
            while w.cells[at].high != 0:
                at = (at + 1) & w.cell_mask
            fill_cell(w, &w.cells[at], low, high, &t.ids[token], 1, 1)


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
        cell.hash = h
        cell.at = <u32>w.arena_used
        cell.size = <u16>n
        cell.count = <u16>count
        memcpy(w.arena + w.arena_used, w.out + before, count * sizeof(u32))
        memcpy(w.arena + w.arena_used + count, p, n)
        w.arena_used += words
        w.long_used += 1
    return 0


cdef inline Cell* find_cell(Work* w, Cell* cell, u64 low, u64 high) noexcept nogil:
    """From its home on, the cell of a piece, or the empty one where it belongs."""
    while not (cell.low == low and (cell.high & KEY_MASK) == high) and cell.high != 0:
        cell += 1
        if cell > w.cells + w.cell_mask:
            cell = w.cells
    return cell


cdef int learn(Encoder encoder, Work* w, Batch* b, size_t missed) except -1 nogil:
    """Merge the short pieces that the cache does not know (so they are no tokens); remember them."""
    cdef const Tokens* t = encoder.table.tokens()
    cdef u64[2 * BATCH] keys
    cdef u32[16 * BATCH] tokens
    cdef u8[BATCH] counts
    cdef u32[2] where
    cdef size_t i, count, before = w.count
    cdef u64 low, high
    cdef Cell* cell
    for i in range(missed):
        keys[2 * i] = b.keys[2 * b.missed[i]]
        keys[2 * i + 1] = b.keys[2 * b.missed[i] + 1]
    merge_keys(t, &w.merger, keys, missed, tokens, counts)
    for i in range(missed):
        low = keys[2 * i]
        high = keys[2 * i + 1]
        cell = find_cell(w, &w.cells[cell_home(low, high) & w.cell_mask], low, high)
        b.cells[b.missed[i]] = cell
        if cell.high != 0:              # it was twice in this batch
            continue
        emit(t, w, &tokens[16 * i], counts[i])
        count = w.count - before        # of ids, which may be more than tokens
        w.count = before
        if count <= CELL_IDS:
            fill_cell(w, cell, low, high, w.out + before, count, count)
        else:
            where[0] = <u32>w.arena_used
            where[1] = <u32>count
            memcpy(w.arena + w.arena_used, w.out + before, count * sizeof(u32))
            w.arena_used += count
            fill_cell(w, cell, low, high, where, 2, MANY)
    return 0


cdef int encode_pieces(Encoder encoder, Work* w, const u8* buffer, size_t readable, size_t start,
                       const i64* ends, size_t count) except -1 nogil:
    """Encode the pieces that end at ends[:count], count <= BATCH, the first from `start`.

    buffer[:readable] may be read: more than the pieces, so that keys can be loaded 16 bytes at a
    time.
    """
    cdef Batch b
    cdef size_t i, at = start, end, size, count_here, missed = 0
    cdef u64 low, high
    cdef Cell* cell
    cdef u32* out
    cdef i64 close
    if (w.cells_used + BATCH > w.cells_limit or w.long_used + BATCH > LONG_CELLS // 8 * 5
            or w.arena_used + BATCH_ARENA > ARENA):
        seed_cells(encoder.table.tokens(), w)
    # All keys, then all cells, then all ids: so that many wait for memory at a time.
    for i in range(count):
        close = ends[i]
        end = <size_t>close if close >= 0 else at
        size = end - at
        b.cells[i] = NULL
        if size - 1 < SHORT_PIECE:
            if at + 16 <= readable:
                low = st_load64(buffer + at)
                high = st_load64(buffer + at + 8)
            else:
                low = st_load_part(buffer + at, size if size < 8 else 8)
                high = st_load_part(buffer + at + 8, size - 8) if size > 8 else 0
            # Looked up, since sizes are too irregular for a branch to be predicted.
            low &= key_masks[2 * size]
            high = (high & key_masks[2 * size + 1]) | <u64>size << 56
            b.keys[2 * i] = low
            b.keys[2 * i + 1] = high
            b.cells[i] = &w.cells[cell_home(low, high) & w.cell_mask]
            ST_PREFETCH(b.cells[i])
        at = end if close >= 0 else <size_t>(-close)
    for i in range(count):
        if b.cells[i] != NULL:
            cell = find_cell(w, b.cells[i], b.keys[2 * i], b.keys[2 * i + 1])
            b.cells[i] = cell
            b.missed[missed] = <u32>i
            missed += cell.high == 0
    if missed:
        learn(encoder, w, &b, missed)
    reserve(w, at - start)
    at = start
    out = w.out + w.count
    for i in range(count):
        cell = b.cells[i]
        if cell != NULL:
            count_here = cell.high >> 60
            if count_here == MANY:
                count_here = cell.ids[1]
                memcpy(out, w.arena + cell.ids[0], count_here * sizeof(u32))
            else:
                memcpy(out, cell.ids, CELL_IDS * sizeof(u32))
            out += count_here
            at += (cell.high >> 56) & 15
        elif ends[i] < 0:               # characters that no piece covers
            at = <size_t>(-ends[i])
        else:
            w.count = out - w.out
            encode_long(encoder, w, buffer + at, <size_t>ends[i] - at)
            at = <size_t>ends[i]
            reserve(w, <size_t>(labs(ends[count - 1]) - ends[i]))
            out = w.out + w.count
    w.count = out - w.out
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
    cdef Marks marks
    marks_begin(&marks, s.start)
    while count > BATCH - 64:           # fewer: all that can be decided was
        start = s.start
        committed = s.committed
        count = scan(tables, s, &marks, buffer, end, final, ends, BATCH)
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
    cdef PyObject** known
    cdef size_t i
    cdef u32 limit = table.max_id
    if ready is None:
        for i in range(count):
            value = PyLong_FromUnsignedLong(ids[i])
            Py_INCREF(value)
            PyList_SET_ITEM(result, i, value)
        return result
    # Counting references up touches the objects, which are all over a few megabytes.
    known = (<PyListObject*>ready).ob_item
    for i in range(count):
        if i + AHEAD < count and ids[i + AHEAD] <= limit:
            ST_PREFETCH(known[ids[i + AHEAD]])
        value = <object>known[ids[i]] if ids[i] <= limit else PyLong_FromUnsignedLong(ids[i])
        Py_INCREF(value)
        PyList_SET_ITEM(result, i, value)
    return result


cdef object ids_to_array(Encoder encoder, Work* w):
    """numpy.uint32 of the ids in `w.out`: a copy of few, the memory itself of many."""
    cdef u32[::1] view
    cdef IdBlock block
    if w.count < GIVEN_FROM:
        array = np.empty(w.count, dtype=np.uint32)
        if w.count:
            view = array
            memcpy(&view[0], w.out, w.count * sizeof(u32))
        return array
    block = IdBlock.__new__(IdBlock)
    block.spares = encoder._spares
    block.ids = w.out
    block.size = w.capacity
    block.shape[0] = w.count
    w.out = NULL
    w.capacity = 0
    if block.size > SPARE_LIMIT and block.size > w.count + w.count // 4:
        w.out = <u32*>realloc(block.ids, w.count * sizeof(u32))
        if w.out != NULL:           # else the block stays larger than it need be
            block.ids = w.out
            block.size = w.count
            w.out = NULL
    return np.frombuffer(block, dtype=np.uint32)


@cython.final
cdef class IdBlock:
    """The memory of an array of ids, which then needs no copy; a buffer of uint32."""

    def __getbuffer__(self, Py_buffer* view, int flags):
        self.strides[0] = sizeof(u32)
        view.buf = self.ids
        view.obj = self
        view.len = self.shape[0] * <Py_ssize_t>sizeof(u32)
        view.itemsize = sizeof(u32)
        view.readonly = 0
        view.ndim = 1
        view.format = b"I"
        view.shape = self.shape
        view.strides = self.strides
        view.suboffsets = NULL
        view.internal = NULL

    def __dealloc__(self):
        if self.spares is not None:
            self.spares.give(self.ids, self.size)


@cython.final
cdef class Spares:
    """A few blocks to use again, since fresh memory costs more than the ids that are put there."""

    cdef u32* take(self, size_t wanted, size_t* size) noexcept:
        """A block of at least `wanted` ids, or NULL."""
        cdef u32* block = NULL
        cdef size_t i
        if st_enter(&self.busy):
            return NULL
        for i in range(SPARE_BLOCKS):
            if self.blocks[i] != NULL and self.sizes[i] >= wanted:
                block = self.blocks[i]
                size[0] = self.sizes[i]
                self.blocks[i] = NULL
                break
        st_leave(&self.busy)
        return block

    cdef void give(self, u32* block, size_t size) noexcept:
        cdef size_t i
        if size <= SPARE_LIMIT and not st_enter(&self.busy):
            for i in range(SPARE_BLOCKS):
                if self.blocks[i] == NULL:
                    self.blocks[i] = block
                    self.sizes[i] = size
                    block = NULL
                    break
            st_leave(&self.busy)
        free(block)

    def __dealloc__(self):
        cdef size_t i
        for i in range(SPARE_BLOCKS):
            free(self.blocks[i])


@cython.final
cdef class Encoder:
    """Tokens and pieces together: whole texts to ids. `scanner` may be None, see `encode_split`."""

    def __cinit__(self, TokenTable table not None, Scanner scanner):
        self.table = table
        self.scanner = scanner
        self._pool = []
        self._spares = Spares()

    cdef Workspace take(self):
        try:
            return self._pool.pop()
        except IndexError:
            return Workspace(self.table)

    cdef void give(self, Workspace workspace):
        workspace.c.count = 0
        room_trim(&workspace.c.room)
        if workspace.c.capacity > SPARE_LIMIT:      # do not sit on the memory of one huge text
            free(workspace.c.out)
            workspace.c.out = NULL
            workspace.c.capacity = 0
        self._pool.append(workspace)

    cdef int foresee(self, Work* w, size_t count) except -1:
        """Room for about as many ids as there will be, so that it need not grow."""
        if w.capacity >= count or count < GIVEN_FROM:
            return 0
        free(w.out)
        w.capacity = 0
        w.out = self._spares.take(count, &w.capacity)
        if w.out == NULL:
            w.out = <u32*>st_new_growable(count * sizeof(u32))
            if w.out == NULL:
                raise MemoryError(f"no memory for {count} ids")
            w.capacity = count
        return 0

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
        workspace = self.take()
        try:
            text_open(&text, &workspace.c.room, data, errors)
            try:
                if not count_only:
                    self.foresee(&workspace.c, text.size // 3)
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
                return ids_to_array(self, &workspace.c)
            finally:
                text_close(&text)
        finally:
            self.give(workspace)

    def encode_many(self, list texts, SpecialMatcher matcher not None, str errors):
        """list[list[int]]: the ids of each of many texts, without the GIL but for its lists.

        Raises what `encode` raises; (number, start, text) where a disallowed special stands.
        """
        cdef size_t n = len(texts), done = 0, total
        cdef Text* opened = <Text*>calloc(n + 1, sizeof(Text))
        cdef Room* rooms = <Room*>calloc(n + 1, sizeof(Room))
        cdef size_t* ends = <size_t*>malloc((n + 1) * sizeof(size_t))
        cdef Workspace workspace
        cdef Found refused
        cdef size_t i, start = 0
        cdef list result
        workspace = self.take()
        try:
            if opened == NULL or rooms == NULL or ends == NULL:
                raise MemoryError(f"no memory for {n} texts")
            for i in range(n):
                text_open(&opened[i], &rooms[i], texts[i], errors)
            refused.kind = PARTIAL
            with nogil:
                while done < n:
                    encode_whole(self, &workspace.c, matcher, opened[done].data, opened[done].size,
                                 False, &total, &refused)
                    if refused.kind == DISALLOWED:
                        break
                    ends[done] = workspace.c.count
                    done += 1
            if refused.kind == DISALLOWED:
                return (done, refused.start,
                        opened[done].data[refused.start:refused.end].decode("utf-8"))
            result = []
            for i in range(n):
                result.append(ids_to_list(self.table, workspace.c.out + start, ends[i] - start))
                start = ends[i]
            return result
        finally:
            if opened != NULL and rooms != NULL:
                for i in range(n):
                    text_close(&opened[i])
                    st_free_block(rooms[i].bytes)
            free(opened)
            free(rooms)
            free(ends)
            self.give(workspace)

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
            return ids_to_array(self, &workspace.c)
        finally:
            self.give(workspace)

    def encode_piece(self, const u8[::1] piece):
        """list[int]: the ids of one piece, whole-piece look-up first."""
        cdef i64 end = piece.shape[0]
        return self.encode_split(piece, np.array([end] if end else [], dtype=np.int64), "list")
