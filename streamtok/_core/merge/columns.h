/* Byte pair encoding of many pieces side by side, sixteen in the columns of AVX-512 registers. Performs the
   same merges as `merge_long` of merge/merge.pxi. */
#ifndef STREAMTOK_MERGE_COLUMNS_H
#define STREAMTOK_MERGE_COLUMNS_H

#include "merge/turns.h"

#define ST_MERGE_BATCH 1024 /* the most pieces in a batch */

#if defined(ST_X86)

#define ST_FEW 8    /* up to this many pieces take turns instead (merge/turns.h) */
#define ST_WIDE 16  /* pieces that are merged side by side */
#define ST_GROUPS 4 /* groups of ST_WIDE that take turns: one waits for memory while the others compute */

#define ST_ROW_BITS 6
#define ST_ROW_MASK ((1 << ST_ROW_BITS) - 1)

/* Sixteen pieces in columns: row r holds token r of each. After a merge, the rows below it move up, so that
   neighbours stay adjacent. */
typedef struct {
    ST_ALIGNED(64) uint32_t ranks[66][ST_WIDE]; /* the token that this row and the next merge into; ST_NONE if
                                          they do not, and from the last row of a column on */
    ST_ALIGNED(64) uint64_t pairs[2 * ST_WIDE]; /* to look up */
    ST_ALIGNED(64) uint32_t tokens[66][ST_WIDE]; /* not 4 KiB after the ranks, to avoid aliasing */
    ST_ALIGNED(64) uint64_t buckets[2 * ST_WIDE]; /* byte offsets of the pairs' buckets */
    ST_ALIGNED(64) uint32_t counts[ST_WIDE]; /* of tokens */
    __m512i merged, at; /* of each column's next merge: the new token and its row */
    size_t asked, rights; /* number of pairs to look up; the first `rights` are right pairs */
    int rows;
    __mmask16 going, has_left, has_right;
} st_columns;

/* Appends those of 16 pairs whose bit in `wanted` is set, and their buckets; returns the new number of pairs. */
ST_FOR_AVX512 static ST_ALWAYS_INLINE size_t st_ask(
    st_columns *c, const st_pairs *pairs, size_t asked, __mmask16 wanted, __m512i left, __m512i right) {
    const __m128i down = _mm_cvtsi32_si128(pairs->shift);
    for (int half = 0; half < 2; half++) {
        __m512i l = _mm512_cvtepu32_epi64(half ? _mm512_extracti64x4_epi64(left, 1)
                                               : _mm512_castsi512_si256(left));
        __m512i r = _mm512_cvtepu32_epi64(half ? _mm512_extracti64x4_epi64(right, 1)
                                               : _mm512_castsi512_si256(right));
        __mmask8 take = (__mmask8)(wanted >> (8 * half));
        __m512i pair = _mm512_or_si512(_mm512_slli_epi64(l, ST_TOKEN_BITS), r);
        __m512i bucket = _mm512_slli_epi64(_mm512_srl_epi64(st_hash_words_512(pair), down), 6);
        _mm512_storeu_si512(c->pairs + asked, _mm512_maskz_compress_epi64(take, pair));
        _mm512_storeu_si512(c->buckets + asked, _mm512_maskz_compress_epi64(take, bucket));
        asked += (size_t)st_ones(take);
    }
    return asked;
}

/* Chooses the next merge of each column and prefetches the buckets of the pairs that it makes.
   least: for each column, the least value of rank << ST_ROW_BITS | row, and so the leftmost of equal ranks. */
ST_FOR_AVX512 static ST_ALWAYS_INLINE void st_columns_ask(st_columns *c,
                                                                          const st_pairs *pairs,
                                                                          __m512i least) {
    const __m512i one = _mm512_set1_epi32(1), two = _mm512_set1_epi32(2);
    __mmask16 going = _mm512_cmplt_epu32_mask(
        least, _mm512_set1_epi32((int)((uint32_t)ST_NONE << ST_ROW_BITS)));
    __m512i at = _mm512_mask_and_epi32(_mm512_set1_epi32(127), going, least,
                                       _mm512_set1_epi32(ST_ROW_MASK));
    __m512i merged = _mm512_srli_epi32(least, ST_ROW_BITS);
    __m512i left = merged, right = merged, count = _mm512_load_si512(c->counts);
    __m512i row = _mm512_setzero_si512();
    __mmask16 next = _mm512_cmpeq_epi32_mask(at, one), after = 0, farther = 0;
    __mmask16 here = _mm512_cmpeq_epi32_mask(at, row);
    row = one;
    for (int r = 0; r < c->rows; r++) { /* find the tokens before row `at` and after row `at` + 1 */
        __m512i tokens = _mm512_load_si512(c->tokens[r]);
        left = _mm512_mask_mov_epi32(left, next, tokens);
        right = _mm512_mask_mov_epi32(right, farther, tokens);
        row = _mm512_add_epi32(row, one);
        farther = after;
        after = here;
        here = next;
        next = _mm512_cmpeq_epi32_mask(at, row);
    }
    c->at = at;
    c->merged = merged;
    c->going = going;
    c->has_left = _mm512_mask_cmpneq_epi32_mask(going, at, _mm512_setzero_si512());
    c->has_right = _mm512_mask_cmplt_epu32_mask(going, _mm512_add_epi32(at, two), count);
    _mm512_store_si512(c->counts, _mm512_mask_sub_epi32(count, going, count, one));
    c->rights = st_ask(c, pairs, 0, c->has_right, merged, right);
    c->asked = st_ask(c, pairs, c->rights, c->has_left, left, merged);
    const char *slots = (const char *)pairs->slots;
    for (size_t k = 0; k < c->asked; k++) ST_PREFETCH(slots + c->buckets[k]);
}

