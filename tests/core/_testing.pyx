"""What only tests call: which way the core goes where it has several, and a look inside.

Results never depend on the way. `_failing.pyx` makes allocations fail; only some builds have it.
"""

from contextlib import contextmanager

import numpy as np

from streamtok._core.encode cimport (
    MARKED_BLOCKS,
    UINT8,
    UINT64,
    ArrayView,
    Scanner,
    Strategy,
    TokenTable,
    array_memory,
    hash_secret,
    mark_squeezed,
    read_array,
    strategy,
)
from streamtok._core.simd cimport (
    ST_ANY,
    ST_BUCKET,
    ST_MARGIN,
    ST_REST,
    ST_REST_BLOCKS,
    ST_REST_SIZE,
    st_copy_rest,
    st_deposit_tier,
    st_find_pair_tier,
    st_keys_tier,
    st_leads_tier,
    st_level,
    st_level_name,
    st_mark_tier,
    st_marked_from,
    st_merge_batch_tier,
    st_pairs,
    st_pairs_find,
    st_pairs_insert,
    st_positions_tier,
    st_squeeze_tier,
    st_transcode_tier,
)
from cpython.bytes cimport PyBytes_AS_STRING
from libc.string cimport memcpy

from streamtok._core.types cimport (
    i32,
    st_hash_begin,
    st_hash_bytes,
    st_hash_key,
    st_load64,
    u8,
    u64,
)
from streamtok._core.utf8 cimport valid_bytes

st_hash_begin(hash_secret())

cdef Strategy fastest = strategy


def levels():
    """list[int]: the levels of base/cpu.h that this build and this processor have; 0 is plain C."""
    return [most for most in range(ST_ANY + 1) if st_level(most) == most]


@contextmanager
def kernels(int most):
    """Meanwhile, call kernels of at most this level; `use_tier` is for those that belong to a scanner."""
    use_kernels(most)
    try:
        yield
    finally:
        use_kernels(ST_ANY)


cdef void use_kernels(int most) noexcept:
    strategy.merge_batch = st_merge_batch_tier(most)
    strategy.keys = st_keys_tier(most)
    strategy.find_pair = st_find_pair_tier(most)
    strategy.transcode = st_transcode_tier(most)
    strategy.leads = st_leads_tier(most)


def use_every_look(bint wanted):
    """Whether handlers of signals may run at every look from now on, whatever the time."""
    strategy.look_period = 0 if wanted else fastest.look_period


def tier(most=ST_ANY):
    """str: what benchmarks call the kernels of at most this level that this build uses here."""
    return st_level_name(st_level(most)).decode()


def use_tier(Scanner scanner not None, int most, marked_from=None):
    """Mark windows with kernels of at most this level from now on.

    marked_from: the bytes from which that is done, 128 at most; then all of them are marked.
    """
    cdef size_t extra = 0
    cdef size_t known = st_marked_from(most, &extra)
    scanner.c.mark = st_mark_tier(most)
    scanner.c.marked_from = known if marked_from is None else min(marked_from, 128)
    scanner.c.extra_from = extra if marked_from is None else 1
    scanner.c.put_positions = st_positions_tier(most)
    scanner.c.squeeze = st_squeeze_tier(most)
    scanner.c.deposit = st_deposit_tier(most)


def last_marks(Scanner scanner not None, bytes text, size_t start):
    """As `marks`, of all of text[start:], at most 320 bytes, at the end of what is there.

    start: 8 or more; or 1, where a margin takes the place of what comes before. None if there is no
    margin for the first character.
    """
    cdef u64[ST_REST_BLOCKS] begins
    cdef u64[ST_REST_BLOCKS] opened
    cdef u8[ST_MARGIN + ST_REST_SIZE] copy
    cdef u64 margin = 0
    cdef size_t size = len(text), blocks
    cdef const u8* p = <const u8*><const char*>text
    if scanner.c.windows == NULL or not start < size <= start + ST_REST or (
        start != 1 and start < ST_MARGIN
    ):
        raise ValueError("the pattern has no windows, or the text another size")
    if start == 1:
        if p[0] < 0x80:
            margin = scanner.c.margins[p[0]]
        if margin == 0:
            return None
    else:
        margin = st_load64(p + start - ST_MARGIN)
    memcpy(copy, &margin, ST_MARGIN)
    blocks = st_copy_rest(copy + ST_MARGIN, p + start, size - start, 1)
    scanner.c.mark(scanner.c.windows, copy + ST_MARGIN, blocks, begins, opened)
    return [begins[i] for i in range(blocks)], [opened[i] for i in range(blocks)]


