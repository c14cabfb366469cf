"""Find, for each token, the merge of a list that makes it.

Several pairs of a list of merges may make the same token: Llama 3's list has "ab" + "c" and
"a" + "bc". Only one of these merges can ever happen: the last step of the merge loop over the token's
bytes alone (`tokens/table.pxi` has the proof, which holds for any order of pairs). Tokens are tried in
order of length. If the loop would reach two tokens that are a pair of the list, that merge makes the
token. Otherwise, no text ever becomes the token. `meet` decides this for nearly all tokens without
running the loop.
"""

cdef struct Maker:          # the merge that makes a token
    u32 left
    u32 right
    u32 rank                # 1 + row of the merge; 0: the token is a byte; NONE: no merge makes it
    u32 is_late             # some part, at any depth, is made by a later merge than the token around it


cdef bint meet(const Tokens* run, const Maker* makers, u32 left, u32 right) noexcept nogil:
    """Whether the merge loop over the bytes of `left` and `right` makes these two neighbours.

    It does unless a merge across the boundary between them comes first. Going backwards, undo the
    merges of the two tokens at the boundary, the later merge first. At each step, the two tokens at
    the boundary must not merge before the undone merge; of equal merges, the leftmost comes first.
    Requires that every merge has a higher rank than its parts. (The method is from
    `is_valid_token_pair` in github.com/github/rust-gems, crate bpe, MIT.)
    """
    cdef u32 found, limit
    while True:
        if makers[left].rank > makers[right].rank:
            limit = makers[left].rank
            left = makers[left].right
        else:
            limit = makers[right].rank
            if limit == 0:              # two bytes
                return True
            limit += 1
            right = makers[right].left
        found = find_pair(run, left, right)
        if found != NONE and makers[found].rank < limit:
            return False


def find_parts(bytes blob not None, offsets, merges):
    """(rows, lefts, rights, is_complete): for each token, the row of `merges` that makes it and its
    two parts, uint32 [n] each, 0xFFFFFFFF for none.

    blob, offsets: the tokens, as for `TokenTable`, in any order. merges: uint32 [m, 3], the two tokens
    of each merge and the token that they make, in order of priority. If a pair occurs twice, its last
    row counts. is_complete: whether the list lacks no merge: if any two neighbours that form a token
    were allowed to merge, in this order, no other pair ever would.
    """
    cdef ArrayView offset_view = read_array(offsets, UINT32, "offsets")
    cdef ArrayView merge_view = read_array(merges, UINT32, "merges", 2)
    cdef const u32* starts = <const u32*>offset_view.data
    cdef const u32* listed = <const u32*>merge_view.data
    cdef size_t n = offset_view.size - 1, m = merge_view.size // 3, i, k, size
    cdef Tokens run                     # pair of tokens -> token
    cdef Tokens ranked                  # pair of ranks -> rank, for `merge`; empty until needed
    cdef Merger merger
    cdef Maker* makers = NULL
    cdef Maker* maker
    cdef u32* order = NULL              # [n] tokens by length
    cdef u32* firsts = NULL             # [n + 1] index in `rows` of the first row of each token
    cdef u32* rows = NULL               # [m] rows of `merges`, sorted by the token that they make
    cdef const u8* p = <const u8*>PyBytes_AS_STRING(blob)
    cdef u32 token, row, left, right
    cdef Py_ssize_t count
    cdef bint is_complete = True, any_late, any_ranked = False
    if offset_view.size == 0 or merge_view.columns != 3:
        raise ValueError(f"offsets of {offset_view.size}, merges of {merge_view.columns} tokens each")
    if n > MAX_TOKENS or 256 + m > MAX_TOKENS:
        raise ValueError(f"{n} tokens and {m} merges are more than the {MAX_TOKENS} that fit")
    for i in range(n):
        if starts[i + 1] <= starts[i] or starts[i + 1] > <u64>PyBytes_GET_SIZE(blob):
            raise ValueError(f"token {i} is empty or not in the bytes")
    for i in range(m):
        if listed[3 * i] >= n or listed[3 * i + 1] >= n or listed[3 * i + 2] >= n or (
                <u64>(starts[listed[3 * i] + 1] - starts[listed[3 * i]])
                + (starts[listed[3 * i + 1] + 1] - starts[listed[3 * i + 1]])
                != starts[listed[3 * i + 2] + 1] - starts[listed[3 * i + 2]]):
            raise ValueError(f"merge {i} does not make a token of two tokens")
    found = np.full(3 * n, 0xFFFFFFFF, dtype=np.uint32)
    cdef u32* view = <u32*>array_memory(found, UINT32)
    memset(&run, 0, sizeof(run))
    memset(&ranked, 0, sizeof(ranked))
    memset(&merger, 0, sizeof(merger))
    try:
        open_pairs(&run.pairs, n + 1)
        makers = <Maker*>memory_for(n, sizeof(Maker), b"tokens")
        order = by_length(starts, n)
        firsts = <u32*>zeros_for(n + 2, sizeof(u32), b"tokens")
        rows = <u32*>memory_for(m, sizeof(u32), b"merges")
        with nogil:
            for i in range(m):
                firsts[listed[3 * i + 2] + 2] += 1
            for i in range(1, n + 2):
                firsts[i] += firsts[i - 1]
            for i in range(m):
                token = listed[3 * i + 2]
                rows[firsts[token + 1]] = <u32>i
                firsts[token + 1] += 1
            for i in range(n):
                token = order[i]
                maker = &makers[token]
                size = starts[token + 1] - starts[token]
                maker.is_late = False
                maker.rank = 0 if size == 1 else NONE
                any_late = False
                for k in range(firsts[token], firsts[token + 1]):
                    left = listed[3 * rows[k]]
                    right = listed[3 * rows[k] + 1]
                    any_late = any_late or makers[left].is_late or makers[right].is_late
                if any_late:
                    if not any_ranked:
                        with gil:
                            open_ranked(&ranked, n, p, starts, order, i, makers)
                        any_ranked = True
                    count = merge(&ranked, &merger, p + starts[token], size)
                    if count != 2:
                        continue
                for k in range(firsts[token + 1], firsts[token], -1):
                    row = rows[k - 1]
                    left = listed[3 * row]
                    right = listed[3 * row + 1]
                    if makers[left].rank == NONE or makers[right].rank == NONE:
                        continue
                    if any_late:
                        if (merger.result[0] != number_of(makers, p, starts, left)
                                or merger.result[1] != number_of(makers, p, starts, right)):
                            continue
                    elif not meet(&run, makers, left, right):
                        continue
                    maker.left = left
                    maker.right = right
                    maker.rank = row + 1
                    maker.is_late = (makers[left].is_late or makers[right].is_late
                                     or makers[left].rank > row or makers[right].rank > row)
                    view[token] = row
                    view[n + token] = left
                    view[2 * n + token] = right
                    st_pairs_insert(&run.pairs, left, right, token)
                    if any_ranked:
                        add_ranked(&ranked, p, starts, makers, token)
                    break
            for i in range(n):
                if makers[i].rank == NONE:
                    if not any_ranked:
                        with gil:
                            open_ranked(&ranked, n, p, starts, order, n, makers)
                        any_ranked = True
                    if merge(&ranked, &merger, p + starts[i], starts[i + 1] - starts[i]) == 2:
                        is_complete = False
                        break
    finally:
        close_pairs(&run.pairs)
        close_pairs(&ranked.pairs)
        free(ranked.byte_pairs)
        merger_free(&merger)
        free(makers)
        free(order)
        free(firsts)
        free(rows)
    return (*found.reshape(3, n), bool(is_complete))


