/* The hash functions of all tables of the core. Their keys are random for each process, so an attacker
   cannot choose texts, vocabularies or pairs that collide. Hash values are never saved, and no result
   depends on them: processes with different keys return the same ids.

   Each function is universal: any two different inputs collide under few of the keys. The proofs assume
   nothing about the inputs, except that they were chosen without knowing the keys. The probabilities P
   are over the keys:

   st_hash_word   x K mod 2^64, K odd. For x != y with t zeros at the end of x - y, (x - y) K is uniform
                  over the odd multiples of 2^t, so P(the top b bits agree) <= 2 / 2^b (Dietzfelbinger
                  et al. 1997). This holds for the top bits only.
   st_hash_key    low K_1 + (low >> 32) K_2 + high K_3 mod 2^64, all K odd, for the top b <= 32 bits. If the
                  lower halves of the low words differ, K_1 makes P <= 2 / 2^b as above. If only their
                  upper halves differ, K_2 does. If the low words agree and the high words differ only in
                  their top m bits, P <= 2 / 2^m; but only 2^m such inputs exist, so at most two of them
                  are expected to collide with a given one. Without K_2, inputs that differ only in the
                  last bytes of both words would have only a few different hashes.
   st_hash_bytes  The upper half of B + A_0 n + A_1 x_1 + A_2 x_2 + ... mod 2^128, over the words of up to
                  256 bytes: any two inputs have independent uniform values (Thorup 2015, "High speed
                  hashing for integers and strings"), so all bits are equally good. For longer inputs,
                  the values of the blocks are the coefficients of a polynomial modulo 2^61 - 1 at a
                  secret point: P <= (blocks + 9) / 2^61. */
#ifndef STREAMTOK_HASH_H
#define STREAMTOK_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"

#define ST_HASH_WORDS 32 /* words of a block */
#define ST_HASH_PRIME (((uint64_t)1 << 61) - 1)

static struct {
    uint64_t factors[3]; /* odd */
    uint64_t point;      /* where the polynomial is evaluated */
    /* the A of each word and of the size; B; the A of the polynomial and of the whole size */
    uint64_t low[ST_HASH_WORDS + 4], high[ST_HASH_WORDS + 4];
} st_secret;

enum { ST_OF_SIZE = ST_HASH_WORDS, ST_OF_NOTHING, ST_OF_POLYNOMIAL, ST_OF_WHOLE_SIZE };

#define ST_SECRET_SIZE sizeof st_secret

/* Sets the secret from ST_SECRET_SIZE random bytes, once in a process and before any table is made.
   Subinterpreters and forked processes keep the secret. */
static inline void st_hash_begin(const void *random) {
    static volatile char begun = 0;
    if (st_enter(&begun)) return;
    memcpy(&st_secret, random, ST_SECRET_SIZE);
    for (int i = 0; i < 3; i++) st_secret.factors[i] |= 1;
    st_secret.point &= ST_HASH_PRIME;
}

/* The secret, which another compilation unit copies in order to use the same tables. */
static inline const void *st_hash_secret(void) { return &st_secret; }

/* The right shift that turns hashes into slots of a table. slots: a power of two, 2 to 2^63. */
static inline int st_hash_shift(uint64_t slots) { return 64 - st_lowest(slots); }

/* The product a b: returns the lower half and stores the upper in *high. */
static inline uint64_t st_multiply(uint64_t a, uint64_t b, uint64_t *high) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 st_u128;
    st_u128 product = (st_u128)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
#elif defined(_MSC_VER) && defined(_M_X64)
    return _umul128(a, b, high);
#else
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (uint32_t)middle;
    *high = ah * bh + (middle >> 32) + (other >> 32);
    return a * b;
#endif
}

static inline uint64_t st_hash_word(uint64_t x) { return x * st_secret.factors[0]; }

