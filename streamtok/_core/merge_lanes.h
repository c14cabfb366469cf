/* Byte pair encoding of short pieces with all ranks in AVX-512 registers: the same merges as those
   of `merge_short` in merge.pyx.

   `alive` has a bit for each position at which a token begins; lane i of `ranks` is the rank of the
   merge of the token at i with the next one. Nothing is ever shifted. A merge asks for two pairs at
   addresses that depend on the merge before it, so it waits for the cache more than it computes:
   a batch of pieces is merged in turns, one step each, to wait for several at once. */
#ifndef STREAMTOK_MERGE_LANES_H
#define STREAMTOK_MERGE_LANES_H

#include "pairs.h"

#define ST_MERGE_LANES 64

/* Piece i is the first `sizes` bytes of keys[2 i] and keys[2 i + 1], its size in the top byte of the
   latter. Its tokens go to out[16 i], their number to counts[i]. */
typedef void st_merge_batch_function(const st_pairs *pairs, const uint32_t *byte_token,
                                     const uint32_t *byte_pairs, const uint64_t *keys, size_t count,
                                     uint32_t *out, uint8_t *counts);

typedef size_t st_merge_function(const st_pairs *pairs, const uint32_t *byte_token,
                                 const uint32_t *byte_pairs, const uint8_t *p, size_t n,
                                 uint32_t *out);

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#include <immintrin.h>

#define ST_LANES __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi,lzcnt")))

ST_LANES static inline __attribute__((always_inline)) size_t st_merge_in(
    int registers, const st_pairs *pairs, const uint32_t *byte_token, const uint32_t *byte_pairs,
    const uint8_t *p, size_t n, uint32_t *out) {
    uint32_t tokens[ST_MERGE_LANES] __attribute__((aligned(64)));
    uint32_t first[ST_MERGE_LANES] __attribute__((aligned(64)));
    __m512i ranks[4];
    uint64_t alive = n == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n) - 1;
    size_t i, count = 0;
    for (i = 0; i < n; i++) tokens[i] = byte_token[p[i]];
    for (i = 0; i + 1 < n; i++) first[i] = byte_pairs[(uint32_t)p[i] << 8 | p[i + 1]];
    for (int k = 0; k < registers; k++) {
        size_t from = 16 * (size_t)k, have = n - 1 > from ? n - 1 - from : 0;
        __mmask16 mask = have >= 16 ? 0xFFFF : (__mmask16)((1u << have) - 1);
        ranks[k] = _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), mask, first + from);
    }
    for (;;) {
        __m512i least = ranks[0];
        for (int k = 1; k < registers; k++) least = _mm512_min_epu32(least, ranks[k]);
        uint32_t rank = _mm512_reduce_min_epu32(least);
        if (rank == ST_NONE) break;
        __m512i wanted = _mm512_set1_epi32((int)rank);
        uint64_t found = 0;
        for (int k = 0; k < registers; k++)
            found |= (uint64_t)_mm512_cmpeq_epi32_mask(ranks[k], wanted) << (16 * k);
        unsigned at = (unsigned)st_lowest(found);
        uint64_t later = alive & (~(uint64_t)1 << at);
        uint64_t gone = later & (~later + 1);   /* where the right part began */
        uint64_t beyond = later ^ gone, earlier = alive & (((uint64_t)1 << at) - 1);
        alive ^= gone;
        tokens[at] = rank;
        uint64_t next = beyond & (~beyond + 1);
        unsigned after = next ? (unsigned)st_lowest(next) : at;
        unsigned before = earlier ? 63 - (unsigned)__builtin_clzll(earlier) : at;
        uint32_t right = st_pairs_find_512(pairs, rank, tokens[after]);
        uint32_t left = st_pairs_find_512(pairs, tokens[before], rank);
        if (!next) right = ST_NONE;
        __m512i rights = _mm512_set1_epi32((int)right), lefts = _mm512_set1_epi32((int)left);
        __m512i none = _mm512_set1_epi32(-1);
        uint64_t here = (uint64_t)1 << at, there = earlier ? (uint64_t)1 << before : 0;
        for (int k = 0; k < registers; k++) {
            ranks[k] = _mm512_mask_mov_epi32(ranks[k], (__mmask16)(gone >> (16 * k)), none);
            ranks[k] = _mm512_mask_mov_epi32(ranks[k], (__mmask16)(here >> (16 * k)), rights);
            ranks[k] = _mm512_mask_mov_epi32(ranks[k], (__mmask16)(there >> (16 * k)), lefts);
        }
    }
    for (; alive; alive &= alive - 1) out[count++] = tokens[st_lowest(alive)];
    return count;
}

