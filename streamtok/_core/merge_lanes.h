/* Byte pair encoding of up to 64 bytes with all ranks in AVX-512 registers. The same merges as
   `merge_short` in merge.pyx, whose comment says what they are. */
#ifndef STREAMTOK_MERGE_LANES_H
#define STREAMTOK_MERGE_LANES_H

#include "pairs.h"

#define ST_MERGE_LANES 64

typedef size_t st_merge_function(const st_pairs *pairs, const uint32_t *byte_token,
                                 const uint32_t *byte_pairs, const uint8_t *p, size_t n,
                                 uint32_t *out);

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#include <immintrin.h>

#define ST_LANES __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi,lzcnt")))

/* `alive` has a bit for each position at which a token begins; lane i of `ranks` is the rank of the
   merge of the token at i with the next one. Nothing is ever shifted. */
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
        uint32_t right = st_pairs_find(pairs, rank, tokens[after]);
        uint32_t left = st_pairs_find(pairs, tokens[before], rank);
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
#endif

/* The way to merge up to ST_MERGE_LANES bytes in registers; NULL where the processor has none. */
static inline st_merge_function *st_merge_tier(void) {
#if defined(ST_LANES)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("lzcnt"))
        return st_merge_lanes;
#endif
    return NULL;
}

#endif
