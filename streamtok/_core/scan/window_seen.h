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
    uint8_t n_classes, n_rights;
    uint8_t first_counted, last_counted; /* the characters of that class; 255: none */
    uint8_t pairs[256];          /* by class << 4 | next class: left << 4 | right */
    uint8_t times[16];           /* by class: class * n_classes */
    uint8_t numbered_pairs[256]; /* as `pairs`, by class * n_classes + next class */
    uint64_t steps;              /* every count-th bit from the lowest one on */
    uint8_t of_two[0x7F7F + 1];  /* as `pairs`, by character | next character << 8 */
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

/* Fills in all that is made of the tables that a pattern has. */
static inline void st_fill_tables(st_windows *w) {
    w->n_classes = st_number_of(w->classes, 128, ST_CLASS);
    w->n_rights = st_number_of(w->rights, 256, 15);
    w->first_counted = w->last_counted = 255;
    for (uint8_t c = 0; c < 128; c++)
        if ((w->classes[c] & ST_CLASS) == w->counted) {
            if (w->first_counted == 255) w->first_counted = c;
            w->last_counted = c;
        }
    w->steps = 0;
    for (unsigned k = 0; w->count && k < 64; k += w->count) w->steps |= (uint64_t)1 << k;
    for (int k = 0; k < 256; k++) w->pairs[k] = (uint8_t)(w->lefts[k] << 4 | w->rights[k]);
    memset(w->numbered_pairs, 0, sizeof w->numbered_pairs);
    for (int c = 0; c < w->n_classes; c++) {
        w->times[c] = (uint8_t)(c * w->n_classes);
        for (int d = 0; d < w->n_classes; d++) w->numbered_pairs[w->times[c] + d] = w->pairs[c << 4 | d];
    }
    for (int d = 0; d < 128; d++)
        for (int c = 0; c < 128; c++)
            w->of_two[c | d << 8] = w->pairs[(w->classes[c] & ST_CLASS) << 4 | (w->classes[d] & ST_CLASS)];
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

/* Bit i: bit 7 of byte i. */
static inline uint64_t st_tops_of_eight(uint64_t bytes) {
    return ((bytes & 0x8080808080808080ull) * 0x0002040810204081ull) >> 56;
}

/* Bit i: whether first <= byte i <= last < 128. No addition carries into the next byte. */
static inline uint64_t st_between_of_eight(uint64_t bytes, uint8_t first, uint8_t last) {
    const uint64_t every = 0x0101010101010101ull, low = bytes & (0x7F * every);
    return st_tops_of_eight((low + every * (128u - first)) & ~(low + every * (127u - last)) & ~bytes);
}

static inline st_carry st_carry_before(const st_windows *w, const uint8_t *p) {
    st_carry carry = {0, 0, 0, 0, 0, 0, 0, 0};
    uint64_t bytes = st_load64(p - ST_MARGIN), found = st_tops_of_eight(bytes), triggers = 0, counted = 0;
    if (w->trigger < 128) triggers = st_between_of_eight(bytes, w->trigger, w->trigger);
    if (w->first_counted < 128) counted = st_between_of_eight(bytes, w->first_counted, w->last_counted);
    for (; triggers; triggers &= triggers - 1) {
        const uint8_t *at = p - ST_MARGIN + st_lowest(triggers);
        int is_after_harmless = at > p - ST_MARGIN && st_is_harmless(w, at[-1]);
        if (st_is_follower(w, at[1]) && !is_after_harmless) found |= triggers & (0 - triggers);
    }
    carry.found = found << (64 - ST_MARGIN);
    carry.counted = counted << (64 - ST_MARGIN);
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
    uint64_t rows = seen->rows, ended = 0;
    for (; rows; rows &= rows - 1) {
        uint64_t row = rows & (0 - rows), others = ~seen->same & (0 - row) & ~((uint64_t)1 << 63);
        if (!others) break;
        ended |= row & (0 - (seen->ends >> (st_lowest(others) + 1) & 1));
    }
    seen->begins |= ended;
    seen->open &= ~ended;
    return rows & (0 - rows);
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
        /* Adding a bit of a run clears the run from there on: the carry goes through to its end. */
        uint64_t all = seen->counted, before = carry->counted, row = all, starts = 0;
        uint64_t first = all & ~st_shifted(all, before, 1) & begin;
        uint64_t known = all & ~(all + (carry->known >> 63 & all));
        for (unsigned k = 1; k < w->count; k++) row &= st_shifted(all, before, k);
        first |= carry->starts >> (64 - w->count) & row;
        for (unsigned k = 0; k < w->count; k++) {
            uint64_t steps = w->steps << k, run = all & ~(all + (first & steps));
            known |= run;
            starts |= run & steps;
        }
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
