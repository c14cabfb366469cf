"""Fill the tables of a `TokenTable`: tokens by bytes, tokens by pairs, tokens in order."""

cdef int order_tokens(Tokens* t) except -1:
    """Fill `openings` and `sorted`."""
    cdef u32* order
    cdef st_keyed* work
    cdef u64 bit
    cdef u32 i
    if t.openings == NULL:
        t.openings = <u64*>zeros_for((1 << 20) // 64, sizeof(u64), b"beginnings of tokens")
    for i in range(t.n):
        if t.offsets[i + 1] - t.offsets[i] >= 4:
            bit = opening_bit(t.blob + t.offsets[i])
            t.openings[bit >> 6] |= <u64>1 << (bit & 63)
    work = <st_keyed*>memory_for(2 * <size_t>t.n, sizeof(st_keyed), b"tokens")
    try:
        order = <u32*>memory_for(t.n, sizeof(u32), b"tokens")
        st_sort_tokens(t.blob, t.offsets, t.n, order, work)
    finally:
        free(work)
    st_store_pointer(<void**>&t.sorted, order)      # publishes both tables to other threads
    return 0


cdef int index_tokens(Tokens* t) except -1 nogil:
    """Fill `slots`, `byte_token` and `longest`.

    Raises ValueError for an empty token, equal tokens, or a missing single byte.
    """
    cdef u32 i, first, end = 0, size, singles = 0
    cdef u64 h, at, slot
    cdef u64[FETCHED_TOKENS] hashes
    memset(t.slots, 0, (t.slot_mask + 1) * sizeof(u64))
    t.longest = 0
    while end < t.n:
        first = end
        end = first + FETCHED_TOKENS if t.n - first > FETCHED_TOKENS else t.n
        for i in range(first, end):
            if t.offsets[i + 1] <= t.offsets[i]:
                with gil:
                    raise ValueError(f"token {i} is empty")
            size = t.offsets[i + 1] - t.offsets[i]
            t.longest = max(t.longest, size)
            if size == 1:
                t.byte_token[t.blob[t.offsets[i]]] = i
                singles += 1
            hashes[i - first] = st_hash_bytes(t.blob + t.offsets[i], size)
            ST_PREFETCH(&t.slots[hashes[i - first] & t.slot_mask])
        for i in range(first, end):
            h = hashes[i - first]
            at = h & t.slot_mask
            while t.slots[at] != 0:
                slot = t.slots[at]
                if (slot ^ h) >> 32 == 0 and same_token(t, <u32>slot - 1, i):
                    with gil:
                        raise ValueError(f"tokens {<u32>slot - 1} and {i} have the same bytes")
                at = (at + 1) & t.slot_mask
            t.slots[at] = (h & <u64>0xFFFFFFFF00000000) | (i + 1)
    if singles != 256:
        with gil:
            raise ValueError(f"{256 - singles} of the 256 single bytes are not in the token table")
    return 0


cdef bint same_token(const Tokens* t, u32 a, u32 b) noexcept nogil:
    cdef size_t size = t.offsets[a + 1] - t.offsets[a]
    return (t.offsets[b + 1] - t.offsets[b] == size
            and memcmp(t.blob + t.offsets[a], t.blob + t.offsets[b], size) == 0)


cdef int index_pairs(Tokens* t) except -1 nogil:
    """Fill `pairs`, `byte_pairs` and `lefts` by encoding every token alone, shorter tokens first."""
    cdef Merger m
    cdef u32* order = NULL
    cdef size_t i
    cdef u32 token, size
    cdef Py_ssize_t count
    memset(&m, 0, sizeof(m))
    forget_pairs(t)
    try:
        order = by_length(t.offsets, t.n)
        for i in range(t.n):
            token = order[i]
            size = t.offsets[token + 1] - t.offsets[token]
            if size == 1:
                continue
            count = merge(t, &m, t.blob + t.offsets[token], size)
            if count == 2:
                add_pair(t, m.result[0], m.result[1], token)
    finally:
        merger_free(&m)
        free(order)
    return 0


cdef u32* by_length(const u32* offsets, size_t n) except NULL nogil:
    """The numbers of all tokens, shorter tokens first."""
    cdef size_t i, longest = 0
    cdef u32* order
    cdef size_t* starts
    for i in range(n):
        longest = max(longest, <size_t>(offsets[i + 1] - offsets[i]))
    starts = <size_t*>zeros_for(longest + 2, sizeof(size_t), b"sizes of tokens")
    try:
        order = <u32*>memory_for(n, sizeof(u32), b"tokens")
        for i in range(n):
            starts[offsets[i + 1] - offsets[i] + 1] += 1
        for i in range(1, longest + 2):
            starts[i] += starts[i - 1]
        for i in range(n):
            order[starts[offsets[i + 1] - offsets[i]]] = <u32>i
            starts[offsets[i + 1] - offsets[i]] += 1
    finally:
        free(starts)
    return order


cdef void forget_pairs(Tokens* t) noexcept nogil:
    memset(t.byte_pairs, 0xFF, 65536 * sizeof(u32))
    memset(t.lefts, 0, t.n * sizeof(u32))


cdef void add_pair(Tokens* t, u32 left, u32 right, u32 token) noexcept nogil:
    cdef const u8* p = t.blob + t.offsets[token]
    st_pairs_insert(&t.pairs, left, right, token)
    t.lefts[token] = t.offsets[left + 1] - t.offsets[left]
    if t.offsets[token + 1] - t.offsets[token] == 2:
        t.byte_pairs[(<u32>p[0] << 8) | p[1]] = token


cdef int take_pairs(Tokens* t, const u32* lefts) except -1 nogil:
    """Fill `pairs`, `byte_pairs` and `lefts` from the size of each token's left part, 0 if it has none."""
    cdef u32 token, size, left, right
    cdef const u8* p
    forget_pairs(t)
    for token in range(t.n):
        p = t.blob + t.offsets[token]
        size = t.offsets[token + 1] - t.offsets[token]
        if size == 1:
            continue
        if lefts[token] == 0:
            continue
        left = right = NONE
        if lefts[token] < size:
            left = find_token(t, p, lefts[token])
            right = find_token(t, p + lefts[token], size - lefts[token])
        if left == NONE or right == NONE:
            with gil:
                raise ValueError(f"token {token} is not made of two tokens")
        add_pair(t, left, right, token)
    return 0


cdef inline bint are_parts(const Tokens* t, u32 token, u32 left, u32 right) noexcept nogil:
    """Whether the token's bytes are those of `left` followed by those of `right`."""
    cdef const u8* p = t.blob + t.offsets[token]
    cdef size_t n_left = token_size(t, left), n_right = token_size(t, right)
    return (token_size(t, token) == n_left + n_right
            and memcmp(p, t.blob + t.offsets[left], n_left) == 0
            and memcmp(p + n_left, t.blob + t.offsets[right], n_right) == 0)


cdef int take_parts(Tokens* t, const u32* lefts, const u32* rights) except -1 nogil:
    """As `take_pairs`, but from the two parts of each token.

    Raises ValueError unless the bytes of a token are those of its parts: otherwise, tokens might not add
    up to the size of a text, and ids could be written beyond the end of a buffer.
    """
    cdef u32 token, first, end = 0
    forget_pairs(t)
    while end < t.n:
        first = end
        end = first + FETCHED_TOKENS if t.n - first > FETCHED_TOKENS else t.n
        for token in range(first, end):
            st_pairs_fetch(&t.pairs, lefts[token], rights[token])
        for token in range(first, end):
            if lefts[token] == NONE:
                continue
            if lefts[token] >= t.n or rights[token] >= t.n or not are_parts(t, token, lefts[token],
                                                                            rights[token]):
                with gil:
                    raise ValueError(f"token {token} is not made of two tokens")
            add_pair(t, lefts[token], rights[token], token)
    return 0


cdef inline bint is_unreachable(const Tokens* t, u32 token) noexcept nogil:
    """Whether the token has more than one byte and no merges build it. Needs `lefts`."""
    return t.lefts[token] == 0 and token_size(t, token) > 1


cdef int mark_unreachable(Tokens* t) except -1 nogil:
    """Fill `unreachable` and `longest_unreachable`."""
    cdef u32 token
    cdef u64 count = 0, bit
    t.longest_unreachable = 0
    for token in range(t.n):
        if is_unreachable(t, token):
            t.longest_unreachable = max(t.longest_unreachable, <u32>token_size(t, token))
            count += 1
    t.unreachable_shift = 64 - 6
    while <u64>1 << (64 - t.unreachable_shift) < BITS_EACH * count:
        t.unreachable_shift -= 1
    t.unreachable = <u64*>zeros_for(<size_t>1 << (64 - t.unreachable_shift - 6), sizeof(u64), b"tokens")
    for token in range(t.n):
        if is_unreachable(t, token):
            bit = st_hash_bytes(t.blob + t.offsets[token], token_size(t, token)) >> t.unreachable_shift
            t.unreachable[bit >> 6] |= <u64>1 << (bit & 63)
    return 0
