/* CPython's str to UTF-8, into memory that is used again: PyUnicode_AsUTF8AndSize would leave a second
   copy with every str that has passed. */
#ifndef STREAMTOK_TRANSCODE_H
#define STREAMTOK_TRANSCODE_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

/* The UTF-8 that the str holds already (all of an ASCII one); NULL if none. */
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

/* UTF-8 of `n` code units into `out`, which has room for 4 bytes each and ST_SLACK; the bytes written,
   or SIZE_MAX if there is a lone surrogate. 16 ASCII characters at a time while there are so many. */
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

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define ST_WIDE_TRANSCODE 1
#include <immintrin.h>
#define ST_VBMI2 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi2,bmi2,popcnt")))

/* 16 characters at a time: each is written as four bytes, those that it does not have are left out.
   The compressing store is from the UTF-8 routines of simdutf (Lemire, Keiser and others). */
ST_VBMI2 static inline __attribute__((always_inline)) size_t st_transcode_wide(const void *text,
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
        /* The last byte, the one before and so on, then the first, whose high bits tell the length. */
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
        out += __builtin_popcountll(used);
    }
    return (size_t)(out - begin);
}

ST_VBMI2 static size_t st_transcode_512(const void *text, int kind, size_t n, uint8_t *out) {
    if (kind == 1) return st_transcode_wide(text, 1, n, out);
    if (kind == 2) return st_transcode_wide(text, 2, n, out);
    return st_transcode_wide(text, 4, n, out);
}
#endif

/* The UTF-8 of `n` code units of 1, 2 or 4 bytes (`kind`) into `out`; see ST_DEFINE_TRANSCODE. */
typedef size_t st_transcode_function(const void *text, int kind, size_t n, uint8_t *out);

static size_t st_transcode_plain(const void *text, int kind, size_t n, uint8_t *out) {
    switch (kind) {
    case 1: return st_transcode_1((const uint8_t *)text, n, out);
    case 2: return st_transcode_2((const uint16_t *)text, n, out);
    default: return st_transcode_4((const uint32_t *)text, n, out);
    }
}

static inline st_transcode_function *st_transcode_tier(int wanted) {
#if defined(ST_WIDE_TRANSCODE)
    __builtin_cpu_init();
    if (wanted && __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
        return st_transcode_512;
#else
    (void)wanted;
#endif
    return st_transcode_plain;
}

/* The most that is written for `n` code units, and for a str. */
static inline size_t st_transcode_room_of(int kind, size_t n) {
    return n * (kind == 1 ? 2 : kind == 2 ? 3 : 4) + ST_SLACK;
}

static inline size_t st_transcode_room(PyObject *text) {
    return st_transcode_room_of(PyUnicode_KIND(text), (size_t)PyUnicode_GET_LENGTH(text));
}

#endif