/* Loads the pieces numbered in `which`, the longest last, into the columns from `first` on. */
ST_FOR_AVX512 static inline void st_columns_begin(st_columns *c, const st_pairs *pairs,
                                             const uint32_t *byte_token, const uint32_t *byte_pairs,
                                             const uint8_t *bytes, const uint16_t *units,
                                             const uint8_t *sizes, const uint16_t *which,
                                             size_t first) {
    const __m512i none = _mm512_set1_epi32(-1), one = _mm512_set1_epi32(1);
    c->rows = sizes[which[ST_WIDE - 1 - first]];
    for (int r = 0; r <= c->rows; r++) _mm512_store_si512(c->ranks[r], none);
    for (size_t k = 0; k < first; k++) c->counts[k] = 0;
    for (size_t k = first; k < ST_WIDE; k++) {
        uint32_t piece = which[k - first];
        const uint8_t *p = bytes + ST_UNIT * (size_t)units[piece];
        size_t n = sizes[piece];
        uint32_t byte = p[0];
        c->counts[k] = (uint32_t)n;
        for (size_t r = 0; r + 1 < n; r++) {
            uint32_t second = p[r + 1];
            c->tokens[r][k] = byte_token[byte];
            c->ranks[r][k] = byte_pairs[byte << 8 | second];
            byte = second;
        }
        c->tokens[n - 1][k] = byte_token[byte];
    }
    __m512i least = none, row = _mm512_setzero_si512();
    for (int r = 0; r < c->rows; r++) {
        __m512i ranks = _mm512_load_si512(c->ranks[r]);
        least = _mm512_min_epu32(least, _mm512_or_si512(_mm512_slli_epi32(ranks, ST_ROW_BITS), row));
        row = _mm512_add_epi32(row, one);
    }
    st_columns_ask(c, pairs, least);
}

/* Performs a merge in each column that has one left, and chooses the next. */
ST_FOR_AVX512 static inline void st_columns_step(st_columns *c, const st_pairs *pairs) {
    const __m512i none = _mm512_set1_epi32(-1), one = _mm512_set1_epi32(1);
    ST_ALIGNED(64) uint32_t found[2 * ST_WIDE];
    const char *slots = (const char *)pairs->slots;
    for (size_t k = 0; k < c->asked; k++) {
        const uint64_t *bucket = (const uint64_t *)(slots + c->buckets[k]);
        __m512i all = _mm512_load_si512(bucket);
        uint32_t bits = _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(all, ST_TOKEN_BITS),
                                                _mm512_set1_epi64((long long)c->pairs[k]));
        uint32_t nothing = bits == 0 ? ST_NONE : 0;
        uint32_t token = (uint32_t)bucket[st_lowest(bits | 1u << ST_BUCKET) & (ST_BUCKET - 1)];
        token = (token & ((1u << ST_TOKEN_BITS) - 1)) | nothing;
        if (ST_RARELY((int32_t)nothing & (bucket[ST_BUCKET - 1] != ~(uint64_t)0)))
            token = st_pairs_find(pairs, (uint32_t)(c->pairs[k] >> ST_TOKEN_BITS),
                                  (uint32_t)c->pairs[k] & ((1u << ST_TOKEN_BITS) - 1));
        found[k] = token;
    }
    __m512i right = _mm512_mask_expand_epi32(none, c->has_right, _mm512_loadu_si512(found));
    __m512i left = _mm512_mask_expand_epi32(none, c->has_left, _mm512_loadu_si512(found + c->rights));
    __m512i merged = c->merged, at = c->at, least = none;
    __m512i row = _mm512_setzero_si512(), next_row = one;
    __m512i ranks = _mm512_load_si512(c->ranks[0]), tokens = _mm512_load_si512(c->tokens[0]);
    __mmask16 here = _mm512_cmpeq_epi32_mask(at, row), after = 0;
    /* Finished columns need no more rows. */
    c->rows = (int)_mm512_mask_reduce_max_epu32(c->going, _mm512_load_si512(c->counts));
    for (int r = 0; r < c->rows; r++) {
        __m512i next_ranks = _mm512_load_si512(c->ranks[r + 1]);
        __m512i next_tokens = _mm512_load_si512(c->tokens[r + 1]);
        __mmask16 next = _mm512_cmpeq_epi32_mask(at, next_row);
        ranks = _mm512_mask_mov_epi32(ranks, after, next_ranks);
        tokens = _mm512_mask_mov_epi32(tokens, after, next_tokens);
        ranks = _mm512_mask_mov_epi32(ranks, here, right);
        tokens = _mm512_mask_mov_epi32(tokens, here, merged);
        ranks = _mm512_mask_mov_epi32(ranks, next, left);
        _mm512_store_si512(c->ranks[r], ranks);
        _mm512_store_si512(c->tokens[r], tokens);
        least = _mm512_min_epu32(least, _mm512_or_si512(_mm512_slli_epi32(ranks, ST_ROW_BITS), row));
        after |= here;
        here = next;
        ranks = next_ranks;
        tokens = next_tokens;
        row = next_row;
        next_row = _mm512_add_epi32(next_row, one);
    }
    _mm512_store_si512(c->ranks[c->rows], none);
    st_columns_ask(c, pairs, least);
}

