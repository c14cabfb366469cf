/* Window tables (patterns/windows.py) applied to 64 bytes at a time, in the widest way that the
   processor has: AVX-512 with VBMI, AVX2, NEON or plain C. All give the same masks; the plain one
   says what they are. */
#ifndef STREAMTOK_WINDOWS_H
#define STREAMTOK_WINDOWS_H

#include <stdint.h>
#include <string.h>

#include "base/native.h"
#include "scan/window_group.h"
#include "scan/window_seen.h"
#include "scan/windows_512.h"

/* For each i < 64 * blocks: bit i of `begins` if a pre-token begins at p[i], of `open` if that cannot
   be told from the window. Reads p[-ST_MARGIN] .. p[64 * blocks]. */
typedef void st_mark_function(const st_windows *w, const uint8_t *p, size_t blocks,
                              uint64_t *begins, uint64_t *open);

static void st_fill_plain(const st_windows *w, const uint8_t *p, size_t blocks, st_group *g) {
    uint8_t *classes = g->classes + ST_BEFORE, *pairs = g->pairs + ST_BEFORE, decisions[64], trigger[64], counted[64];
    int size = (int)(64 * blocks);
    memset(trigger, w->trigger, sizeof trigger);
    memset(counted, w->counted, sizeof counted);
    for (int i = 0; i < size; i++) classes[i] = w->classes[p[i] & 127];
    for (int i = -2; i < size; i++) pairs[i] = w->pairs[(classes[i] & ST_CLASS) << 4 | (classes[i + 1] & ST_CLASS)];
    for (size_t k = 0; k < blocks; k++, p += 64, classes += 64, pairs += 64) {
        for (int i = 0; i < 64; i++) decisions[i] = w->decisions[(pairs[i - 2] & 0xF0) | (pairs[i] & 15)];
        g->high[k] = st_tops(p, 0);
        g->triggers[k] = st_alike(p, trigger, 0xFF);
        g->counted[k] = st_alike(classes, counted, ST_CLASS);
        g->begins[k] = st_tops(decisions, 7);
        g->undecided[k] = st_tops(decisions, 6);
    }
}

static void st_mark_plain(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins, uint64_t *open) {
    st_mark_in_groups(st_fill_plain, w, p, blocks, begins, open);
}

#if defined(ST_X86)

#define ST_TABLE_256(p) _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(p)))
#define ST_LOAD_256(p) _mm256_loadu_si256((const __m256i *)(p))

/* table[index] for 32 indices below 16 * rows, rows <= 8, and 0 for those from 128 on. `steps` are the rows of
   the table, each but the first as the difference to the one before: an index reaches all rows up to its own,
   and beyond, where it is below zero, a shuffle gives 0. */
ST_FOR_AVX2 static ST_ALWAYS_INLINE __m256i st_steps_256(const uint8_t *steps, int rows, __m256i index) {
    __m256i result = _mm256_shuffle_epi8(ST_TABLE_256(steps), index);
    for (int row = 1; row < rows; row++) {
        index = _mm256_subs_epi8(index, _mm256_set1_epi8(16));
        result = _mm256_xor_si256(result, _mm256_shuffle_epi8(ST_TABLE_256(steps + 16 * row), index));
    }
    return result;
}

ST_FOR_AVX2 static ST_ALWAYS_INLINE uint64_t st_tops_256(const __m256i *halves) {
    return (uint32_t)_mm256_movemask_epi8(halves[0]) | (uint64_t)(uint32_t)_mm256_movemask_epi8(halves[1]) << 32;
}

