/* Transcode CPython's str to UTF-8, in reusable memory: PyUnicode_AsUTF8AndSize would leave a second copy
   in every str. */
#ifndef STREAMTOK_TRANSCODE_H
#define STREAMTOK_TRANSCODE_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"

/* The UTF-8 that the str already holds, as every ASCII str does; NULL if none. */
static inline const char *st_ready_utf8(PyObject *text, Py_ssize_t *size) {
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        *size = PyUnicode_GET_LENGTH(text);
        return (const char *)PyUnicode_1BYTE_DATA(text);
    }
#if !defined(Py_GIL_DISABLED)
    *size = ((PyCompactUnicodeObject *)text)->utf8_length;
    return ((PyCompactUnicodeObject *)text)->utf8;
#else
    return NULL;
#endif
}

static inline size_t st_put_utf8(uint8_t *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 63));
        out[2] = (uint8_t)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 63));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 63));
    out[3] = (uint8_t)(0x80 | (code & 63));
    return 4;
}

#define ST_SLACK 64 /* bytes that may be written beyond the end */

/* Writes the UTF-8 of `n` code units to `out`, of st_transcode_capacity_of bytes. Returns the bytes written,
   or SIZE_MAX if there is a surrogate. Copies ASCII 16 characters at a time. */
#define ST_DEFINE_TRANSCODE(name, unit)                                                    \
    static inline size_t name(const unit *p, size_t n, uint8_t *out) {                     \
        uint8_t *begin = out;                                                              \
        size_t i = 0;                                                                      \
        while (i < n) {                                                                    \
            while (i + 16 <= n) {                                                          \
                unit any = 0;                                                              \
                for (int k = 0; k < 16; k++) {                                             \
                    any |= p[i + k];                                                       \
                    out[k] = (uint8_t)p[i + k];                                            \
                }                                                                          \
                if (any & (unit)~0x7F) break;                                              \
                i += 16;                                                                   \
                out += 16;                                                                 \
            }                                                                              \
            for (size_t stop = i + 16 < n ? i + 16 : n; i < stop; i++) {                   \
                uint32_t code = p[i];                                                      \
                if ((code & 0xFFFFF800u) == 0xD800) return SIZE_MAX;                       \
                out += st_put_utf8(out, code);                                             \
            }                                                                              \
        }                                                                                  \
        return (size_t)(out - begin);                                                      \
    }

ST_DEFINE_TRANSCODE(st_transcode_1, uint8_t)
ST_DEFINE_TRANSCODE(st_transcode_2, uint16_t)
ST_DEFINE_TRANSCODE(st_transcode_4, uint32_t)

#if defined(ST_X86) || defined(ST_NEON)
/* Shuffles that pack the UTF-8 of four characters, written as four bytes each. The number of a row encodes the
   sizes less one: bit k is the lower bit for character k, and bit k + 4 the upper one. */
static ST_ALIGNED(64) uint8_t st_packings[256][16], st_packing_sizes[256];

static void st_fill_packings(void) {
    for (int row = 0; row < 256; row++) {
        uint8_t n = 0;
        memset(st_packings[row], 0x80, 16);
        for (int k = 0; k < 4; k++)
            for (int byte = 0; byte <= (row >> k & 1) + 2 * (row >> (k + 4) & 1); byte++)
                st_packings[row][n++] = (uint8_t)(4 * k + byte);
        st_packing_sizes[row] = n;
    }
}
#endif

#if defined(ST_X86)

/* Transcodes 16 characters at a time: each is written as four bytes, and the unused ones are squeezed out.
   The compressing store is from the UTF-8 routines of simdutf (Lemire, Keiser and others). */
