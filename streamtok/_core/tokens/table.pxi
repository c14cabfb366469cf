"""The immutable token table.

Tokens are numbered 0 .. n - 1 in order of rank, so a token's number is also its merge priority.
Public ids, which may have holes, are looked up only when ids are emitted.

One pair per token is enough. Let u and v be neighbours in any run of the merge loop, and let their
bytes together be token t. Nothing has merged across the outer ends of u and v so far, so the steps
inside those bytes were the steps of the run over t's bytes alone, in the same order, and that run
passes through the state [u, v]. It is deterministic and has only one state of two tokens, so at most
one pair can ever merge into t: the last pair of t's own run. (If there is none, t is unreachable and
never part of a merge.)
The table therefore holds at most n pairs, found by encoding every token by itself in order of length,
instead of a pair for each of the several ways to cut each token in two.

All this holds for any order of merges. A vocabulary with a list of merges (only listed pairs merge, in
the order of the list) numbers its tokens by the merges that make them, and says in `lefts` where each
token is cut (found by `tokens/merge_list.pxi`). Ids need not increase with the numbers. A token without
an id is emitted as its bytes, one id each from `byte_ids`.
"""

cdef enum:
    MAX_TOKENS = (1 << 21) - 2      # 21 bits, with a value to spare


cdef inline size_t token_size(const Tokens* t, u32 token) noexcept nogil:
    return t.offsets[token + 1] - t.offsets[token]


cdef inline u32 find_pair(const Tokens* t, u32 left, u32 right) noexcept nogil:
    """The token that the adjacent tokens `left` and `right` merge into, or NONE.

    The rank of the merge is the token itself: tokens are numbered in order of rank.
    """
    return st_pairs_find(&t.pairs, left, right)


cdef extern from "tokens/order.h" nogil:
    ctypedef struct st_keyed:
        pass
    bint st_comes_before(const u8* blob, const u32* offsets, u32 a, u32 b) noexcept
    void st_sort_tokens(const u8* blob, const u32* offsets, u32 n, u32* order,
                        st_keyed* work) noexcept


cdef enum:
    SPECIAL_IDS = 1 << 10   # ids after the largest of the table: usually those of special tokens
    FETCHED_TOKENS = 32     # table entries to prefetch at a time
    BITS_EACH = 32          # bits of the filter for each token that is marked in it
    MAX_TOKEN_BYTES = 65535


cdef u32 find_token(const Tokens* t, const u8* p, size_t n) noexcept nogil:
    """The token that is exactly p[:n], or NONE."""
    if n - 1 >= t.longest:              # also true if n is 0
        return NONE
    return find_hashed(t, p, n, st_hash_bytes(p, n))


cdef inline u32 find_hashed(const Tokens* t, const u8* p, size_t n, u64 h) noexcept nogil:
    cdef u64 at = h & t.slot_mask
    cdef u64 slot
    cdef u32 token
    while True:
        slot = t.slots[at]
        if slot == 0:
            return NONE
        if (slot ^ h) >> 32 == 0:
            token = <u32>slot - 1
            if (t.offsets[token + 1] - t.offsets[token] == n
                    and memcmp(t.blob + t.offsets[token], p, n) == 0):
                return token
        at = (at + 1) & t.slot_mask


cdef inline u32 find_unreachable(const Tokens* t, const u8* p, size_t n) noexcept nogil:
    """The token that is exactly p[:n], if no merges build it and it has an id, or NONE.

    There are few such tokens, if any, so their filter stays in the processor's cache.
    """
    cdef u64 h, bit
    cdef u32 token
    if n - 1 >= t.longest_unreachable:
        return NONE
    h = st_hash_bytes(p, n)
    bit = h >> t.unreachable_shift
    if not (t.unreachable[bit >> 6] >> (bit & 63)) & 1:
        return NONE
    token = find_hashed(t, p, n, h)
    return NONE if token == NONE or t.ids[token] == NONE else token


cdef inline u64 opening_bit(const u8* p) noexcept nogil:
    cdef u32 word = p[0] | (<u32>p[1] << 8) | (<u32>p[2] << 16) | (<u32>p[3] << 24)
    return (word * <u32>2654435761) >> 12       # 20 bits


cdef inline bint is_sorted(const Tokens* t) noexcept nogil:
    """Whether a thread has called `prepare_prefixes`."""
    return st_load_pointer(<void* const*>&t.sorted) != NULL


