/* Which two neighbouring tokens merge: the look-up in the inner loop of new pre-tokens. */
#ifndef STREAMTOK_PAIRS_H
#define STREAMTOK_PAIRS_H

#include <stdint.h>

#include "base/hash.h"

#define ST_NONE 0xFFFFFFFFu
#define ST_TOKEN_BITS 21
#define ST_BUCKET 8 /* slots, a cache line: a look-up waits for memory once */

typedef struct {
    uint64_t *slots; /* [ST_BUCKET * buckets] left << 42 | right << 21 | token; all ones: empty, and
                        so is the rest of its bucket */
    uint64_t mask;   /* buckets - 1 */
    int shift;       /* of a hash that gives the number of a bucket */
    uint64_t *filter; /* [1 << (58 - filter_shift)] bits by hash: most pairs do not merge, and these few
                         bits a pair stay in the cache */
    int filter_shift;
} st_pairs;

static inline uint64_t *st_pair_bucket(const st_pairs *t, uint64_t hash) {
    return t->slots + (hash >> t->shift) * ST_BUCKET;
}

/* To be in the cache when it is inserted. */
static inline void st_pairs_fetch(const st_pairs *t, uint32_t left, uint32_t right) {
    ST_PREFETCH(st_pair_bucket(t, st_hash_word((uint64_t)left << ST_TOKEN_BITS | right)));
}

static inline void st_pairs_insert(st_pairs *t, uint32_t left, uint32_t right, uint32_t token) {
    uint64_t pair = (uint64_t)left << ST_TOKEN_BITS | right, hash = st_hash_word(pair);
    uint64_t *slot = st_pair_bucket(t, hash), *end = t->slots + (t->mask + 1) * ST_BUCKET;
    uint64_t bit = hash >> t->filter_shift;
    t->filter[bit >> 6] |= (uint64_t)1 << (bit & 63);
    while (*slot != ~(uint64_t)0)
        if (++slot == end) slot = t->slots;
    *slot = pair << ST_TOKEN_BITS | token;
}

/* The token that `left` and `right` merge into, or ST_NONE. Its number is the rank of the merge. */
static inline uint32_t st_pairs_find(const st_pairs *t, uint32_t left, uint32_t right) {
    uint64_t pair = (uint64_t)left << ST_TOKEN_BITS | right, hash = st_hash_word(pair);
    uint64_t bit = hash >> t->filter_shift;
    if (!(t->filter[bit >> 6] >> (bit & 63) & 1)) return ST_NONE;
    const uint64_t *slot = st_pair_bucket(t, hash), *end = t->slots + (t->mask + 1) * ST_BUCKET;
    while (*slot >> ST_TOKEN_BITS != pair) {
        if (*slot == ~(uint64_t)0) return ST_NONE;
        if (++slot == end) slot = t->slots;
    }
    return (uint32_t)*slot & ((1u << ST_TOKEN_BITS) - 1);
}

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#include <immintrin.h>

/* The same with one comparison. No branch depends on whether they merge, which cannot be predicted. */
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,bmi,lzcnt"))) static inline uint32_t
st_pairs_find_512(const st_pairs *t, uint32_t left, uint32_t right) {
    uint64_t pair = (uint64_t)left << ST_TOKEN_BITS | right;
    const uint64_t *slots = st_pair_bucket(t, st_hash_word(pair));
    __m512i all = _mm512_load_si512(slots);
    uint32_t bits = _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(all, ST_TOKEN_BITS),
                                            _mm512_set1_epi64((long long)pair));
    uint32_t none = bits == 0 ? ST_NONE : 0;
    uint32_t token = (uint32_t)slots[st_lowest(bits | 1u << ST_BUCKET) & (ST_BUCKET - 1)];
    if (ST_RARELY((int32_t)none & (slots[ST_BUCKET - 1] != ~(uint64_t)0)))
        return st_pairs_find(t, left, right);
    return (token & ((1u << ST_TOKEN_BITS) - 1)) | none;
}
#endif

#endif
