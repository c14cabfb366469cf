/* Find a well-formed prefix of UTF-8, 64 bytes at a time.

   The method is from J. Keiser and D. Lemire, "Validating UTF-8 in less than one instruction per byte"
   (2021). Each kind of ill-formed byte pair has a bit. A pair is of that kind if the bit is set in all three
   tables: for the upper half of the first byte, its lower half, and the upper half of the second byte. */
#ifndef ST_TIER
#ifndef STREAMTOK_VALID_UTF8_H
#define STREAMTOK_VALID_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"

/* The size of a well-formed prefix of p[:n] that ends between characters; longer ones may exist. A
   character must begin at p. */
typedef size_t st_valid_utf8_function(const uint8_t *p, size_t n);

/* Validates nothing: the caller decodes byte by byte. */
static size_t st_valid_utf8_plain(const uint8_t *p, size_t n) {
    (void)p;
    (void)n;
    return 0;
}

enum {
    ST_LEAD_THEN_NO_REST = 1 << 0,
    ST_ASCII_THEN_REST = 1 << 1,
    ST_TOO_SMALL_FOR_3 = 1 << 2, /* E0 80 .. E0 9F */
    ST_TOO_LARGE = 1 << 3,       /* F4 90 and above */
    ST_SURROGATE = 1 << 4,       /* ED A0 .. ED BF */
    ST_TOO_SMALL_FOR_2 = 1 << 5, /* C0, C1 */
    ST_TOO_LARGE_OR_SMALL = 1 << 6, /* F5 80 and above, F0 80 .. F0 8F */
    ST_REST_THEN_REST = 1 << 7,  /* well-formed after a byte of E0 or above */
    ST_ANY_LOW = ST_LEAD_THEN_NO_REST | ST_ASCII_THEN_REST | ST_REST_THEN_REST
};

/* i, or the start of a character if p[:i] ends inside it. */
static inline size_t st_whole_characters(const uint8_t *p, size_t i) {
    for (size_t k = 1; k <= 3 && k <= i; k++) {
        uint8_t byte = p[i - k];
        if (byte < 0x80) break;
        if (byte >= 0xC0) return byte >= 0xF0 || k < (byte >= 0xE0 ? 3u : 2u) ? i - k : i;
    }
    return i;
}

#define ST_KERNEL "text/valid_utf8.h"
#include "vector/each_tier.h"

static inline st_valid_utf8_function *st_valid_utf8_tier(int most) { return ST_BEST(most, st_valid_utf8); }

static inline size_t st_valid_utf8(const uint8_t *p, size_t n) {
    return n < 64 ? 0 : st_valid_utf8_tier(ST_ANY)(p, n);
}

#endif
#else /* for each tier */

static size_t ST_OWN(st_valid_utf8)(const uint8_t *p, size_t n) {
    enum {
        ASCII = ST_ASCII_THEN_REST,
        REST = ST_REST_THEN_REST,
        LEAD = ST_LEAD_THEN_NO_REST,
        LOW = ST_ANY_LOW,
        LARGE = LOW | ST_TOO_LARGE | ST_TOO_LARGE_OR_SMALL,
        AFTER = ASCII | REST | ST_TOO_SMALL_FOR_2
    };
    static const uint8_t first_upper[16] = {
        ASCII, ASCII, ASCII, ASCII, ASCII, ASCII, ASCII, ASCII, REST, REST, REST, REST, LEAD | ST_TOO_SMALL_FOR_2, LEAD,
        LEAD | ST_TOO_SMALL_FOR_3 | ST_SURROGATE, LEAD | ST_TOO_LARGE | ST_TOO_LARGE_OR_SMALL};
    static const uint8_t first_lower[16] = {
        LOW | ST_TOO_SMALL_FOR_2 | ST_TOO_SMALL_FOR_3 | ST_TOO_LARGE_OR_SMALL, LOW | ST_TOO_SMALL_FOR_2, LOW, LOW,
        LOW | ST_TOO_LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE | ST_SURROGATE, LARGE, LARGE};
    static const uint8_t second_upper[16] = {
        LEAD, LEAD, LEAD, LEAD, LEAD, LEAD, LEAD, LEAD, AFTER | ST_TOO_SMALL_FOR_3 | ST_TOO_LARGE_OR_SMALL,
        AFTER | ST_TOO_SMALL_FOR_3 | ST_TOO_LARGE, AFTER | ST_SURROGATE | ST_TOO_LARGE,
        AFTER | ST_SURROGATE | ST_TOO_LARGE, LEAD, LEAD, LEAD, LEAD};
    const vec uppers = v_row(first_upper), lowers = v_row(first_lower), seconds = v_row(second_upper);
    uint8_t begin[3 + 64] = {0}; /* zeros before p: no character extends into it */
    size_t i = 0;
    if (n < 64) return 0;
    memcpy(begin + 3, p, 64);
    for (; i + 64 <= n; i += 64) {
        const uint8_t *at = i ? p + i : begin + 3;
        vmask well[PARTS];
        for (int k = 0; k < PARTS; k++) well[k] = v_tops(v_or(v_load(at + LANES * k), v_load(at + LANES * k - 3)));
        if (!m_any(well)) continue; /* all ASCII, and so are the three bytes before */
        for (int k = 0; k < PARTS; k++, at += LANES) {
            vec here = v_load(at), before = v_load(at - 1);
            vec first = v_and(v_look_16(uppers, v_upper(before)), v_look_16(lowers, v_and(before, v_splat(15))));
            vec kinds = v_and(first, v_look_16(seconds, v_upper(here)));
            /* Bit 7: a third or fourth byte must be here. */
            vec must = v_or(v_subtract(v_load(at - 2), v_splat(0xE0 - 0x80)),
                            v_subtract(v_load(at - 3), v_splat(0xF0 - 0x80)));
            well[k] = v_equal(v_and(must, v_splat(0x80)), kinds);
        }
        if (~m_bits(well)) break;
    }
    return st_whole_characters(p, i);
}
#endif