ST_LANES static inline size_t st_merge_lanes(const st_pairs *pairs, const uint32_t *byte_token,
                                             const uint32_t *byte_pairs, const uint8_t *p, size_t n,
                                             uint32_t *out) {
    if (n <= 16) return st_merge_in(1, pairs, byte_token, byte_pairs, p, n, out);
    if (n <= 32) return st_merge_in(2, pairs, byte_token, byte_pairs, p, n, out);
    return st_merge_in(4, pairs, byte_token, byte_pairs, p, n, out);
}

#define ST_TURNS 8 /* pieces that are merged in turns */

typedef struct {
    __m512i ranks;
    uint32_t tokens[16];
    uint32_t alive;
    uint32_t piece;
} st_lane;

ST_LANES static inline void st_lane_begin(st_lane *lane, const uint32_t *byte_token,
                                          const uint32_t *byte_pairs, const uint64_t *keys,
                                          size_t piece) {
    uint64_t low = keys[2 * piece], high = keys[2 * piece + 1];
    uint32_t size = (uint32_t)(high >> 56);
    __m512i bytes = _mm512_cvtepu8_epi32(_mm_set_epi64x((long long)high, (long long)low));
    __m512i next = _mm512_cvtepu8_epi32(
        _mm_set_epi64x((long long)(high >> 8), (long long)(low >> 8 | high << 56)));
    __m512i index = _mm512_or_si512(_mm512_slli_epi32(bytes, 8), next);
    __mmask16 pairs = (__mmask16)((1u << (size - 1)) - 1);
    lane->ranks = _mm512_mask_i32gather_epi32(_mm512_set1_epi32(-1), pairs, index, byte_pairs, 4);
    _mm512_storeu_si512(lane->tokens, _mm512_i32gather_epi32(bytes, byte_token, 4));
    lane->alive = (1u << size) - 1;
    lane->piece = (uint32_t)piece;
}

/* One merge; 0 if there is none left. */
ST_LANES static inline int st_lane_step(st_lane *lane, const st_pairs *pairs) {
    __m512i ranks = lane->ranks;
    uint32_t rank = _mm512_reduce_min_epu32(ranks);
    if (rank == ST_NONE) return 0;
    uint32_t found = _mm512_cmpeq_epi32_mask(ranks, _mm512_set1_epi32((int)rank));
    uint32_t here = found & (~found + 1), later = lane->alive & ~(here | (here - 1));
    uint32_t gone = later & (~later + 1), beyond = later ^ gone;
    uint32_t earlier = lane->alive & (here - 1);
    unsigned at = (unsigned)st_lowest(here);
    unsigned after = (unsigned)st_lowest(beyond | here << 16) & 15;
    unsigned before = 31 - (unsigned)__builtin_clz(earlier << 1 | 1);
    before = before ? before - 1 : 0;
    lane->alive ^= gone;
    uint32_t right = st_pairs_find_512(pairs, rank, lane->tokens[after]);
    uint32_t left = st_pairs_find_512(pairs, lane->tokens[before], rank);
    lane->tokens[at] = rank;
    if (!beyond) right = ST_NONE;
    ranks = _mm512_mask_mov_epi32(ranks, (__mmask16)gone, _mm512_set1_epi32(-1));
    ranks = _mm512_mask_mov_epi32(ranks, (__mmask16)here, _mm512_set1_epi32((int)right));
    lane->ranks = _mm512_mask_mov_epi32(ranks, (__mmask16)(earlier ? 1u << before : 0),
                                        _mm512_set1_epi32((int)left));
    return 1;
}

ST_LANES static inline void st_merge_batch(const st_pairs *pairs, const uint32_t *byte_token,
                                           const uint32_t *byte_pairs, const uint64_t *keys,
                                           size_t count, uint32_t *out, uint8_t *counts) {
    st_lane lanes[ST_TURNS];
    size_t active = 0, begun = 0;
    for (; begun < count && active < ST_TURNS; begun++)
        st_lane_begin(&lanes[active++], byte_token, byte_pairs, keys, begun);
    while (active)
        for (size_t k = 0; k < active;) {
            st_lane *lane = &lanes[k];
            if (st_lane_step(lane, pairs)) {
                k++;
                continue;
            }
            uint32_t *tokens = out + 16 * (size_t)lane->piece;
            counts[lane->piece] = 0;
            for (uint32_t alive = lane->alive; alive; alive &= alive - 1)
                tokens[counts[lane->piece]++] = lane->tokens[st_lowest(alive)];
            if (begun < count)
                st_lane_begin(lane, byte_token, byte_pairs, keys, begun++);
            else
                *lane = lanes[--active];
        }
}
#endif

static inline int st_has_lanes(void) {
#if defined(ST_LANES)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx2") &&
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

/* The way to merge a batch of short pieces; NULL where the processor has none. */
static inline st_merge_batch_function *st_merge_batch_tier(void) {
#if defined(ST_LANES)
    if (st_has_lanes()) return st_merge_batch;
#endif
    return NULL;
}

#endif
