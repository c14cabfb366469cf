/* Byte pair encoding of one piece of up to 64 bytes, or of a few, with all ranks in AVX-512 registers: the
   same merges as those of `merge_short` in merge/merge.pxi. */
#ifndef STREAMTOK_MERGE_LANES_H
#define STREAMTOK_MERGE_LANES_H

#include "tokens/pairs.h"

#define ST_MERGE_LANES 64
#define ST_UNIT 16 /* bytes: where pieces begin is counted in these */
#define ST_FEW 8   /* pieces that take turns, at the most */

typedef size_t st_merge_function(const st_pairs *pairs, const uint32_t *byte_token,
                                 const uint32_t *byte_pairs, const uint8_t *p, size_t n,
                                 uint32_t *out);

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#include <immintrin.h>

#define ST_LANES __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512cd,avx2,bmi,lzcnt")))

/* A piece that is being merged. Nothing is ever shifted. A merge asks for two pairs at addresses that
   depend on the merge before it, so it waits for the cache more than it computes: a few pieces take
   turns, one merge each, to wait for several at once. */
typedef struct {
    __m512i ranks[4]; /* lane i: what the token at i and the next one merge into, or ST_NONE */
    uint32_t tokens[ST_MERGE_LANES]; /* of the positions that are alive */
    uint64_t alive;                  /* a bit for each position at which a token begins */
    uint32_t rank;                   /* of the next merge, or ST_NONE */
} st_turn;

ST_LANES static inline __attribute__((always_inline)) uint32_t st_least(const __m512i *ranks, int registers) {
    __m512i least = ranks[0];
    for (int k = 1; k < registers; k++) least = _mm512_min_epu32(least, ranks[k]);
    return _mm512_reduce_min_epu32(least);
}

ST_LANES static inline __attribute__((always_inline)) void st_turn_begin(
    st_turn *s, int registers, const st_pairs *pairs, const uint32_t *byte_token,
    const uint32_t *byte_pairs, const uint8_t *p, size_t n) {
    uint32_t first[ST_MERGE_LANES] __attribute__((aligned(64)));
    for (size_t i = 0; i < n; i++) s->tokens[i] = byte_token[p[i]];
    for (size_t i = 0; i + 1 < n; i++) first[i] = byte_pairs[(uint32_t)p[i] << 8 | p[i + 1]];
    /* What any first merge would ask for: many of these questions come later, one after the other. Of
       longer pieces too few do. */
    for (size_t i = 0; registers == 1 && i + 2 < n; i++) {
        st_pairs_fetch(pairs, first[i], s->tokens[i + 2]);
        st_pairs_fetch(pairs, s->tokens[i], first[i + 1]);
    }
    s->alive = ~(uint64_t)0 >> (64 - n);
    for (int k = 0; k < registers; k++)
        s->ranks[k] = _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), (__mmask16)(s->alive >> 1 >> (16 * k)),
                                              first + 16 * k);
    s->rank = st_least(s->ranks, registers);
}

/* One merge. No branch: where it is, and whether a token is before and after it, cannot be
   predicted. */
ST_LANES static inline __attribute__((always_inline)) void st_turn_step(st_turn *s, int registers,
                                                                        const st_pairs *pairs) {
    const __m512i none = _mm512_set1_epi32(-1), wanted = _mm512_set1_epi32((int)s->rank);
    uint64_t found = 0, alive = s->alive;
    for (int k = 0; k < registers; k++)
        found |= (uint64_t)_mm512_cmpeq_epi32_mask(s->ranks[k], wanted) << (16 * k);
    uint64_t here = found & (~found + 1), earlier = alive & (here - 1), later = alive ^ earlier ^ here;
    uint64_t gone = later & (~later + 1), beyond = later ^ gone;
    unsigned after = beyond ? (unsigned)st_lowest(beyond) : 0;
    unsigned before = 63 - (unsigned)__builtin_clzll(earlier | 1);
    uint32_t right = st_pairs_find_512(pairs, s->rank, s->tokens[after]);
    uint32_t left = st_pairs_find_512(pairs, s->tokens[before], s->rank);
    uint64_t there = (uint64_t)(earlier != 0) << before;
    right |= 0u - (uint32_t)(beyond == 0);
    s->tokens[st_lowest(here)] = s->rank;
    s->alive = alive ^ gone;
    __m512i rights = _mm512_set1_epi32((int)right), lefts = _mm512_set1_epi32((int)left);
    for (int k = 0; k < registers; k++) {
        __m512i ranks = _mm512_mask_mov_epi32(s->ranks[k], (__mmask16)(gone >> (16 * k)), none);
        ranks = _mm512_mask_mov_epi32(ranks, (__mmask16)(here >> (16 * k)), rights);
        s->ranks[k] = _mm512_mask_mov_epi32(ranks, (__mmask16)(there >> (16 * k)), lefts);
    }
    s->rank = st_least(s->ranks, registers);
}