cdef bint is_proper_prefix(const Tokens* t, const u8* p, size_t n) noexcept nogil:
    """Whether some token is longer than p[:n] and begins with it. Needs `t.sorted`."""
    if n >= t.longest:
        return False
    cdef u64 bit
    if n >= 4:
        bit = opening_bit(p)
        if not (t.openings[bit >> 6] >> (bit & 63)) & 1:
            return False
    # Binary search for the first token that is greater than p[:n] in byte order; tokens that begin
    # with p[:n] and are longer follow p[:n] directly.
    cdef size_t low = 0, high = t.n, middle, size
    cdef const u8* token
    cdef int order
    while low < high:
        middle = (low + high) // 2
        token = t.blob + t.offsets[t.sorted[middle]]
        size = t.offsets[t.sorted[middle] + 1] - t.offsets[t.sorted[middle]]
        order = memcmp(token, p, size if size < n else n)
        if order < 0 or (order == 0 and size <= n):
            low = middle + 1
        else:
            high = middle
    if low == t.n:
        return False
    token = t.blob + t.offsets[t.sorted[low]]
    size = t.offsets[t.sorted[low] + 1] - t.offsets[t.sorted[low]]
    return size > n and memcmp(token, p, n) == 0


cdef u64 table_size(u64 entries) noexcept nogil:
    cdef u64 size = 16
    while size < 2 * entries:
        size *= 2
    return size


cdef int open_pairs(st_pairs* pairs, u64 entries) except -1:
    """Make an empty table for `entries` pairs; `close_pairs` frees it."""
    pairs.mask = table_size(entries) // ST_BUCKET - 1
    cdef size_t size = (pairs.mask + 1) * ST_BUCKET * sizeof(u64)
    pairs.shift = st_hash_shift(pairs.mask + 1)
    pairs.slots = <u64*>st_new_block(size, 64)
    if pairs.slots == NULL:
        no_memory(entries, b"merges")
    memset(pairs.slots, 0xFF, size)
    return 0


cdef void close_pairs(st_pairs* pairs) noexcept:
    st_free_block(pairs.slots)


