/* Window tables (pattern_windows.py) applied to 64 bytes at a time, in the widest way that the
   processor has: AVX-512 with VBMI, AVX2, NEON or plain C. All give the same masks; the plain one
   says what they are. */
#ifndef STREAMTOK_WINDOWS_H
#define STREAMTOK_WINDOWS_H

#include <stdint.h>
#include <string.h>

#include "native.h"

#define ST_MARGIN 8 /* bytes before the first position that must be readable, and true text */

typedef struct {
    uint8_t classes[128];   /* the highest bit: a follower */
    uint8_t lefts[256];     /* by class << 4 | next class */
    uint8_t rights[256];
    uint8_t decisions[256]; /* by left << 4 | right: bit 0 begins, bit 1 undecided */
    uint8_t trigger;        /* a character; 255: none */
    uint8_t reach;
    uint8_t counted;        /* a class; 255: none */
    uint8_t count;
} st_windows;

/* For each i < 64 * blocks: bit i of `begins` if a pre-token begins at p[i], of `open` if that cannot
   be told from the window. Reads p[-ST_MARGIN] .. p[64 * blocks]. */
typedef void st_mark_function(const st_windows *w, const uint8_t *p, size_t blocks,
                              uint64_t *begins, uint64_t *open);

/* What the windows of 64 positions say, before what they cannot see is added. */
typedef struct {
    uint64_t begins, open;
    uint64_t high;    /* bytes that are not ASCII */
    uint64_t found;   /* triggers before a follower, or before what is not ASCII */
    uint64_t counted; /* characters of the counted class */
} st_seen;

typedef struct {      /* of the block before */
    uint64_t found, counted, starts, known;
} st_carry;

static inline uint64_t st_shifted(uint64_t bits, uint64_t before, unsigned k) {
    return bits << k | before >> (64 - k);
}

/* What comes up to `reach` + 3 positions after a trigger, itself among them. */
static inline uint64_t st_after_trigger(uint64_t found, uint64_t before, unsigned reach) {
    uint64_t after = found;
    for (unsigned k = 1; k <= reach + 3; k++) after |= st_shifted(found, before, k);
    return after;
}

static inline st_carry st_carry_before(const st_windows *w, const uint8_t *p) {
    st_carry carry = {0, 0, 0, 0};
    for (int k = 1; k <= ST_MARGIN; k++) {
        uint8_t here = p[-k], next = p[1 - k];
        int is_pair = here == w->trigger && (next >= 0x80 || w->classes[next] >= 0x80);
        carry.found |= (uint64_t)(is_pair || here >= 0x80) << (64 - k);
        carry.counted |= (uint64_t)(here < 0x80 && (w->classes[here] & 15) == w->counted) << (64 - k);
    }
    return carry;
}

/* Opens what comes after a trigger, and closes runs of the counted class whose beginning is certain. */
static inline void st_finish(const st_windows *w, const st_seen *seen, st_carry *carry,
                             uint64_t *begins, uint64_t *open) {
    uint64_t begin = seen->begins, unsure = seen->open | seen->high, found = seen->found;
    if (found | carry->found) {
        /* A character counts once, however many bytes it has. */
        uint64_t after = st_after_trigger(found, carry->found, w->reach), more;
        while ((more = after & seen->high & ~found) != 0) {
            found |= more;
            after = st_after_trigger(found, carry->found, w->reach);
        }
        unsure |= after;
    }
    carry->found = found;
    begin &= ~unsure;
    if (seen->counted) {
        uint64_t all = seen->counted, before = carry->counted, row = all;
        uint64_t starts = all & ~st_shifted(all, before, 1) & begin, known;
        for (unsigned k = 1; k < w->count; k++) row &= st_shifted(all, before, k);
        starts |= carry->starts >> (64 - w->count) & row;
        for (unsigned k = w->count; k < 64; k *= 2) {
            starts |= starts << k & row;
            row &= row << k;
        }
        known = starts;
        for (unsigned k = 1; k < w->count; k++) known |= st_shifted(known, carry->known, 1) & all;
        begin = (begin & ~known) | starts;
        unsure &= ~known;
        carry->starts = starts;
        carry->known = known;
    } else {
        carry->starts = carry->known = 0;
    }
    carry->counted = seen->counted;
    *begins = begin;
    *open = unsure;
}

