/* Where two bytes stand side by side. */
#ifndef STREAMTOK_FIND_PAIR_H
#define STREAMTOK_FIND_PAIR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"

/* The first place in p[:n] where `first` stands before `second`, or as the last byte; n if none. */
typedef size_t st_find_pair_function(const uint8_t *p, size_t n, uint8_t first, uint8_t second);

static size_t st_find_pair(const uint8_t *p, size_t n, uint8_t first, uint8_t second) {
    const uint8_t *at = p, *end = p + n;
    while (at < end) {
        at = (const uint8_t *)memchr(at, first, (size_t)(end - at));
        if (at == NULL) break;
        if (at + 1 == end || at[1] == second) return (size_t)(at - p);
        at++;
    }
    return n;
}

#if defined(ST_X86)

/* `memchr` ends at each `first`, which is slow where there are many: "<" in XML. */
ST_FOR_AVX2 static size_t st_find_pair_avx2(const uint8_t *p, size_t n,
                                                               uint8_t first, uint8_t second) {
    const __m256i one = _mm256_set1_epi8((char)first), other = _mm256_set1_epi8((char)second);
    size_t i = 0;
    for (; i + 65 <= n; i += 64) {
        const __m256i *at = (const __m256i *)(p + i), *next = (const __m256i *)(p + i + 1);
        __m256i low = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_loadu_si256(at), one),
                                       _mm256_cmpeq_epi8(_mm256_loadu_si256(next), other));
        __m256i high = _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_loadu_si256(at + 1), one),
                                        _mm256_cmpeq_epi8(_mm256_loadu_si256(next + 1), other));
        __m256i any = _mm256_or_si256(low, high);
        if (_mm256_testz_si256(any, any)) continue;
        uint32_t bits = (uint32_t)_mm256_movemask_epi8(low);
        if (bits) return i + (size_t)st_lowest(bits);
        return i + 32 + (size_t)st_lowest((uint32_t)_mm256_movemask_epi8(high));
    }
    return i + st_find_pair(p + i, n - i, first, second);
}
#endif

static inline st_find_pair_function *st_find_pair_tier(int most) {
#if defined(ST_X86)
    if (st_level(most) >= ST_AVX2) return st_find_pair_avx2;
#else
    (void)most;
#endif
    return st_find_pair;
}

#endif
