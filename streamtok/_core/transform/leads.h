/* Which bytes of UTF-8 may begin a character that matters, 64 at a time. */
#ifndef STREAMTOK_LEADS_H
#define STREAMTOK_LEADS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

#define ST_TOGETHER 64 /* bytes that are looked at together */

/* A set of bytes without 80 to BF, which begin no character. A byte is in it if the bit of its upper
   half is set for its lower half: one table for ASCII, and one for the other bytes. */
typedef struct {
    uint8_t has[256];
    uint8_t ascii[16], lead[16];
    uint8_t leaves_ascii;
} st_leads;

static inline void st_leads_add(st_leads *set, uint8_t byte) {
    set->has[byte] = 1;
    if (byte < 0x80)
        set->ascii[byte & 15] |= (uint8_t)(1 << (byte >> 4));
    else
        set->lead[byte & 15] |= (uint8_t)(1 << ((byte >> 4) - 8));
}

/* Of the 64 bytes at p, those in the set, the first in the lowest bit. */
typedef uint64_t st_leads_function(const st_leads *set, const uint8_t *p);

static uint64_t st_leads_plain(const st_leads *set, const uint8_t *p) {
    uint64_t found = 0;
    uint8_t all = 0, seen = 0;
    for (size_t i = 0; i < ST_TOGETHER; i++) all |= p[i];
    if (all < 0x80 && set->leaves_ascii) return 0;
    for (size_t i = 0; i < ST_TOGETHER; i++) seen |= set->has[p[i]];
    if (!seen) return 0;
    for (size_t i = 0; i < ST_TOGETHER; i++) found |= (uint64_t)set->has[p[i]] << i;
    return found;
}

#if defined(ST_X86)

ST_FOR_AVX2 static uint64_t st_leads_avx2(const st_leads *set, const uint8_t *p) {
    const __m256i ascii = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)set->ascii));
    const __m256i lead = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)set->lead));
    const __m256i bit = _mm256_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128,
                                         1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
    const __m256i half = _mm256_set1_epi8(15);
    uint64_t found = 0;
    for (int k = 0; k < 2; k++) {
        __m256i here = _mm256_loadu_si256((const __m256i *)(p + 32 * k));
        if (set->leaves_ascii && _mm256_movemask_epi8(here) == 0) continue;
        __m256i low = _mm256_and_si256(here, half);
        __m256i high = _mm256_and_si256(_mm256_srli_epi16(here, 4), half);
        __m256i wanted = _mm256_shuffle_epi8(bit, high);
        /* The highest bit of a byte chooses its table. */
        __m256i bits = _mm256_blendv_epi8(_mm256_shuffle_epi8(ascii, low),
                                          _mm256_shuffle_epi8(lead, low), here);
        __m256i in = _mm256_cmpeq_epi8(_mm256_and_si256(bits, wanted), wanted);
        found |= (uint64_t)(uint32_t)_mm256_movemask_epi8(in) << (32 * k);
    }
    return found;
}
#endif

static inline st_leads_function *st_leads_tier(int most) {
#if defined(ST_X86)
    if (st_level(most) >= ST_AVX2) return st_leads_avx2;
#else
    (void)most;
#endif
    return st_leads_plain;
}

#endif
