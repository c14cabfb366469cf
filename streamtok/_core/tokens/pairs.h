/* The table of token pairs that merge: the inner loop of merging looks up pairs in it. */
#ifndef STREAMTOK_PAIRS_H
#define STREAMTOK_PAIRS_H

#include <stdint.h>

#include "base/hash.h"

#define ST_NONE 0xFFFFFFFFu
#define ST_TOKEN_BITS 21
#define ST_BUCKET 8 /* slots, one cache line: a look-up waits for memory once */

typedef struct {
    uint64_t *slots; /* [ST_BUCKET * buckets] left << 42 | right << 21 | token; all ones: empty, like
                        all slots after it in its bucket */
    uint64_t mask;   /* buckets - 1 */
    int shift;       /* a hash >> shift is the number of a bucket */
} st_pairs;

static inline uint64_t *st_pair_bucket(const st_pairs *t, uint64_t hash) {
    return t->slots + (hash >> t->shift) * ST_BUCKET;
}

/* Prefetches the bucket of a pair before its insertion. */
static inline void st_pairs_fetch(const st_pairs *t, uint32_t left, uint32_t right) {
    ST_PREFETCH(st_pair_bucket(t, st_hash_word((uint64_t)left << ST_TOKEN_BITS | right)));
}

static inline void st_pairs_insert(st_pairs *t, uint32_t left, uint32_t right, uint32_t token) {
    uint64_t pair = (uint64_t)left << ST_TOKEN_BITS | right, hash = st_hash_word(pair);
    uint64_t *slot = st_pair_bucket(t, hash), *end = t->slots + (t->mask + 1) * ST_BUCKET;
    while (*slot != ~(uint64_t)0)
        if (++slot == end) slot = t->slots;
    *slot = pair << ST_TOKEN_BITS | token;
}

/* The token that `left` and `right` merge into, or ST_NONE. The token's number is the rank of the merge. */
static inline uint32_t st_pairs_find(const st_pairs *t, uint32_t left, uint32_t right) {
    uint64_t pair = (uint64_t)left << ST_TOKEN_BITS | right, hash = st_hash_word(pair);
    const uint64_t *slot = st_pair_bucket(t, hash), *end = t->slots + (t->mask + 1) * ST_BUCKET;
    while (*slot >> ST_TOKEN_BITS != pair) {
        if (*slot == ~(uint64_t)0) return ST_NONE;
        if (++slot == end) slot = t->slots;
    }
    return (uint32_t)*slot & ((1u << ST_TOKEN_BITS) - 1);
}

#endif
