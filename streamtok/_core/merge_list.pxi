"""Finds the merge of a list that makes each token.

Several pairs of a list of merges may make the same token: Llama 3's list has "ab" + "c" and
"a" + "bc". Only one of them can ever happen, the last step of the merge loop over the token's bytes
alone (`token_table.pxi` has the proof, which holds for any order of pairs). Tokens are tried in
order of their length. If the loop ends with two tokens that the list pairs, that merge makes the
token. If not, no text ever becomes the token.
"""

def find_merges(bytes blob, offsets, merges):
    """numpy.uint32 [n]: for each token the row of `merges` that makes it, 0xFFFFFFFF for none.

    blob, offsets: the tokens, as for `TokenTable`, in any order. merges: uint32 [m, 2], the tokens
    that merge, the first row first; no pair twice, and each pair's bytes are a token's. The caller
    has checked that, and that each byte is a token.
    """
    cdef ArrayView offset_view = read_array(offsets, UINT32, "offsets")
    cdef ArrayView merge_view = read_array(merges, UINT32, "merges", 2)
    cdef const u32* places = <const u32*>offset_view.data
    cdef const u32* pairs = <const u32*>merge_view.data
    cdef size_t n = offset_view.size - 1, m = merge_view.size // 2, i, size, longest = 0
    cdef Tokens listed, run              # pair of tokens -> row; pair of numbers -> number
    cdef Merger merger
    cdef u32* number = NULL              # [n] 256 + row of the merge that makes a token; a byte's value
    cdef u32* token_of = NULL            # [256 + m] the inverse
    cdef size_t* starts = NULL
    cdef u32* order = NULL
    cdef const u8* p = <const u8*><const char*>blob
    cdef u32 token, row, a, b
    cdef Py_ssize_t count
    if offset_view.size == 0 or merge_view.columns != 2:
        raise ValueError(f"offsets of {offset_view.size}, merges of {merge_view.columns} tokens each")
    if n > MAX_TOKENS or 256 + m > MAX_TOKENS:
        raise ValueError(f"{n} tokens and {m} merges are more than the {MAX_TOKENS} that fit")
    merges_of = np.full(n, 0xFFFFFFFF, dtype=np.uint32)
    cdef u32* view = <u32*>array_memory(merges_of, UINT32)
    memset(&listed, 0, sizeof(listed))
    memset(&run, 0, sizeof(run))
    memset(&merger, 0, sizeof(merger))
    try:
        open_pairs(&listed.pairs, m + 1)
        open_pairs(&run.pairs, m + 1)
        for i in range(n):
            longest = max(longest, <size_t>(places[i + 1] - places[i]))
        run.byte_pairs = <u32*>malloc(65536 * sizeof(u32))
        number = <u32*>malloc(n * sizeof(u32))
        token_of = <u32*>malloc((256 + m) * sizeof(u32))
        order = <u32*>malloc(n * sizeof(u32))
        starts = <size_t*>calloc(longest + 2, sizeof(size_t))
        if (run.byte_pairs == NULL or number == NULL or token_of == NULL or order == NULL
                or starts == NULL):
            raise MemoryError("no memory for the list of merges")
        memset(run.byte_pairs, 0xFF, 65536 * sizeof(u32))
        insert_pairs(&listed.pairs, pairs, m)
        for i in range(n):
            starts[places[i + 1] - places[i] + 1] += 1
        for i in range(1, longest + 2):
            starts[i] += starts[i - 1]
        for i in range(n):
            size = places[i + 1] - places[i]
            order[starts[size]] = <u32>i
            starts[size] += 1
        with nogil:
            for i in range(n):
                token = order[i]
                size = places[token + 1] - places[token]
                number[token] = NONE
                if size == 1:
                    number[token] = p[places[token]]
                    token_of[number[token]] = token
                    run.byte_token[number[token]] = number[token]
                    continue
                count = merge(&run, &merger, p + places[token], size)
                if count != 2:
                    continue
                a = merger.result[0]
                b = merger.result[1]
                row = find_pair(&listed, token_of[a], token_of[b])
                if row == NONE:
                    continue
                view[token] = row
                number[token] = 256 + row
                token_of[256 + row] = token
                st_pairs_insert(&run.pairs, a, b, 256 + row)
                if size == 2:
                    run.byte_pairs[(<u32>p[places[token]] << 8) | p[places[token] + 1]] = 256 + row
    finally:
        close_pairs(&listed.pairs)
        close_pairs(&run.pairs)
        free(run.byte_pairs)
        merger_free(&merger)
        free(number)
        free(token_of)
        free(order)
        free(starts)
    return merges_of


