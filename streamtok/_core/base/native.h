/* Operations that Cython cannot express: unaligned loads, prefetching, atomic flags. */
#ifndef STREAMTOK_NATIVE_H
#define STREAMTOK_NATIVE_H

#include <stdint.h>
#include <string.h>

#include "base/cpu.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "streamtok needs a little-endian processor: it reads text as words, and ids would be wrong here"
#endif

#if defined(_MSC_VER)
#include <intrin.h>
#define ST_PREFETCH(p) _mm_prefetch((const char *)(p), 1)
#define ST_RARELY(condition) (condition)
#define ST_NOINLINE __declspec(noinline)
#define ST_ALIGNED(n) __declspec(align(n))
#define ST_ALWAYS_INLINE __forceinline
#else
#define ST_PREFETCH(p) __builtin_prefetch(p)
#define ST_RARELY(condition) __builtin_expect((condition), 0)
#define ST_NOINLINE __attribute__((noinline))
#define ST_ALIGNED(n) __attribute__((aligned(n)))
#define ST_ALWAYS_INLINE inline __attribute__((always_inline))
#endif

static inline uint64_t st_load64(const uint8_t *p) {
    uint64_t value;
    memcpy(&value, p, 8);
    return value;
}

/* The n <= 8 bytes at p as a little-endian number; reads nothing beyond p + n. */
static inline uint64_t st_load_part(const uint8_t *p, size_t n) {
    uint64_t value = 0;
    memcpy(&value, p, n);
    return value;
}

/* The index of the lowest set bit and of the highest one (bits != 0), and the number of set bits. */
static inline int st_lowest(uint64_t bits) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanForward64(&at, bits);
    return (int)at;
#else
    return __builtin_ctzll(bits);