cdef inline u32 number_of(const Maker* makers, const u8* p, const u32* starts,
                          u32 token) noexcept nogil:
    """The token's rank for `merge`: a byte's value, or 256 + the row of the merge that makes it."""
    return 255 + makers[token].rank if makers[token].rank else p[starts[token]]


cdef int open_ranked(Tokens* ranked, size_t n, const u8* p, const u32* starts, const u32* order,
                     size_t count, const Maker* makers) except -1:
    """Fill `ranked`, for `merge`, with the first `count` tokens of `order`."""
    cdef size_t i
    open_pairs(&ranked.pairs, n + 1)
    ranked.byte_pairs = <u32*>memory_for(65536, sizeof(u32), b"pairs of bytes")
    memset(ranked.byte_pairs, 0xFF, 65536 * sizeof(u32))
    for i in range(256):
        ranked.byte_token[i] = <u32>i
    for i in range(count):
        add_ranked(ranked, p, starts, makers, order[i])
    return 0


cdef void add_ranked(Tokens* ranked, const u8* p, const u32* starts, const Maker* makers,
                     u32 token) noexcept nogil:
    cdef const Maker* maker = &makers[token]
    cdef u32 left, right
    if maker.rank == 0 or maker.rank == NONE:
        return
    left = number_of(makers, p, starts, maker.left)
    right = number_of(makers, p, starts, maker.right)
    st_pairs_insert(&ranked.pairs, left, right, 255 + maker.rank)
    if left < 256 and right < 256:
        ranked.byte_pairs[left << 8 | right] = 255 + maker.rank


def gather_tokens(bytes blob not None, offsets, order):
    """(bytes, uint32 [k + 1]): the tokens numbered in `order` (uint32 [k]) end to end, and their offsets."""
    cdef ArrayView offset_view = read_array(offsets, UINT32, "offsets")
    cdef ArrayView order_view = read_array(order, UINT32, "order")
    cdef const u32* starts = <const u32*>offset_view.data
    cdef const u32* chosen = <const u32*>order_view.data
    cdef const u8* p = <const u8*>PyBytes_AS_STRING(blob)
    cdef size_t k = order_view.size, total = 0, size, i
    cdef u64 end = PyBytes_GET_SIZE(blob)
    begins = np.empty(k + 1, dtype=np.uint32)
    cdef u32* begin_view = <u32*>array_memory(begins, UINT32)
    for i in range(k):
        if (<size_t>chosen[i] + 1 >= offset_view.size or starts[chosen[i]] > starts[chosen[i] + 1]
                or starts[chosen[i] + 1] > end):
            raise ValueError(f"there is no token {chosen[i]}")
        begin_view[i] = <u32>total
        total += starts[chosen[i] + 1] - starts[chosen[i]]
        if total >= NONE:
            raise ValueError("the tokens have more than 4 GiB")
    begin_view[k] = <u32>total
    gathered = PyBytes_FromStringAndSize(NULL, total)
    cdef u8* out = <u8*>PyBytes_AS_STRING(gathered)
    with nogil:
        for i in range(k):
            size = starts[chosen[i] + 1] - starts[chosen[i]]
            memcpy(out, p + starts[chosen[i]], size)
            out += size
    return gathered, begins
