/* Squeeze text to one byte for each character, so that windows can decide about characters that are not ASCII.
   ASCII stays; other characters become an ASCII substitute of the same class (patterns/pattern.py). */
#ifndef ST_TIER
#ifndef STREAMTOK_SUBSTITUTES_H
#define STREAMTOK_SUBSTITUTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"

#define ST_SUBSTITUTES_SIZE (0x10000 + 4) /* bytes of a table, with padding */
#define ST_NO_SUBSTITUTE 0xFF
#define ST_LOOK_BACK 32 /* bytes in which at least eight characters begin */

/* Writes a byte to `to` for each character of p[:64 * blocks]. Characters of two and three bytes become their
   substitute or ST_NO_SUBSTITUTE; ASCII and all other bytes are copied. Returns the number of bytes written.
   Bit i of kept[k]: whether p[64 * k + i] produced a byte.
   skip: how many bytes at p, at most two, belong to the character before p. It is then set to how many bytes
   after the last block belong to the last character.
   readable: bytes at p that may be read, at least 64 * blocks. `to` needs room for 64 more bytes.
   substitutes: by code point, for characters of two and three bytes; 0 for code point 0. */
typedef size_t st_squeeze_function(const uint8_t *substitutes, const uint8_t *p, size_t blocks,
                                   size_t readable, unsigned *skip, uint8_t *to, uint64_t *kept);

/* Moves bit i of *bits and of *others to the position of the i-th set bit of `mask`. */
typedef void st_deposit_function(uint64_t *bits, uint64_t *others, uint64_t mask);

/* The code point of a well-formed character of two or three bytes at p, and its size; else 0 and 1. */
static inline uint32_t st_wide_code(const uint8_t *p, size_t readable, unsigned *size) {
    uint32_t a = p[0], b, c, code;
    *size = 1;
    if (a < 0xC2 || a >= 0xF0 || readable < (a < 0xE0 ? 2 : 3)) return 0;
    b = p[1] ^ 0x80u;
    if (b >= 0x40) return 0;
    if (a < 0xE0) {
        *size = 2;
        return (a & 0x1F) << 6 | b;
    }
    c = p[2] ^ 0x80u;
    code = (a & 0x0F) << 12 | b << 6 | c;
    if (c >= 0x40 || code < 0x800 || (code & 0xF800) == 0xD800) return 0;
    *size = 3;
    return code;
}

/* The byte for the character at p; sets the character's size. */
static inline uint8_t st_squeeze_one(const uint8_t *substitutes, const uint8_t *p, size_t readable,
                                     unsigned *size) {
    *size = 1;
    if (p[0] < 0x80) return p[0];
    uint32_t code = st_wide_code(p, readable, size);
    return code ? substitutes[code] : p[0];
}

/* Squeezes a block from byte i on; returns how many bytes of its last character are in the next block. */
static inline size_t st_squeeze_rest(const uint8_t *substitutes, const uint8_t *p, size_t i, size_t readable,
                                     uint8_t **to, uint64_t *kept) {
    while (i < 64) {
        unsigned size;
        *kept |= (uint64_t)1 << i;
        *(*to)++ = st_squeeze_one(substitutes, p + i, readable - i, &size);
        i += size;
    }
    return i - 64;
}

/* Squeezes a block whose first `skip` bytes belong to an earlier character; returns `skip` of the next block. */
static size_t st_squeeze_block(const uint8_t *substitutes, const uint8_t *p, size_t readable, size_t skip,
                               uint8_t **to, uint64_t *kept) {
    uint8_t *at = *to;
    size_t i = skip;
    uint64_t here = 0;
    if (readable >= 68)
        while (i < 64) { /* as st_squeeze_one, on words of four bytes */
            uint32_t word, code;
            memcpy(&word, p + i, 4);
            here |= (uint64_t)1 << i;
            if (!(word & 0x80)) {
                *at++ = (uint8_t)word;
                i++;
            } else if ((word & 0xC0E0) == 0x80C0 && (word & 0x1E)) {
                *at++ = substitutes[(word & 0x1F) << 6 | (word >> 8 & 0x3F)];
                i += 2;
            } else {
                code = (word & 15) << 12 | (word >> 2 & 0xFC0) | (word >> 16 & 0x3F);
                if ((word & 0xC0C0F0) == 0x8080E0 && code >= 0x800 && (code & 0xF800) != 0xD800) {
                    *at++ = substitutes[code];
                    i += 3;
                } else {
                    *at++ = (uint8_t)word;
                    i++;
                }
            }
        }
    *to = at;
    i = st_squeeze_rest(substitutes, p, i, readable, to, &here);
    *kept = here;
    return i;
}

