/* How much of some bytes is well-formed UTF-8, 32 bytes at a time.

   The method is that of J. Keiser and D. Lemire, "Validating UTF-8 in less than one instruction per
      byte" (2021): each kind of ill-formed pair is a bit, and the pair is ill-formed in that way if the
      bit is set for the upper half of the first byte, for its lower half and for the upper half of the
      second. */
#ifndef STREAMTOK_VALID_UTF8_H
#define STREAMTOK_VALID_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cpu.h"

#if defined(ST_X86)

enum {
    ST_LEAD_THEN_NO_REST = 1 << 0,
    ST_ASCII_THEN_REST = 1 << 1,
    ST_TOO_SMALL_FOR_3 = 1 << 2, /* E0 80 .. E0 9F */
    ST_TOO_LARGE = 1 << 3,       /* F4 90 and more */
    ST_SURROGATE = 1 << 4,       /* ED A0 .. ED BF */
    ST_TOO_SMALL_FOR_2 = 1 << 5, /* C0, C1 */
    ST_TOO_LARGE_OR_SMALL = 1 << 6, /* F5 80 and more, F0 80 .. F0 8F */
    ST_REST_THEN_REST = 1 << 7,  /* fine behind E0 and more */
    ST_ANY_LOW = ST_LEAD_THEN_NO_REST | ST_ASCII_THEN_REST | ST_REST_THEN_REST
};

#define ST_TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

ST_FOR_AVX2 static size_t st_valid_avx2(const uint8_t *p, size_t n) {
    const char low = (char)ST_ANY_LOW;
    const char large = (char)(ST_ANY_LOW | ST_TOO_LARGE | ST_TOO_LARGE_OR_SMALL);
    const char rest = (char)(ST_ASCII_THEN_REST | ST_REST_THEN_REST | ST_TOO_SMALL_FOR_2);
    const __m256i first_high = ST_TWICE(
        ST_ASCII_THEN_REST, ST_ASCII_THEN_REST, ST_ASCII_THEN_REST, ST_ASCII_THEN_REST,
        ST_ASCII_THEN_REST, ST_ASCII_THEN_REST, ST_ASCII_THEN_REST, ST_ASCII_THEN_REST,
        (char)ST_REST_THEN_REST, (char)ST_REST_THEN_REST, (char)ST_REST_THEN_REST,
        (char)ST_REST_THEN_REST, ST_LEAD_THEN_NO_REST | ST_TOO_SMALL_FOR_2, ST_LEAD_THEN_NO_REST,
        ST_LEAD_THEN_NO_REST | ST_TOO_SMALL_FOR_3 | ST_SURROGATE,
        ST_LEAD_THEN_NO_REST | ST_TOO_LARGE | ST_TOO_LARGE_OR_SMALL);
    const __m256i first_low = ST_TWICE(
        low | ST_TOO_SMALL_FOR_2 | ST_TOO_SMALL_FOR_3 | ST_TOO_LARGE_OR_SMALL, low | ST_TOO_SMALL_FOR_2,
        low, low, low | ST_TOO_LARGE, large, large, large, large, large, large, large, large,
        large | ST_SURROGATE, large, large);
    const __m256i second_high = ST_TWICE(
        ST_LEAD_THEN_NO_REST, ST_LEAD_THEN_NO_REST, ST_LEAD_THEN_NO_REST, ST_LEAD_THEN_NO_REST,
        ST_LEAD_THEN_NO_REST, ST_LEAD_THEN_NO_REST, ST_LEAD_THEN_NO_REST, ST_LEAD_THEN_NO_REST,
        rest | ST_TOO_SMALL_FOR_3 | ST_TOO_LARGE_OR_SMALL, rest | ST_TOO_SMALL_FOR_3 | ST_TOO_LARGE,
        rest | ST_SURROGATE | ST_TOO_LARGE, rest | ST_SURROGATE | ST_TOO_LARGE, ST_LEAD_THEN_NO_REST,
        ST_LEAD_THEN_NO_REST, ST_LEAD_THEN_NO_REST, ST_LEAD_THEN_NO_REST);
    const __m256i nibble = _mm256_set1_epi8(15), top = _mm256_set1_epi8((char)0x80);
    const __m256i below_three = _mm256_set1_epi8((char)(0xE0 - 0x80));
    const __m256i below_four = _mm256_set1_epi8((char)(0xF0 - 0x80));
    uint8_t begin[3 + 32] = {0}; /* no character reaches in from before */
    size_t i = 0;
    if (n < 32) return 0;
    memcpy(begin + 3, p, 32);
    for (; i + 32 <= n; i += 32) {
        const uint8_t *at = i ? p + i : begin + 3;
        __m256i here = _mm256_loadu_si256((const __m256i *)at);
        __m256i one = _mm256_loadu_si256((const __m256i *)(at - 1));
        __m256i two = _mm256_loadu_si256((const __m256i *)(at - 2));
        __m256i three = _mm256_loadu_si256((const __m256i *)(at - 3));
        __m256i any = _mm256_or_si256(_mm256_or_si256(here, one), _mm256_or_si256(two, three));
        if (_mm256_movemask_epi8(any) == 0) continue;
        __m256i kinds = _mm256_and_si256(
            _mm256_and_si256(
                _mm256_shuffle_epi8(first_high, _mm256_and_si256(_mm256_srli_epi16(one, 4), nibble)),
                _mm256_shuffle_epi8(first_low, _mm256_and_si256(one, nibble))),
            _mm256_shuffle_epi8(second_high, _mm256_and_si256(_mm256_srli_epi16(here, 4), nibble)));
        /* The highest bit: a third or fourth byte must stand here. */
        __m256i must = _mm256_or_si256(_mm256_subs_epu8(two, below_three),
                                       _mm256_subs_epu8(three, below_four));
        __m256i wrong = _mm256_xor_si256(_mm256_and_si256(must, top), kinds);
        if (!_mm256_testz_si256(wrong, wrong)) break;
    }
    /* The last character may go on behind what was seen. */
    for (size_t k = 1; k <= 3 && i; k++) {
        uint8_t byte = p[i - k];
        if (byte < 0x80) break;
        if (byte >= 0xC0) return byte >= 0xF0 || k < (byte >= 0xE0 ? 3u : 2u) ? i - k : i;
    }
    return i;
}
#endif

/* A place up to which p[:n] is well-formed, and where a character begins, as one does at p. What
   follows may be well-formed, too. */
static inline size_t st_valid_utf8(const uint8_t *p, size_t n) {
#if defined(ST_X86)
    if (n >= 64 && st_level(ST_ANY) >= ST_AVX2) return st_valid_avx2(p, n);
#else
    (void)p;
    (void)n;
#endif
    return 0;
}

#endif