static inline void st_mark_plain(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins,
                          uint64_t *open) {
    st_carry carry = st_carry_before(w, p);
    uint8_t a = w->classes[p[-2] & 127] & 15, b = w->classes[p[-1] & 127] & 15;
    uint8_t c = w->classes[p[0] & 127] & 15;
    uint32_t left_pair = w->lefts[a << 4 | b], next_left = w->lefts[b << 4 | c];
    uint32_t high = (p[-2] >> 7) << 2 | (p[-1] >> 7) << 1 | p[0] >> 7; /* of the last four */
    for (size_t block = 0; block < blocks; block++, p += 64) {
        st_seen seen = {0, 0, 0, 0, 0};
        for (int i = 0; i < 64; i++) {
            uint8_t raw = w->classes[p[i + 1] & 127], d = raw & 15;
            uint32_t pair = (uint32_t)c << 4 | d;
            uint64_t decision = w->decisions[left_pair << 4 | w->rights[pair]];
            int is_follower = p[i + 1] >= 0x80 || raw >= 0x80;
            high = (high << 1 | p[i + 1] >> 7) & 15;
            seen.begins |= (decision & 1) << i;
            seen.open |= (uint64_t)((decision >> 1) | (high != 0)) << i;
            seen.high |= (uint64_t)(p[i] >> 7) << i;
            seen.found |= (uint64_t)(p[i] == w->trigger && is_follower) << i;
            seen.counted |= (uint64_t)(p[i] < 0x80 && c == w->counted) << i;
            left_pair = next_left;
            next_left = w->lefts[pair];
            c = d;
        }
        st_finish(w, &seen, &carry, begins + block, open + block);
    }
}

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define ST_X86 1
#include <immintrin.h>

#define ST_AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi")))

/* table[index] for 64 indices and 256 entries. */
ST_AVX512 static inline __m512i st_look_up_512(const __m512i *table, __m512i index) {
    __m512i low = _mm512_permutex2var_epi8(table[0], index, table[1]);
    __m512i high = _mm512_permutex2var_epi8(table[2], index, table[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

ST_AVX512 static inline void st_mark_avx512(const st_windows *w, const uint8_t *p, size_t blocks,
                                     uint64_t *begins, uint64_t *open) {
    __m512i lefts[4], rights[4], decisions[4];
    for (int k = 0; k < 4; k++) {
        lefts[k] = _mm512_loadu_si512(w->lefts + 64 * k);
        rights[k] = _mm512_loadu_si512(w->rights + 64 * k);
        decisions[k] = _mm512_loadu_si512(w->decisions + 64 * k);
    }
    const __m512i classes_low = _mm512_loadu_si512(w->classes);
    const __m512i classes_high = _mm512_loadu_si512(w->classes + 64);
    const __m512i trigger = _mm512_set1_epi8((char)w->trigger), nibble = _mm512_set1_epi8(15);
    const __m512i counted = _mm512_set1_epi8((char)w->counted);
    st_carry carry = st_carry_before(w, p);
    for (size_t block = 0; block < blocks; block++, p += 64) {
        __m512i a = _mm512_loadu_si512(p - 2), b = _mm512_loadu_si512(p - 1);
        __m512i c = _mm512_loadu_si512(p), d = _mm512_loadu_si512(p + 1);
        st_seen seen;
        uint64_t next_high = _mm512_movepi8_mask(d);
        seen.open = _mm512_movepi8_mask(_mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d)));
        seen.high = _mm512_movepi8_mask(c);
        seen.found = _mm512_cmpeq_epi8_mask(c, trigger);
        a = _mm512_permutex2var_epi8(classes_low, a, classes_high);
        b = _mm512_permutex2var_epi8(classes_low, b, classes_high);
        c = _mm512_and_si512(_mm512_permutex2var_epi8(classes_low, c, classes_high), nibble);
        d = _mm512_permutex2var_epi8(classes_low, d, classes_high);
        seen.found &= _mm512_movepi8_mask(d) | next_high;
        seen.counted = _mm512_cmpeq_epi8_mask(c, counted) & ~seen.high;
        b = _mm512_and_si512(b, nibble);
        d = _mm512_and_si512(d, nibble);
        a = _mm512_slli_epi16(_mm512_and_si512(a, nibble), 4);
        __m512i left = st_look_up_512(lefts, _mm512_or_si512(a, b));
        __m512i right = st_look_up_512(rights, _mm512_or_si512(_mm512_slli_epi16(c, 4), d));
        __m512i decision =
            st_look_up_512(decisions, _mm512_or_si512(_mm512_slli_epi16(left, 4), right));
        seen.open |= _mm512_test_epi8_mask(decision, _mm512_set1_epi8(2));
        seen.begins = _mm512_test_epi8_mask(decision, _mm512_set1_epi8(1));
        st_finish(w, &seen, &carry, begins + block, open + block);
    }
}

#define ST_AVX2 __attribute__((target("avx2")))

/* table[index] for 32 indices: `rows` times 16 entries, each row looked up and kept where the high
   nibble of the index is the row's. */
ST_AVX2 static inline __m256i st_look_up_256(const uint8_t *table, int rows, __m256i index) {
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i low = _mm256_and_si256(index, nibble);
    __m256i row_of = _mm256_and_si256(_mm256_srli_epi16(index, 4), nibble);
    __m256i result = _mm256_setzero_si256();
    for (int row = 0; row < rows; row++) {
        __m256i entries =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + 16 * row)));
        __m256i is_row = _mm256_cmpeq_epi8(row_of, _mm256_set1_epi8((char)row));
        result = _mm256_or_si256(
            result, _mm256_and_si256(is_row, _mm256_shuffle_epi8(entries, low)));
    }
    return result;
}

