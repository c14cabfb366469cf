/* Byte pair encoding of pieces of up to 64 bytes. Each merge scans all ranks of a piece for the lowest. Several
   pieces take turns, one merge each: while one waits for memory, the others compute. Performs the same merges
   as `merge_long` of merge/merge.pxi. With AVX2, the search for the least key compares eight keys at a time, and
   the search for a pair in its bucket compares four slots at a time. */
#ifndef STREAMTOK_MERGE_TURNS_H
#define STREAMTOK_MERGE_TURNS_H

#include "base/native.h"
#include "tokens/pairs.h"

#define ST_IN_TURN 8
#define ST_SHORT 64    /* bytes of the longest piece */
#define ST_UNIT 16     /* pieces begin at multiples of this many bytes */
#define ST_NOTHING ((uint32_t)ST_NONE << 6)

typedef struct {
    /* By position: merged << 6 | position, if the token there and the next one merge into `merged`; otherwise at
       least ST_NOTHING. The pair with the least key merges next. */
    ST_ALIGNED(64) uint32_t keys[ST_SHORT + 16];
    uint32_t tokens[ST_SHORT];                   /* at the alive positions */
    uint64_t alive;                                  /* bit set of the positions at which a token begins */
    uint64_t left_pair, right_pair;                  /* the pairs that the last merge made */
    const uint64_t *left, *right;                    /* their buckets */
    uint32_t before, at, no_right;                   /* positions of the left and of the right pair; ST_NONE if there
                                                        is no right pair, else 0 */
    uint32_t most;                                   /* keys to scan, a multiple of 16 */
    size_t piece;
} st_in_turn;

/* Prefetches the bucket of a pair. */
static ST_ALWAYS_INLINE const uint64_t *st_ask_bucket(const st_pairs *t, uint64_t pair) {
    const uint64_t *slots = st_pair_bucket(t, st_hash_word(pair));
    ST_PREFETCH(slots);
    return slots;
}

/* The slot of a pair in its bucket, or 0. No slot is 0: a token does not merge with itself into itself. */
static ST_ALWAYS_INLINE uint64_t st_find_slot(const uint64_t *slots, uint64_t pair) {
    uint64_t found = 0;
    for (int k = 0; k < ST_BUCKET; k++) found |= slots[k] >> ST_TOKEN_BITS == pair ? slots[k] : 0;
    return found;
}

/* The token that a pair merges into, or ST_NONE. found: its slot in its bucket, or 0. */
static ST_ALWAYS_INLINE uint32_t st_answer(const st_pairs *t, const uint64_t *slots, uint64_t pair,
                                           uint64_t found) {
    const uint32_t mask = (1u << ST_TOKEN_BITS) - 1;
    if (ST_RARELY(found == 0 && slots[ST_BUCKET - 1] != ~(uint64_t)0))
        return st_pairs_find(t, (uint32_t)(pair >> ST_TOKEN_BITS), (uint32_t)pair & mask);
    return found ? (uint32_t)found & mask : ST_NONE;
}

static ST_ALWAYS_INLINE void st_in_turn_begin(st_in_turn *s, const uint32_t *byte_token, const uint32_t *byte_pairs,
                                              const uint8_t *p, size_t n) {
    s->most = (uint32_t)(n + 15) & ~15u;
    s->alive = ~(uint64_t)0 >> (64 - n);
    for (uint32_t i = 0; i < s->most; i++) s->keys[i] = ST_NONE;
    for (size_t i = 0; i + 1 < n; i++) {
        s->tokens[i] = byte_token[p[i]];
        s->keys[i] = byte_pairs[(uint32_t)p[i] << 8 | p[i + 1]] << 6 | (uint32_t)i;
    }
    s->tokens[n - 1] = byte_token[p[n - 1]];
}

/* Performs the next merge and prefetches the buckets of its new pairs; returns 0 if no pair merges. No branch
   depends on the position. */
static ST_ALWAYS_INLINE int st_in_turn_ask(st_in_turn *s, const st_pairs *pairs) {
    uint32_t eight[8], least = ST_NONE;
    for (int k = 0; k < 8; k++) eight[k] = s->keys[k] < s->keys[k + 8] ? s->keys[k] : s->keys[k + 8];
    for (uint32_t i = 16; i < s->most; i += 8)
        for (int k = 0; k < 8; k++) eight[k] = s->keys[i + k] < eight[k] ? s->keys[i + k] : eight[k];
    for (int k = 0; k < 8; k++) least = eight[k] < least ? eight[k] : least;
    if (least >= ST_NOTHING) return 0;
    uint32_t at = least & 63, merged = least >> 6;
    uint64_t alive = s->alive, here = (uint64_t)1 << at;
    uint64_t earlier = alive & (here - 1), later = alive ^ earlier ^ here, gone = later & (0 - later);
    uint64_t beyond = later ^ gone;
    int after = st_lowest(beyond | (uint64_t)1 << 63), before = st_highest(earlier | 1);
    s->right_pair = (uint64_t)merged << ST_TOKEN_BITS | s->tokens[after];
    s->left_pair = (uint64_t)s->tokens[before] << ST_TOKEN_BITS | merged;
    s->right = st_ask_bucket(pairs, s->right_pair);
    s->left = st_ask_bucket(pairs, s->left_pair);
    s->no_right = beyond ? 0 : ST_NONE;
    s->before = earlier ? (uint32_t)before : ST_SHORT; /* a key that is never read */
    s->at = at;
    s->alive = alive ^ gone;
    s->tokens[at] = merged;
    s->keys[st_lowest(gone)] = ST_NONE;
    return 1;
}

