"""The immutable token table: bytes -> token, pair of tokens -> token, token -> bytes and id."""

cimport cython

from streamtok._core.types cimport NONE, st_load64, st_load_part, st_mix, u8, u32, u64

cdef extern from "pairs.h" nogil:
    enum:
        ST_BUCKET
        ST_TOKEN_BITS
    ctypedef struct st_pairs:
        u64* slots
        u64 mask
        u64* filter
        int filter_shift
    u32 st_pairs_find(const st_pairs* t, u32 left, u32 right) noexcept
    void st_pairs_insert(st_pairs* t, u32 left, u32 right, u32 token) noexcept
    void st_pairs_fetch(const st_pairs* t, u32 left, u32 right) noexcept

cdef enum:
    MAX_TOKENS = (1 << 21) - 2      # 21 bits and a value to spare

cdef extern from *:
    """
    #define ST_FIRST_MIX 0x9E3779B97F4A7C15ull
    #define ST_SECOND_MIX 0xD6E8FEB86659FD93ull
    """
    u64 FIRST_MIX "ST_FIRST_MIX"
    u64 SECOND_MIX "ST_SECOND_MIX"

cdef struct Tokens:
    const u8* blob          # bytes of all tokens, end to end, in order of rank
    const u32* offsets      # [n + 1] token i is blob[offsets[i]:offsets[i + 1]]
    const u32* ids          # [n] public id of token i; NONE: it leaves as its bytes
    const u32* ties         # [n] order of the merges into a token, ties to the left; NULL: its number
    const u32* byte_ids     # [256] ids of the bytes of such tokens; NULL: there are none
    u32 n
    u32 longest             # bytes of the longest token
    u32 longest_unreachable # bytes of the longest token that its own merges do not build; 0: none
    u32 byte_token[256]
    u32* byte_pairs         # [256 * 256] token made of two bytes, or NONE
    u64* slots              # bytes -> token: fingerprint << 32 | token + 1, 0 = empty
    u64 slot_mask
    st_pairs pairs          # pair of tokens -> token
    u32* lefts              # [n] bytes of the left part of a token's last merge; 0: bytes, unreachable
    u32* sorted             # [n] tokens in order of their bytes, or NULL until it is asked for
    u64* openings           # bit set of hashed 4-byte openings of tokens, see has_opening


cdef inline u64 hash_bytes(const u8* p, size_t n) noexcept nogil:
    """Of n >= 1 bytes."""
    cdef u64 h = n
    if n < 8:
        if n < 4:
            return st_mix(h ^ p[0] ^ <u64>p[n >> 1] << 8 ^ <u64>p[n - 1] << 16, FIRST_MIX)
        return st_mix(h ^ st_load_part(p, 4) ^ st_load_part(p + n - 4, 4) << 32, FIRST_MIX)
    while n > 8:
        h = st_mix(h ^ st_load64(p), SECOND_MIX)
        p += 8
        n -= 8
    return st_mix(h ^ st_load64(p + n - 8), FIRST_MIX)


cdef inline u32 find_pair(const Tokens* t, u32 left, u32 right) noexcept nogil:
    """The token that the adjacent tokens `left` and `right` merge into, or NONE.

    The rank of the merge is the token itself: tokens are numbered in order of rank.
    """
    return st_pairs_find(&t.pairs, left, right)


cdef u32 find_token(const Tokens* t, const u8* p, size_t n) noexcept nogil
cdef int open_pairs(st_pairs* pairs, u64 entries) except -1
cdef void close_pairs(st_pairs* pairs) noexcept
cdef bint is_proper_prefix(const Tokens* t, const u8* p, size_t n) noexcept nogil


@cython.final
cdef class TokenTable:
    cdef Tokens c
    cdef list _owners                          # of the memory that `c` points to
    cdef list _ints                            # ready-made int objects, by id; None until needed
    cdef size_t _listed                        # ids that were put in lists before that
    cdef readonly u32 max_id
    cdef readonly bint is_dense                # the ids are 0 .. n - 1, in order
    cdef readonly bint is_rising               # the ids are in order
    cdef const Tokens* tokens(self) noexcept nogil
    cdef object ints(self, size_t count)
