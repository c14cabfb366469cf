/* Find two adjacent bytes. */
#ifndef ST_TIER
#ifndef STREAMTOK_FIND_PAIR_H
#define STREAMTOK_FIND_PAIR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"

/* The first index in p[:n] at which `second` follows `first`, or at which `first` is the last byte; n if none. */
typedef size_t st_find_pair_function(const uint8_t *p, size_t n, uint8_t first, uint8_t second);

static size_t st_find_pair_plain(const uint8_t *p, size_t n, uint8_t first, uint8_t second) {
    const uint8_t *at = p, *end = p + n;
    while (at < end) {
        at = (const uint8_t *)memchr(at, first, (size_t)(end - at));
        if (at == NULL) break;
        if (at + 1 == end || at[1] == second) return (size_t)(at - p);
        at++;
    }
    return n;
}

#define ST_KERNEL "scan/find_pair.h"
#include "vector/each_tier.h"

static inline st_find_pair_function *st_find_pair_tier(int most) { return ST_BEST(most, st_find_pair); }

#endif
#else /* for each tier */

/* `memchr` would stop at each `first`, which is slow if that byte is frequent, such as "<" in XML. */
static size_t ST_OWN(st_find_pair)(const uint8_t *p, size_t n, uint8_t first, uint8_t second) {
    const vec firsts = v_splat(first), seconds = v_splat(second);
    vmask pairs[PARTS];
    size_t i = 0;
    for (; i + 65 <= n; i += 64) {
        for (int k = 0; k < PARTS; k++) {
            const uint8_t *at = p + i + LANES * k;
            pairs[k] = m_and(v_equal(v_load(at), firsts), v_equal(v_load(at + 1), seconds));
        }
        if (m_any(pairs)) return i + (size_t)st_lowest(m_bits(pairs));
    }
    return i + st_find_pair_plain(p + i, n - i, first, second);
}
#endif