ST_FOR_VBMI2 static ST_ALWAYS_INLINE size_t st_transcode_wide(const void *text,
                                                                              int kind, size_t n,
                                                                              uint8_t *out) {
    const __m512i low_six = _mm512_set1_epi32(0x3F), rest = _mm512_set1_epi32(0x80);
    uint8_t *begin = out;
    for (size_t i = 0; i < n; i += 16) {
        const char *p = (const char *)text + i * (size_t)kind;
        __mmask16 have = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xFFFF;
        __m512i code;
        if (kind == 1) {
            __m128i bytes = _mm_maskz_loadu_epi8(have, p);
            if (have == 0xFFFF && _mm_movepi8_mask(bytes) == 0) {
                _mm_storeu_si128((__m128i *)out, bytes);
                out += 16;
                continue;
            }
            code = _mm512_cvtepu8_epi32(bytes);
        } else if (kind == 2) {
            __m256i units = _mm256_maskz_loadu_epi16(have, p);
            if (have == 0xFFFF && _mm256_test_epi16_mask(units, _mm256_set1_epi16(~0x7F)) == 0) {
                _mm_storeu_si128((__m128i *)out, _mm256_cvtepi16_epi8(units));
                out += 16;
                continue;
            }
            code = _mm512_cvtepu16_epi32(units);
        } else {
            code = _mm512_maskz_loadu_epi32(have, p);
            if (have == 0xFFFF && _mm512_test_epi32_mask(code, _mm512_set1_epi32(~0x7F)) == 0) {
                _mm_storeu_si128((__m128i *)out, _mm512_cvtepi32_epi8(code));
                out += 16;
                continue;
            }
        }
        __mmask16 two = _mm512_cmpge_epu32_mask(code, _mm512_set1_epi32(0x80));
        __mmask16 three = _mm512_cmpge_epu32_mask(code, _mm512_set1_epi32(0x800));
        __mmask16 four = _mm512_cmpge_epu32_mask(code, _mm512_set1_epi32(0x10000));
        __mmask16 lone = _mm512_cmpeq_epu32_mask(
            _mm512_and_si512(code, _mm512_set1_epi32((int)0xFFFFF800u)), _mm512_set1_epi32(0xD800));
        if (lone) return SIZE_MAX;
        /* Compute the last byte, the middle ones, then the first, whose high bits encode the length. */
        __m512i last = _mm512_or_si512(_mm512_and_si512(code, low_six), rest);
        __m512i middle =
            _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(code, 6), low_six), rest);
        __m512i bytes = code;
        bytes = _mm512_mask_mov_epi32(
            bytes, two,
            _mm512_or_si512(_mm512_or_si512(_mm512_srli_epi32(code, 6), _mm512_set1_epi32(0xC0)),
                            _mm512_slli_epi32(last, 8)));
        bytes = _mm512_mask_mov_epi32(
            bytes, three,
            _mm512_or_si512(
                _mm512_or_si512(_mm512_srli_epi32(code, 12), _mm512_set1_epi32(0xE0)),
                _mm512_or_si512(_mm512_slli_epi32(middle, 8), _mm512_slli_epi32(last, 16))));
        if (four) {
            __m512i second =
                _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(code, 12), low_six), rest);
            __m512i first = _mm512_or_si512(_mm512_srli_epi32(code, 18), _mm512_set1_epi32(0xF0));
            bytes = _mm512_mask_mov_epi32(
                bytes, four,
                _mm512_or_si512(
                    _mm512_or_si512(first, _mm512_slli_epi32(second, 8)),
                    _mm512_or_si512(_mm512_slli_epi32(middle, 16), _mm512_slli_epi32(last, 24))));
        }
        uint64_t used = _pdep_u64(have, 0x1111111111111111ull) | _pdep_u64(two, 0x2222222222222222ull) |
                        _pdep_u64(three, 0x4444444444444444ull) |
                        _pdep_u64(four, 0x8888888888888888ull);
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(used, bytes));
        out += _mm_popcnt_u64(used);
    }
    return (size_t)(out - begin);
}

ST_FOR_VBMI2 static size_t st_transcode_512(const void *text, int kind, size_t n, uint8_t *out) {
    if (kind == 1) return st_transcode_wide(text, 1, n, out);
    if (kind == 2) return st_transcode_wide(text, 2, n, out);
    return st_transcode_wide(text, 4, n, out);
}


/* The UTF-8 of eight characters, in four bytes each. `odd` and `many`: set to the lower and to the upper bits of
   their sizes less one. */
ST_FOR_AVX2 static ST_ALWAYS_INLINE __m256i st_eight_characters(int kind, __m256i code, int *odd, int *many) {
    const __m256i low_six = _mm256_set1_epi32(0x3F), rest = _mm256_set1_epi32(0x80);
    __m256i two = _mm256_cmpgt_epi32(code, _mm256_set1_epi32(0x7F));
    __m256i three = _mm256_cmpgt_epi32(code, _mm256_set1_epi32(0x7FF)), ones = _mm256_xor_si256(two, three);
    __m256i six = _mm256_srli_epi32(code, 6), twelve = _mm256_srli_epi32(code, 12);
    /* Compute the last byte, the middle ones, then the first, whose high bits encode the length. */
    __m256i last = _mm256_or_si256(_mm256_and_si256(code, low_six), rest);
    __m256i middle = _mm256_or_si256(_mm256_and_si256(six, low_six), rest);
    __m256i bytes = _mm256_or_si256(_mm256_or_si256(six, _mm256_set1_epi32(0xC0)), _mm256_slli_epi32(last, 8));
    bytes = _mm256_blendv_epi8(code, bytes, two);
    __m256i of_three = _mm256_or_si256(_mm256_or_si256(twelve, _mm256_set1_epi32(0xE0)),
                                       _mm256_or_si256(_mm256_slli_epi32(middle, 8), _mm256_slli_epi32(last, 16)));
    bytes = _mm256_blendv_epi8(bytes, of_three, three);
    *many = _mm256_movemask_ps(_mm256_castsi256_ps(three));
    if (kind == 4) {
        __m256i four = _mm256_cmpgt_epi32(code, _mm256_set1_epi32(0xFFFF));
        if (!_mm256_testz_si256(four, four)) {
            __m256i second = _mm256_or_si256(_mm256_and_si256(twelve, low_six), rest);
            __m256i first = _mm256_or_si256(_mm256_srli_epi32(code, 18), _mm256_set1_epi32(0xF0));
            first = _mm256_or_si256(first, _mm256_slli_epi32(second, 8));
            second = _mm256_or_si256(_mm256_slli_epi32(middle, 16), _mm256_slli_epi32(last, 24));
            bytes = _mm256_blendv_epi8(bytes, _mm256_or_si256(first, second), four);
            ones = _mm256_xor_si256(ones, four);
        }
    }
    *odd = _mm256_movemask_ps(_mm256_castsi256_ps(ones));
    return bytes;
}

