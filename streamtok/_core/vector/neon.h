/* NEON: 16 bytes. */
#include "vector/kept_lanes.h"

typedef uint8x16_t vec;
static ST_ALWAYS_INLINE vec v_load(const uint8_t *p) { return vld1q_u8(p); }
static ST_ALWAYS_INLINE void v_store(uint8_t *p, vec a) { vst1q_u8(p, a); }
static ST_ALWAYS_INLINE void v_store_pairs(uint16_t *p, vec a, vec b) {
    uint8x16x2_t both = {{a, b}};
    vst2q_u8((uint8_t *)p, both);
}
static ST_ALWAYS_INLINE vec v_splat(int byte) { return vdupq_n_u8((uint8_t)byte); }
static ST_ALWAYS_INLINE vec v_and(vec a, vec b) { return vandq_u8(a, b); }
static ST_ALWAYS_INLINE vec v_or(vec a, vec b) { return vorrq_u8(a, b); }
static ST_ALWAYS_INLINE vec v_xor(vec a, vec b) { return veorq_u8(a, b); }
static ST_ALWAYS_INLINE vec v_add(vec a, vec b) { return vaddq_u8(a, b); }
static ST_ALWAYS_INLINE vec v_subtract(vec a, vec b) { return vqsubq_u8(a, b); }
static ST_ALWAYS_INLINE vec v_next(vec a, vec b) { return vextq_u8(a, b, 1); }
static ST_ALWAYS_INLINE vec v_two_before(vec a, vec b) { return vextq_u8(a, b, 14); }
static ST_ALWAYS_INLINE vec v_upper(vec a) { return vshrq_n_u8(a, 4); }

typedef uint8x16_t vmask; /* 0 or 255 for each byte */
static ST_ALWAYS_INLINE vmask v_equal(vec a, vec b) { return vceqq_u8(a, b); }
static ST_ALWAYS_INLINE vmask v_at_least(vec a, vec b) { return vcgeq_u8(a, b); }
static ST_ALWAYS_INLINE vmask v_tops(vec a) { return vcltzq_s8(vreinterpretq_s8_u8(a)); }
static ST_ALWAYS_INLINE vec v_select(vec by, vec yes, vec no) { return vbslq_u8(v_tops(by), yes, no); }
static ST_ALWAYS_INLINE vmask m_and(vmask a, vmask b) { return vandq_u8(a, b); }
static ST_ALWAYS_INLINE vmask m_or(vmask a, vmask b) { return vorrq_u8(a, b); }
static ST_ALWAYS_INLINE vmask m_without(vmask a, vmask b) { return vbicq_u8(a, b); }
static ST_ALWAYS_INLINE uint64_t m_bits(const vmask *m) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
    uint8x16_t low = vpaddq_u8(vandq_u8(m[0], bit), vandq_u8(m[1], bit));
    uint8x16_t high = vpaddq_u8(vandq_u8(m[2], bit), vandq_u8(m[3], bit));
    low = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(low, low)), 0);
}
static ST_ALWAYS_INLINE int m_any(const vmask *m) {
    return vmaxvq_u8(vorrq_u8(vorrq_u8(m[0], m[1]), vorrq_u8(m[2], m[3]))) != 0;
}

static ST_ALWAYS_INLINE vec v_row(const uint8_t *p) { return vld1q_u8(p); }
static ST_ALWAYS_INLINE vec v_look_16(vec row, vec index) { return vqtbl1q_u8(row, index); }

typedef struct {
    uint8x16x4_t parts[4];
} vtable;

static ST_ALWAYS_INLINE void v_fill(vtable *t, const uint8_t *p, int entries) {
    for (int k = 0; 64 * k < entries; k++) t->parts[k] = vld1q_u8_x4(p + 64 * k);
}

static ST_ALWAYS_INLINE vec v_look(const vtable *t, int entries, vec index) {
    vec result = vqtbl4q_u8(t->parts[0], index);
    for (int k = 1; 64 * k < entries; k++)
        result = vqtbx4q_u8(result, t->parts[k], v_xor(index, v_splat(64 * k)));
    return result;
}

static ST_ALWAYS_INLINE uint8_t *v_compress(uint8_t *to, const uint8_t *from, uint64_t keep) {
    for (int i = 0; i < 64; i += 8, keep >>= 8) {
        vst1_u8(to, vtbl1_u8(vld1_u8(from + i), vcreate_u8(st_kept_lanes[keep & 255])));
        to += st_ones(keep & 255);
    }
    return to;
}