static size_t st_squeeze_plain(const uint8_t *substitutes, const uint8_t *p, size_t blocks, size_t readable,
                               unsigned *skip, uint8_t *to, uint64_t *kept) {
    uint8_t *begin = to;
    size_t rest = *skip;
    for (size_t k = 0; k < blocks; k++)
        rest = st_squeeze_block(substitutes, p + 64 * k, readable - 64 * k, rest, &to, kept + k);
    *skip = (unsigned)rest;
    return (size_t)(to - begin);
}

/* Takes six steps, each of which moves bits by a power of two (Warren, Hacker's Delight, 2nd ed., 7-5: expand). */
static void st_deposit_plain(uint64_t *bits, uint64_t *others, uint64_t mask) {
    uint64_t moves[6], left = mask, zeros = ~mask << 1, one = *bits, other = *others;
    for (int k = 0; k < 6; k++) {
        uint64_t odd = zeros; /* becomes the positions with an odd number of remaining zeros below */
        for (int by = 1; by < 64; by *= 2) odd ^= odd << by;
        moves[k] = odd & left;
        left = (left ^ moves[k]) | moves[k] >> (1 << k);
        zeros &= ~odd;
    }
    for (int k = 5; k >= 0; k--) {
        one = (one & ~moves[k]) | (one << (1 << k) & moves[k]);
        other = (other & ~moves[k]) | (other << (1 << k) & moves[k]);
    }
    *bits = one & mask;
    *others = other & mask;
}

/* Writes the bytes for the last eight characters before p; returns 0 if p[-before:] has fewer.
   skip: set to how many bytes from p on belong to the last of them. */
static inline int st_squeeze_before(const uint8_t *substitutes, const uint8_t *p, size_t before,
                                    size_t readable, uint8_t *to, unsigned *skip) {
    uint8_t all[ST_LOOK_BACK];
    size_t count = 0;
    const uint8_t *at = p - (before < ST_LOOK_BACK ? before : ST_LOOK_BACK);
    unsigned size;
    while (at < p && (*at & 0xC0) == 0x80) at++; /* the rest of a character, if any */
    for (; at < p; at += size) all[count++] = st_squeeze_one(substitutes, at, (size_t)(p - at) + readable, &size);
    *skip = (unsigned)(at - p);
    if (count < 8) return 0;
    memcpy(to, all + count - 8, 8);
    return 1;
}

#if defined(ST_X86)
ST_FOR_AVX2 static void st_deposit_bmi2(uint64_t *bits, uint64_t *others, uint64_t mask) {
    *bits = _pdep_u64(*bits, mask);
    *others = _pdep_u64(*others, mask);
}
#endif

#define ST_KERNEL "scan/substitutes.h"
#include "vector/each_tier.h"

static inline st_squeeze_function *st_squeeze_tier(int most) { return ST_BEST(most, st_squeeze); }

static inline st_deposit_function *st_deposit_tier(int most) {
#if defined(ST_X86)
    if (st_level(most) >= ST_AVX2) return st_deposit_bmi2;
#else
    (void)most;
#endif
    return st_deposit_plain;
}

#endif
#else /* for each tier */

static ST_ALWAYS_INLINE vec ST_OWN(v_four_times)(vec a) { return v_add(v_add(a, a), v_add(a, a)); }

/* Decodes the character of two or three bytes that begins at each of the 64 bytes at p. The results for bytes
   where no such character begins are meaningless. Reads 66 bytes. */
