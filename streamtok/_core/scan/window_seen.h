/* Turn the decisions of 64 windows into the final masks: the part that all tiers of `scan/windows.h` share. */
#ifndef STREAMTOK_WINDOW_SEEN_H
#define STREAMTOK_WINDOW_SEEN_H

#include <stdint.h>
#include <string.h>

#include "base/native.h"

#define ST_MARGIN 8 /* bytes before the first position that must be readable and real text */

typedef struct {
    uint8_t classes[128];   /* the class in the lower four bits, flags above */
    uint8_t lefts[256];     /* by class << 4 | next class */
    uint8_t rights[256];
    uint8_t decisions[256]; /* by left << 4 | right: bit 0 begins, bit 1 undecided */
    uint8_t trigger;        /* a character; 255: none */
    uint8_t reach;
    uint8_t counted;        /* a class; 255: none */
    uint8_t count;
    /* `st_fill_tables` derives the rest from these. */
    uint8_t n_classes, n_rights;
    uint8_t first_counted, last_counted; /* first and last character of that class; 255: none */
    uint8_t pairs[256];          /* by class << 4 | next class: left << 4 | right */
    uint8_t times[16];           /* by class: class * n_classes */
    uint8_t numbered_pairs[256]; /* as `pairs`, by class * n_classes + next class */
    uint64_t steps;              /* every count-th bit, beginning with the lowest */
    uint8_t of_two[0x7F7F + 1];  /* as `pairs`, by character | next character << 8 */
    uint8_t right_bits[2][16], begin_sets[2][16], open_sets[2][16]; /* by right: its bit in a set of 8; by left: the
                                                                       rights with which a pre-token begins, and
                                                                       those that leave this open */
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

/* Derives the other tables from those of the pattern. */
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

/* The decisions of 64 windows, and the properties of their characters that can still change them. */
typedef struct {
    uint64_t begins, open;
    uint64_t high;    /* bytes that are not ASCII */
    uint64_t found;   /* triggers before a follower or non-ASCII, but not after a harmless character */
    uint64_t counted; /* characters of the counted class */
    uint64_t same;    /* ASCII before ASCII of the same class */
    uint64_t runs;    /* open starts of runs that the character after the run may decide */
    uint64_t ends;    /* characters that decide such a run */
} st_seen;

typedef struct {      /* from the blocks before */
    uint64_t found, counted, starts, known;
    uint64_t run;     /* the start, in its block, of a run that has not ended yet; 0: none */
    uint64_t *run_begins, *run_open; /* the masks of that block */
    int run_goes_on;  /* the first byte of this block belongs to the run */
} st_carry;

static inline uint64_t st_shifted(uint64_t bits, uint64_t before, unsigned k) {
    return bits << k | before >> (64 - k);
}

/* Each trigger and the `reach` + 3 positions after it. */
static inline uint64_t st_after_trigger(uint64_t found, uint64_t before, unsigned reach) {
    uint64_t after = found;
    for (unsigned k = 1; k <= reach + 3; k++) after |= st_shifted(found, before, k);
    return after;
}

/* Whether a trigger right before `next` counts. */
static inline int st_is_follower(const st_windows *w, uint8_t next) {
    return next >= 0x80 || w->classes[next] & ST_FOLLOWER;
}

/* Whether a trigger right after `before` has no effect. */
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

/* Decides the run that began in an earlier block, if it ends in this block. */
static inline void st_finish_run(const st_seen *seen, st_carry *carry) {
    int end = 0;
    if (carry->run_goes_on) {
        if (~seen->same == 0) return;
        end = st_lowest(~seen->same) + 1;
        if (end == 64) {
            carry->run_goes_on = 0;
            return;
        }
    }
    if (seen->ends >> end & 1) {
        *carry->run_begins |= carry->run;
        *carry->run_open &= ~carry->run;
    }
    carry->run = 0;
}

/* Decides the runs that end in this block; returns the start of the run that does not, or 0. */
static inline uint64_t st_finish_runs(st_seen *seen) {
    uint64_t runs = seen->runs, ended = 0;
    for (; runs; runs &= runs - 1) {
        uint64_t run = runs & (0 - runs), others = ~seen->same & (0 - run) & ~((uint64_t)1 << 63);
        if (!others) break;
        ended |= run & (0 - (seen->ends >> (st_lowest(others) + 1) & 1));
    }
    seen->begins |= ended;
    seen->open &= ~ended;
    return runs & (0 - runs);
}

/* Opens the positions after a trigger. Decides runs by the character after each, and runs of the counted class
   whose start is certain. */
static inline void st_finish(const st_windows *w, st_seen *seen, st_carry *carry,
                             uint64_t *begins, uint64_t *open) {
    uint64_t run, begin, unsure, found = seen->found;
    if (carry->run) st_finish_run(seen, carry);
    run = seen->runs ? st_finish_runs(seen) : 0;
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
        run &= ~after;
    }
    if (run) {
        carry->run = run;
        carry->run_begins = begins;
        carry->run_open = open;
        carry->run_goes_on = (int)(seen->same >> 63);
    }
    carry->found = found;
    begin &= ~unsure;
    if (seen->counted) {
        /* Adding a bit of a run clears the run from that bit on: the carry passes through to the end. */
        uint64_t all = seen->counted, before = carry->counted, inside = all, starts = 0;
        uint64_t first = all & ~st_shifted(all, before, 1) & begin;
        uint64_t known = all & ~(all + (carry->known >> 63 & all));
        for (unsigned k = 1; k < w->count; k++) inside &= st_shifted(all, before, k);
        first |= carry->starts >> (64 - w->count) & inside;
        for (unsigned k = 0; k < w->count; k++) {
            uint64_t steps = w->steps << k, rest = all & ~(all + (first & steps));
            known |= rest;
            starts |= rest & steps;
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
