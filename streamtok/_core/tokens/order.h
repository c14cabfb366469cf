/* Sort tokens by their bytes. */
#ifndef STREAMTOK_TOKEN_ORDER_H
#define STREAMTOK_TOKEN_ORDER_H

#include <stdint.h>
#include <string.h>

#define ST_DIGIT_BITS 11
#define ST_DIGITS 6 /* of a 64-bit key */

typedef struct {
    uint64_t key; /* the first eight bytes, big-endian, padded with zeros */
    uint32_t token;
} st_keyed;

static inline uint64_t st_order_key(const uint8_t *p, size_t n) {
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++) key = key << 8 | (i < n ? p[i] : 0);
    return key;
}

static inline int st_comes_before(const uint8_t *blob, const uint32_t *offsets, uint32_t a, uint32_t b) {
    size_t m = offsets[a + 1] - offsets[a], n = offsets[b + 1] - offsets[b];
    int order = memcmp(blob + offsets[a], blob + offsets[b], m < n ? m : n);
    return order != 0 ? order < 0 : m < n;
}

/* Merge sort, for tokens whose keys are equal. */
static inline void st_merge_tokens(const uint8_t *blob, const uint32_t *offsets, st_keyed *tokens,
                                   st_keyed *spare, size_t n) {
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t begin = 0; begin + width < n; begin += 2 * width) {
            size_t middle = begin + width, end = middle + width < n ? middle + width : n;
            size_t i = begin, j = middle, k = begin;
            memcpy(spare + begin, tokens + begin, (end - begin) * sizeof(st_keyed));
            while (i < middle && j < end)
                tokens[k++] = st_comes_before(blob, offsets, spare[j].token, spare[i].token) ? spare[j++]
                                                                                            : spare[i++];
            while (i < middle) tokens[k++] = spare[i++];
            while (j < end) tokens[k++] = spare[j++];
        }
    }
}

/* Writes the numbers 0 .. n - 1 of the tokens to `order`, sorted by bytes; `work` has room for 2 n. A radix sort
   by the first eight bytes, 11 bits at a time, leaves few tokens to compare. */
static inline void st_sort_tokens(const uint8_t *blob, const uint32_t *offsets, uint32_t n,
                                  uint32_t *order, st_keyed *work) {
    static const uint32_t mask = (1u << ST_DIGIT_BITS) - 1;
    uint32_t counts[ST_DIGITS][1 << ST_DIGIT_BITS];
    st_keyed *from = work, *to = work + n;
    memset(counts, 0, sizeof(counts));
    for (uint32_t i = 0; i < n; i++) {
        from[i].key = st_order_key(blob + offsets[i], offsets[i + 1] - offsets[i]);
        from[i].token = i;
        for (int d = 0; d < ST_DIGITS; d++) counts[d][from[i].key >> (d * ST_DIGIT_BITS) & mask]++;
    }
    for (int d = 0; d < ST_DIGITS; d++) {
        uint32_t start = 0;
        for (uint32_t k = 0; k <= mask; k++) {
            uint32_t count = counts[d][k];
            counts[d][k] = start;
            start += count;
        }
        for (uint32_t i = 0; i < n; i++)
            to[counts[d][from[i].key >> (d * ST_DIGIT_BITS) & mask]++] = from[i];
        st_keyed *other = from;
        from = to;
        to = other;
    }
    for (uint32_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && from[end].key == from[begin].key;) end++;
        if (end - begin > 1) st_merge_tokens(blob, offsets, from + begin, to, end - begin);
        for (uint32_t i = begin; i < end; i++) order[i] = from[i].token;
    }
}

#endif
