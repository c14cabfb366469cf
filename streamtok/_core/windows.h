/* Window tables (pattern_windows.py) applied to 64 bytes at a time, in the widest way that the
   processor has: AVX-512 with VBMI, AVX2, NEON or plain C. All give the same masks; the plain one
   says what they are. */
#ifndef STREAMTOK_WINDOWS_H
#define STREAMTOK_WINDOWS_H

#include <stdint.h>
#include <string.h>

#define ST_MARGIN 8 /* bytes before the first position that must be readable, and true text */

typedef struct {
    uint8_t classes[128];
    uint8_t lefts[256];     /* by class << 4 | next class */
    uint8_t rights[256];
    uint8_t decisions[256]; /* by left << 4 | right: bit 0 begins, bit 1 undecided */
    uint8_t trigger;        /* 255: none */
    uint8_t reach;
} st_windows;

/* For each i < 64 * blocks: bit i of `begins` if a piece begins at p[i], of `open` if that cannot
   be told from the window. Reads p[-ST_MARGIN] .. p[64 * blocks]. */
typedef void st_mark_function(const st_windows *w, const uint8_t *p, size_t blocks,
                              uint64_t *begins, uint64_t *open);

/* What comes up to `reach` + 2 positions after a trigger; `before` are those of the block before. */
static inline uint64_t st_after_trigger(uint64_t found, uint64_t before, unsigned reach) {
    uint64_t after = found;
    for (unsigned k = 1; k <= reach + 2; k++) after |= found << k | before >> (64 - k);
    return after;
}

static inline uint64_t st_triggers_before(const st_windows *w, const uint8_t *p) {
    uint64_t before = 0;
    for (int k = 1; k <= ST_MARGIN; k++) before |= (uint64_t)(p[-k] == w->trigger) << (64 - k);
    return before;
}

static inline void st_mark_plain(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins,
                          uint64_t *open) {
    uint64_t before = st_triggers_before(w, p);
    uint8_t a = w->classes[p[-2] & 127], b = w->classes[p[-1] & 127], c = w->classes[p[0] & 127];
    uint32_t left_pair = w->lefts[a << 4 | b], next_left = w->lefts[b << 4 | c];
    uint32_t high = (p[-2] >> 7) << 2 | (p[-1] >> 7) << 1 | p[0] >> 7; /* of the last four */
    for (size_t block = 0; block < blocks; block++, p += 64) {
        uint64_t begin = 0, unsure = 0, found = 0;
        for (int i = 0; i < 64; i++) {
            uint8_t d = w->classes[p[i + 1] & 127];
            uint32_t pair = (uint32_t)c << 4 | d;
            uint64_t decision = w->decisions[left_pair << 4 | w->rights[pair]];
            high = (high << 1 | p[i + 1] >> 7) & 15;
            begin |= (decision & 1) << i;
            unsure |= (uint64_t)((decision >> 1) | (high != 0)) << i;
            found |= (uint64_t)(p[i] == w->trigger) << i;
            left_pair = next_left;
            next_left = w->lefts[pair];
            c = d;
        }
        unsure |= st_after_trigger(found, before, w->reach);
        unsure |= found >> 1 | (uint64_t)(p[64] == w->trigger) << 63;
        before = found;
        begins[block] = begin & ~unsure;
        open[block] = unsure;
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
    const __m512i trigger = _mm512_set1_epi8((char)w->trigger);
    uint64_t before = st_triggers_before(w, p);
    for (size_t block = 0; block < blocks; block++, p += 64) {
        __m512i a = _mm512_loadu_si512(p - 2), b = _mm512_loadu_si512(p - 1);
        __m512i c = _mm512_loadu_si512(p), d = _mm512_loadu_si512(p + 1);
        uint64_t unsure = _mm512_movepi8_mask(
            _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d)));
        uint64_t found = _mm512_cmpeq_epi8_mask(c, trigger);
        unsure |= _mm512_cmpeq_epi8_mask(d, trigger);
        if (found | before) unsure |= st_after_trigger(found, before, w->reach);
        before = found;
        a = _mm512_permutex2var_epi8(classes_low, a, classes_high);
        b = _mm512_permutex2var_epi8(classes_low, b, classes_high);
        c = _mm512_permutex2var_epi8(classes_low, c, classes_high);
        d = _mm512_permutex2var_epi8(classes_low, d, classes_high);
        __m512i left = st_look_up_512(lefts, _mm512_or_si512(_mm512_slli_epi16(a, 4), b));
        __m512i right = st_look_up_512(rights, _mm512_or_si512(_mm512_slli_epi16(c, 4), d));
        __m512i decision =
            st_look_up_512(decisions, _mm512_or_si512(_mm512_slli_epi16(left, 4), right));
        unsure |= _mm512_test_epi8_mask(decision, _mm512_set1_epi8(2));
        begins[block] = _mm512_test_epi8_mask(decision, _mm512_set1_epi8(1)) & ~unsure;
        open[block] = unsure;
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
                                        const uint8_t *p, uint32_t *begin, uint32_t *unsure,
                                        uint32_t *found) {
    __m256i a = _mm256_loadu_si256((const __m256i *)(p - 2));
    __m256i b = _mm256_loadu_si256((const __m256i *)(p - 1));
    __m256i c = _mm256_loadu_si256((const __m256i *)p);
    __m256i d = _mm256_loadu_si256((const __m256i *)(p + 1));
    __m256i any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    __m256i trigger = _mm256_set1_epi8((char)w->trigger);
    *found = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(c, trigger));
    *unsure = (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(any, _mm256_cmpeq_epi8(d, trigger)));
    a = st_look_up_256(w->classes, 8, a);
    b = st_look_up_256(w->classes, 8, b);
    c = st_look_up_256(w->classes, 8, c);
    d = st_look_up_256(w->classes, 8, d);
    __m256i left =
        st_look_up_256(w->lefts, rows, _mm256_or_si256(_mm256_slli_epi16(a, 4), b));
    __m256i right =
        st_look_up_256(w->rights, rows, _mm256_or_si256(_mm256_slli_epi16(c, 4), d));
    __m256i decision = st_look_up_256(w->decisions, left_rows,
                                      _mm256_or_si256(_mm256_slli_epi16(left, 4), right));
    *begin = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(decision, 7));
    *unsure |= (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(decision, 6));
}

