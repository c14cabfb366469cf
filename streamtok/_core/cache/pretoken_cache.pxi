"""The pre-token cache: a table of pre-tokens and their ids. It starts with all tokens of the vocabulary.

A look-up ends after PROBES cells; a pre-token that finds no slot by then is not cached. The table starts
small and grows to a limit, so memory is bounded. A full table drops the pre-tokens that were not looked up
since it was last full, tokens included (the second-chance rule of page replacement, Corbató 1968). So
repeated text is encoded fast, however much new text arrives.
"""

cdef enum:
    PROBES = 256            # at the highest load, one pre-token in a million finds no slot
    IDLE = 8                # flag in a count: no look-up has found the pre-token since the last sweep
    SMALLEST_CACHE = 1 << 15
    SMALLEST_ARENA = 1 << 20    # words of uint32
    SEEDED = 32                 # tokens added at a time


cdef inline bint is_near(const PretokenCells* cache, const Cell* cell, const Cell* slot) noexcept nogil:
    """Whether a look-up would find `cell` if it were in `slot` and all cells from its home to there were
    taken.
    """
    cdef u64 home = home_of(cache, cell.low, cell.high & ST_KEY_MASK) - cache.cells
    return ((slot - cache.cells) // 2 - home // 2) & cache.cell_mask // 2 < PROBES // 2


cdef inline u64 ask(Cell* cell) noexcept nogil:
    """Return the count of a cell that a look-up found, and clear its idle flag."""
    cell.high &= ~(<u64>IDLE << 60)
    return cell.high >> 60


cdef size_t most_cached = 32 << 20  # bytes, for each thread


def cache_limit():
    """int: the number of bytes that each thread may use to cache pre-tokens; see `set_cache_limit`."""
    return st_load_size(&most_cached)


def set_cache_limit(size):
    """Limit the memory that each thread may use to cache the pre-tokens of one encoding.

    size: bytes, initially 32 MiB. The cache starts with the tokens of the vocabulary (12 MiB for
    cl100k_base) and doubles while it is below the limit. When it is full, pre-tokens that did not recur are
    dropped, so memory stays flat however much new text arrives. A new limit applies only to later growth:
    no cache shrinks. The ids are the same whatever the limit. Raises ValueError if `size` is negative.
    """
    if size < 0:
        raise ValueError(f"the limit must not be negative: {size}")
    st_store_size(&most_cached, size)


cdef int cache_open(PretokenCells* cache, const Tokens* t) except -1:
    """Allocate the memory of `cache`, whose fields must all be zero, and add the tokens."""
    cdef u64 cells = SMALLEST_CACHE
    while cells < <u64>t.n * 5 // 2:
        cells *= 2
    if not open_table(cache, cells, SMALLEST_ARENA + long_token_words(t)):
        no_memory(cells, b"pre-tokens")
    cache.probes = PROBES
    with nogil:
        seed_cells(t, cache)
    return 0


cdef inline bint is_long_token(const Tokens* t, u32 token) noexcept nogil:
    cdef u32 size = t.offsets[token + 1] - t.offsets[token]
    return SHORT_PRETOKEN < size <= LONG_PRETOKEN and t.ids[token] != NONE


cdef size_t long_token_words(const Tokens* t) noexcept nogil:
    """The number of arena words that tokens take if they are long pre-tokens."""
    cdef u32 token
    cdef size_t words = 0
    for token in range(t.n):
        if is_long_token(t, token):
            words += 1 + (token_size(t, token) + 3) // 4
    return words


cdef void seed_cells(const Tokens* t, PretokenCells* cache) noexcept nogil:
    """Add each token of up to LONG_PRETOKEN bytes as a pre-token of one id. All cells must be empty."""
    cdef u32 token, first, end = 0, size
    cdef u64[2 * SEEDED] keys
    cdef Cell* homes[SEEDED]
    cdef size_t i
    cache.cells_used = cache.arena_used = 0
    # Before the first sweep, the idle flag would only cost a mispredicted branch at the first look-up.
    cache.new_flag = 0
    if t.model != NULL:             # its pre-tokens are not the tokens of the table
        return
    # First compute the keys of a group, then fill its cells, so that many memory accesses overlap.
    while end < t.n:
        first = end
        end = first + SEEDED if t.n - first > SEEDED else t.n
        for token in range(first, end):
            i = token - first
            size = t.offsets[token + 1] - t.offsets[token]
            homes[i] = NULL
            if size <= LONG_PRETOKEN and t.ids[token] != NONE:
                make_key(t.blob + t.offsets[token], size, t.offsets[t.n] - t.offsets[token], &keys[2 * i])
                homes[i] = home_of(cache, keys[2 * i], keys[2 * i + 1])
                ST_PREFETCH(homes[i])
        for token in range(first, end):
            i = token - first
            if homes[i] != NULL:
                learn(cache, homes[i], keys[2 * i], keys[2 * i + 1], t.blob + t.offsets[token], &t.ids[token], 1)