@cython.final
cdef class TokenTable:
    """Built from the token bytes end to end, uint32 offsets [n + 1] and uint32 ids [n]. Immutable.

    lefts: uint32 [n], bytes of the left part of each token, 0 if no merge makes it; None: found by
    merging, where any two neighbours that form a token may merge. byte_ids: uint32 [256], the ids of
    the bytes of a token without an id (0xFFFFFFFF), or None. ties: uint32 [n], non-decreasing ranks of
    the merges into tokens; of equal ranks, the leftmost pair merges first; None: all differ. parts:
    instead of `lefts`, the two parts of each token, uint32 [n] each; the left one is 0xFFFFFFFF if
    there are none. model: finds the ids of pre-tokens, either as pieces (the table then holds the
    single bytes, without ids) or as merged symbols.

    The caller (`vocabulary.Vocabulary`) has checked that the tokens include all 256 single bytes, that
    none is empty, and that no token or id occurs twice. Building a table of 100 000 tokens takes 3 ms
    with `parts`, 6 ms with `lefts`, and 25 ms without either.
    """

    def __cinit__(self, bytes blob not None, offsets, ids, lefts=None, byte_ids=None, ties=None,
                  parts=None, PieceModel model=None):
        cdef Tokens* t = &self.c
        cdef size_t i
        cdef u32 max_id
        cdef bint is_dense = True
        cdef ArrayView offset_view = read_array(offsets, UINT32, "offsets")
        cdef ArrayView id_view = read_array(ids, UINT32, "ids")
        cdef ArrayView view, other
        self._owners = [blob, offset_view, id_view]
        if id_view.size < 256 or offset_view.size != id_view.size + 1:
            raise ValueError("a token table needs the 256 single bytes and one more offset than ids")
        if id_view.size > MAX_TOKENS:
            raise ValueError(f"{id_view.size} tokens are more than the {MAX_TOKENS} that fit")
        t.n = <u32>id_view.size
        t.blob = <const u8*>PyBytes_AS_STRING(blob)
        t.offsets = <const u32*>offset_view.data
        t.ids = <const u32*>id_view.data
        if t.offsets[t.n] != <size_t>len(blob):
            raise ValueError(f"offsets end at {t.offsets[t.n]}, token bytes at {len(blob)}")
        if byte_ids is not None:
            view = read_array(byte_ids, UINT32, "byte_ids")
            if view.size != 256:
                raise ValueError(f"there are ids for {view.size} bytes, not for 256")
            self._owners.append(view)
            t.byte_ids = <const u32*>view.data
        if ties is not None:
            view = read_array(ties, UINT32, "ties")
            if view.size != t.n:
                raise ValueError(f"{view.size} ties do not fit {t.n} tokens")
            self._owners.append(view)
            t.ties = <const u32*>view.data
        max_id = 0
        for i in range(t.n):
            is_dense = is_dense and t.ids[i] == i
            if t.ids[i] != NONE:
                max_id = max(max_id, t.ids[i])
            elif t.byte_ids == NULL:
                raise ValueError(f"token {i} has no id, and there are none for its bytes")
        if model is not None:
            self._owners.append(model)
            t.model = &model.c
            max_id = max(max_id, model.max_id)
        self.max_id, self.is_dense = max_id, is_dense
        t.slot_mask = table_size(t.n) - 1
        t.slots = <u64*>st_new_block((t.slot_mask + 1) * sizeof(u64), 64)
        open_pairs(&t.pairs, t.n)
        t.byte_pairs = <u32*>memory_for(65536, sizeof(u32), b"pairs of bytes")
        t.lefts = <u32*>memory_for(t.n, sizeof(u32), b"tokens")
        if t.slots == NULL:
            no_memory(t.n, b"tokens")
        with nogil:
            index_tokens(t)
        if parts is not None:
            view = read_array(parts[0], UINT32, "the left parts")
            other = read_array(parts[1], UINT32, "the right parts")
            if view.size != t.n or other.size != t.n:
                raise ValueError(f"the parts do not fit {t.n} tokens")
            with nogil:
                take_parts(t, <const u32*>view.data, <const u32*>other.data)
        elif lefts is None:
            with nogil:
                index_pairs(t)
        else:
            view = read_array(lefts, UINT32, "lefts")
            if view.size != t.n:
                raise ValueError(f"{view.size} left parts do not fit {t.n} tokens")
            with nogil:
                take_pairs(t, <const u32*>view.data)
        with nogil:
            mark_unreachable(t)

    def __dealloc__(self):
        st_free_block(self.c.slots)
        close_pairs(&self.c.pairs)
        free(self.c.byte_pairs)
        free(self.c.lefts)
        free(self.c.unreachable)
        free(self.c.sorted)
        free(self.c.openings)

    cdef const Tokens* tokens(self) noexcept nogil:
        return &self.c

    def prepare_prefixes(self):
        """Sort the tokens, once, for `is_proper_prefix`, which only very long pre-tokens need."""
        with cython.critical_section(self):
            if self.c.sorted == NULL:
                order_tokens(&self.c)

    def find(self, bytes token not None):
        """Id of the token that is exactly these bytes, or None."""
        cdef u32 found = find_token(&self.c, <const u8*><const char*>token, len(token))
        return None if found == NONE or self.c.ids[found] == NONE else self.c.ids[found]

    def lefts(self):
        """numpy.uint32 [n]: bytes of the left part of each token's last merge; 0 if no merge makes it."""
        result = np.empty(self.c.n, dtype=np.uint32)
        memcpy(array_memory(result, UINT32), self.c.lefts, self.c.n * sizeof(u32))
        return result

    def parts(self):
        """(uint32 [n], uint32 [n]): the two parts of each token; 0xFFFFFFFF if no merge makes it."""
        lefts = np.full(self.c.n, 0xFFFFFFFF, dtype=np.uint32)
        rights = np.full(self.c.n, 0xFFFFFFFF, dtype=np.uint32)
        cdef u32* left_view = <u32*>array_memory(lefts, UINT32)
        cdef u32* right_view = <u32*>array_memory(rights, UINT32)
        cdef const Tokens* t = &self.c
        cdef const u8* p
        cdef size_t size
        cdef u32 i
        for i in range(t.n):
            if t.lefts[i]:
                p = t.blob + t.offsets[i]
                size = t.offsets[i + 1] - t.offsets[i]
                left_view[i] = find_token(t, p, t.lefts[i])
                right_view[i] = find_token(t, p + t.lefts[i], size - t.lefts[i])
        return lefts, rights

    @property
    def longest(self):
        """Bytes of the longest token."""
        return self.c.longest

    @property
    def longest_unreachable(self):
        """Bytes of the longest token that its own merges do not build; 0 if there is none."""
        return self.c.longest_unreachable