/* factors: those of st_secret, or a loop's copy in registers. */
static inline uint64_t st_hash_key_by(const uint64_t factors[3], uint64_t low, uint64_t high) {
    return low * factors[0] + (low >> 32) * factors[1] + high * factors[2];
}

static inline uint64_t st_hash_key(uint64_t low, uint64_t high) {
    return st_hash_key_by(st_secret.factors, low, high);
}

typedef struct {
    uint64_t low, high;
} st_sum;

static inline void st_add_word(st_sum *sum, uint64_t x, size_t which) {
    uint64_t high, low = st_multiply(x, st_secret.low[which], &high);
    sum->low += low;
    sum->high += high + (sum->low < low) + x * st_secret.high[which];
}

/* The hash of n <= 8 * ST_HASH_WORDS bytes. */
static inline uint64_t st_hash_block(const uint8_t *p, size_t n) {
    st_sum sum = {st_secret.low[ST_OF_NOTHING], st_secret.high[ST_OF_NOTHING]};
    st_add_word(&sum, n, ST_OF_SIZE);
    if (n >= 8) {
        for (size_t i = 0; i + 8 < n; i += 8) st_add_word(&sum, st_load64(p + i), 1 + i / 8);
        st_add_word(&sum, st_load64(p + n - 8), 0); /* overlaps the word before instead of being partial */
    } else if (n >= 4) {
        st_add_word(&sum, st_load_part(p, 4) | st_load_part(p + n - 4, 4) << 32, 0);
    } else if (n) {
        st_add_word(&sum, p[0] | (uint64_t)p[n >> 1] << 8 | (uint64_t)p[n - 1] << 16, 0);
    }
    return sum.high;
}

ST_NOINLINE static uint64_t st_hash_blocks(const uint8_t *p, size_t n) {
    st_sum sum = {st_secret.low[ST_OF_NOTHING], st_secret.high[ST_OF_NOTHING]};
    uint64_t value = 0, low, high;
    for (size_t i = 0, step; i < n; i += step) {
        step = n - i < 8 * ST_HASH_WORDS ? n - i : 8 * ST_HASH_WORDS;
        uint64_t x = st_hash_block(p + i, step);
        low = st_multiply(value, st_secret.point, &high);
        value = (low & ST_HASH_PRIME) + (low >> 61 | high << 3) + (x & ST_HASH_PRIME) + (x >> 61);
        value = (value & ST_HASH_PRIME) + (value >> 61);
    }
    st_add_word(&sum, value == ST_HASH_PRIME ? 0 : value, ST_OF_POLYNOMIAL);
    st_add_word(&sum, n, ST_OF_WHOLE_SIZE);
    return sum.high;
}

static inline uint64_t st_hash_bytes(const uint8_t *p, size_t n) {
    return n <= 8 * ST_HASH_WORDS ? st_hash_block(p, n) : st_hash_blocks(p, n);
}

#if defined(ST_X86)


ST_FOR_AVX512 static inline __m512i st_times_512(__m512i x, int which) {
    return _mm512_mullo_epi64(x, _mm512_set1_epi64((long long)st_secret.factors[which]));
}

/* st_hash_word of each lane. */
ST_FOR_AVX512 static inline __m512i st_hash_words_512(__m512i x) { return st_times_512(x, 0); }

/* st_hash_key of eight keys, four in each argument, in order. */
ST_FOR_AVX512 static inline __m512i st_hash_keys_512(__m512i first, __m512i last) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7); /* puts keys 0 4 1 5 2 6 3 7 in order */
    __m512i low = _mm512_unpacklo_epi64(first, last), high = _mm512_unpackhi_epi64(first, last);
    __m512i words = _mm512_add_epi64(st_hash_words_512(low), st_times_512(high, 2));
    __m512i halves = st_times_512(_mm512_srli_epi64(low, 32), 1);
    return _mm512_permutexvar_epi64(order, _mm512_add_epi64(words, halves));
}
#endif

#endif
