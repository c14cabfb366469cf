/* Apply window tables (patterns/windows.py) to 64 bytes at a time. The plain version defines the masks. */
#ifndef ST_TIER
#ifndef STREAMTOK_WINDOWS_H
#define STREAMTOK_WINDOWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"
#include "scan/window_seen.h"

/* For each i < 64 * blocks: sets bit i of `begins` if a pre-token begins at p[i], and of `open` if the window
   cannot decide that. Reads p[-ST_MARGIN] .. p[64 * blocks]. */
typedef void st_mark_function(const st_windows *w, const uint8_t *p, size_t blocks,
                              uint64_t *begins, uint64_t *open);

#define ST_GROUP 32
#define ST_BEFORE 64 /* bytes before the first position, to keep it aligned */

/* The results of the window tables for up to ST_GROUP blocks of 64 positions. */
typedef struct {
    ST_ALIGNED(64) uint8_t classes[ST_BEFORE + 64 * ST_GROUP + 64]; /* from two before the first position to one
                                                                       after the last; arbitrary for non-ASCII */
    ST_ALIGNED(64) uint8_t pairs[ST_BEFORE + 64 * ST_GROUP];        /* left << 4 | right of each class and the next */
    uint64_t high[ST_GROUP + 1];                                    /* bytes that are not ASCII */
    uint64_t triggers[ST_GROUP], counted[ST_GROUP], begins[ST_GROUP], undecided[ST_GROUP];
} st_group;

/* Fills a group with the results from p on; reads p[-2] .. p[64 * blocks]. */
typedef void st_fill_function(const st_windows *w, const uint8_t *p, size_t blocks, st_group *g);

/* Bit i: whether classes[i] has `flag`. */
typedef uint64_t st_flag_function(const uint8_t *classes, uint8_t flag);

/* Bit i: whether classes[i] and classes[i + 1] are equal except for their flags. */
typedef uint64_t st_same_function(const uint8_t *classes);

/* Computes the masks of all tiers. A tier has its own `fill`, `flags` and `same`; the rest is shared.
   has_classes: whether `fill` fills in the classes. Otherwise, they are looked up in blocks with triggers or
   runs. */
static ST_ALWAYS_INLINE void st_mark_in_groups(st_fill_function *fill, int has_classes, st_flag_function *flags,
                                               st_same_function *same, const st_windows *w, const uint8_t *p,
                                               size_t blocks, uint64_t *begins, uint64_t *open) {
    st_group g;
    st_carry carry = st_carry_before(w, p);
    uint64_t high_before = (uint64_t)(p[-2] >> 7) << 62 | (uint64_t)(p[-1] >> 7) << 63;
    while (blocks) {
        size_t here = blocks < ST_GROUP ? blocks : ST_GROUP;
        uint8_t *classes = g.classes + ST_BEFORE;
        for (int k = -2; k < 0; k++) classes[k] = w->classes[p[k] & 127];
        classes[64 * here] = w->classes[p[64 * here] & 127];
        fill(w, p, here, &g);
        g.high[here] = p[64 * here] >> 7;
        for (size_t k = 0; k < here; k++, classes += 64) {
            uint64_t high = g.high[k], next_high = high >> 1 | g.high[k + 1] << 63;
            uint64_t earlier_high = st_shifted(high, high_before, 1);
            st_seen seen = {0, 0, 0, 0, 0, 0, 0, 0};
            seen.high = high;
            seen.open = high | earlier_high | next_high | st_shifted(high, high_before, 2);
            seen.begins = g.begins[k];
            seen.runs = g.undecided[k] & ~seen.open;
            seen.open |= g.undecided[k];
            seen.counted = g.counted[k] & ~high;
            seen.found = g.triggers[k];
            if (!has_classes && (seen.found | seen.runs | carry.run))
                for (int i = -1; i < 65; i++) classes[i] = w->classes[p[64 * k + i] & 127];
            if (seen.found) {
                seen.found &= flags(classes + 1, ST_FOLLOWER) | next_high;
                seen.found &= ~flags(classes - 1, ST_HARMLESS) | earlier_high;
            }
            if (seen.runs | carry.run) {
                seen.same = same(classes) & ~(high | next_high);
                seen.runs &= seen.same & flags(classes, ST_RUN);
                seen.ends = flags(classes, ST_ENDS_RUN) & ~high;
            }
            st_finish(w, &seen, &carry, begins + k, open + k);
            high_before = high;
        }
        p += 64 * here;
        begins += here;
        open += here;
        blocks -= here;
    }
}

/* Bit i: bit 7 of p[i]. */
static inline uint64_t st_top_bits(const uint8_t *p) {
    uint64_t tops = 0;
#if defined(ST_X86)
    for (int i = 0; i < 64; i += 16)
        tops |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(p + i))) << i;
