"""C functions with several implementations, called tiers: one for each set of SIMD instructions, and a
plain one.

`st_x_tier()` returns the fastest `st_x_function` for this processor, or NULL if callers are faster without
one. Each header says what its function does.
"""

from streamtok._core.types cimport i64, u8, u16, u32, u64

cdef extern from "base/cpu.h" nogil:
    enum:
        ST_ANY              # the highest level: no limit
    int st_level(int most)
    const char* st_level_name(int level)

cdef extern from "tokens/pairs.h" nogil:
    enum:
        ST_BUCKET
        ST_TOKEN_BITS
    ctypedef struct st_pairs:
        u64* slots
        u64 mask
        int shift
    u32 st_pairs_find(const st_pairs* t, u32 left, u32 right) noexcept
    void st_pairs_insert(st_pairs* t, u32 left, u32 right, u32 token) noexcept
    void st_pairs_fetch(const st_pairs* t, u32 left, u32 right) noexcept

cdef extern from "merge/columns.h" nogil:
    enum:
        ST_SHORT            # longest piece, in bytes
        ST_UNIT
    ctypedef void st_merge_batch_function(const st_pairs* pairs, const u32* byte_token,
                                          const u32* byte_pairs, const u8* bytes,
                                          const u16* units, const u8* sizes, size_t count,
                                          u32* out, const u16* slots, u8* counts) noexcept
    st_merge_batch_function* st_merge_batch_tier(int most)

cdef extern from "cache/keys.h" nogil:
    size_t st_take_known(const u64* keys, void** cells, size_t i, size_t count, u32** out) noexcept
    ctypedef size_t st_keys_function(const u8* buffer, size_t start, const i64* ends, size_t count,
                                     u64* keys, void** cells, u64* not_short, void* table, int shift,
                                     void* nothing) noexcept
    st_keys_function* st_keys_tier(int most)

cdef extern from "scan/find_pair.h" nogil:
    ctypedef size_t st_find_pair_function(const u8* p, size_t n, u8 first, u8 second) noexcept
    st_find_pair_function* st_find_pair_tier(int most)

cdef extern from "text/transcode.h" nogil:
    enum:
        ST_SLACK
    ctypedef size_t st_transcode_function(const void* text, int kind, size_t n, u8* out) noexcept
    st_transcode_function* st_transcode_tier(int most)
    size_t st_transcode_capacity_of(int kind, size_t n) noexcept
    size_t st_put_utf8(u8* out, u32 code) noexcept

cdef extern from "transform/leads.h" nogil:
    enum:
        ST_TOGETHER         # bytes
    ctypedef struct st_leads:
        u8 has[256]
        bint leaves_ascii
    void st_leads_add(st_leads* set, u8 byte) noexcept
    ctypedef u64 st_leads_function(const st_leads* set, const u8* p) noexcept
    st_leads_function* st_leads_tier(int most)

cdef extern from "scan/windows.h" nogil:
    enum:
        ST_MARGIN           # bytes of true text that are needed before a marked segment
        ST_REST             # bytes at the end of a text that are marked together,
        ST_REST_BLOCKS      # in this many blocks,
        ST_REST_SIZE        # in a copy of this size, without the text before
    ctypedef struct st_windows:
        u8 classes[128]
        u8 lefts[256]
        u8 rights[256]
        u8 decisions[256]
        u8 trigger
        u8 reach
        u8 counted
        u8 count
    void st_fill_tables(st_windows* w) noexcept
    ctypedef void st_mark_function(const st_windows* w, const u8* p, size_t blocks, u64* begins,
                                   u64* open) noexcept
    size_t st_copy_rest(u8* to, const u8* p, size_t n, size_t extra) noexcept
    st_mark_function* st_mark_tier(int most)
    size_t st_marked_from(int most, size_t* extra) noexcept

cdef extern from "scan/positions.h" nogil:
    ctypedef size_t st_positions_function(u64 bits, size_t base, i64* ends) noexcept
    st_positions_function* st_positions_tier(int most)

cdef extern from "scan/substitutes.h" nogil:
    enum:
        ST_SUBSTITUTES_SIZE
        ST_NO_SUBSTITUTE
        ST_LOOK_BACK        # bytes in which at least eight characters begin
    ctypedef size_t st_squeeze_function(const u8* substitutes, const u8* p, size_t blocks,
                                        size_t readable, unsigned* skip, u8* to, u64* kept) noexcept
    ctypedef void st_deposit_function(u64* bits, u64* others, u64 mask) noexcept
    int st_squeeze_before(const u8* substitutes, const u8* p, size_t before, size_t readable,
                          u8* to, unsigned* skip) noexcept
    u8 st_squeeze_one(const u8* substitutes, const u8* p, size_t readable, unsigned* size) noexcept
    st_squeeze_function* st_squeeze_tier(int most)
    st_deposit_function* st_deposit_tier(int most)
