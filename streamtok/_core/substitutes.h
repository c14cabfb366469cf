/* ASCII in the place of other characters, so that windows can decide about these, too. Which characters
   have a ASCII substitute, and why pre-tokens begin at the same bytes then: pattern_substitutes.py. */
#ifndef STREAMTOK_SUBSTITUTES_H
#define STREAMTOK_SUBSTITUTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "native.h"

#define ST_SUBSTITUTES_SIZE (0x10000 + 4) /* bytes of a table that may be read */
#define ST_SUBSTITUTE_MOST 4096           /* bytes that are done at a time, at most */

/* Copies p[:n] to `to` with ASCII substitutes for what has one; returns how many bytes these are.
   substitutes: for each code point below 0x10000, an ASCII character or 0. A character that begins in
   p[:n] may end in p[:readable]. */
typedef size_t st_substitute_function(const uint8_t *substitutes, const uint8_t *p, size_t n,
                                    size_t readable, uint8_t *to);

/* The code point of a well-formed character of two or three bytes at p, and its size; else 0. */
static inline uint32_t st_wide_code(const uint8_t *p, size_t readable, size_t *size) {
    uint32_t a = p[0], b, c, code;
    if (a < 0xC2 || a >= 0xF0 || readable < (a < 0xE0 ? 2 : 3)) return 0;
    b = p[1] ^ 0x80u;
    if (a < 0xE0) {
        *size = 2;
        return b < 0x40 ? (a & 0x1F) << 6 | b : 0;
    }
    c = p[2] ^ 0x80u;
    code = (a & 0x0F) << 12 | b << 6 | c;
    *size = 3;
    return (b | c) < 0x40 && code >= 0x800 && (code & 0xF800) != 0xD800 ? code : 0;
}

static size_t st_substitute_plain(const uint8_t *substitutes, const uint8_t *p, size_t n, size_t readable,
                                uint8_t *to) {
    size_t i = 0, found = 0, size = 1;
    memcpy(to, p, n);
    while (i < n) {
        if (p[i] < 0x80) {
            uint64_t high = i + 8 <= n ? st_load64(p + i) & 0x8080808080808080ull : 0;
            i += high ? (size_t)st_lowest(high) >> 3 : i + 8 <= n ? 8 : 1;
            continue;
        }
        uint8_t one = substitutes[st_wide_code(p + i, readable - i, &size)];
        if (one == 0) { /* as for code 0 */
            i++;
            continue;
        }
        for (size_t k = 0; k < size && i + k < n; k++, found++) to[i + k] = one;
        i += size;
    }
    return found;
}

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define ST_WIDE_SUBSTITUTES 1
#include <immintrin.h>

#define ST_AVX512_SUBSTITUTES __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")))

/* What stands for the characters of bytes a, b and, of three, c; 0: nothing does. */
ST_AVX512_SUBSTITUTES static inline __m128i st_sixteen_substitutes(const uint8_t *substitutes, __mmask16 some,
                                                        __m128i a_bytes, __m128i b_bytes,
                                                        __m128i c_bytes) {
    const __m512i mark = _mm512_set1_epi32(0x80), limit = _mm512_set1_epi32(0x40);
    __m512i a = _mm512_cvtepu8_epi32(a_bytes);
    __m512i b = _mm512_xor_si512(_mm512_cvtepu8_epi32(b_bytes), mark);
    __m512i c = _mm512_xor_si512(_mm512_cvtepu8_epi32(c_bytes), mark);
    __mmask16 is_three = _mm512_cmpge_epu32_mask(a, _mm512_set1_epi32(0xE0));
    __m512i two = _mm512_or_si512(
        _mm512_slli_epi32(_mm512_and_si512(a, _mm512_set1_epi32(0x1F)), 6), b);
    __m512i three = _mm512_or_si512(
        _mm512_slli_epi32(_mm512_and_si512(a, _mm512_set1_epi32(0x0F)), 12),
        _mm512_or_si512(_mm512_slli_epi32(b, 6), c));
    __m512i top = _mm512_and_si512(three, _mm512_set1_epi32(0xF800)); /* 0: too long; or a surrogate */
    __mmask16 bad = _mm512_cmpge_epu32_mask(_mm512_mask_or_epi32(b, is_three, b, c), limit);
    bad |= is_three & (_mm512_testn_epi32_mask(top, top) |
                       _mm512_cmpeq_epi32_mask(top, _mm512_set1_epi32(0xD800)));
    __m512i code = _mm512_mask_mov_epi32(two, is_three, three);
    __m512i found = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), some & (__mmask16)~bad, code,
                                                substitutes, 1);
    return _mm512_cvtepi32_epi8(found);
}