ST_FOR_AVX2 static ST_ALWAYS_INLINE size_t st_transcode_in_256(const void *text, int kind, size_t n,
                                                                     uint8_t *out) {
    uint8_t *begin = out;
    size_t i = 0, size;
    __m256i lone = _mm256_setzero_si256();
    for (; i + 16 <= n; i += 16) {
        const char *p = (const char *)text + i * (size_t)kind;
        __m256i codes[2], low = _mm256_loadu_si256((const __m256i *)p), high = low;
        if (kind == 4) high = _mm256_loadu_si256((const __m256i *)(p + 32));
        if (_mm256_testz_si256(_mm256_or_si256(low, high),
                               kind == 2 ? _mm256_set1_epi16(~0x7F) : _mm256_set1_epi32(~0x7F))) {
            if (kind == 4) low = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
            _mm_storeu_si128((__m128i *)out, _mm_packus_epi16(_mm256_castsi256_si128(low),
                                                              _mm256_extracti128_si256(low, 1)));
            out += 16;
            continue;
        }
        codes[0] = kind == 2 ? _mm256_cvtepu16_epi32(_mm256_castsi256_si128(low)) : low;
        codes[1] = kind == 2 ? _mm256_cvtepu16_epi32(_mm256_extracti128_si256(low, 1)) : high;
        for (int half = 0; half < 2; half++) {
            int odd, many, row;
            __m256i top = _mm256_and_si256(codes[half], _mm256_set1_epi32((int)0xFFFFF800u));
            __m256i bytes = st_eight_characters(kind, codes[half], &odd, &many);
            lone = _mm256_or_si256(lone, _mm256_cmpeq_epi32(top, _mm256_set1_epi32(0xD800)));
            row = (odd & 15) | (many & 15) << 4;
            _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(_mm256_castsi256_si128(bytes),
                                                              _mm_load_si128((const __m128i *)st_packings[row])));
            out += st_packing_sizes[row];
            row = odd >> 4 | (many & 0xF0);
            _mm_storeu_si128((__m128i *)out, _mm_shuffle_epi8(_mm256_extracti128_si256(bytes, 1),
                                                              _mm_load_si128((const __m128i *)st_packings[row])));
            out += st_packing_sizes[row];
        }
    }
    if (!_mm256_testz_si256(lone, lone)) return SIZE_MAX;
    text = (const char *)text + i * (size_t)kind;
    size = kind == 2 ? st_transcode_2((const uint16_t *)text, n - i, out)
                     : st_transcode_4((const uint32_t *)text, n - i, out);
    return size == SIZE_MAX ? size : (size_t)(out - begin) + size;
}

ST_FOR_AVX2 static size_t st_transcode_256(const void *text, int kind, size_t n, uint8_t *out) {
    if (kind == 1) return st_transcode_1((const uint8_t *)text, n, out);
    return kind == 2 ? st_transcode_in_256(text, 2, n, out) : st_transcode_in_256(text, 4, n, out);
}
#endif

#if defined(ST_NEON)

