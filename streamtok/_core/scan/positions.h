/* Convert bits to positions: where pre-tokens end, from the masks of `scan/windows.h`. */
#ifndef STREAMTOK_POSITIONS_H
#define STREAMTOK_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/native.h"

/* Writes base + i to `ends` for each set bit i, in order; returns how many. `ends` needs room for 64. */
typedef size_t st_positions_function(uint64_t bits, size_t base, int64_t *ends);

/* Always writes eight at a time, even if fewer are left: a branch on their number would be unpredictable. */
static ST_ALWAYS_INLINE size_t st_positions_by_eights(uint64_t bits, size_t base, int64_t *ends) {
    size_t count = (size_t)st_ones(bits);
    for (size_t i = 0; i < count; i += 8)
        for (int k = 0; k < 8; k++, bits &= bits - 1)
            ends[i + k] = (int64_t)(base + (size_t)st_lowest(bits | (uint64_t)1 << 63));
    return count;
}

static size_t st_positions_plain(uint64_t bits, size_t base, int64_t *ends) {
    return st_positions_by_eights(bits, base, ends);
}

#if defined(ST_X86)
ST_FOR_AVX2 static size_t st_positions_bmi(uint64_t bits, size_t base, int64_t *ends) {
    return st_positions_by_eights(bits, base, ends);
}

ST_FOR_VBMI2 static size_t st_positions_512(uint64_t bits, size_t base, int64_t *ends) {
    ST_ALIGNED(64) static const uint8_t numbers[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    size_t count = (size_t)_mm_popcnt_u64(bits), i = 0;
    ST_ALIGNED(64) uint8_t offsets[64];
    __m512i start = _mm512_set1_epi64((long long)base);
    __m512i found = _mm512_maskz_compress_epi8(bits, _mm512_load_si512(numbers));
    __m128i first = _mm512_castsi512_si128(found);
    _mm512_storeu_si512(ends, _mm512_add_epi64(start, _mm512_cvtepu8_epi64(first)));
    _mm512_storeu_si512(ends + 8,
                        _mm512_add_epi64(start, _mm512_cvtepu8_epi64(_mm_srli_si128(first, 8))));
    if (count > 16) {
        _mm512_store_si512(offsets, found);
        for (i = 16; i < count; i += 8)
            _mm512_storeu_si512(ends + i, _mm512_add_epi64(start, _mm512_cvtepu8_epi64(_mm_loadl_epi64(
                                                                     (const __m128i *)(offsets + i)))));
    }
    return count;
}
#endif

static inline st_positions_function *st_positions_tier(int most) {
#if defined(ST_X86)
    if (st_level(most) >= ST_VBMI2) return st_positions_512;
    if (st_level(most) >= ST_AVX2) return st_positions_bmi;
#else
    (void)most;
#endif
    return st_positions_plain;
}

#endif
