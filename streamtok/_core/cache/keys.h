/* Keys of short pre-tokens and their home cells, for many pre-tokens at a time. */
#ifndef STREAMTOK_KEYS_H
#define STREAMTOK_KEYS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"

#define ST_KEY_MASK 0x0FFFFFFFFFFFFFFFull /* all bits of the upper half except those of the count */

/* For each size of a pre-token, the mask that selects its own bytes from 16 loaded ones. */
#define ST_LOW(size) ((size) < 8 ? ((uint64_t)1 << 8 * ((size) & 7)) - 1 : ~(uint64_t)0)
#define ST_HIGH(size) ((size) > 8 ? ((uint64_t)1 << 8 * ((size) & 7)) - 1 : 0)
#define ST_MASKS(size) ST_LOW(size), ST_HIGH(size)
static const ST_ALIGNED(64) uint64_t st_key_masks[32] = {
    ST_MASKS(0), ST_MASKS(1), ST_MASKS(2),  ST_MASKS(3),  ST_MASKS(4),  ST_MASKS(5),
    ST_MASKS(6), ST_MASKS(7), ST_MASKS(8),  ST_MASKS(9),  ST_MASKS(10), ST_MASKS(11),
    ST_MASKS(12), ST_MASKS(13), ST_MASKS(14), ST_MASKS(15)};

#if defined(ST_X86)
/* For each size, the upper half of a key with only the size in it. The size is the last byte of the key,
   which is free: these pre-tokens have at most 15 bytes. */
#define ST_TAG(size) 0, (uint64_t)(size) << 56
static const ST_ALIGNED(64) uint64_t st_key_tags[32] = {
    ST_TAG(0), ST_TAG(1), ST_TAG(2),  ST_TAG(3),  ST_TAG(4),  ST_TAG(5),  ST_TAG(6),  ST_TAG(7),
    ST_TAG(8), ST_TAG(9), ST_TAG(10), ST_TAG(11), ST_TAG(12), ST_TAG(13), ST_TAG(14), ST_TAG(15)};
#endif

typedef struct { /* Cell in cache/table.pxi */
    uint64_t low, high;
    uint32_t numbers[4];
} st_cell;

/* Appends the ids of pre-tokens i .. count - 1 to *out, up to the first one that is not in its home cell or
   has more than four ids. Returns the index of that pre-token, or `count`. Writes up to four ids more than
   it appends. This is a function of its own so that the compiler keeps everything in registers. */
ST_NOINLINE static size_t st_take_known(const uint64_t *keys, void *const *cells, size_t i, size_t count,
                                        uint32_t **out) {
    uint32_t *to = *out;
    for (; i < count; i++) {
        const st_cell *cell = (const st_cell *)cells[i];
        uint64_t differs = cell->high ^ keys[2 * i + 1]; /* if the keys are equal: only the count */
        differs = differs << 4 | differs >> 60;
        if (cell->low != keys[2 * i] || differs > 4) break;
        memcpy(to, cell->numbers, sizeof cell->numbers);
        to += differs;
    }
    *out = to;
    return i;
}

/* Pre-token i extends from ends[i - 1] (the first one: from `start`) to ends[i]. Stores its key at
   keys + 2 i, and the address of its home cell in cells[i]: cell st_hash_key >> shift of `table`.
   If the pre-token is empty or has more than 15 bytes, stores `nothing` instead and sets bit i of
   not_short. Reads 16 bytes from the start of each pre-token. Stops before a negative end. Returns the
   number of pre-tokens done. */
typedef size_t st_keys_function(const uint8_t *buffer, size_t start, const int64_t *ends, size_t count,
                                uint64_t *keys, void **cells, uint64_t *not_short, void *table, int shift,
                                void *nothing);

