"""Finds the merge of a list that makes each token.

Several pairs of a list of merges may make the same token: Llama 3's list has "ab" + "c" and
"a" + "bc". Only one of them can ever happen, the last step of the merge loop over the token's bytes
alone (`tokens/table.pxi` has the proof, which holds for any order of pairs). Tokens are tried in
order of their length. If the loop ends with two tokens that the list pairs, that merge makes the
token. If not, no text ever becomes the token.
"""

def find_merges(bytes blob not None, offsets, merges):
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


cdef struct Maker:          # of a token
    u32 left
    u32 right
    u32 rank                # 0: a byte; 1 + row of the merge; NONE: nothing makes it
    u32 is_late             # a part of it, at any depth, is made by a later merge than what it is in


cdef bint meet(const Tokens* run, const Maker* makers, u32 left, u32 right) noexcept nogil:
    """Whether `left` and `right` come to stand side by side, each of its own bytes.

    They do unless a merge over the boundary between them comes first. Seen backwards, the tokens
    at the boundary are undone, the later one first. Before that step, whatever merges the two that
    are at the boundary then must not come before it; of equals, the one further left comes first.
    Every merge must have a higher rank than its parts. (The method is that of `is_valid_token_pair`
    in github.com/github/rust-gems, crate bpe, MIT.)
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
    """(rows, lefts, rights, is_complete): what `find_merges` finds, and the two tokens of each.

    uint32 [n] each, 0xFFFFFFFF where no merge makes a token. merges: uint32 [m, 3], the tokens that
    merge and the one that they make. The last row of a pair that is there twice counts. is_complete:
    whether no other pair could merge if any two neighbours that are a token did, in this order.
    Takes a tenth of the time, because hardly a token is merged, see `meet`.
    """
    cdef ArrayView offset_view = read_array(offsets, UINT32, "offsets")
    cdef ArrayView merge_view = read_array(merges, UINT32, "merges", 2)
    cdef const u32* places = <const u32*>offset_view.data
    cdef const u32* listed = <const u32*>merge_view.data
    cdef size_t n = offset_view.size - 1, m = merge_view.size // 3, i, k, size, longest = 0
    cdef Tokens run                     # pair of tokens -> token
    cdef Tokens ranked                  # the same of ranks, for `merge`; empty until it is needed
    cdef Merger merger
    cdef Maker* makers = NULL
    cdef Maker* maker
    cdef size_t* starts = NULL
    cdef u32* order = NULL              # [n] tokens by length
    cdef u32* firsts = NULL             # [n + 1] where the rows that make a token begin
    cdef u32* rows = NULL               # [m] rows by the token that they make, in order
    cdef const u8* p = <const u8*>PyBytes_AS_STRING(blob)
    cdef u32 token, row, left, right
    cdef Py_ssize_t count
    cdef bint is_complete = True, any_late, any_ranked = False
    if offset_view.size == 0 or merge_view.columns != 3:
        raise ValueError(f"offsets of {offset_view.size}, merges of {merge_view.columns} tokens each")
    if n > MAX_TOKENS or 256 + m > MAX_TOKENS:
        raise ValueError(f"{n} tokens and {m} merges are more than the {MAX_TOKENS} that fit")
    for i in range(n):
        if places[i + 1] <= places[i] or places[i + 1] > <u64>PyBytes_GET_SIZE(blob):
            raise ValueError(f"token {i} is empty or not in the bytes")
        longest = max(longest, <size_t>(places[i + 1] - places[i]))
    for i in range(m):
        if listed[3 * i] >= n or listed[3 * i + 1] >= n or listed[3 * i + 2] >= n or (
                <u64>(places[listed[3 * i] + 1] - places[listed[3 * i]])
                + (places[listed[3 * i + 1] + 1] - places[listed[3 * i + 1]])
                != places[listed[3 * i + 2] + 1] - places[listed[3 * i + 2]]):
            raise ValueError(f"merge {i} is not one of tokens")
    found = np.full(3 * n, 0xFFFFFFFF, dtype=np.uint32)
    cdef u32* view = <u32*>array_memory(found, UINT32)
    memset(&run, 0, sizeof(run))
    memset(&ranked, 0, sizeof(ranked))
    memset(&merger, 0, sizeof(merger))
    try:
        open_pairs(&run.pairs, n + 1)
        makers = <Maker*>malloc((n + 1) * sizeof(Maker))
        order = <u32*>malloc((n + 1) * sizeof(u32))
        firsts = <u32*>calloc(n + 2, sizeof(u32))
        rows = <u32*>malloc((m + 1) * sizeof(u32))
        starts = <size_t*>calloc(longest + 2, sizeof(size_t))
        if makers == NULL or order == NULL or firsts == NULL or rows == NULL or starts == NULL:
            raise MemoryError("no memory for the list of merges")
        with nogil:
            for i in range(n):
                starts[places[i + 1] - places[i] + 1] += 1
            for i in range(1, longest + 2):
                starts[i] += starts[i - 1]
            for i in range(n):
                size = places[i + 1] - places[i]
                order[starts[size]] = <u32>i
                starts[size] += 1
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
                size = places[token + 1] - places[token]
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
                            open_ranked(&ranked, n, p, places, order, i, makers)
                        any_ranked = True
                    count = merge(&ranked, &merger, p + places[token], size)
                    if count != 2:
                        continue
                for k in range(firsts[token + 1], firsts[token], -1):
                    row = rows[k - 1]
                    left = listed[3 * row]
                    right = listed[3 * row + 1]
                    if makers[left].rank == NONE or makers[right].rank == NONE:
                        continue
                    if any_late:
                        if (merger.result[0] != number_of(makers, p, places, left)
                                or merger.result[1] != number_of(makers, p, places, right)):
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
                        add_ranked(&ranked, p, places, makers, token)
                    break
            for i in range(n):
                if makers[i].rank == NONE:
                    if not any_ranked:
                        with gil:
                            open_ranked(&ranked, n, p, places, order, n, makers)
                        any_ranked = True
                    if merge(&ranked, &merger, p + places[i], places[i + 1] - places[i]) == 2:
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
        free(starts)
    return (*found.reshape(3, n), bool(is_complete))


cdef inline u32 number_of(const Maker* makers, const u8* p, const u32* places,
                          u32 token) noexcept nogil:
    """A byte's value; 256 + row for what a merge makes: in the order in which they are made."""
    return 255 + makers[token].rank if makers[token].rank else p[places[token]]


