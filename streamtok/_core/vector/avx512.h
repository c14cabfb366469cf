/* AVX-512 with VBMI and VBMI2: 64 bytes. */

typedef __m512i vec;
static ST_ALWAYS_INLINE vec v_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
static ST_ALWAYS_INLINE void v_store(uint8_t *p, vec a) { _mm512_storeu_si512(p, a); }
static ST_ALWAYS_INLINE void v_store_pairs(uint16_t *p, vec a, vec b) {
    vec first = _mm512_unpacklo_epi8(a, b), second = _mm512_unpackhi_epi8(a, b); /* within each 16 bytes */
    const vec front = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), back = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_si512(p, _mm512_permutex2var_epi64(first, front, second));
    _mm512_storeu_si512(p + 32, _mm512_permutex2var_epi64(first, back, second));
}
static ST_ALWAYS_INLINE vec v_splat(int byte) { return _mm512_set1_epi8((char)byte); }
static ST_ALWAYS_INLINE vec v_and(vec a, vec b) { return _mm512_and_si512(a, b); }
static ST_ALWAYS_INLINE vec v_or(vec a, vec b) { return _mm512_or_si512(a, b); }
static ST_ALWAYS_INLINE vec v_xor(vec a, vec b) { return _mm512_xor_si512(a, b); }
static ST_ALWAYS_INLINE vec v_add(vec a, vec b) { return _mm512_add_epi8(a, b); }
static ST_ALWAYS_INLINE vec v_subtract(vec a, vec b) { return _mm512_subs_epu8(a, b); }
static ST_ALWAYS_INLINE vec v_next(vec a, vec b) { return _mm512_alignr_epi8(_mm512_alignr_epi64(b, a, 2), a, 1); }
static ST_ALWAYS_INLINE vec v_two_before(vec a, vec b) {
    return _mm512_alignr_epi8(b, _mm512_alignr_epi64(b, a, 6), 14);
}
static ST_ALWAYS_INLINE vec v_upper(vec a) { return v_and(_mm512_srli_epi16(a, 4), v_splat(15)); }
static ST_ALWAYS_INLINE vec v_select(vec by, vec yes, vec no) {
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(by), no, yes);
}

typedef __mmask64 vmask;
static ST_ALWAYS_INLINE vmask v_equal(vec a, vec b) { return _mm512_cmpeq_epi8_mask(a, b); }
static ST_ALWAYS_INLINE vmask v_at_least(vec a, vec b) { return _mm512_cmpge_epu8_mask(a, b); }
static ST_ALWAYS_INLINE vmask v_tops(vec a) { return _mm512_movepi8_mask(a); }
static ST_ALWAYS_INLINE vmask m_and(vmask a, vmask b) { return a & b; }
static ST_ALWAYS_INLINE vmask m_or(vmask a, vmask b) { return a | b; }
static ST_ALWAYS_INLINE vmask m_without(vmask a, vmask b) { return a & ~b; }
static ST_ALWAYS_INLINE uint64_t m_bits(const vmask *m) { return m[0]; }
static ST_ALWAYS_INLINE int m_any(const vmask *m) { return m[0] != 0; }

static ST_ALWAYS_INLINE vec v_row(const uint8_t *p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
}
static ST_ALWAYS_INLINE vec v_look_16(vec row, vec index) { return _mm512_shuffle_epi8(row, index); }

typedef struct {
    vec parts[4];
} vtable;

static ST_ALWAYS_INLINE void v_fill(vtable *t, const uint8_t *p, int entries) {
    for (int k = 0; 64 * k < entries; k++) t->parts[k] = v_load(p + 64 * k);
}

static ST_ALWAYS_INLINE vec v_look(const vtable *t, int entries, vec index) {
    if (entries <= 64) return _mm512_permutexvar_epi8(index, t->parts[0]);
    vec low = _mm512_permutex2var_epi8(t->parts[0], index, t->parts[1]);
    if (entries <= 128) return low;
    return v_select(index, _mm512_permutex2var_epi8(t->parts[2], index, t->parts[3]), low);
}

static ST_ALWAYS_INLINE uint8_t *v_compress(uint8_t *to, const uint8_t *from, uint64_t keep) {
    v_store(to, _mm512_maskz_compress_epi8(keep, v_load(from)));
    return to + _mm_popcnt_u64(keep);
}