/* Stores the key of the pre-token p[:size], size <= 15, in `key`; returns its hash. Reads 16 bytes at p. */
static ST_ALWAYS_INLINE uint64_t st_put_key(const uint64_t factors[3], const uint8_t *p, size_t size,
                                            uint64_t *key) {
#if defined(ST_X86)
    __m128i own = _mm_and_si128(_mm_loadu_si128((const __m128i *)p),
                                _mm_load_si128((const __m128i *)(st_key_masks + 2 * size)));
    own = _mm_or_si128(own, _mm_load_si128((const __m128i *)(st_key_tags + 2 * size)));
    _mm_storeu_si128((__m128i *)key, own);
    (void)factors; /* x86 can multiply by an operand in memory, which takes no register */
    return st_hash_key((uint64_t)_mm_cvtsi128_si64(own), (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(own, own)));
#else
    uint64_t low = st_load64(p) & st_key_masks[2 * size];
    uint64_t high = (st_load64(p + 8) & st_key_masks[2 * size + 1]) | (uint64_t)size << 56;
    key[0] = low;
    key[1] = high;
    return st_hash_key_by(factors, low, high);
#endif
}

/* An st_keys_function that begins with pre-token i, at `at`, and takes one pre-token at a time. Prefetches
   each cell as soon as the hash is known. */
static ST_ALWAYS_INLINE size_t st_keys_from(size_t i, size_t at, const uint8_t *buffer, const int64_t *ends,
                                            size_t count, uint64_t *keys, void **cells, uint64_t *not_short,
                                            void *table, int shift, void *nothing) {
    const uint64_t factors[3] = {st_secret.factors[0], st_secret.factors[1], st_secret.factors[2]};
    int64_t end = 0;
    while (i < count && end >= 0) {
        size_t word = i / 64, stop = count / 64 > word ? 64 * word + 64 : count;
        uint64_t odds = i & 63 ? not_short[word] : 0;
        for (; i < stop && (end = ends[i]) >= 0; i++) {
            const uint8_t *p = buffer + at;
            size_t size = (size_t)end - at;
            at = (size_t)end;
            if (ST_RARELY(size - 1 >= 15)) {
                st_put_key(factors, p, size ? 15 : 0, keys + 2 * i);
                odds |= (uint64_t)1 << (i & 63);
                cells[i] = nothing;
                continue;
            }
            uint64_t hash = st_put_key(factors, p, size, keys + 2 * i);
            cells[i] = (char *)table + (hash >> shift) * sizeof(st_cell);
            ST_PREFETCH(cells[i]);
        }
        if (i > 64 * word) not_short[word] = odds;
    }
    return i;
}

static size_t st_keys_plain(const uint8_t *buffer, size_t start, const int64_t *ends, size_t count, uint64_t *keys,
                            void **cells, uint64_t *not_short, void *table, int shift, void *nothing) {
    return st_keys_from(0, start, buffer, ends, count, keys, cells, not_short, table, shift, nothing);
}

#if defined(ST_X86)
ST_FOR_AVX2 static size_t st_keys_bmi2(const uint8_t *buffer, size_t start, const int64_t *ends, size_t count,
                                       uint64_t *keys, void **cells, uint64_t *not_short, void *table, int shift,
                                       void *nothing) {
    return st_keys_from(0, start, buffer, ends, count, keys, cells, not_short, table, shift, nothing);
}

/* Loads 16 bytes from each of four addresses. Four loads are faster than a gather. */
ST_FOR_AVX512 static inline __m512i st_load_four(const uint8_t *a, const uint8_t *b, const uint8_t *c,
                                           const uint8_t *d) {
    __m256i low = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a)), _mm_loadu_si128((const __m128i *)b), 1);
    __m256i high = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)c)), _mm_loadu_si128((const __m128i *)d), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* The keys of four pre-tokens: the loaded bytes that belong to each, and its size. `bits` holds the size of
   each in bits, once for each half of its key. */
