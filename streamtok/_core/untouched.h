/* Looks at blocks of UTF-8 for bytes in a few ranges; plain loops, of which compilers make vectors. */
#ifndef STREAMTOK_UNTOUCHED_H
#define STREAMTOK_UNTOUCHED_H

#include <stddef.h>
#include <stdint.h>

#define ST_TOGETHER 64 /* bytes that are looked at together */

static inline int st_block_is_ascii(const uint8_t *p) {
    uint8_t all = 0;
    for (size_t i = 0; i < ST_TOGETHER; i++) all |= p[i];
    return all < 0x80;
}

/* Whether a byte is in one of `n` ranges: lows[k] and the spans[k] bytes above it. */
static inline int st_block_has(const uint8_t *p, const uint8_t *lows, const uint8_t *spans, int n) {
    uint8_t seen = 0;
    for (int k = 0; k < n; k++) {
        uint8_t low = lows[k], span = spans[k];
        for (size_t i = 0; i < ST_TOGETHER; i++) seen |= (uint8_t)((uint8_t)(p[i] - low) <= span);
    }
    return seen;
}

#endif
