"""Unpack vocabularies: derive the bytes of all tokens from the two parts of each."""

def spell(lefts, rights, spelled):
    """(bytes, uint32 [n + 1]): the tokens end to end, and their offsets.

    lefts, rights: uint32 [n]. Token i is token lefts[i] followed by token rights[i], both of lower
    number; if lefts[i] is 0xFFFFFFFF, it is the next rights[i] bytes of `spelled` (bytes-like).

    Raises ValueError if the numbers or sizes are inconsistent.
    """
    cdef ArrayView left_view = read_array(lefts, UINT32, "lefts")
    cdef ArrayView right_view = read_array(rights, UINT32, "rights")
    cdef ArrayView spelled_view = read_array(spelled, UINT8, "spelled")
    cdef const u32* left_of = <const u32*>left_view.data
    cdef const u32* right_of = <const u32*>right_view.data
    cdef const u8* source = <const u8*>spelled_view.data
    cdef size_t n = left_view.size, i, total = 0, taken = 0, size, at
    cdef u32 left, right
    if right_view.size != n:
        raise ValueError(f"{n} left parts, but {right_view.size} right ones")
    offsets = np.empty(n + 1, dtype=np.uint32)
    cdef u32* ends = <u32*>array_memory(offsets, UINT32)
    ends[0] = 0
    for i in range(n):
        left, right = left_of[i], right_of[i]
        if left == NONE:
            size = right
            taken += size
        elif left >= i or right >= i:
            raise ValueError(f"token {i} is made of tokens that do not come before it")
        else:
            size = (ends[left + 1] - ends[left]) + (ends[right + 1] - ends[right])
        total += size
        if size == 0 or size > MAX_TOKEN_BYTES or total > <size_t>NONE:
            raise ValueError(f"token {i} has {size} bytes, all up to there {total}")
        ends[i + 1] = <u32>total
    if taken != spelled_view.size:
        raise ValueError(f"the tokens need {taken} spelled bytes, not {spelled_view.size}")
    blob = PyBytes_FromStringAndSize(NULL, total)
    cdef u8* p = <u8*>PyBytes_AS_STRING(blob)
    taken = 0
    for i in range(n):
        left, right, at = left_of[i], right_of[i], ends[i]
        if left == NONE:
            memcpy(p + at, source + taken, right)
            taken += right
        else:
            size = ends[left + 1] - ends[left]
            copy_token(p, at, total, ends[left], size)
            copy_token(p, at + size, total, ends[right], ends[right + 1] - ends[right])
    return blob, offsets


cdef inline void copy_token(u8* p, size_t at, size_t total, size_t start, size_t n) noexcept nogil:
    """p[at:at + n] = p[start:start + n]. May also write to the bytes after it, which are filled later."""
    cdef u64[2] words
    if n <= 16 and at + 16 <= total:
        words[0] = st_load64(p + start)
        words[1] = st_load64(p + start + 8)
        memcpy(p + at, words, 16)
    else:
        memcpy(p + at, p + start, n)
