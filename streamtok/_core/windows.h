/* Window tables (patterns/windows.py) applied to 64 bytes at a time, in the widest way that the
   processor has: AVX-512 with VBMI, AVX2, NEON or plain C. All give the same masks; the plain one
   says what they are. */
#ifndef STREAMTOK_WINDOWS_H
#define STREAMTOK_WINDOWS_H

#include <stdint.h>
#include <string.h>

#include "native.h"
#include "window_seen.h"
#include "windows_512.h"

/* For each i < 64 * blocks: bit i of `begins` if a pre-token begins at p[i], of `open` if that cannot
   be told from the window. Reads p[-ST_MARGIN] .. p[64 * blocks]. */
typedef void st_mark_function(const st_windows *w, const uint8_t *p, size_t blocks,
                              uint64_t *begins, uint64_t *open);

static inline void st_mark_plain(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins,
                          uint64_t *open) {
    st_carry carry = st_carry_before(w, p);
    uint8_t a = w->classes[p[-2] & 127] & ST_CLASS, b = w->classes[p[-1] & 127] & ST_CLASS;
    uint8_t raw = w->classes[p[0] & 127], c = raw & ST_CLASS;
    uint32_t left_pair = w->lefts[a << 4 | b], next_left = w->lefts[b << 4 | c];
    uint32_t high = (p[-2] >> 7) << 2 | (p[-1] >> 7) << 1 | p[0] >> 7; /* of the last four */
    for (size_t block = 0; block < blocks; block++, p += 64) {
        st_seen seen = {0, 0, 0, 0, 0, 0, 0, 0};
        for (int i = 0; i < 64; i++) {
            uint8_t next = w->classes[p[i + 1] & 127], d = next & ST_CLASS;
            uint32_t pair = (uint32_t)c << 4 | d;
            uint64_t decision = w->decisions[left_pair << 4 | w->rights[pair]];
            int is_found = p[i] == w->trigger && st_is_follower(w, p[i + 1]) &&
                           !st_is_harmless(w, p[i - 1]);
            high = (high << 1 | p[i + 1] >> 7) & 15;
            seen.begins |= (decision & 1) << i;
            seen.open |= (uint64_t)((decision >> 1) | (high != 0)) << i;
            seen.high |= (uint64_t)(p[i] >> 7) << i;
            seen.found |= (uint64_t)is_found << i;
            seen.counted |= (uint64_t)(p[i] < 0x80 && c == w->counted) << i;
            seen.same |= (uint64_t)((high & 3) == 0 && c == d) << i;
            seen.rows |= (uint64_t)(high == 0 && c == d && decision >> 1 && raw & ST_RUN) << i;
            seen.ends |= (uint64_t)(p[i] < 0x80 && raw & ST_ENDS_RUN) << i;
            left_pair = next_left;
            next_left = w->lefts[pair];
            raw = next;
            c = d;
        }
        st_finish(w, &seen, &carry, begins + block, open + block);
    }
}

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define ST_X86 1
#include <immintrin.h>

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
    __m256i next = d, wide = _mm256_or_si256(c, d);
    uint32_t high = (uint32_t)_mm256_movemask_epi8(c);
    a = _mm256_and_si256(st_look_up_256(w->classes, 8, a), nibble);
    b = st_look_up_256(w->classes, 8, b); /* 0 for what is not ASCII */
    c = st_look_up_256(w->classes, 8, c);
    d = st_look_up_256(w->classes, 8, d);
    __m256i found = _mm256_and_si256(is_trigger, _mm256_or_si256(d, next));
    found = _mm256_andnot_si256(_mm256_slli_epi16(b, 1), found); /* the bit of ST_HARMLESS */
    __m256i ends = _mm256_slli_epi16(c, 3), in_row = _mm256_slli_epi16(c, 2);
    b = _mm256_and_si256(b, nibble);
    c = _mm256_and_si256(c, nibble);
    d = _mm256_and_si256(d, nibble);
    __m256i counted = _mm256_cmpeq_epi8(c, _mm256_set1_epi8((char)w->counted));
    __m256i same = _mm256_andnot_si256(wide, _mm256_cmpeq_epi8(c, d));
    __m256i left =
        st_look_up_256(w->lefts, rows, _mm256_or_si256(_mm256_slli_epi16(a, 4), b));
    __m256i right =
        st_look_up_256(w->rights, rows, _mm256_or_si256(_mm256_slli_epi16(c, 4), d));
    __m256i decision = st_look_up_256(w->decisions, left_rows,
                                      _mm256_or_si256(_mm256_slli_epi16(left, 4), right));
    __m256i undecided = _mm256_slli_epi16(decision, 6);
    __m256i unsure = _mm256_or_si256(any, undecided);
    in_row = _mm256_and_si256(_mm256_and_si256(in_row, same), _mm256_andnot_si256(any, undecided));
    seen->high |= (uint64_t)high << shift;
    seen->found |= (uint64_t)(uint32_t)_mm256_movemask_epi8(found) << shift;
    seen->counted |= (uint64_t)((uint32_t)_mm256_movemask_epi8(counted) & ~high) << shift;
    seen->same |= (uint64_t)(uint32_t)_mm256_movemask_epi8(same) << shift;
    seen->rows |= (uint64_t)(uint32_t)_mm256_movemask_epi8(in_row) << shift;
    seen->ends |= (uint64_t)(uint32_t)_mm256_movemask_epi8(ends) << shift;
    seen->open |= (uint64_t)(uint32_t)_mm256_movemask_epi8(unsure) << shift;
    seen->begins |=
        (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(decision, 7)) << shift;
}

