"""What only tests call: which way the core goes where it has several, and a look inside.

Results never depend on the way. `_failing.pyx` makes allocations fail; only some builds have it.
"""

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
    read_array,
    strategy,
)
from streamtok._core.simd cimport (
    ST_MARGIN,
    ST_REST,
    ST_REST_BLOCKS,
    ST_REST_SIZE,
    st_copy_rest,
    st_find_pair_tier,
    st_leads_tier,
    st_mark_function,
    st_mark_tier,
    st_place_plain,
    st_place_tier,
    st_substitute_tier,
    st_transcode_tier,
)
from streamtok._core.types cimport i32, st_load64, u8, u64
from streamtok._core.utf8 cimport valid_bytes

cdef Strategy fastest = strategy


def use_lanes(bint wanted):
    """bool: whether short pre-tokens are merged in registers from now on."""
    strategy.merge_lanes = fastest.merge_lanes if wanted else NULL
    strategy.merge_batch = fastest.merge_batch if wanted else NULL
    return strategy.merge_lanes != NULL


def use_one_by_one(bint wanted):
    """Whether a few pre-tokens are merged one by one from now on, where lanes are to be had."""
    strategy.few_pretokens = fastest.few_pretokens if wanted else 0


def use_side_by_side(bint wanted):
    """bool: whether segments are merged side by side from now on."""
    strategy.merge_segments = fastest.merge_segments if wanted else NULL
    return strategy.merge_segments != NULL


def use_wide_keys(bint wanted):
    """bool: whether keys are made eight at a time from now on."""
    strategy.keys = fastest.keys if wanted else NULL
    return strategy.keys != NULL


def use_at_once(bint wanted):
    """Whether new pre-tokens of small texts are merged at once from now on, and wait for none."""
    strategy.together_from = fastest.together_from if wanted else 0


def use_wide_search(bint wanted):
    """Whether pairs of bytes are looked for in registers from now on."""
    strategy.find_pair = st_find_pair_tier(wanted)


def use_wide_transcode(bint wanted):
    """bool: whether str are transcoded 16 characters at a time from now on."""
    strategy.transcode = st_transcode_tier(wanted)
    return strategy.transcode != st_transcode_tier(False)


def use_wide_leads(bint wanted):
    """bool: whether bytes that may matter to a normalizer are found 32 at a time from now on."""
    strategy.leads = st_leads_tier(wanted)
    return strategy.leads != st_leads_tier(False)


def use_every_look(bint wanted):
    """Whether handlers of signals may run at every look from now on, whatever the time."""
    strategy.look_period = 0 if wanted else fastest.look_period


def use_tier(Scanner scanner not None, int number, marked_from=None):
    """str: the name of the way in which this scanner marks windows from now on; 0 is the fastest.

    marked_from: the bytes from which it does, 128 at most; then it marks all of them. None if this processor has no such tier;
    nothing changes then.
    """
    cdef const char* name = NULL
    cdef size_t known = 0, extra = 0
    cdef st_mark_function* mark = st_mark_tier(number, &name, &known, &extra)
    if mark == NULL:
        return None
    scanner.c.mark = mark
    scanner.c.marked_from = known if marked_from is None else min(marked_from, 128)
    scanner.c.extra_from = extra if marked_from is None else 1
    scanner.c.place = st_place_tier() if number == 0 else st_place_plain
    scanner.c.substitute = st_substitute_tier(number == 0)
    return name.decode()


def last_marks(Scanner scanner not None, bytes text, size_t start):
    """As `marks`, of all of text[start:], at most 320 bytes, at the end of what is there.

    start: 8 or more; or 1, where a margin takes the place of what comes before. None if there is no
    margin for the first character.
    """
    cdef u64[ST_REST_BLOCKS] begins
    cdef u64[ST_REST_BLOCKS] opened
    cdef u8[ST_REST_SIZE] copy
    cdef u64 margin = 0
    cdef size_t size = len(text), blocks, readable
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
    blocks = st_copy_rest(copy, margin, p + start, size - start, 1, &readable)
    scanner.c.mark(scanner.c.windows, copy + ST_MARGIN, blocks, begins, opened)
    return [begins[i] for i in range(blocks)], [opened[i] for i in range(blocks)]


def marks(Scanner scanner not None, text, size_t start, size_t blocks, bint substitutes=False):
    """(uint64 [blocks], uint64 [blocks]): where pre-tokens begin in text[start:], and what is open.

    substitutes: for characters that are not ASCII, where the pattern has any. Raises ValueError
    where the pattern has no windows or the text is too short.
    """
    if scanner.c.windows == NULL:
        raise ValueError("the pattern has no windows")
    cdef ArrayView view = read_array(text, UINT8, "text")
    if start < ST_MARGIN or start + 64 * blocks >= view.size or blocks == 0:
        raise ValueError("the text is too short for its windows")
    begins, open = np.empty(blocks, np.uint64), np.empty(blocks, np.uint64)
    cdef const u8* p = <const u8*>view.data + start
    if substitutes and scanner.c.substitutes != NULL:
        shadow = substitute(scanner, text, start - ST_MARGIN, 64 * blocks + ST_MARGIN + 1)
        view = read_array(shadow, UINT8, "shadow")
        p = <const u8*>view.data + ST_MARGIN
    scanner.c.mark(scanner.c.windows, p, blocks, <u64*>array_memory(begins, UINT64),
                   <u64*>array_memory(open, UINT64))
    return begins, open


def substitute(Scanner scanner not None, text, size_t start, size_t size):
    """numpy.uint8 [size]: text[start:start + size] with ASCII substitutes.

    Raises ValueError where the pattern has none or the text is too short.
    """
    cdef ArrayView view = read_array(text, UINT8, "text")
    if scanner.c.substitutes == NULL or start + size > view.size:
        raise ValueError("the pattern has no ASCII substitutes, or the text is too short")
    result = np.empty(size, np.uint8)
    cdef const u8* p = <const u8*>view.data + start
    cdef u8* out = <u8*>array_memory(result, UINT8)
    cdef size_t at = 0, step
    while at < size:
        step = min(size - at, <size_t>(64 * MARKED_BLOCKS + ST_MARGIN + 1))
        scanner.c.substitute(scanner.c.substitutes, p + at, step, view.size - start - at, out + at)
        at += step
    return result


def sorted_tokens(TokenTable table not None):
    """list[int]: the tokens in the order of their bytes."""
    table.prepare_prefixes()
    return [table.c.sorted[i] for i in range(table.c.n)]


def well_formed(data):
    """int: how many bytes at the beginning of `data` are well-formed UTF-8."""
    cdef i32 why
    cdef int length
    cdef ArrayView view = read_array(data, UINT8, "data")
    return valid_bytes(<const u8*>view.data, view.size, &why, &length)