ST_AVX2 static inline void st_mark_half(const st_windows *w, int rows, int left_rows,
                                        const uint8_t *p, int shift, st_seen *seen) {
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i a = _mm256_loadu_si256((const __m256i *)(p - 2));
    __m256i b = _mm256_loadu_si256((const __m256i *)(p - 1));
    __m256i c = _mm256_loadu_si256((const __m256i *)p);
    __m256i d = _mm256_loadu_si256((const __m256i *)(p + 1));
    __m256i any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    __m256i is_trigger = _mm256_cmpeq_epi8(c, _mm256_set1_epi8((char)w->trigger));
    __m256i next = d;
    uint32_t high = (uint32_t)_mm256_movemask_epi8(c);
    a = _mm256_and_si256(st_look_up_256(w->classes, 8, a), nibble);
    b = _mm256_and_si256(st_look_up_256(w->classes, 8, b), nibble);
    c = _mm256_and_si256(st_look_up_256(w->classes, 8, c), nibble);
    d = st_look_up_256(w->classes, 8, d);
    __m256i found = _mm256_and_si256(is_trigger, _mm256_or_si256(d, next));
    __m256i counted = _mm256_cmpeq_epi8(c, _mm256_set1_epi8((char)w->counted));
    d = _mm256_and_si256(d, nibble);
    __m256i left =
        st_look_up_256(w->lefts, rows, _mm256_or_si256(_mm256_slli_epi16(a, 4), b));
    __m256i right =
        st_look_up_256(w->rights, rows, _mm256_or_si256(_mm256_slli_epi16(c, 4), d));
    __m256i decision = st_look_up_256(w->decisions, left_rows,
                                      _mm256_or_si256(_mm256_slli_epi16(left, 4), right));
    __m256i unsure = _mm256_or_si256(any, _mm256_slli_epi16(decision, 6));
    seen->high |= (uint64_t)high << shift;
    seen->found |= (uint64_t)(uint32_t)_mm256_movemask_epi8(found) << shift;
    seen->counted |= (uint64_t)((uint32_t)_mm256_movemask_epi8(counted) & ~high) << shift;
    seen->open |= (uint64_t)(uint32_t)_mm256_movemask_epi8(unsure) << shift;
    seen->begins |=
        (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(decision, 7)) << shift;
}

ST_AVX2 static inline void st_mark_avx2(const st_windows *w, const uint8_t *p, size_t blocks,
                                 uint64_t *begins, uint64_t *open) {
    st_carry carry = st_carry_before(w, p);
    int rows = 0, left_rows = 0;
    for (int k = 0; k < 128; k++) {
        int number = w->classes[k] & 15;
        rows = number >= rows ? number + 1 : rows;
    }
    for (int k = 0; k < 256; k++) left_rows = w->lefts[k] >= left_rows ? w->lefts[k] + 1 : left_rows;
    for (size_t block = 0; block < blocks; block++, p += 64) {
        st_seen seen = {0, 0, 0, 0, 0};
        st_mark_half(w, rows, left_rows, p, 0, &seen);
        st_mark_half(w, rows, left_rows, p + 32, 32, &seen);
        st_finish(w, &seen, &carry, begins + block, open + block);
    }
}
#endif

#if defined(__aarch64__)
#define ST_NEON 1
#include <arm_neon.h>

/* table[index] for 16 indices and 64 * parts entries. */
static inline uint8x16_t st_look_up_neon(const uint8_t *table, int parts, uint8x16_t index) {
    uint8x16_t result = vdupq_n_u8(0);
    for (int part = 0; part < parts; part++) {
        uint8x16x4_t entries = vld1q_u8_x4(table + 64 * part);
        uint8x16_t at = vsubq_u8(index, vdupq_n_u8((uint8_t)(64 * part)));
        result = vorrq_u8(result, vqtbl4q_u8(entries, at)); /* 0 where `at` is beyond 63 */
    }
    return result;
}