ST_AVX2 static inline void st_mark_avx2(const st_windows *w, const uint8_t *p, size_t blocks,
                                 uint64_t *begins, uint64_t *open) {
    st_carry carry = st_carry_before(w, p);
    int rows = w->n_classes, left_rows = w->n_lefts;
    if (rows > 16 || left_rows > 16) __builtin_unreachable(); /* so the loops over them are unrolled */
    for (size_t block = 0; block < blocks; block++, p += 64) {
        st_seen seen = {0, 0, 0, 0, 0, 0, 0, 0};
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
        st_seen seen = {0, 0, 0, 0, 0, 0, 0, 0};
        for (int k = 0; k < 64; k += 16) {
            uint8x16_t a = vld1q_u8(p + k - 2), b = vld1q_u8(p + k - 1);
            uint8x16_t c = vld1q_u8(p + k), d = vld1q_u8(p + k + 1), next = d;
            uint8x16_t any = vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d));
            uint8x16_t is_trigger = vceqq_u8(c, trigger);
            uint64_t high = st_top_bits_neon(c);
            a = vandq_u8(st_look_up_neon(w->classes, 2, a), nibble);
            b = st_look_up_neon(w->classes, 2, b); /* 0 for what is not ASCII */
            uint8x16_t raw = st_look_up_neon(w->classes, 2, c), wide = vorrq_u8(c, next);
            d = st_look_up_neon(w->classes, 2, d);
            uint8x16_t found = vandq_u8(is_trigger, vorrq_u8(d, next));
            found = vbicq_u8(found, vshlq_n_u8(b, 1)); /* the bit of ST_HARMLESS */
            b = vandq_u8(b, nibble);
            c = vandq_u8(raw, nibble);
            uint8x16_t same = vbicq_u8(vceqq_u8(c, vandq_u8(d, nibble)), wide);
            seen.high |= high << k;
            seen.found |= st_top_bits_neon(found) << k;
            seen.same |= st_top_bits_neon(same) << k;
            seen.ends |= st_top_bits_neon(vshlq_n_u8(raw, 3)) << k;
            seen.counted |= (st_top_bits_neon(vceqq_u8(c, counted)) & ~high) << k;
            d = vandq_u8(d, nibble);
            uint8x16_t left = st_look_up_neon(w->lefts, 4, vorrq_u8(vshlq_n_u8(a, 4), b));
            uint8x16_t right = st_look_up_neon(w->rights, 4, vorrq_u8(vshlq_n_u8(c, 4), d));
            uint8x16_t decision =
                st_look_up_neon(w->decisions, 4, vorrq_u8(vshlq_n_u8(left, 4), right));
            seen.begins |= st_top_bits_neon(vshlq_n_u8(decision, 7)) << k;
            uint8x16_t undecided = vshlq_n_u8(decision, 6);
            uint8x16_t rows = vandq_u8(vandq_u8(vshlq_n_u8(raw, 2), same), vbicq_u8(undecided, any));
            seen.rows |= st_top_bits_neon(rows) << k;
            seen.open |= st_top_bits_neon(vorrq_u8(any, undecided)) << k;
        }
        st_finish(w, &seen, &carry, begins + block, open + block);
    }
}
#endif

#define ST_REST_BLOCKS 5
#define ST_REST (64 * ST_REST_BLOCKS)
#define ST_REST_SIZE (ST_REST + 3)

/* Copies what is to be marked of the last n bytes that are there, or of the first of them; how many
   blocks to mark. A last block is there for `extra` bytes, not for fewer. Three bytes behind the blocks
   are there, too. What stands for the bytes behind p[:n] is not ASCII: so each place to which they could
   matter is open, and the others are as they are whatever follows. */
static inline size_t st_copy_rest(uint8_t *to, const uint8_t *p, size_t n, size_t extra) {
    size_t blocks = n < ST_REST ? (n + 64 - extra) >> 6 : ST_REST_BLOCKS, most = 64 * blocks + 3;
    if (n > most) n = most;
    memcpy(to, p, n);
    memset(to + n, 0xFF, most - n);
    return blocks;
}

/* The tiers that this processor can run, the fastest first; NULL ends the list. from: the bytes from
   which marking is faster than walking; extra: the same of one more block. */
static inline st_mark_function *st_mark_tier(int number, const char **name, size_t *from,
                                             size_t *extra) {
    int k = 0;
    *from = 128;
    *extra = 40;
#if defined(ST_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") && k++ == number) {
        *name = "avx512";
        *from = 40;
        *extra = 8;
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
