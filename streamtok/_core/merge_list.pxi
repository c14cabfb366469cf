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
        for i in range(m):
            st_pairs_insert(&listed.pairs, pairs[2 * i], pairs[2 * i + 1], <u32>i)
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