#endif
}
static inline int st_highest(uint64_t bits) {
#if defined(_MSC_VER)
    unsigned long at;
    _BitScanReverse64(&at, bits);
    return (int)at;
#else
    return 63 - __builtin_clzll(bits);
#endif
}
static inline int st_ones(uint64_t bits) {
    bits -= bits >> 1 & 0x5555555555555555ull;
    bits = (bits & 0x3333333333333333ull) + (bits >> 2 & 0x3333333333333333ull);
    return (int)(((bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Full) * 0x0101010101010101ull >> 56);
}

#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#define ST_HUGE ((size_t)1 << 21)
#define ST_LARGE (ST_HUGE / 2)

/* Bytes to allocate for `size`: whole huge pages if it is large. */
static inline size_t st_block_size(size_t size) {
#if !defined(_WIN32)
    if (size >= ST_LARGE && size <= SIZE_MAX - ST_HUGE) size = (size + ST_HUGE - 1) / ST_HUGE * ST_HUGE;
#endif
    return size;
}

/* Memory at a multiple of `alignment`, with few page faults: blocks of 1 MiB or more are in huge pages if
   the system has them, which also saves most TLB misses. Not zeroed. Freed by st_free_block. */
static inline void *st_new_block(size_t size, size_t alignment) {
#if defined(_WIN32)
    return _aligned_malloc(size ? size : 1, alignment);
#else
    int is_large = size >= ST_LARGE;
    void *memory = NULL;
    size = st_block_size(size);
    if (is_large) alignment = ST_HUGE;
    if (posix_memalign(&memory, alignment, size ? size : 1) != 0) return NULL;
#if defined(__linux__)
    if (is_large) madvise(memory, size, MADV_HUGEPAGE);
#endif
    return memory;
#endif
}

/* As st_new_block, but aligned to a cache line and zeroed; freed by st_free_table. Uses calloc, which need
   not zero pages that are fresh from the system, and stores the pointer that it returned before the table. */
static inline void *st_new_table(size_t size) {
    size_t alignment = size >= ST_LARGE ? ST_HUGE : 64;
    size_t whole = (size + alignment - 1) / alignment * alignment, more = alignment + sizeof(void *);
    if (whole < size || whole + more < whole) return NULL;
    char *memory = (char *)calloc(whole + more, 1), *table;
    if (memory == NULL) return NULL;
    table = memory + more - 1 - ((uintptr_t)memory + more - 1) % alignment;
    memcpy(table - sizeof(void *), &memory, sizeof(void *));
#if defined(__linux__)
    if (alignment == ST_HUGE) madvise(table, whole, MADV_HUGEPAGE);
#endif
    return table;
}

static inline void st_free_table(void *table) {
    void *memory;
    if (table == NULL) return;
    memcpy(&memory, (char *)table - sizeof(void *), sizeof(void *));
    free(memory);
}

/* As st_new_block, but the memory may be passed to realloc and free. */
static inline void *st_new_growable(size_t size) {
#if defined(_WIN32)
    return malloc(size ? size : 1);
#else
    return st_new_block(size, 16);
#endif
}

static inline void st_free_block(void *memory) {
#if defined(_WIN32)
    _aligned_free(memory);
#else
    free(memory);
#endif
}

/* Wall-clock time, which may jump if the clock is set. */
#include <time.h>
static inline uint64_t st_milliseconds(void) {
    struct timespec now = {0, 0};
    timespec_get(&now, TIME_UTC);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Sets the flag; returns whether it was set already. */
static inline int st_enter(volatile char *flag) {
#if defined(_MSC_VER)
    return _InterlockedExchange8(flag, 1);
#else
    return __atomic_exchange_n(flag, 1, __ATOMIC_ACQUIRE);
#endif
}

static inline void st_leave(volatile char *flag) {
#if defined(_MSC_VER)
    _InterlockedExchange8(flag, 0);
#else
    __atomic_store_n(flag, 0, __ATOMIC_RELEASE);
#endif
}

/* Acquire and release: a thread that reads a stored value also sees all writes before the store. */
#if defined(_MSC_VER)
static inline void *st_load_pointer(void *const *at) { return *(void *const volatile *)at; }
static inline void st_store_pointer(void **at, void *value) { *(void *volatile *)at = value; }
static inline size_t st_load_size(const size_t *at) { return *(const volatile size_t *)at; }
static inline void st_store_size(size_t *at, size_t value) { *(volatile size_t *)at = value; }
static inline uint16_t st_load_u16(const uint16_t *at) { return *(const volatile uint16_t *)at; }
static inline void st_store_u16(uint16_t *at, uint16_t value) { *(volatile uint16_t *)at = value; }
static inline uint32_t st_load_u32(const uint32_t *at) { return *(const volatile uint32_t *)at; }
static inline void st_store_u32(uint32_t *at, uint32_t value) { *(volatile uint32_t *)at = value; }
#else
static inline void *st_load_pointer(void *const *at) {
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
static inline void st_store_pointer(void **at, void *value) {
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
static inline size_t st_load_size(const size_t *at) {
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
static inline void st_store_size(size_t *at, size_t value) {
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
static inline uint16_t st_load_u16(const uint16_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline void st_store_u16(uint16_t *at, uint16_t value) {
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
static inline uint32_t st_load_u32(const uint32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static inline void st_store_u32(uint32_t *at, uint32_t value) {
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
#endif

/* Replaces a pointer and returns the old one; atomic if there is no GIL. */
static inline void *st_swap(void **at, void *value) {
#if !defined(Py_GIL_DISABLED)
    void *before = *at;
    *at = value;
    return before;
#elif defined(_MSC_VER)
    return _InterlockedExchangePointer(at, value);
#else
    return __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL);
#endif
}

/* Copies up to a few hundred bytes. For a memcpy whose size is known to be small, GCC emits "rep movs",
   which takes 30 cycles to start. */
static inline void st_copy_few(uint8_t *to, const uint8_t *from, size_t n) {
    if (n >= 16) {
        for (size_t i = 0; i < n - 16; i += 16) memcpy(to + i, from + i, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else if (n) {
        to[0] = from[0];
        to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
}

#endif
