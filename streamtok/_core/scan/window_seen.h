/* What the windows of 64 positions say, and what is made of it: the part that all tiers of `scan/windows.h`
   have in common. */
#ifndef STREAMTOK_WINDOW_SEEN_H
#define STREAMTOK_WINDOW_SEEN_H

#include <stdint.h>
#include <string.h>

#include "base/native.h"

#define ST_MARGIN 8 /* bytes before the first position that must be readable, and true text */

typedef struct {
    uint8_t classes[128];   /* the lower four bits: the class; above them flags */
    uint8_t lefts[256];     /* by class << 4 | next class */
    uint8_t rights[256];
    uint8_t decisions[256]; /* by left << 4 | right: bit 0 begins, bit 1 undecided */
    uint8_t trigger;        /* a character; 255: none */
    uint8_t reach;
    uint8_t counted;        /* a class; 255: none */
    uint8_t count;
    /* What follows is made of it by `st_fill_tables`. */
    uint8_t n_classes, n_lefts, n_rights;
    uint8_t pitch; /* 8 or 9: `lefts` and `rights` by class * pitch + next class, and `decisions` by the
                      sum of both, are in the small tables; 16: they do not fit there */
    uint8_t small_lefts[128], small_rights[128], small_decisions[128];
    uint8_t pairs[256];       /* by class << 4 | next class: left << 4 | right */
    uint8_t class_steps[128]; /* rows of 16, each but the first as the difference (xor) to the one before */
    uint8_t times[16];        /* by class: class * n_classes */
    uint8_t numbered_pairs[256]; /* the same by class * n_classes + next class */
    uint8_t pair_steps[256];  /* of these; two halves of rows like `class_steps` */
    uint8_t right_bits[2][16], begin_sets[2][16], open_sets[2][16]; /* a bit for each of 8 rights; by left:
                                                                       which of these begin, or are open */
} st_windows;

#define ST_CLASS 15
#define ST_ENDS_RUN 16 /* flags of classes: see patterns/window_flags.py */
#define ST_RUN 32
#define ST_HARMLESS 64
#define ST_FOLLOWER 128

static inline uint8_t st_number_of(const uint8_t *table, size_t size, uint8_t mask) {
    uint8_t most = 0;
    for (size_t k = 0; k < size; k++) most = (table[k] & mask) > most ? table[k] & mask : most;
    return (uint8_t)(most + 1);
}

/* Fills in what AVX2 and NEON look up, 16 bytes at a time, and what plain C does. */
static inline void st_fill_steps(st_windows *w) {
    uint8_t *pairs = w->numbered_pairs;
    memset(w->numbered_pairs, 0, sizeof w->numbered_pairs);
    for (int k = 0; k < 256; k++) w->pairs[k] = (uint8_t)(w->lefts[k] << 4 | w->rights[k]);
    for (int c = 0; c < w->n_classes; c++) {
        w->times[c] = (uint8_t)(c * w->n_classes);
        for (int d = 0; d < w->n_classes; d++) pairs[c * w->n_classes + d] = w->pairs[c << 4 | d];
    }
    for (int k = 0; k < 256; k++) w->pair_steps[k] = pairs[k] ^ (k & 112 ? pairs[k - 16] : 0);
    for (int k = 0; k < 128; k++) w->class_steps[k] = w->classes[k] ^ (k & 112 ? w->classes[k - 16] : 0);
    memset(w->begin_sets, 0, sizeof w->begin_sets);
    memset(w->open_sets, 0, sizeof w->open_sets);
    for (int left = 0; left < 16; left++)
        for (int right = 0; right < 16; right++) {
            uint8_t bit = (uint8_t)(1 << (right & 7)), decision = w->decisions[left << 4 | right];
            w->right_bits[0][right] = right < 8 ? bit : 0;
            w->right_bits[1][right] = right < 8 ? 0 : bit;
            if (decision & 1) w->begin_sets[right >> 3][left] |= bit;
            if (decision & 2) w->open_sets[right >> 3][left] |= bit;
        }
}

/* Fills in the small tables, if all fits there: one look-up in 64 or 128 bytes is one instruction. */
static inline void st_fill_small(st_windows *w) {
    uint32_t n_rights = w->n_rights;
    w->pitch = 16;
    memset(w->small_lefts, 0, sizeof w->small_lefts);
    memset(w->small_rights, 0, sizeof w->small_rights);
    memset(w->small_decisions, 0, sizeof w->small_decisions);
    if (w->n_classes > 9 || w->n_lefts * n_rights > 128) return;
    w->pitch = w->n_classes > 8 ? 9 : 8;
    for (int c = 0; c < w->n_classes; c++)
        for (int d = 0; d < w->n_classes; d++) {
            w->small_lefts[c * w->pitch + d] = (uint8_t)(w->lefts[c << 4 | d] * n_rights);
            w->small_rights[c * w->pitch + d] = w->rights[c << 4 | d];
        }
    for (uint32_t left = 0; left < w->n_lefts; left++)
        for (uint32_t right = 0; right < n_rights; right++)
            w->small_decisions[left * n_rights + right] = w->decisions[left << 4 | right];
}