/* Merges the `count` pieces numbered in `which`, sorted by size, 16 in each of `columns`, which take turns.
   Returns the column of the first piece; the other pieces follow it. The columns before it stay empty. Empty
   columns cost least next to the shortest pieces, since a group takes as many steps and rows as its longest
   piece. */
ST_FOR_AVX512 static inline size_t st_columns_run(st_columns *columns, const st_pairs *pairs,
                                             const uint32_t *byte_token, const uint32_t *byte_pairs,
                                             const uint8_t *bytes, const uint16_t *units,
                                             const uint8_t *sizes, const uint16_t *which, size_t count) {
    size_t groups = (count + ST_WIDE - 1) / ST_WIDE, empty = groups * ST_WIDE - count;
    int going = 0;
    for (size_t g = 0; g < groups; g++) {
        size_t first = g == 0 ? empty : 0;
        st_columns_begin(&columns[g], pairs, byte_token, byte_pairs, bytes, units, sizes, which, first);
        which += ST_WIDE - first;
        going |= columns[g].going;
    }
    while (going) {
        going = 0;
        for (size_t g = 0; g < groups; g++)
            if (columns[g].going) {
                st_columns_step(&columns[g], pairs);
                going |= columns[g].going;
            }
    }
    return empty;
}

ST_FOR_AVX512 static inline void st_merge_batch_512(const st_pairs *pairs, const uint32_t *byte_token,
                                           const uint32_t *byte_pairs, const uint8_t *bytes,
                                           const uint16_t *units, const uint8_t *sizes, size_t count, uint32_t *out,
                                           const uint16_t *slots, uint8_t *counts) {
    if (count <= ST_FEW) { /* too few to fill the columns */
        st_merge_batch_256(pairs, byte_token, byte_pairs, bytes, units, sizes, count, out, slots, counts);
        return;
    }
    st_columns columns[ST_GROUPS];
    uint16_t order[ST_MERGE_BATCH], firsts[66] = {0};
    /* Sort by size, to group pieces that take equally many steps. */
    for (size_t k = 0; k < count; k++) firsts[sizes[k] + 1]++;
    for (int k = 0; k < 65; k++) firsts[k + 1] = (uint16_t)(firsts[k + 1] + firsts[k]);
    for (size_t k = 0; k < count; k++) order[firsts[sizes[k]]++] = (uint16_t)k;
    size_t groups = (count + ST_WIDE - 1) / ST_WIDE, begun = 0;
    for (size_t rounds = (groups + ST_GROUPS - 1) / ST_GROUPS; rounds; rounds--) {
        size_t share = groups / rounds; /* even shares: nothing would hide the memory waits of a lone group */
        groups -= share;
        size_t wanted = count - begun - groups * ST_WIDE;
        size_t first = st_columns_run(columns, pairs, byte_token, byte_pairs, bytes, units, sizes,
                                      order + begun, wanted);
        for (size_t k = first; k < first + wanted; k++) {
            const st_columns *c = &columns[k / ST_WIDE];
            uint32_t piece = order[begun++], *tokens = out + ST_UNIT * (size_t)slots[piece];
            uint32_t n = c->counts[k % ST_WIDE];
            for (uint32_t i = 0; i < n; i++) tokens[i] = c->tokens[i][k % ST_WIDE];
            counts[piece] = (uint8_t)n;
        }
    }
}
#endif

static inline st_merge_batch_function *st_merge_batch_tier(int most) {
#if defined(ST_X86)
    if (st_level(most) >= ST_AVX512) return st_merge_batch_512;
    if (st_level(most) >= ST_AVX2) return st_merge_batch_256;
    if (st_level(most) >= ST_SSE4) return st_merge_batch_sse4;
#else
    (void)most;
#endif
    return st_merge_batch_plain;
}

#endif
