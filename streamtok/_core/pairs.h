/* Which two neighbouring tokens merge, and short merges by it: the inner loop of new pieces. */
#ifndef STREAMTOK_PAIRS_H
#define STREAMTOK_PAIRS_H

#include <stdint.h>

#include "native.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define ST_NONE 0xFFFFFFFFu
#define ST_TOKEN_BITS 21
#define ST_BUCKET 8 /* slots, half a cache line */

/* A slot is a token under a fingerprint, 10 bits of its pair's hash and a one: 4 bytes a slot keep
   the table small enough for the second-level cache. `made_of` tells whether the token is really
   made of the pair. */
typedef struct {
    uint32_t *slots;    /* [ST_BUCKET * buckets]; 0: empty, and so is the rest of its bucket */
    uint64_t *made_of;  /* [n] left << 21 | right; all ones for tokens of no pair */
    uint64_t mask;      /* buckets - 1 */
} st_pairs;

static inline uint64_t st_pair_hash(uint64_t pair) {
    uint64_t h = pair * 0x9E3779B97F4A7C15ull;
    return h ^ h >> 29;
}

/* The fingerprint in its place above the token; never that of an empty slot. */
static inline uint32_t st_pair_print(uint64_t hash) {
    return ((uint32_t)(hash >> 53) | 1) << ST_TOKEN_BITS;
}

static inline void st_pairs_insert(st_pairs *t, uint32_t left, uint32_t right, uint32_t token) {
    uint64_t pair = (uint64_t)left << ST_TOKEN_BITS | right, h = st_pair_hash(pair);
    uint64_t bucket = h & t->mask;
    t->made_of[token] = pair;
    for (;; bucket = (bucket + 1) & t->mask)
        for (int k = 0; k < ST_BUCKET; k++)
            if (t->slots[bucket * ST_BUCKET + k] == 0) {
                t->slots[bucket * ST_BUCKET + k] = st_pair_print(h) | token;
                return;
            }
}

/* One bit for each slot of a bucket that has this fingerprint (already shifted up). */
static inline unsigned st_bucket_matches(const uint32_t *slots, uint32_t print) {
#if defined(__AVX2__)
    __m256i v = _mm256_srli_epi32(_mm256_load_si256((const __m256i *)slots), ST_TOKEN_BITS);
    __m256i same = _mm256_cmpeq_epi32(v, _mm256_set1_epi32((int)(print >> ST_TOKEN_BITS)));
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(same));
#elif defined(__SSE2__)
    __m128i wanted = _mm_set1_epi32((int)(print >> ST_TOKEN_BITS));
    __m128i low = _mm_srli_epi32(_mm_load_si128((const __m128i *)slots), ST_TOKEN_BITS);
    __m128i high = _mm_srli_epi32(_mm_load_si128((const __m128i *)(slots + 4)), ST_TOKEN_BITS);
    return (unsigned)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(low, wanted))) |
           (unsigned)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(high, wanted))) << 4;
#else
    unsigned bits = 0;
    for (int k = 0; k < ST_BUCKET; k++)
        bits |= (unsigned)((slots[k] ^ print) >> ST_TOKEN_BITS == 0) << k;
    return bits;
#endif
}

/* The rest of a look-up whose first match, if any, was a false one. */
static inline uint32_t st_pairs_find_slowly(const st_pairs *t, uint64_t pair) {
    uint64_t h = st_pair_hash(pair), bucket = h & t->mask;
    for (;; bucket = (bucket + 1) & t->mask)
        for (int k = 0; k < ST_BUCKET; k++) {
            uint32_t slot = t->slots[bucket * ST_BUCKET + k];
            if (slot == 0) return ST_NONE;
            uint32_t token = slot & ((1u << ST_TOKEN_BITS) - 1);
            if (t->made_of[token] == pair) return token;
        }
}

/* The token that `left` and `right` merge into, or ST_NONE. Its number is the rank of the merge.
   The branch is nearly never taken, whether they merge or not. */
static inline uint32_t st_pairs_find(const st_pairs *t, uint32_t left, uint32_t right) {
    uint64_t pair = (uint64_t)left << ST_TOKEN_BITS | right, h = st_pair_hash(pair);
    const uint32_t *slots = t->slots + (h & t->mask) * ST_BUCKET;
    unsigned bits = st_bucket_matches(slots, st_pair_print(h));
    /* No branch depends on whether they merge, which cannot be predicted: without a match, slot 0 is
       looked at in vain, and a mask of ones makes the result ST_NONE. */
    uint32_t none = (bits == 0) ? ST_NONE : 0;
    uint32_t slot = slots[(unsigned)st_lowest(bits | 1u << ST_BUCKET) & (ST_BUCKET - 1)];
    uint32_t token = slot & ((1u << ST_TOKEN_BITS) - 1) & ~none;
    uint64_t is_false = (t->made_of[token] ^ pair) & ~(uint64_t)(int64_t)(int32_t)none;
    if (ST_RARELY(is_false | (none & slots[ST_BUCKET - 1]))) return st_pairs_find_slowly(t, pair);
    return token | none;
}

#endif