def rank_parts(bytes blob, offsets, merges):
    """(uint32 [n], uint32 [n]): the two tokens that each is made of if any two neighbours that are a
    token together may merge, the earlier token first; 0xFFFFFFFF where none makes it. None where
    the list says otherwise: if a merge that happens so is not listed, or in another order.

    The arguments are those of `find_merges`. In a run by the list the same pairs merge as in a run
    by rank, in the same order, if that holds for each shorter token; so `find_merges` would find
    the same. This takes one run over each token, and finding parts again in a `TokenTable` none.
    """
    cdef ArrayView offset_view = read_array(offsets, UINT32, "offsets")
    cdef ArrayView merge_view = read_array(merges, UINT32, "merges", 2)
    cdef const u32* places = <const u32*>offset_view.data
    cdef const u32* pairs = <const u32*>merge_view.data
    cdef size_t n = offset_view.size - 1, m = merge_view.size // 2, i, size, longest = 0
    cdef Tokens listed, run
    cdef Merger merger
    cdef u32* rows = NULL                # [n] of the list
    cdef size_t* starts = NULL
    cdef u32* order = NULL
    cdef const u8* p = <const u8*><const char*>blob
    cdef u32 token, row, a, b, last = 0
    cdef Py_ssize_t count
    cdef bint is_same = True, any_made = False
    if offset_view.size == 0 or merge_view.columns != 2:
        raise ValueError(f"offsets of {offset_view.size}, merges of {merge_view.columns} tokens each")
    if n > MAX_TOKENS or m > MAX_TOKENS:
        raise ValueError(f"{n} tokens and {m} merges are more than the {MAX_TOKENS} that fit")
    lefts = np.full(n, 0xFFFFFFFF, dtype=np.uint32)
    rights = np.full(n, 0xFFFFFFFF, dtype=np.uint32)
    cdef u32* left_view = <u32*>array_memory(lefts, UINT32)
    cdef u32* right_view = <u32*>array_memory(rights, UINT32)
    memset(&listed, 0, sizeof(listed))
    memset(&run, 0, sizeof(run))
    memset(&merger, 0, sizeof(merger))
    try:
        open_pairs(&listed.pairs, m + 1)
        open_pairs(&run.pairs, n + 1)
        for i in range(n):
            longest = max(longest, <size_t>(places[i + 1] - places[i]))
        run.byte_pairs = <u32*>malloc(65536 * sizeof(u32))
        rows = <u32*>malloc((n + 1) * sizeof(u32))
        order = <u32*>malloc((n + 1) * sizeof(u32))
        starts = <size_t*>calloc(longest + 2, sizeof(size_t))
        if run.byte_pairs == NULL or rows == NULL or order == NULL or starts == NULL:
            raise MemoryError("no memory for the list of merges")
        memset(run.byte_pairs, 0xFF, 65536 * sizeof(u32))
        with nogil:
            insert_pairs(&listed.pairs, pairs, m)
            for i in range(n):
                starts[places[i + 1] - places[i] + 1] += 1
            for i in range(1, longest + 2):
                starts[i] += starts[i - 1]
            for i in range(n):
                size = places[i + 1] - places[i]
                order[starts[size]] = <u32>i
                starts[size] += 1
            for i in range(n):
                token = order[i]
                size = places[token + 1] - places[token]
                rows[token] = NONE
                if size == 1:
                    run.byte_token[p[places[token]]] = token
                    continue
                count = merge(&run, &merger, p + places[token], size)
                if count != 2:
                    continue
                a = merger.result[0]
                b = merger.result[1]
                row = find_pair(&listed, a, b)
                if row == NONE:
                    is_same = False
                    break
                rows[token] = row
                left_view[token] = a
                right_view[token] = b
                st_pairs_insert(&run.pairs, a, b, token)
                if size == 2:
                    run.byte_pairs[(<u32>p[places[token]] << 8) | p[places[token] + 1]] = token
            if is_same:
                for i in range(n):
                    if rows[i] != NONE:
                        if any_made and rows[i] < last:
                            is_same = False
                            break
                        any_made = True
                        last = rows[i]
    finally:
        close_pairs(&listed.pairs)
        close_pairs(&run.pairs)
        free(run.byte_pairs)
        merger_free(&merger)
        free(rows)
        free(order)
        free(starts)
    return (lefts, rights) if is_same else None