/* Writes four characters; returns the number of bytes written. */
static ST_ALWAYS_INLINE size_t st_four_characters_neon(uint32x4_t code, int may_have_four, uint8_t *out) {
    static const uint32_t odd_bits[4] = {1, 2, 4, 8}, many_bits[4] = {16, 32, 64, 128};
    const uint32x4_t low_six = vdupq_n_u32(0x3F), rest = vdupq_n_u32(0x80);
    uint32x4_t two = vcgtq_u32(code, vdupq_n_u32(0x7F)), three = vcgtq_u32(code, vdupq_n_u32(0x7FF));
    uint32x4_t six = vshrq_n_u32(code, 6), twelve = vshrq_n_u32(code, 12), ones = veorq_u32(two, three);
    /* Compute the last byte, the middle ones, then the first, whose high bits encode the length. */
    uint32x4_t last = vorrq_u32(vandq_u32(code, low_six), rest);
    uint32x4_t middle = vorrq_u32(vandq_u32(six, low_six), rest);
    uint32x4_t of_two = vsliq_n_u32(vorrq_u32(six, vdupq_n_u32(0xC0)), last, 8);
    uint32x4_t of_three = vsliq_n_u32(vorrq_u32(twelve, vdupq_n_u32(0xE0)), vsliq_n_u32(middle, last, 8), 8);
    uint32x4_t bytes = vbslq_u32(three, of_three, vbslq_u32(two, of_two, code));
    if (may_have_four) {
        uint32x4_t four = vcgtq_u32(code, vdupq_n_u32(0xFFFF));
        uint32x4_t second = vorrq_u32(vandq_u32(twelve, low_six), rest);
        uint32x4_t first = vorrq_u32(vshrq_n_u32(code, 18), vdupq_n_u32(0xF0));
        bytes = vbslq_u32(four, vsliq_n_u32(vsliq_n_u32(first, second, 8), vsliq_n_u32(middle, last, 8), 16), bytes);
        ones = veorq_u32(ones, four);
    }
    unsigned row = vaddvq_u32(vorrq_u32(vandq_u32(ones, vld1q_u32(odd_bits)), vandq_u32(three, vld1q_u32(many_bits))));
    vst1q_u8(out, vqtbl1q_u8(vreinterpretq_u8_u32(bytes), vld1q_u8(st_packings[row])));
    return st_packing_sizes[row];
}

/* Transcodes eight characters at a time. */
static size_t st_transcode_neon(const void *text, int kind, size_t n, uint8_t *out) {
    uint8_t *begin = out;
    size_t i = 0, size;
    uint32x4_t lone = vdupq_n_u32(0);
    if (kind == 1) return st_transcode_1((const uint8_t *)text, n, out);
    for (; i + 8 <= n; i += 8) {
        uint32x4_t low, high;
        if (kind == 2) {
            uint16x8_t units = vld1q_u16((const uint16_t *)text + i);
            if (vmaxvq_u16(units) < 0x80) {
                vst1_u8(out, vmovn_u16(units));
                out += 8;
                continue;
            }
            low = vmovl_u16(vget_low_u16(units));
            high = vmovl_high_u16(units);
        } else {
            low = vld1q_u32((const uint32_t *)text + i);
            high = vld1q_u32((const uint32_t *)text + i + 4);
        }
        for (int half = 0; half < 2; half++) {
            uint32x4_t code = half ? high : low;
            lone = vorrq_u32(lone, vceqq_u32(vandq_u32(code, vdupq_n_u32(0xFFFFF800u)), vdupq_n_u32(0xD800)));
            out += st_four_characters_neon(code, kind == 4, out);
        }
    }
    if (vmaxvq_u32(lone)) return SIZE_MAX;
    text = (const char *)text + i * (size_t)kind;
    size = kind == 2 ? st_transcode_2((const uint16_t *)text, n - i, out)
                     : st_transcode_4((const uint32_t *)text, n - i, out);
    return size == SIZE_MAX ? size : (size_t)(out - begin) + size;
}
#endif

/* Writes the UTF-8 of `n` code units of 1, 2 or 4 bytes (`kind`) to `out`; see ST_DEFINE_TRANSCODE. */
typedef size_t st_transcode_function(const void *text, int kind, size_t n, uint8_t *out);

static size_t st_transcode_plain(const void *text, int kind, size_t n, uint8_t *out) {
    switch (kind) {
    case 1: return st_transcode_1((const uint8_t *)text, n, out);
    case 2: return st_transcode_2((const uint16_t *)text, n, out);
    default: return st_transcode_4((const uint32_t *)text, n, out);
    }
}

static inline st_transcode_function *st_transcode_tier(int most) {
#if defined(ST_X86)
    if (st_level(most) >= ST_VBMI2) return st_transcode_512;
    if (st_level(most) >= ST_AVX2) {
        st_fill_packings();
        return st_transcode_256;
    }
#elif defined(ST_NEON)
    if (st_level(most) > ST_PLAIN) {
        st_fill_packings();
        return st_transcode_neon;
    }
#else
    (void)most;
#endif
    return st_transcode_plain;
}

/* Bytes that `out` needs for `n` code units, and for a str. */
static inline size_t st_transcode_capacity_of(int kind, size_t n) {
    return n * (kind == 1 ? 2 : kind == 2 ? 3 : 4) + ST_SLACK;
}

static inline size_t st_transcode_capacity(PyObject *text) {
    return st_transcode_capacity_of(PyUnicode_KIND(text), (size_t)PyUnicode_GET_LENGTH(text));
}

#endif