/* Fills in all that is made of the tables that a pattern has. */
static inline void st_fill_tables(st_windows *w) {
    w->n_classes = st_number_of(w->classes, 128, ST_CLASS);
    w->n_lefts = st_number_of(w->lefts, 256, 15);
    w->n_rights = st_number_of(w->rights, 256, 15);
    st_fill_small(w);
    st_fill_steps(w);
}

/* What the windows of 64 positions say, before what they cannot see is added. */
typedef struct {
    uint64_t begins, open;
    uint64_t high;    /* bytes that are not ASCII */
    uint64_t found;   /* triggers before a follower, or before what is not ASCII, where that matters */
    uint64_t counted; /* characters of the counted class */
    uint64_t same;    /* ASCII before ASCII of the same class */
    uint64_t rows;    /* open for the window alone, and of a class whose rows may be ended */
    uint64_t ends;    /* what ends such rows */
} st_seen;

typedef struct {      /* of the block before */
    uint64_t found, counted, starts, known;
    uint64_t row;     /* in a block before: where a row begins that has not ended yet; 0: nowhere */
    uint64_t *row_begins, *row_open; /* the masks of that block */
    int row_goes_on;  /* the first byte of this block is of the row */
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

/* Whether a trigger right before `next` counts. */
static inline int st_is_follower(const st_windows *w, uint8_t next) {
    return next >= 0x80 || w->classes[next] & ST_FOLLOWER;
}

/* Whether a trigger right after `before` does nothing. */
static inline int st_is_harmless(const st_windows *w, uint8_t before) {
    return before < 0x80 && w->classes[before] & ST_HARMLESS;
}

static inline st_carry st_carry_before(const st_windows *w, const uint8_t *p) {
    st_carry carry = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int k = 1; k <= ST_MARGIN; k++) {
        uint8_t here = p[-k], next = p[1 - k];
        int is_pair = here == w->trigger && st_is_follower(w, next);
        if (k < ST_MARGIN) is_pair = is_pair && !st_is_harmless(w, p[-k - 1]);
        carry.found |= (uint64_t)(is_pair || here >= 0x80) << (64 - k);
        carry.counted |= (uint64_t)(here < 0x80 && (w->classes[here] & ST_CLASS) == w->counted)
                         << (64 - k);
    }
    return carry;
}

/* Decides what the row says that came out of the blocks before, if it ends in this one. */
static inline void st_finish_row(const st_seen *seen, st_carry *carry) {
    int end = 0;
    if (carry->row_goes_on) {
        if (~seen->same == 0) return;
        end = st_lowest(~seen->same) + 1;
        if (end == 64) {
            carry->row_goes_on = 0;
            return;
        }
    }
    if (seen->ends >> end & 1) {
        *carry->row_begins |= carry->row;
        *carry->row_open &= ~carry->row;
    }
    carry->row = 0;
}

/* Decides what rows of this block say that end in it; the one that does not, or 0. */
static inline uint64_t st_finish_rows(st_seen *seen) {
    uint64_t rows = seen->rows;
    while (rows) {
        uint64_t row = rows & (0 - rows), others = ~seen->same & (0 - row);
        int end = others ? st_lowest(others) + 1 : 64;
        if (end == 64) return row;
        if (seen->ends >> end & 1) {
            seen->begins |= row;
            seen->open &= ~row;
        }
        rows ^= row;
    }
    return 0;
}

/* Opens what comes after a trigger, and closes rows by what ends them, and runs of the counted class
   whose beginning is certain. */
static inline void st_finish(const st_windows *w, st_seen *seen, st_carry *carry,
                             uint64_t *begins, uint64_t *open) {
    uint64_t row, begin, unsure, found = seen->found;
    if (carry->row) st_finish_row(seen, carry);
    row = seen->rows ? st_finish_rows(seen) : 0;
    begin = seen->begins;
    unsure = seen->open | seen->high;
    if (found | carry->found) {
        /* A character counts once, however many bytes it has. */
        uint64_t after = st_after_trigger(found, carry->found, w->reach), more;
        while ((more = after & seen->high & ~found) != 0) {
            found |= more;
            after = st_after_trigger(found, carry->found, w->reach);
        }
        unsure |= after;
        row &= ~after;
    }
    if (row) {
        carry->row = row;
        carry->row_begins = begins;
        carry->row_open = open;
        carry->row_goes_on = (int)(seen->same >> 63);
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

#endif