ST_AVX2 static inline void st_mark_avx2(const st_windows *w, const uint8_t *p, size_t blocks,
                                 uint64_t *begins, uint64_t *open) {
    uint64_t before = st_triggers_before(w, p);
    int rows = 0, left_rows = 0;
    for (int k = 0; k < 128; k++) rows = w->classes[k] >= rows ? w->classes[k] + 1 : rows;
    for (int k = 0; k < 256; k++) left_rows = w->lefts[k] >= left_rows ? w->lefts[k] + 1 : left_rows;
    for (size_t block = 0; block < blocks; block++, p += 64) {
        uint32_t begin[2], unsure[2], found[2];
        st_mark_half(w, rows, left_rows, p, begin, unsure, found);
        st_mark_half(w, rows, left_rows, p + 32, begin + 1, unsure + 1, found + 1);
        uint64_t triggers = (uint64_t)found[1] << 32 | found[0];
        uint64_t undecided = (uint64_t)unsure[1] << 32 | unsure[0];
        undecided |= st_after_trigger(triggers, before, w->reach);
        before = triggers;
        begins[block] = ((uint64_t)begin[1] << 32 | begin[0]) & ~undecided;
        open[block] = undecided;
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
    uint64_t before = st_triggers_before(w, p);
    const uint8x16_t trigger = vdupq_n_u8(w->trigger);
    for (size_t block = 0; block < blocks; block++, p += 64) {
        uint64_t begin = 0, unsure = 0, found = 0;
        for (int k = 0; k < 64; k += 16) {
            uint8x16_t a = vld1q_u8(p + k - 2), b = vld1q_u8(p + k - 1);
            uint8x16_t c = vld1q_u8(p + k), d = vld1q_u8(p + k + 1);
            uint8x16_t any = vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d));
            any = vorrq_u8(any, vceqq_u8(d, trigger));
            found |= st_top_bits_neon(vceqq_u8(c, trigger)) << k;
            a = st_look_up_neon(w->classes, 2, a);
            b = st_look_up_neon(w->classes, 2, b);
            c = st_look_up_neon(w->classes, 2, c);
            d = st_look_up_neon(w->classes, 2, d);
            uint8x16_t left = st_look_up_neon(w->lefts, 4, vorrq_u8(vshlq_n_u8(a, 4), b));
            uint8x16_t right = st_look_up_neon(w->rights, 4, vorrq_u8(vshlq_n_u8(c, 4), d));
            uint8x16_t decision =
                st_look_up_neon(w->decisions, 4, vorrq_u8(vshlq_n_u8(left, 4), right));
            begin |= st_top_bits_neon(vshlq_n_u8(decision, 7)) << k;
            unsure |= st_top_bits_neon(vorrq_u8(any, vshlq_n_u8(decision, 6))) << k;
        }
        unsure |= st_after_trigger(found, before, w->reach);
        before = found;
        begins[block] = begin & ~unsure;
        open[block] = unsure;
    }
}
#endif

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