/* Its tokens; returns how many there are. */
ST_LANES static inline __attribute__((always_inline)) size_t st_turn_end(const st_turn *s, uint32_t *out) {
    size_t n = 0;
    for (uint64_t alive = s->alive; alive; alive &= alive - 1) out[n++] = s->tokens[st_lowest(alive)];
    return n;
}

ST_LANES static inline __attribute__((always_inline)) size_t st_merge_in(
    int registers, const st_pairs *pairs, const uint32_t *byte_token, const uint32_t *byte_pairs,
    const uint8_t *p, size_t n, uint32_t *out) {
    st_turn turn;
    st_turn_begin(&turn, registers, pairs, byte_token, byte_pairs, p, n);
    while (turn.rank != ST_NONE) st_turn_step(&turn, registers, pairs);
    return st_turn_end(&turn, out);
}

ST_LANES static inline size_t st_merge_lanes(const st_pairs *pairs, const uint32_t *byte_token,
                                             const uint32_t *byte_pairs, const uint8_t *p, size_t n,
                                             uint32_t *out) {
    if (n <= 16) return st_merge_in(1, pairs, byte_token, byte_pairs, p, n, out);
    if (n <= 32) return st_merge_in(2, pairs, byte_token, byte_pairs, p, n, out);
    return st_merge_in(4, pairs, byte_token, byte_pairs, p, n, out);
}

ST_LANES static inline __attribute__((always_inline)) void st_turns_in(
    int registers, const st_pairs *pairs, const uint32_t *byte_token, const uint32_t *byte_pairs,
    const uint8_t *bytes, const uint16_t *units, const uint8_t *sizes, size_t count, uint32_t *out,
    const uint16_t *places, uint8_t *counts) {
    st_turn turns[ST_FEW];
    for (size_t k = 0; k < count; k++)
        st_turn_begin(&turns[k], registers, pairs, byte_token, byte_pairs,
                      bytes + ST_UNIT * (size_t)units[k], sizes[k]);
    for (int going = 1; going;) {
        going = 0;
        for (size_t k = 0; k < count; k++)
            if (turns[k].rank != ST_NONE) {
                st_turn_step(&turns[k], registers, pairs);
                going = 1;
            }
    }
    for (size_t k = 0; k < count; k++)
        counts[k] = (uint8_t)st_turn_end(&turns[k], out + ST_UNIT * (size_t)places[k]);
}

/* Merges up to ST_FEW pieces, as `st_merge_batch_function` says. */
ST_LANES static inline void st_turns_run(const st_pairs *pairs, const uint32_t *byte_token,
                                         const uint32_t *byte_pairs, const uint8_t *bytes,
                                         const uint16_t *units, const uint8_t *sizes,
                                         size_t count, uint32_t *out, const uint16_t *places,
                                         uint8_t *counts) {
    uint8_t longest = 0;
    for (size_t k = 0; k < count; k++) longest = sizes[k] > longest ? sizes[k] : longest;
    if (longest <= 16)
        st_turns_in(1, pairs, byte_token, byte_pairs, bytes, units, sizes, count, out, places, counts);
    else if (longest <= 32)
        st_turns_in(2, pairs, byte_token, byte_pairs, bytes, units, sizes, count, out, places, counts);
    else
        st_turns_in(4, pairs, byte_token, byte_pairs, bytes, units, sizes, count, out, places, counts);
}
#endif

static inline int st_has_lanes(void) {
#if defined(ST_LANES)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("bmi"); /* and lzcnt, which older compilers cannot ask for */
#else
    return 0;
#endif
}

/* The way to merge up to ST_MERGE_LANES bytes in registers; NULL where the processor has none. */
static inline st_merge_function *st_merge_tier(void) {
#if defined(ST_LANES)
    if (st_has_lanes()) return st_merge_lanes;
#endif
    return NULL;
}

#endif