ST_FOR_AVX512 static inline __m512i st_four_keys(__m512i bytes, __m512i bits) {
    const __m512i one = _mm512_set1_epi64(1);
    const __m512i halves = _mm512_setr_epi64(0, 64, 0, 64, 0, 64, 0, 64);
    const __m512i up = _mm512_setr_epi64(64, 53, 64, 53, 64, 53, 64, 53); /* << 64: 0; << 53: size << 56 */
    __m512i mask = _mm512_sub_epi64(_mm512_sllv_epi64(one, _mm512_subs_epu16(bits, halves)), one);
    return _mm512_or_si512(_mm512_and_si512(bytes, mask), _mm512_sllv_epi64(bits, up));
}

static inline void st_fetch_eight(void *const *cells) {
    for (int k = 0; k < 8; k++) ST_PREFETCH(cells[k]);
}

ST_FOR_AVX512 static inline size_t st_keys_512(const uint8_t *buffer, size_t start, const int64_t *ends,
                                         size_t count, uint64_t *keys, void **cells,
                                         uint64_t *not_short, void *table, int shift, void *nothing) {
    const __m512i one = _mm512_set1_epi64(1), most = _mm512_set1_epi64(15);
    const __m512i first_half = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    const __m512i last_half = _mm512_setr_epi64(4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i no_cell = _mm512_set1_epi64((long long)(uintptr_t)nothing);
    const __m512i base = _mm512_set1_epi64((long long)(uintptr_t)table);
    const __m128i down = _mm_cvtsi32_si128(shift);
    __m512i before = _mm512_set1_epi64((long long)start);
    const uint8_t *first = buffer + start;
    uint64_t odds = 0;
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const int64_t *e = ends + i;
        __m512i end = _mm512_loadu_si512(e);
        if (_mm512_movepi64_mask(end)) break;
        __m512i begin = _mm512_alignr_epi64(end, before, 7);
        before = end;
        __m512i size = _mm512_sub_epi64(end, begin);
        __mmask8 is_short = _mm512_cmplt_epu64_mask(_mm512_sub_epi64(size, one), most);
        odds |= (uint64_t)(uint8_t)~is_short << (i & 63);
        if ((i & 63) == 56) { /* a whole word: partial stores cannot be forwarded to the loads that follow */
            not_short[i / 64] = odds;
            odds = 0;
        }
        __m512i bits = _mm512_slli_epi64(_mm512_min_epu64(size, most), 3);
        __m512i low = st_load_four(first, buffer + e[0], buffer + e[1], buffer + e[2]);
        __m512i high = st_load_four(buffer + e[3], buffer + e[4], buffer + e[5], buffer + e[6]);
        first = buffer + e[7];
        low = st_four_keys(low, _mm512_permutexvar_epi64(first_half, bits));
        high = st_four_keys(high, _mm512_permutexvar_epi64(last_half, bits));
        _mm512_storeu_si512(keys + 2 * i, low);
        _mm512_storeu_si512(keys + 2 * i + 8, high);
        __m512i cell = _mm512_slli_epi64(_mm512_srl_epi64(st_hash_keys_512(low, high), down), 5);
        cell = _mm512_mask_add_epi64(no_cell, is_short, cell, base);
        _mm512_storeu_si512(cells + i, cell);
        if (i) st_fetch_eight(cells + i - 8); /* not those stored just now, which load slowly */
    }
    if (i) st_fetch_eight(cells + i - 8);
    if (i & 63) not_short[i / 64] = odds;
    return st_keys_from(i, (size_t)(first - buffer), buffer, ends, count, keys, cells, not_short, table, shift,
                        nothing);
}
#endif

static inline st_keys_function *st_keys_tier(int most) {
#if defined(ST_X86)
    if (st_level(most) >= ST_AVX512) return st_keys_512;
    if (st_level(most) >= ST_AVX2) return st_keys_bmi2;
#else
    (void)most;
#endif
    return st_keys_plain;
}

#endif