def marks(Scanner scanner not None, text, size_t start, size_t blocks, bint squeezed=False):
    """(uint64 [blocks], uint64 [blocks]): where pre-tokens begin in text[start:], and what is open.

    squeezed: by one byte for each character, where the pattern has substitutes and eight characters
    come before. Raises ValueError where the pattern has no windows or the text is too short.
    """
    if scanner.c.windows == NULL:
        raise ValueError("the pattern has no windows")
    cdef ArrayView view = read_array(text, UINT8, "text")
    if start < ST_MARGIN or start + 64 * blocks >= view.size or blocks == 0:
        raise ValueError("the text is too short for its windows")
    begins, open = np.empty(blocks, np.uint64), np.empty(blocks, np.uint64)
    cdef const u8* p = <const u8*>view.data + start
    cdef u64* begin_words = <u64*>array_memory(begins, UINT64)
    cdef u64* open_words = <u64*>array_memory(open, UINT64)
    cdef size_t done = 0, step, wide
    while done < blocks:
        step = min(blocks - done, <size_t>MARKED_BLOCKS)
        if not squeezed or scanner.c.substitutes == NULL or not mark_squeezed(
            &scanner.c, p + 64 * done, start + 64 * done, view.size - start - 64 * done, step,
            begin_words + done, open_words + done, &wide
        ):
            scanner.c.mark(scanner.c.windows, p + 64 * done, step, begin_words + done, open_words + done)
        done += step
    return begins, open


def longest_run(TokenTable table not None):
    """int: the most slots in a row, of the table of tokens, that are taken: what a look-up may visit."""
    cdef u64 i, run = 0, longest = 0
    for i in range(2 * (table.c.slot_mask + 1)):
        run = run + 1 if table.c.slots[i & table.c.slot_mask] else 0
        longest = max(longest, min(run, table.c.slot_mask + 1))
    return longest


def crowd(bytes keys not None, bint as_keys, int bits):
    """int: of inputs of 16 bytes end to end, the most that one of 2^bits places gets.

    as_keys: whether their hash is that of short pre-tokens, or else that of bytes.
    """
    cdef const u8* p = <const u8*>PyBytes_AS_STRING(keys)
    cdef size_t i
    cdef u64 hash
    places = np.empty(len(keys) // 16, np.uint64)
    cdef u64* out = <u64*>array_memory(places, UINT64)
    for i in range(<size_t>len(keys) // 16):
        if as_keys:
            hash = st_hash_key(st_load64(p + 16 * i), st_load64(p + 16 * i + 8))
        else:
            hash = st_hash_bytes(p + 16 * i, 16)
        out[i] = hash >> (64 - bits)
    return int(np.unique(places, return_counts=True)[1].max())


def found_pairs(lefts, rights):
    """list[int]: which pair each of up to 15 pairs is found to be, in a table of two buckets that has
    them all; ST_NONE: it is not found. Raises IndexError where something was written behind the table.
    """
    cdef u64[3 * ST_BUCKET] slots
    cdef st_pairs pairs
    cdef size_t i
    for i in range(3 * ST_BUCKET):
        slots[i] = <u64>-1
    pairs.slots, pairs.mask, pairs.shift = slots, 1, 63
    for i, (left, right) in enumerate(zip(lefts, rights)):
        st_pairs_insert(&pairs, left, right, i)
    for i in range(2 * ST_BUCKET, 3 * ST_BUCKET):
        if slots[i] != <u64>-1:
            raise IndexError(f"slot {i} is behind the table")
    return [st_pairs_find(&pairs, left, right) for left, right in zip(lefts, rights)]


def well_formed(data):
    """int: how many bytes at the beginning of `data` are well-formed UTF-8."""
    cdef i32 why
    cdef int length
    cdef ArrayView view = read_array(data, UINT8, "data")
    return valid_bytes(<const u8*>view.data, view.size, &why, &length)
