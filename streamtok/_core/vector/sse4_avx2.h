/* SSE4 (16 bytes) and AVX2 (32 bytes): read once for each, since their intrinsics differ only in name. */
#include "vector/kept_lanes.h"

#undef V
#undef V_ALL
#undef V_MIDDLE
#if LANES == 16
typedef __m128i vec;
#define V_MIDDLE(a, b, own) (own)
#define V(name) _mm_##name
#define V_ALL(name) _mm_##name##_si128
#else
typedef __m256i vec;
#define V_MIDDLE(a, b, own) _mm256_permute2x128_si256(a, b, 0x21)
#define V(name) _mm256_##name
#define V_ALL(name) _mm256_##name##_si256
#endif

static ST_ALWAYS_INLINE vec v_load(const uint8_t *p) { return V_ALL(loadu)((const vec *)p); }
static ST_ALWAYS_INLINE void v_store(uint8_t *p, vec a) { V_ALL(storeu)((vec *)p, a); }
static ST_ALWAYS_INLINE void v_store_pairs(uint16_t *p, vec a, vec b) {
    vec first = V(unpacklo_epi8)(a, b), second = V(unpackhi_epi8)(a, b); /* within each 16 bytes */
#if LANES == 16
    V_ALL(storeu)((vec *)p, first);
    V_ALL(storeu)((vec *)p + 1, second);
#else
    V_ALL(storeu)((vec *)p, _mm256_permute2x128_si256(first, second, 0x20));
    V_ALL(storeu)((vec *)p + 1, _mm256_permute2x128_si256(first, second, 0x31));
#endif
}
static ST_ALWAYS_INLINE vec v_splat(int byte) { return V(set1_epi8)((char)byte); }
static ST_ALWAYS_INLINE vec v_and(vec a, vec b) { return V_ALL(and)(a, b); }
static ST_ALWAYS_INLINE vec v_or(vec a, vec b) { return V_ALL(or)(a, b); }
static ST_ALWAYS_INLINE vec v_xor(vec a, vec b) { return V_ALL(xor)(a, b); }
static ST_ALWAYS_INLINE vec v_add(vec a, vec b) { return V(add_epi8)(a, b); }
static ST_ALWAYS_INLINE vec v_subtract(vec a, vec b) { return V(subs_epu8)(a, b); }
/* V_MIDDLE: on AVX2, which shifts within 16 bytes, the upper half of a and the lower half of b. */
static ST_ALWAYS_INLINE vec v_next(vec a, vec b) { return V(alignr_epi8)(V_MIDDLE(a, b, b), a, 1); }
static ST_ALWAYS_INLINE vec v_two_before(vec a, vec b) { return V(alignr_epi8)(b, V_MIDDLE(a, b, a), 14); }
static ST_ALWAYS_INLINE vec v_upper(vec a) { return v_and(V(srli_epi16)(a, 4), v_splat(15)); }
static ST_ALWAYS_INLINE vec v_select(vec by, vec yes, vec no) { return V(blendv_epi8)(no, yes, by); }

typedef vec vmask; /* bit 7 of each byte counts; comparisons set all eight */
static ST_ALWAYS_INLINE vmask v_equal(vec a, vec b) { return V(cmpeq_epi8)(a, b); }
static ST_ALWAYS_INLINE vmask v_at_least(vec a, vec b) { return v_equal(V(max_epu8)(a, b), a); }
static ST_ALWAYS_INLINE vmask v_tops(vec a) { return a; }
static ST_ALWAYS_INLINE vmask m_and(vmask a, vmask b) { return v_and(a, b); }
static ST_ALWAYS_INLINE vmask m_or(vmask a, vmask b) { return v_or(a, b); }
static ST_ALWAYS_INLINE vmask m_without(vmask a, vmask b) { return V_ALL(andnot)(b, a); }
static ST_ALWAYS_INLINE uint64_t m_bits(const vmask *m) {
    uint64_t bits = 0;
    for (int k = 0; k < PARTS; k++) bits |= (uint64_t)(uint32_t)V(movemask_epi8)(m[k]) << (LANES * k);
    return bits;
}
static ST_ALWAYS_INLINE int m_any(const vmask *m) {
    vmask any = m[0];
    for (int k = 1; k < PARTS; k++) any = m_or(any, m[k]);
    return V(movemask_epi8)(any) != 0;
}

static ST_ALWAYS_INLINE vec v_row(const uint8_t *p) {
#if LANES == 16
    return v_load(p);
#else
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
#endif
}
static ST_ALWAYS_INLINE vec v_look_16(vec row, vec index) { return V(shuffle_epi8)(row, index); }

/* Rows of 16 entries. Each row, except the first of every eight, is stored as the xor with the row before. A
   look-up xors the entries of all rows up to that of the index; for later rows, the index is negative, and a
   shuffle gives 0. */
typedef struct {
    vec rows[16];
} vtable;

static ST_ALWAYS_INLINE void v_fill(vtable *t, const uint8_t *p, int entries) {
    for (int k = 0; 16 * k < entries; k++)
        t->rows[k] = k % 8 ? v_xor(v_row(p + 16 * k), v_row(p + 16 * k - 16)) : v_row(p + 16 * k);
}

/* Looks up indices below 16 * n, n <= 8; gives 0 for indices of 128 and above. */
static ST_ALWAYS_INLINE vec ST_OWN(v_look_in_rows)(const vec *rows, int n, vec index) {
    vec result = v_look_16(rows[0], index);
    for (int k = 1; k < n; k++) {
        index = V(subs_epi8)(index, v_splat(16));
        result = v_xor(result, v_look_16(rows[k], index));
    }
    return result;
}

static ST_ALWAYS_INLINE vec v_look(const vtable *t, int entries, vec index) {
    vec low = ST_OWN(v_look_in_rows)(t->rows, entries < 128 ? (entries + 15) / 16 : 8, index);
    if (entries <= 128) return low;
    return v_or(low, ST_OWN(v_look_in_rows)(t->rows + 8, 8, v_xor(index, v_splat(128))));
}

static ST_ALWAYS_INLINE uint8_t *v_compress(uint8_t *to, const uint8_t *from, uint64_t keep) {
    for (int i = 0; i < 64; i += 8, keep >>= 8) {
        __m128i lanes = _mm_loadl_epi64((const __m128i *)(st_kept_lanes + (keep & 255)));
        _mm_storel_epi64((__m128i *)to, _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(from + i)), lanes));
        to += _mm_popcnt_u64(keep & 255);
    }
    return to;
}