#else
    for (int i = 0; i < 64; i += 8) tops |= st_tops_of_eight(st_load64(p + i)) << i;
#endif
    return tops;
}

static uint64_t st_flags_plain(const uint8_t *classes, uint8_t flag) {
    uint8_t is[64];
    for (int i = 0; i < 64; i++) is[i] = classes[i] & flag ? 0xFF : 0;
    return st_top_bits(is);
}

static uint64_t st_same_plain(const uint8_t *classes) {
    uint8_t is[64];
    for (int i = 0; i < 64; i++) is[i] = (classes[i] ^ classes[i + 1]) & ST_CLASS ? 0 : 0xFF;
    return st_top_bits(is);
}

/* Looks up two characters together: the left pair of a window was the right pair two windows before. */
static void st_fill_plain(const st_windows *w, const uint8_t *p, size_t blocks, st_group *g) {
    uint8_t decisions[64], is[64];
    uint8_t left = w->of_two[(p[-2] | p[-1] << 8) & 0x7F7F], next_left = w->of_two[(p[-1] | p[0] << 8) & 0x7F7F];
    for (size_t k = 0; k < blocks; k++, p += 64) {
        for (int i = 0; i < 64; i++) {
            uint16_t two;
            memcpy(&two, p + i, 2);
            uint8_t right = w->of_two[two & 0x7F7F];
            decisions[i] = w->decisions[(left & 0xF0) | (right & 15)];
            left = next_left;
            next_left = right;
        }
        g->high[k] = st_top_bits(p);
        for (int i = 0; i < 64; i++) is[i] = p[i] == w->trigger ? 0xFF : 0;
        g->triggers[k] = st_top_bits(is);
        for (int i = 0; i < 64; i++)
            is[i] = (uint8_t)(p[i] - w->first_counted) <= w->last_counted - w->first_counted ? 0xFF : 0;
        g->counted[k] = st_top_bits(is);
        for (int i = 0; i < 64; i++) is[i] = (uint8_t)(decisions[i] << 7);
        g->begins[k] = st_top_bits(is);
        for (int i = 0; i < 64; i++) is[i] = (uint8_t)(decisions[i] << 6);
        g->undecided[k] = st_top_bits(is);
    }
}

static void st_mark_plain(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins, uint64_t *open) {
    st_mark_in_groups(st_fill_plain, 0, st_flags_plain, st_same_plain, w, p, blocks, begins, open);
}

#define ST_KERNEL "scan/windows.h"
#include "vector/each_tier.h"

static inline st_mark_function *st_mark_tier(int most) { return ST_BEST(most, st_mark); }

/* The number of bytes from which marking is faster than walking. extra: set to the number of remaining bytes
   from which one more block pays. */
static inline size_t st_marked_from(int most, size_t *extra) {
    int is_fast = st_level(most) >= ST_VBMI2;
    *extra = is_fast ? 8 : 40;
    return is_fast ? 40 : 128;
}

#define ST_REST_BLOCKS 5
#define ST_REST (64 * ST_REST_BLOCKS)
#define ST_REST_SIZE (ST_REST + 3)

/* Copies p[:n], the rest of the text, or at most ST_REST_BLOCKS blocks of it; returns the number of blocks to
   mark. A partial block counts from `extra` bytes on. Three more bytes follow the blocks. Bytes that are not
   ASCII stand for those after the text, so positions that depend on them stay open. */
static inline size_t st_copy_rest(uint8_t *to, const uint8_t *p, size_t n, size_t extra) {
    size_t blocks = n < ST_REST ? (n + 64 - extra) >> 6 : ST_REST_BLOCKS, most = 64 * blocks + 3;
    if (n > most) n = most;
    memcpy(to, p, n);
    memset(to + n, 0xFF, most - n);
    return blocks;
}

#endif
#else /* for each tier */

static ST_ALWAYS_INLINE uint64_t ST_OWN(st_flags)(const uint8_t *classes, uint8_t flag) {
    vmask without[PARTS];
    for (int i = 0; i < PARTS; i++) without[i] = v_equal(v_and(v_load(classes + LANES * i), v_splat(flag)), v_splat(0));
    return ~m_bits(without);
}

static ST_ALWAYS_INLINE uint64_t ST_OWN(st_same)(const uint8_t *classes) {
    vmask is_same[PARTS];
    for (int i = 0; i < PARTS; i++) {
        vec differ = v_xor(v_load(classes + LANES * i), v_load(classes + LANES * i + 1));
        is_same[i] = v_equal(v_and(differ, v_splat(ST_CLASS)), v_splat(0));
    }
    return m_bits(is_same);
}

