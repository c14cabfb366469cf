/* What the window tables say of up to ST_GROUP blocks of 64 positions: the classes of all characters first,
   looked up once for each, then pairs of them, then decisions. How the classes become masks is the tiers'
   part (`scan/windows.h`); what masks mean is the same for all. */
#ifndef STREAMTOK_WINDOW_GROUP_H
#define STREAMTOK_WINDOW_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/native.h"
#include "scan/window_seen.h"

#define ST_GROUP 32
#define ST_BEFORE 32 /* bytes in front of the first position, so that this one is aligned */

typedef struct {
    ST_ALIGNED(32) uint8_t classes[ST_BEFORE + 64 * ST_GROUP + 32]; /* two before the first position, and one
                                                                       behind the last; any for non-ASCII */
    ST_ALIGNED(32) uint8_t pairs[ST_BEFORE + 64 * ST_GROUP]; /* left << 4 | right of each with the next */
    uint64_t high[ST_GROUP + 1];                             /* bytes that are not ASCII */
    uint64_t triggers[ST_GROUP], counted[ST_GROUP], begins[ST_GROUP], undecided[ST_GROUP];
} st_group;

/* Fills in a group from p on; reads p[-2] .. p[64 * blocks]. */
typedef void st_fill_function(const st_windows *w, const uint8_t *p, size_t blocks, st_group *g);

#if defined(ST_X86)

/* Bit i: bit 7 - k of p[i]. */
static inline uint64_t st_tops(const uint8_t *p, int k) {
    uint64_t tops = 0;
    for (int i = 0; i < 64; i += 16) {
        __m128i bytes = _mm_slli_epi16(_mm_loadu_si128((const __m128i *)(p + i)), k);
        tops |= (uint64_t)(unsigned)_mm_movemask_epi8(bytes) << i;
    }
    return tops;
}

/* Bit i: whether p[i] and q[i] are alike in the bits of `mask`. */
static inline uint64_t st_alike(const uint8_t *p, const uint8_t *q, uint8_t mask) {
    uint64_t alike = 0;
    for (int i = 0; i < 64; i += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(p + i)), b = _mm_loadu_si128((const __m128i *)(q + i));
        a = _mm_and_si128(_mm_xor_si128(a, b), _mm_set1_epi8((char)mask));
        alike |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, _mm_setzero_si128())) << i;
    }
    return alike;
}
#elif defined(ST_NEON)

/* Bit i: whether byte i is 0xFF, where all are that or 0. */
static ST_ALWAYS_INLINE uint64_t st_mask_neon(uint8x16x4_t v) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
    uint8x16_t low = vpaddq_u8(vandq_u8(v.val[0], bit), vandq_u8(v.val[1], bit));
    uint8x16_t high = vpaddq_u8(vandq_u8(v.val[2], bit), vandq_u8(v.val[3], bit));
    low = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(low, low)), 0);
}

static inline uint64_t st_tops(const uint8_t *p, int k) {
    uint8x16x4_t bytes = vld1q_u8_x4(p);
    const int8x16_t up = vdupq_n_s8((int8_t)k);
    for (int i = 0; i < 4; i++)
        bytes.val[i] = vcltzq_s8(vreinterpretq_s8_u8(vshlq_u8(bytes.val[i], up)));
    return st_mask_neon(bytes);
}

static inline uint64_t st_alike(const uint8_t *p, const uint8_t *q, uint8_t mask) {
    uint8x16x4_t a = vld1q_u8_x4(p), b = vld1q_u8_x4(q);
    for (int i = 0; i < 4; i++)
        a.val[i] = vceqzq_u8(vandq_u8(veorq_u8(a.val[i], b.val[i]), vdupq_n_u8(mask)));
    return st_mask_neon(a);
}
#else
static inline uint64_t st_tops_of_eight(uint64_t bytes) {
    return (bytes & 0x8080808080808080ull) * 0x0002040810204081ull >> 56;
}

static inline uint64_t st_tops(const uint8_t *p, int k) {
    uint64_t tops = 0;
    for (int i = 0; i < 64; i += 8) tops |= st_tops_of_eight(st_load64(p + i) << k) << i;
    return tops;
}

static inline uint64_t st_alike(const uint8_t *p, const uint8_t *q, uint8_t mask) {
    const uint64_t every = 0x0101010101010101ull, low = 0x7F7F7F7F7F7F7F7Full;
    uint64_t differ = 0;
    for (int i = 0; i < 64; i += 8) {
        uint64_t bytes = (st_load64(p + i) ^ st_load64(q + i)) & every * mask;
        differ |= st_tops_of_eight(((bytes & low) + low) | bytes) << i;
    }
    return ~differ;
}
#endif

static inline void st_mark_in_groups(st_fill_function *fill, const st_windows *w, const uint8_t *p,
                                     size_t blocks, uint64_t *begins, uint64_t *open) {
    st_group g;
    st_carry carry = st_carry_before(w, p);
    uint64_t high_before = (uint64_t)(p[-2] >> 7) << 62 | (uint64_t)(p[-1] >> 7) << 63;
    while (blocks) {
        size_t here = blocks < ST_GROUP ? blocks : ST_GROUP;
        uint8_t *classes = g.classes + ST_BEFORE;
        for (int k = -2; k < 0; k++) classes[k] = w->classes[p[k] & 127];
        classes[64 * here] = w->classes[p[64 * here] & 127];
        fill(w, p, here, &g);
        g.high[here] = p[64 * here] >> 7;
        for (size_t k = 0; k < here; k++, classes += 64) {
            uint64_t high = g.high[k], next_high = high >> 1 | g.high[k + 1] << 63;
            uint64_t earlier_high = st_shifted(high, high_before, 1);
            st_seen seen = {0, 0, 0, 0, 0, 0, 0, 0};
            seen.high = high;
            seen.open = high | earlier_high | next_high | st_shifted(high, high_before, 2);
            seen.begins = g.begins[k];
            seen.rows = g.undecided[k] & ~seen.open;
            seen.open |= g.undecided[k];
            seen.counted = g.counted[k] & ~high;
            seen.found = g.triggers[k];
            if (seen.found) {
                seen.found &= st_tops(classes + 1, 0) | next_high;      /* ST_FOLLOWER */
                seen.found &= ~st_tops(classes - 1, 1) | earlier_high; /* ST_HARMLESS */
            }
            if (seen.rows | carry.row) {
                seen.same = st_alike(classes, classes + 1, ST_CLASS) & ~(high | next_high);
                seen.rows &= seen.same & st_tops(classes, 2); /* ST_RUN */
                seen.ends = st_tops(classes, 3) & ~high;      /* ST_ENDS_RUN */
            }
            st_finish(w, &seen, &carry, begins + k, open + k);
            high_before = high;
        }
        p += 64 * here;
        begins += here;
        open += here;
        blocks -= here;
    }
}

#endif
