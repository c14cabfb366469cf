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

#if defined(ST_NEON)

/* table[index] for 16 indices below 64 * parts, of a table in `parts` times four registers; 0 for those that
   are too large. */
static ST_ALWAYS_INLINE uint8x16_t st_look_up_neon(const uint8x16x4_t *table, int parts, uint8x16_t index) {
    uint8x16_t result = vqtbl4q_u8(table[0], index);
    for (int part = 1; part < parts; part++)
        result = vqtbx4q_u8(result, table[part], veorq_u8(index, vdupq_n_u8((uint8_t)(64 * part))));
    return result;
}

/* parts: of the numbers of pairs, 64 each; sets: of eight kinds of right pairs each. */
static ST_ALWAYS_INLINE void st_fill_in_neon(int parts, int sets, const st_windows *w, const uint8_t *p,
                                             size_t blocks, st_group *g) {
    const uint8x16_t nibble = vdupq_n_u8(15), times = vdupq_n_u8(w->n_classes);
    const uint8x16_t trigger = vdupq_n_u8(w->trigger), counted = vdupq_n_u8(w->counted);
    uint8_t *classes = g->classes + ST_BEFORE, *pairs = g->pairs + ST_BEFORE;
    uint8x16x4_t class_table[2], pair_table[4];
    uint8x16_t rights[2], begins[2], opens[2];
    uint8x16x4_t is, has;
    for (int part = 0; part < 2; part++) class_table[part] = vld1q_u8_x4(w->classes + 64 * part);
    for (int part = 0; part < parts; part++) pair_table[part] = vld1q_u8_x4(w->numbered_pairs + 64 * part);
    for (int set = 0; set < sets; set++) {
        rights[set] = vld1q_u8(w->right_bits[set]);
        begins[set] = vld1q_u8(w->begin_sets[set]);
        opens[set] = vld1q_u8(w->open_sets[set]);
    }
    for (size_t k = 0; k < blocks; k++) {
        uint8x16_t all = vdupq_n_u8(0);
        for (int i = 0; i < 4; i++) {
            uint8x16_t bytes = vld1q_u8(p + 64 * k + 16 * i), found = st_look_up_neon(class_table, 2, bytes);
            vst1q_u8(classes + 64 * k + 16 * i, found);
            all = vorrq_u8(all, bytes);
            is.val[i] = vceqq_u8(bytes, trigger);
            has.val[i] = vceqq_u8(vandq_u8(found, nibble), counted);
        }
        g->high[k] = vmaxvq_u8(all) < 0x80 ? 0 : st_tops(p + 64 * k, 0);
        g->triggers[k] = st_mask_neon(is);
        g->counted[k] = st_mask_neon(has);
    }
    for (int k = -2; k < 0; k++) pairs[k] = w->pairs[(classes[k] & ST_CLASS) << 4 | (classes[k + 1] & ST_CLASS)];
    uint8x16_t before = vld1q_u8(pairs - 16), here = vandq_u8(vld1q_u8(classes), nibble);
    for (size_t k = 0; k < blocks; k++) {
        for (int i = 0; i < 4; i++) {
            uint8x16_t next = vandq_u8(vld1q_u8(classes + 64 * k + 16 * i + 16), nibble);
            uint8x16_t pair = vmlaq_u8(vextq_u8(here, next, 1), here, times);
            uint8x16_t found = st_look_up_neon(pair_table, parts, pair);
            uint8x16_t left = vshrq_n_u8(vextq_u8(before, found, 14), 4), right = vandq_u8(found, nibble);
            here = next;
            before = found;
            is.val[i] = vtstq_u8(vqtbl1q_u8(begins[0], left), vqtbl1q_u8(rights[0], right));
            has.val[i] = vtstq_u8(vqtbl1q_u8(opens[0], left), vqtbl1q_u8(rights[0], right));
            if (sets > 1) {
                uint8x16_t bit = vqtbl1q_u8(rights[1], right);
                is.val[i] = vorrq_u8(is.val[i], vtstq_u8(vqtbl1q_u8(begins[1], left), bit));
                has.val[i] = vorrq_u8(has.val[i], vtstq_u8(vqtbl1q_u8(opens[1], left), bit));
            }
        }
        g->begins[k] = st_mask_neon(is);
        g->undecided[k] = st_mask_neon(has);
    }
}

static void st_fill_neon(const st_windows *w, const uint8_t *p, size_t blocks, st_group *g) {
    int numbers = w->n_classes * w->n_classes;
    if (numbers <= 64 && w->n_rights <= 8)
        st_fill_in_neon(1, 1, w, p, blocks, g);
    else if (numbers <= 128)
        st_fill_in_neon(2, 2, w, p, blocks, g);
    else
        st_fill_in_neon(4, 2, w, p, blocks, g);
}

static void st_mark_neon(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins, uint64_t *open) {
    st_mark_in_groups(st_fill_neon, w, p, blocks, begins, open);
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