/* Looks up the classes of all characters, then pairs of classes, then decisions, in loops that keep their tables
   in registers. entries: size of the table of pairs. sets: number of sets of eight kinds of right pairs. */
static ST_ALWAYS_INLINE void ST_OWN(st_fill_in)(int entries, int sets, const st_windows *w, const uint8_t *p,
                                                size_t blocks, st_group *g) {
    const vec nibble = v_splat(15), zero = v_splat(0), times = v_row(w->times);
    const vec trigger = v_splat(w->trigger), counted = v_splat(w->counted);
    uint8_t *classes = g->classes + ST_BEFORE, *pairs = g->pairs + ST_BEFORE;
    vtable class_of, pair_of, decision_of;
    vec rights[2], begins[2], opens[2], here, pair_before;
    v_fill(&class_of, w->classes, 128);
    v_fill(&pair_of, w->numbered_pairs, entries);
    v_fill(&decision_of, w->decisions, 256);
    for (int set = 0; set < sets; set++) {
        rights[set] = v_row(w->right_bits[set]);
        begins[set] = v_row(w->begin_sets[set]);
        opens[set] = v_row(w->open_sets[set]);
    }
    for (size_t k = 0; k < blocks; k++) {
        vmask is_high[PARTS], is_trigger[PARTS], is_counted[PARTS];
        for (int i = 0; i < PARTS; i++) {
            size_t at = 64 * k + LANES * (size_t)i;
            vec bytes = v_load(p + at), found = v_look(&class_of, 128, bytes);
            v_store(classes + at, found);
            is_high[i] = v_tops(bytes);
            is_trigger[i] = v_equal(bytes, trigger);
            is_counted[i] = v_equal(v_and(found, nibble), counted);
        }
        g->high[k] = m_bits(is_high);
        g->triggers[k] = m_bits(is_trigger);
        g->counted[k] = m_bits(is_counted);
    }
    /* Neighbours come from registers: a load that overlaps two recent stores would wait for both. */
    here = v_and(v_load(classes), nibble);
    v_store(classes + 64 * blocks, v_splat(classes[64 * blocks]));
    for (size_t k = 0; k < 64 * blocks; k += LANES) {
        vec next = v_and(v_load(classes + k + LANES), nibble), second = v_next(here, next);
        v_store(pairs + k, v_look(&pair_of, entries, v_add(v_look_16(times, here), second)));
        here = next;
    }
    pair_before = v_next(v_splat(w->pairs[(classes[-2] & ST_CLASS) << 4 | (classes[-1] & ST_CLASS)]),
                         v_splat(w->pairs[(classes[-1] & ST_CLASS) << 4 | (classes[0] & ST_CLASS)]));
    for (size_t k = 0; k < blocks; k++, pairs += 64) {
        vmask no_begin[PARTS], is_decided[PARTS];
        for (int i = 0; i < PARTS; i++) {
            vec pair = v_load(pairs + LANES * i), left = v_two_before(pair_before, pair), right;
            vec begin = zero, undecided = zero;
            if (LANES == 64) { /* one look-up in 256 entries is faster than those in two sets of 16 */
                vec decision = v_look(&decision_of, 256, v_xor(left, v_and(v_xor(left, pair), nibble)));
                begin = v_and(decision, v_splat(1));
                undecided = v_and(decision, v_splat(2));
            } else {
                left = v_upper(left);
                right = v_and(pair, nibble);
                for (int set = 0; set < sets; set++) {
                    vec bit = v_look_16(rights[set], right);
                    begin = v_or(begin, v_and(v_look_16(begins[set], left), bit));
                    undecided = v_or(undecided, v_and(v_look_16(opens[set], left), bit));
                }
            }
            no_begin[i] = v_equal(begin, zero);
            is_decided[i] = v_equal(undecided, zero);
            pair_before = pair;
        }
        g->begins[k] = ~m_bits(no_begin);
        g->undecided[k] = ~m_bits(is_decided);
    }
}

static void ST_OWN(st_fill)(const st_windows *w, const uint8_t *p, size_t blocks, st_group *g) {
    int entries = w->n_classes * w->n_classes;
    if (entries <= 64 && w->n_rights <= 8)
        ST_OWN(st_fill_in)(64, 1, w, p, blocks, g);
    else if (entries <= 96)
        ST_OWN(st_fill_in)(96, 2, w, p, blocks, g);
    else
        ST_OWN(st_fill_in)(256, 2, w, p, blocks, g);
}

static void ST_OWN(st_mark)(const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins, uint64_t *open) {
    st_mark_in_groups(ST_OWN(st_fill), 1, ST_OWN(st_flags), ST_OWN(st_same), w, p, blocks, begins, open);
}
#endif