def repeated_pairs(merges):
    """bool: whether a row of `merges`, uint32 [m, 2] of numbers below 2^21, is there twice."""
    cdef ArrayView view = read_array(merges, UINT32, "merges", 2)
    cdef const u32* pairs = <const u32*>view.data
    cdef size_t m = view.size // 2, i
    cdef st_pairs table
    cdef bint found = False
    if view.columns != 2:
        raise ValueError(f"merges of {view.columns} tokens each")
    memset(&table, 0, sizeof(table))
    try:
        open_pairs(&table, m + 1)
        with nogil:
            for i in range(m):
                if pairs[2 * i] > MAX_TOKENS or pairs[2 * i + 1] > MAX_TOKENS:
                    found = True
                    break
                if st_pairs_find(&table, pairs[2 * i], pairs[2 * i + 1]) != NONE:
                    found = True
                    break
                st_pairs_insert(&table, pairs[2 * i], pairs[2 * i + 1], 0)
    finally:
        close_pairs(&table)
    return found


cdef void insert_pairs(st_pairs* table, const u32* pairs, size_t m) noexcept nogil:
    """Each with its row."""
    cdef size_t first, i, end = 0
    while end < m:
        first = end
        end = first + FETCHED_TOKENS if m - first > FETCHED_TOKENS else m
        for i in range(first, end):
            st_pairs_fetch(table, pairs[2 * i], pairs[2 * i + 1])
        for i in range(first, end):
            st_pairs_insert(table, pairs[2 * i], pairs[2 * i + 1], <u32>i)


def gather_tokens(bytes blob, offsets, order):
    """(bytes, uint32 [k + 1]): the tokens with the numbers `order`, uint32 [k], end to end."""
    cdef ArrayView offset_view = read_array(offsets, UINT32, "offsets")
    cdef ArrayView order_view = read_array(order, UINT32, "order")
    cdef const u32* places = <const u32*>offset_view.data
    cdef const u32* chosen = <const u32*>order_view.data
    cdef const u8* p = <const u8*>PyBytes_AS_STRING(blob)
    cdef size_t k = order_view.size, total = 0, size, i
    cdef u64 end = PyBytes_GET_SIZE(blob)
    begins = np.empty(k + 1, dtype=np.uint32)
    cdef u32* begin_view = <u32*>array_memory(begins, UINT32)
    for i in range(k):
        if (<size_t>chosen[i] + 1 >= offset_view.size or places[chosen[i]] > places[chosen[i] + 1]
                or places[chosen[i] + 1] > end):
            raise ValueError(f"there is no token {chosen[i]}")
        begin_view[i] = <u32>total
        total += places[chosen[i] + 1] - places[chosen[i]]
        if total >= NONE:
            raise ValueError("the tokens have more than 4 GiB")
    begin_view[k] = <u32>total
    gathered = PyBytes_FromStringAndSize(NULL, total)
    cdef u8* out = <u8*>PyBytes_AS_STRING(gathered)
    with nogil:
        for i in range(k):
            size = places[chosen[i] + 1] - places[chosen[i]]
            memcpy(out, p + places[chosen[i]], size)
            out += size
    return gathered, begins