cdef int open_ranked(Tokens* ranked, size_t n, const u8* p, const u32* places, const u32* order,
                     size_t count, const Maker* makers) except -1:
    """Fill `ranked` with the first `count` tokens of `order`, as `merge` needs them."""
    cdef size_t i
    open_pairs(&ranked.pairs, n + 1)
    ranked.byte_pairs = <u32*>malloc(65536 * sizeof(u32))
    if ranked.byte_pairs == NULL:
        raise MemoryError("no memory for the list of merges")
    memset(ranked.byte_pairs, 0xFF, 65536 * sizeof(u32))
    for i in range(256):
        ranked.byte_token[i] = <u32>i
    for i in range(count):
        add_ranked(ranked, p, places, makers, order[i])
    return 0


cdef void add_ranked(Tokens* ranked, const u8* p, const u32* places, const Maker* makers,
                     u32 token) noexcept nogil:
    cdef const Maker* maker = &makers[token]
    cdef u32 left, right
    if maker.rank == 0 or maker.rank == NONE:
        return
    left = number_of(makers, p, places, maker.left)
    right = number_of(makers, p, places, maker.right)
    st_pairs_insert(&ranked.pairs, left, right, 255 + maker.rank)
    if left < 256 and right < 256:
        ranked.byte_pairs[left << 8 | right] = 255 + maker.rank


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


def gather_tokens(bytes blob not None, offsets, order):
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
