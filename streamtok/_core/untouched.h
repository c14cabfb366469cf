/* Looks at blocks of UTF-8 for bytes that may matter. */
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

/* Whether one of the bytes is marked in a table of 256. */
static inline int st_block_has(const uint8_t *p, const uint8_t *table) {
    uint8_t seen = 0;
    for (size_t i = 0; i < ST_TOGETHER; i++) seen |= table[p[i]];
    return seen;
}

#endif
