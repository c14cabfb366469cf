/* Finds the bytes of UTF-8 that may begin a character of interest, 64 bytes at a time. */
#ifndef ST_TIER
#ifndef STREAMTOK_LEADS_H
#define STREAMTOK_LEADS_H

#include <stddef.h>
#include <stdint.h>

#include "base/native.h"

#define ST_TOGETHER 64 /* bytes that are tested together */

/* A set of bytes. A byte is in it if the table's entry for its lower half has the bit for its upper half.
   There is one table for ASCII and one for the other bytes. */
typedef struct {
    uint8_t has[256];
    uint8_t ascii[16], lead[16];
    uint8_t leaves_ascii;
} st_leads;

static inline void st_leads_add(st_leads *set, uint8_t byte) {
    set->has[byte] = 1;
    if (byte < 0x80)
        set->ascii[byte & 15] |= (uint8_t)(1 << (byte >> 4));
    else
        set->lead[byte & 15] |= (uint8_t)(1 << ((byte >> 4) - 8));
}

/* Returns a mask of those of the 64 bytes at p that are in the set. The lowest bit stands for the first
   byte. */
typedef uint64_t st_leads_function(const st_leads *set, const uint8_t *p);

static uint64_t st_leads_plain(const st_leads *set, const uint8_t *p) {
    uint64_t found = 0;
    uint8_t all = 0, seen = 0;
    for (size_t i = 0; i < ST_TOGETHER; i++) all |= p[i];
    if (all < 0x80 && set->leaves_ascii) return 0;
    for (size_t i = 0; i < ST_TOGETHER; i++) seen |= set->has[p[i]];
    if (!seen) return 0;
    for (size_t i = 0; i < ST_TOGETHER; i++) found |= (uint64_t)set->has[p[i]] << i;
    return found;
}

#define ST_KERNEL "transform/leads.h"
#include "vector/each_tier.h"

static inline st_leads_function *st_leads_tier(int most) { return ST_BEST(most, st_leads); }

#endif
#else /* for each tier */

static uint64_t ST_OWN(st_leads)(const st_leads *set, const uint8_t *p) {
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const vec ascii = v_row(set->ascii), lead = v_row(set->lead), bit = v_row(bits);
    vmask is_in[PARTS];
    for (int k = 0; k < PARTS; k++) is_in[k] = v_tops(v_load(p + LANES * k));
    if (set->leaves_ascii && !m_any(is_in)) return 0;
    for (int k = 0; k < PARTS; k++) {
        vec here = v_load(p + LANES * k), lower = v_and(here, v_splat(15));
        vec wanted = v_look_16(bit, v_upper(here));
        vec has = v_select(here, v_look_16(lead, lower), v_look_16(ascii, lower));
        is_in[k] = v_equal(v_and(has, wanted), wanted);
    }
    return m_bits(is_in);
}
#endif