/* Stores the keys of the last merge's new pairs. right, left: their slots, or 0. */
static ST_ALWAYS_INLINE void st_in_turn_take(st_in_turn *s, const st_pairs *pairs, uint64_t right, uint64_t left) {
    uint32_t to_right = st_answer(pairs, s->right, s->right_pair, right) | s->no_right;
    uint32_t to_left = st_answer(pairs, s->left, s->left_pair, left);
    s->keys[s->at] = to_right << 6 | s->at;
    s->keys[s->before] = to_left << 6 | (s->before & 63);
}

typedef void st_answer_function(st_in_turn *turns, size_t count, const st_pairs *pairs);

static void st_answer_plain(st_in_turn *turns, size_t count, const st_pairs *pairs) {
    for (st_in_turn *s = turns; s < turns + count; s++)
        st_in_turn_take(s, pairs, st_find_slot(s->right, s->right_pair), st_find_slot(s->left, s->left_pair));
}

#if defined(ST_X86)
ST_FOR_AVX2 static ST_ALWAYS_INLINE uint64_t st_find_slot_256(const uint64_t *slots, uint64_t pair) {
    const __m256i wanted = _mm256_set1_epi64x((long long)pair);
    __m256i a = _mm256_load_si256((const __m256i *)slots), b = _mm256_load_si256((const __m256i *)(slots + 4));
    a = _mm256_and_si256(a, _mm256_cmpeq_epi64(_mm256_srli_epi64(a, ST_TOKEN_BITS), wanted));
    b = _mm256_and_si256(b, _mm256_cmpeq_epi64(_mm256_srli_epi64(b, ST_TOKEN_BITS), wanted));
    a = _mm256_or_si256(a, b);
    __m128i found = _mm_or_si128(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return (uint64_t)_mm_cvtsi128_si64(_mm_or_si128(found, _mm_unpackhi_epi64(found, found)));
}

ST_FOR_AVX2 static void st_answer_256(st_in_turn *turns, size_t count, const st_pairs *pairs) {
    for (st_in_turn *s = turns; s < turns + count; s++)
        st_in_turn_take(s, pairs, st_find_slot_256(s->right, s->right_pair), st_find_slot_256(s->left, s->left_pair));
}
#endif

/* Encodes `count` pieces. Piece i, of 1 <= sizes[i] <= ST_SHORT bytes, is at bytes + ST_UNIT * units[i]. Its
   tokens go to out[ST_UNIT * slots[i]], their number to counts[i]. */
typedef void st_merge_batch_function(const st_pairs *pairs, const uint32_t *byte_token, const uint32_t *byte_pairs,
                                     const uint8_t *bytes, const uint16_t *units, const uint8_t *sizes,
                                     size_t count, uint32_t *out, const uint16_t *slots, uint8_t *counts);

static ST_ALWAYS_INLINE void st_merge_in_turn(const st_pairs *pairs, const uint32_t *byte_token,
                                              const uint32_t *byte_pairs, const uint8_t *bytes,
                                              const uint16_t *units, const uint8_t *sizes, size_t count,
                                              uint32_t *out, const uint16_t *slots, uint8_t *counts,
                                              st_answer_function *answer) {
    st_in_turn turns[ST_IN_TURN];
    size_t next = 0, going = 0;
    for (; going < ST_IN_TURN && next < count; going++, next++) {
        st_in_turn_begin(&turns[going], byte_token, byte_pairs, bytes + ST_UNIT * (size_t)units[next], sizes[next]);
        turns[going].piece = next;
    }
    while (going) {
        for (size_t k = 0; k < going; k++) {
            st_in_turn *s = &turns[k];
            while (!st_in_turn_ask(s, pairs)) {
                uint32_t *to = out + ST_UNIT * (size_t)slots[s->piece];
                size_t n = 0;
                for (uint64_t alive = s->alive; alive; alive &= alive - 1) to[n++] = s->tokens[st_lowest(alive)];
                counts[s->piece] = (uint8_t)n;
                if (next < count) {
                    st_in_turn_begin(s, byte_token, byte_pairs, bytes + ST_UNIT * (size_t)units[next], sizes[next]);
                    s->piece = next++;
                } else {
                    if (k == --going) break;
                    turns[k] = turns[going];
                }
            }
        }
        answer(turns, going, pairs);
    }
}

static void st_merge_batch_plain(const st_pairs *pairs, const uint32_t *byte_token, const uint32_t *byte_pairs,
                                 const uint8_t *bytes, const uint16_t *units, const uint8_t *sizes, size_t count,
                                 uint32_t *out, const uint16_t *slots, uint8_t *counts) {
    st_merge_in_turn(pairs, byte_token, byte_pairs, bytes, units, sizes, count, out, slots, counts,
                     st_answer_plain);
}

#if defined(ST_X86)
ST_FOR_SSE4 static void st_merge_batch_sse4(
    const st_pairs *pairs, const uint32_t *byte_token, const uint32_t *byte_pairs, const uint8_t *bytes,
    const uint16_t *units, const uint8_t *sizes, size_t count, uint32_t *out, const uint16_t *slots,
    uint8_t *counts) {
    st_merge_in_turn(pairs, byte_token, byte_pairs, bytes, units, sizes, count, out, slots, counts,
                     st_answer_plain);
}

ST_FOR_AVX2 static void st_merge_batch_256(
    const st_pairs *pairs, const uint32_t *byte_token, const uint32_t *byte_pairs, const uint8_t *bytes,
    const uint16_t *units, const uint8_t *sizes, size_t count, uint32_t *out, const uint16_t *slots,
    uint8_t *counts) {
    st_merge_in_turn(pairs, byte_token, byte_pairs, bytes, units, sizes, count, out, slots, counts,
                     st_answer_256);
}
#endif

#endif