static ST_ALWAYS_INLINE void ST_OWN(st_codes)(const uint8_t *p, uint16_t *codes) {
    static const uint8_t times_16[16] = {0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240};
    static const uint8_t times_64[16] = {0, 64, 128, 192};
    const vec to_top_four = v_row(times_16), to_top_two = v_row(times_64);
    for (int i = 0; i < 64; i += LANES) {
        vec first = v_load(p + i), second = v_load(p + i + 1), third = v_load(p + i + 2);
        vec is_three = ST_OWN(v_four_times)(first); /* bit 7: set for 1110...., clear for 110..... */
        vec last_but_one = v_select(is_three, second, first), last = v_select(is_three, third, second);
        vec top = v_select(is_three, v_look_16(to_top_four, v_and(first, v_splat(15))), v_splat(0));
        vec upper = v_or(top, v_upper(ST_OWN(v_four_times)(last_but_one)));
        vec lower = v_or(v_look_16(to_top_two, v_and(last_but_one, v_splat(3))), v_and(last, v_splat(0x3F)));
        v_store_pairs(codes + i, lower, upper);
    }
}

/* In a block of ASCII and characters of two and three bytes only, replaces each lead byte by the substitute,
   then removes the continuation bytes. Other blocks are squeezed one character at a time. */
static size_t ST_OWN(st_squeeze)(const uint8_t *substitutes, const uint8_t *p, size_t blocks, size_t readable,
                                 unsigned *skip, uint8_t *to, uint64_t *kept) {
    uint8_t *begin = to;
    size_t rest = *skip, k = 0;
    for (; k < blocks && 64 * k + 66 <= readable; k++, p += 64) {
        ST_ALIGNED(64) uint8_t bytes[64];
        ST_ALIGNED(64) uint16_t codes[64];
        vmask is_wide[PARTS], is_first[PARTS], is_lead[PARTS], is_three[PARTS], is_bad[PARTS];
        for (int i = 0; i < PARTS; i++) {
            vec here = v_load(p + LANES * i);
            vmask is_high = v_at_least(v_load(p + LANES * i + 1), v_splat(0xA0));
            v_store(bytes + LANES * i, here);
            is_wide[i] = v_tops(here);
            is_first[i] = v_at_least(here, v_splat(0xC0));
            is_lead[i] = v_at_least(here, v_splat(0xC2));
            is_three[i] = v_at_least(here, v_splat(0xE0));
            /* four bytes; an overlong form of three (E0, at most 9F); a surrogate (ED, at least A0) */
            is_bad[i] = m_or(m_without(v_equal(here, v_splat(0xE0)), is_high),
                             m_and(v_equal(here, v_splat(0xED)), is_high));
            is_bad[i] = m_or(is_bad[i], v_at_least(here, v_splat(0xF0)));
        }
        uint64_t leads = m_bits(is_lead), threes = m_bits(is_three), rests = ((uint64_t)1 << rest) - 1;
        uint64_t expected = rests | leads << 1 | threes << 2, next = leads >> 63 | threes >> 62;
        uint64_t bad = (m_bits(is_wide) ^ m_bits(is_first) ^ expected) | m_bits(is_bad);
        if (ST_RARELY(bad || (next && ((p[64] & 0xC0) != 0x80 || (next > 1 && (p[65] & 0xC0) != 0x80))))) {
            rest = st_squeeze_block(substitutes, p, readable - 64 * k, rest, &to, kept + k);
            continue;
        }
        if (leads) ST_OWN(st_codes)(p, codes);
        for (uint64_t left = leads; left; left &= left - 1) {
            int i = st_lowest(left);
            bytes[i] = substitutes[codes[i]];
        }
        kept[k] = ~expected;
        to = v_compress(to, bytes, ~expected);
        rest = (size_t)st_ones(next);
    }
    *skip = (unsigned)rest;
    return (size_t)(to - begin)
           + st_squeeze_plain(substitutes, p, blocks - k, readable - 64 * k, skip, to, kept + k);
}
#endif