/* First what stands for each character is put where it begins, then its other bytes take it from
   one or two bytes before. */
ST_AVX512_SUBSTITUTES static size_t st_substitute_512(const uint8_t *substitutes, const uint8_t *p, size_t n,
                                           size_t readable, uint8_t *to) {
    const __m512i lead = _mm512_set1_epi8((char)0xC2), wide = _mm512_set1_epi8((char)0xE0);
    const __m512i widest = _mm512_set1_epi8((char)0xF0), leads_from = _mm512_set1_epi8((char)0xC0);
    uint8_t firsts[ST_SUBSTITUTE_MOST + 2], wides[ST_SUBSTITUTE_MOST + 2]; /* of all; of three bytes */
    uint8_t packed[64];
    size_t done = 0, found = 0, from;
    memset(firsts, 0, 2);
    memset(wides, 0, 2);
    for (; done + 64 <= n && done + 66 <= readable; done += 64) {
        __m512i a = _mm512_loadu_si512(p + done), first = _mm512_setzero_si512();
        uint64_t leads =
            _mm512_cmpge_epu8_mask(a, lead) & _mm512_cmplt_epu8_mask(a, widest);
        if (leads) {
            __m512i as = _mm512_maskz_compress_epi8(leads, a);
            __m512i bs = _mm512_maskz_compress_epi8(leads, _mm512_loadu_si512(p + done + 1));
            __m512i cs = _mm512_maskz_compress_epi8(leads, _mm512_loadu_si512(p + done + 2));
            int count = (int)__builtin_popcountll(leads);
            for (int k = 0;; k += 16) {
                __mmask16 some = count - k < 16 ? (__mmask16)((1u << (count - k)) - 1) : 0xFFFF;
                _mm_storeu_si128((__m128i *)(packed + k),
                                 st_sixteen_substitutes(substitutes, some, _mm512_castsi512_si128(as),
                                                      _mm512_castsi512_si128(bs),
                                                      _mm512_castsi512_si128(cs)));
                if (k + 16 >= count) break;
                as = _mm512_alignr_epi64(_mm512_setzero_si512(), as, 2);
                bs = _mm512_alignr_epi64(_mm512_setzero_si512(), bs, 2);
                cs = _mm512_alignr_epi64(_mm512_setzero_si512(), cs, 2);
            }
            first = _mm512_maskz_expand_epi8(leads, _mm512_loadu_si512(packed));
        }
        _mm512_storeu_si512(firsts + 2 + done, first);
        _mm512_storeu_si512(wides + 2 + done,
                            _mm512_maskz_mov_epi8(_mm512_cmpge_epu8_mask(a, wide), first));
    }
    for (size_t i = 0; i < done; i += 64) {
        __m512i raw = _mm512_loadu_si512(p + i);
        __m512i behind = _mm512_or_si512(_mm512_loadu_si512(firsts + 1 + i), _mm512_loadu_si512(wides + i));
        uint64_t rests = _mm512_movepi8_mask(raw) & _mm512_cmplt_epu8_mask(raw, leads_from);
        __m512i one = _mm512_mask_mov_epi8(_mm512_loadu_si512(firsts + 2 + i), rests, behind);
        uint64_t has = _mm512_test_epi8_mask(one, one);
        _mm512_storeu_si512(to + i, _mm512_mask_mov_epi8(raw, has, one));
        found += (size_t)__builtin_popcountll(has);
    }
    /* A character may have begun in the last block. */
    from = done;
    if (done && p[done - 1] >= 0xC2)
        from = done - 1;
    else if (done && p[done - 2] >= 0xE0 && p[done - 1] >= 0x80)
        from = done - 2;
    return found + st_substitute_plain(substitutes, p + from, n - from, readable - from, to + from);
}
#endif

static inline st_substitute_function *st_substitute_tier(int wanted) {
#if defined(ST_WIDE_SUBSTITUTES)
    __builtin_cpu_init();
    if (wanted && __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return st_substitute_512;
#else
    (void)wanted;
#endif
    return st_substitute_plain;
}

#endif
