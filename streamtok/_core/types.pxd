"""Integer types and C helpers, in one place."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef uint8_t u8
ctypedef uint16_t u16
ctypedef uint32_t u32
ctypedef uint64_t u64
ctypedef int32_t i32
ctypedef int64_t i64

cdef extern from "base/native.h" nogil:
    u64 st_load64(const u8* p) noexcept
    u64 st_load_part(const u8* p, size_t n) noexcept
    void st_copy_few(u8* to, const u8* source, size_t n) noexcept
    int st_lowest(u64 bits) noexcept
    int st_ones(u64 bits) noexcept
    void ST_PREFETCH(const void* p) noexcept
    void* st_new_block(size_t size, size_t alignment) noexcept
    size_t st_block_size(size_t size) noexcept
    void* st_new_table(size_t size) noexcept
    void* st_new_growable(size_t size) noexcept
    void st_free_block(void* memory) noexcept
    void st_free_table(void* table) noexcept
    u64 st_milliseconds() noexcept
    int st_enter(char* flag) noexcept
    void st_leave(char* flag) noexcept
    void* st_swap(void** at, void* value) noexcept
    void* st_load_pointer(void* const* at) noexcept
    void st_store_pointer(void** at, void* value) noexcept
    size_t st_load_size(const size_t* at) noexcept
    void st_store_size(size_t* at, size_t value) noexcept
    u16 st_load_u16(const u16* at) noexcept
    void st_store_u16(u16* at, u16 value) noexcept
    u32 st_load_u32(const u32* at) noexcept
    void st_store_u32(u32* at, u32 value) noexcept

cdef extern from "base/hash.h" nogil:
    enum:
        ST_SECRET_SIZE
    void st_hash_begin(const void* random) noexcept
    u64 st_hash_word(u64 x) noexcept
    u64 st_hash_key(u64 low, u64 high) noexcept
    const void* st_hash_secret() noexcept
    int st_hash_shift(u64 slots) noexcept
    u64 st_hash_bytes(const u8* p, size_t n) noexcept

cdef inline void hash_begin(bytes random):
    """Set the key of the hash in the unit that calls this, which must happen before it makes any table."""
    st_hash_begin(<const char*>random)

cdef enum:
    NONE = 0xFFFFFFFF       # no token, no pair or no node
    SHORT_PRETOKEN = 15     # longest pre-token, in bytes, that fits into a 16-byte key together with its length
