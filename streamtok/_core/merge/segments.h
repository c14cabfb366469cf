/* Many overlapping segments of one long pre-token, merged side by side in columns. */
#ifndef STREAMTOK_MERGE_SEGMENTS_H
#define STREAMTOK_MERGE_SEGMENTS_H

#include "merge/columns.h"

#define ST_SEGMENT 64  /* bytes */
#define ST_STRIDE 48   /* from one segment to the next; the rest is where two of them may agree */
#define ST_SEGMENTS 64 /* the most at a time */

/* Segment k is p[ST_STRIDE * k:][:ST_SEGMENT]. Its tokens go to tokens[ST_SEGMENT * k], and bit i of
   begins[k] says whether one begins at its byte i. Token t has offsets[t + 1] - offsets[t] bytes. */
typedef void st_merge_segments_function(const st_pairs *pairs, const uint32_t *byte_token,
                                         const uint32_t *byte_pairs, const uint32_t *offsets,
                                         const uint8_t *p, size_t count, uint32_t *tokens,
                                         uint64_t *begins);

#if defined(ST_LANES)
ST_LANES static inline void st_merge_segments(const st_pairs *pairs, const uint32_t *byte_token,
                                               const uint32_t *byte_pairs, const uint32_t *offsets,
                                               const uint8_t *p, size_t count, uint32_t *tokens,
                                               uint64_t *begins) {
    st_columns columns[ST_GROUPS];
    uint8_t sizes[ST_SEGMENTS];
    uint16_t which[ST_SEGMENTS], units[ST_SEGMENTS];
    for (size_t k = 0; k < count; k++) {
        sizes[k] = ST_SEGMENT;
        which[k] = (uint16_t)k;
        units[k] = (uint16_t)(k * (ST_STRIDE / ST_UNIT));
    }
    size_t first = st_columns_run(columns, pairs, byte_token, byte_pairs, p, units, sizes, which, count);
    for (size_t k = 0; k < count; k++) {
        const st_columns *c = &columns[(first + k) / ST_WIDE];
        size_t column = (first + k) % ST_WIDE;
        uint32_t *out = tokens + ST_SEGMENT * k, at = 0;
        begins[k] = 0;
        for (uint32_t i = 0; i < c->counts[column]; i++) {
            out[i] = c->tokens[i][column];
            begins[k] |= (uint64_t)1 << at;
            at += offsets[out[i] + 1] - offsets[out[i]];
        }
    }
}
#endif

/* The way to merge segments side by side; NULL where the processor has none. */
static inline st_merge_segments_function *st_merge_segments_tier(void) {
#if defined(ST_LANES)
    if (st_has_lanes()) return st_merge_segments;
#endif
    return NULL;
}

/* Where two ways to cut the same bytes have the same token: the position after it, or 0. Both are
   bit sets of where tokens begin, and of the end of one of them. */
static inline unsigned st_agree(uint64_t one, uint64_t other) {
    uint64_t both = one & other, either = one | other;
    for (uint64_t left = both; left; left &= left - 1) {
        uint64_t later = either & ~(left ^ (left - 1));
        uint64_t next = later & (~later + 1);
        if (next & both) return (unsigned)st_lowest(next);
    }
    return 0;
}

#endif