/* rows: of the numbers of pairs; sets: of eight kinds of right pairs each. */
ST_FOR_AVX2 static ST_ALWAYS_INLINE void st_fill_in_256(int rows, int sets, const st_windows *w,
                                                                         const uint8_t *p, size_t blocks,
                                                                         st_group *g) {
    const __m256i nibble = _mm256_set1_epi8(15), zero = _mm256_setzero_si256(), times = ST_TABLE_256(w->times);
    const __m256i trigger = _mm256_set1_epi8((char)w->trigger), counted = _mm256_set1_epi8((char)w->counted);
    uint8_t *classes = g->classes + ST_BEFORE, *pairs = g->pairs + ST_BEFORE;
    __m256i is[2], has[2];
    for (size_t k = 0; k < blocks; k++) {
        for (int half = 0; half < 2; half++) {
            __m256i bytes = ST_LOAD_256(p + 64 * k + 32 * half), found = st_steps_256(w->class_steps, 8, bytes);
            _mm256_storeu_si256((__m256i *)(classes + 64 * k + 32 * half), found);
            is[half] = _mm256_cmpeq_epi8(bytes, trigger);
            has[half] = _mm256_cmpeq_epi8(_mm256_and_si256(found, nibble), counted);
        }
        g->high[k] = st_tops(p + 64 * k, 0);
        g->triggers[k] = st_tops_256(is);
        g->counted[k] = st_tops_256(has);
    }
    for (int k = -2; k < 0; k++) pairs[k] = w->pairs[(classes[k] & ST_CLASS) << 4 | (classes[k + 1] & ST_CLASS)];
    for (size_t k = 0; k < 64 * blocks; k += 32) {
        __m256i first = _mm256_and_si256(ST_LOAD_256(classes + k), nibble);
        __m256i second = _mm256_and_si256(ST_LOAD_256(classes + k + 1), nibble);
        __m256i pair = _mm256_add_epi8(_mm256_shuffle_epi8(times, first), second);
        __m256i found = st_steps_256(w->pair_steps, rows < 8 ? rows : 8, pair);
        if (rows > 8) {
            pair = _mm256_xor_si256(pair, _mm256_set1_epi8((char)128));
            found = _mm256_or_si256(found, st_steps_256(w->pair_steps + 128, 8, pair));
        }
        _mm256_storeu_si256((__m256i *)(pairs + k), found);
    }
    for (size_t k = 0; k < blocks; k++, pairs += 64) {
        for (int half = 0; half < 2; half++) {
            __m256i left = _mm256_and_si256(_mm256_srli_epi16(ST_LOAD_256(pairs + 32 * half - 2), 4), nibble);
            __m256i right = _mm256_and_si256(ST_LOAD_256(pairs + 32 * half), nibble);
            is[half] = has[half] = zero;
            for (int set = 0; set < sets; set++) {
                __m256i bit = _mm256_shuffle_epi8(ST_TABLE_256(w->right_bits[set]), right);
                __m256i begin = _mm256_shuffle_epi8(ST_TABLE_256(w->begin_sets[set]), left);
                __m256i open = _mm256_shuffle_epi8(ST_TABLE_256(w->open_sets[set]), left);
                is[half] = _mm256_or_si256(is[half], _mm256_and_si256(begin, bit));
                has[half] = _mm256_or_si256(has[half], _mm256_and_si256(open, bit));
            }
            is[half] = _mm256_cmpeq_epi8(is[half], zero);
            has[half] = _mm256_cmpeq_epi8(has[half], zero);
        }
        g->begins[k] = ~st_tops_256(is);
        g->undecided[k] = ~st_tops_256(has);
    }
}

ST_FOR_AVX2 static void st_fill_256(const st_windows *w, const uint8_t *p, size_t blocks, st_group *g) {
    int rows = (w->n_classes * w->n_classes + 15) / 16;
    if (rows <= 4 && w->n_rights <= 8)
        st_fill_in_256(4, 1, w, p, blocks, g);
    else if (rows <= 6)
        st_fill_in_256(6, 2, w, p, blocks, g);
    else
        st_fill_in_256(16, 2, w, p, blocks, g);
}

static void st_mark_avx2(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins, uint64_t *open) {
    st_mark_in_groups(st_fill_256, w, p, blocks, begins, open);
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
    if (st_level(ST_ANY) >= ST_VBMI2 && k++ == number) {
        *name = "avx512";
        *from = 40;
        *extra = 8;
        return st_mark_avx512;
    }
    if (st_level(ST_ANY) >= ST_AVX2 && k++ == number) {
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