/* Bit i: the highest bit of byte i. */
static inline uint64_t st_top_bits_neon(uint8x16_t v) {
    static const int8_t shifts[16] = {-7, -6, -5, -4, -3, -2, -1, 0, -7, -6, -5, -4, -3, -2, -1, 0};
    uint8x16_t bits = vshlq_u8(vandq_u8(v, vdupq_n_u8(0x80)), vld1q_s8(shifts));
    return (uint64_t)vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

static inline void st_mark_neon(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins,
                         uint64_t *open) {
    st_carry carry = st_carry_before(w, p);
    const uint8x16_t trigger = vdupq_n_u8(w->trigger), nibble = vdupq_n_u8(15);
    const uint8x16_t counted = vdupq_n_u8(w->counted);
    for (size_t block = 0; block < blocks; block++, p += 64) {
        st_seen seen = {0, 0, 0, 0, 0};
        for (int k = 0; k < 64; k += 16) {
            uint8x16_t a = vld1q_u8(p + k - 2), b = vld1q_u8(p + k - 1);
            uint8x16_t c = vld1q_u8(p + k), d = vld1q_u8(p + k + 1), next = d;
            uint8x16_t any = vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d));
            uint8x16_t is_trigger = vceqq_u8(c, trigger);
            uint64_t high = st_top_bits_neon(c);
            a = vandq_u8(st_look_up_neon(w->classes, 2, a), nibble);
            b = vandq_u8(st_look_up_neon(w->classes, 2, b), nibble);
            c = vandq_u8(st_look_up_neon(w->classes, 2, c), nibble);
            d = st_look_up_neon(w->classes, 2, d);
            seen.high |= high << k;
            seen.found |= st_top_bits_neon(vandq_u8(is_trigger, vorrq_u8(d, next))) << k;
            seen.counted |= (st_top_bits_neon(vceqq_u8(c, counted)) & ~high) << k;
            d = vandq_u8(d, nibble);
            uint8x16_t left = st_look_up_neon(w->lefts, 4, vorrq_u8(vshlq_n_u8(a, 4), b));
            uint8x16_t right = st_look_up_neon(w->rights, 4, vorrq_u8(vshlq_n_u8(c, 4), d));
            uint8x16_t decision =
                st_look_up_neon(w->decisions, 4, vorrq_u8(vshlq_n_u8(left, 4), right));
            seen.begins |= st_top_bits_neon(vshlq_n_u8(decision, 7)) << k;
            seen.open |= st_top_bits_neon(vorrq_u8(any, vshlq_n_u8(decision, 6))) << k;
        }
        st_finish(w, &seen, &carry, begins + block, open + block);
    }
}
#endif

/* Puts base + i into `ends` for each bit i that is set, in order, and returns how many these are. There
   must be room for 64. */
typedef size_t st_place_function(uint64_t bits, size_t base, int64_t *ends);

static inline size_t st_place_plain(uint64_t bits, size_t base, int64_t *ends) {
    size_t count = 0;
    for (; bits; bits &= bits - 1) ends[count++] = (int64_t)(base + (size_t)st_lowest(bits));
    return count;
}

#if defined(ST_X86)
__attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt"))) static inline size_t st_place_512(
    uint64_t bits, size_t base, int64_t *ends) {
    static const uint8_t numbers[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    size_t count = (size_t)__builtin_popcountll(bits), i = 0;
    uint8_t places[64] __attribute__((aligned(64)));
    __m512i start = _mm512_set1_epi64((long long)base);
    __m512i found = _mm512_maskz_compress_epi8(bits, _mm512_load_si512(numbers));
    __m128i first = _mm512_castsi512_si128(found);
    _mm512_storeu_si512(ends, _mm512_add_epi64(start, _mm512_cvtepu8_epi64(first)));
    _mm512_storeu_si512(ends + 8,
                        _mm512_add_epi64(start, _mm512_cvtepu8_epi64(_mm_srli_si128(first, 8))));
    if (count > 16) {
        _mm512_store_si512(places, found);
        for (i = 16; i < count; i += 8)
            _mm512_storeu_si512(ends + i, _mm512_add_epi64(start, _mm512_cvtepu8_epi64(_mm_loadl_epi64(
                                                                     (const __m128i *)(places + i)))));
    }
    return count;
}
#endif

static inline st_place_function *st_place_tier(void) {
#if defined(ST_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw")) return st_place_512;
#endif
    return st_place_plain;
}

/* The tiers that this processor can run, the fastest first; NULL ends the list. */
static inline st_mark_function *st_mark_tier(int number, const char **name) {
    int k = 0;
#if defined(ST_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") && k++ == number) {
        *name = "avx512";
        return st_mark_avx512;
    }
    if (__builtin_cpu_supports("avx2") && k++ == number) {
        *name = "avx2";
        return st_mark_avx2;
    }
#endif
#if defined(ST_NEON)
    if (k++ == number) {
        *name = "neon";
        return st_mark_neon;
    }
#endif
    if (k == number) {
        *name = "plain";
        return st_mark_plain;
    }
    return NULL;
}

#endif
