/* The size of a str in UTF-8. */
#ifndef STREAMTOK_UTF8_SIZE_H
#define STREAMTOK_UTF8_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* The size in UTF-8 of n code units; adds the number of surrogates to `surrogates`. The inner sums are as narrow
   as a unit, without overflow, so that compilers vectorize them. */
#define ST_DEFINE_UTF8_SIZE(name, unit, most, more_of)                                     \
    static size_t name(const unit *p, size_t n, size_t *surrogates) {                      \
        size_t size = n;                                                                   \
        while (n) {                                                                        \
            size_t now = n < most ? n : most;                                              \
            unit more = 0, lone = 0;                                                       \
            for (size_t i = 0; i < now; i++) {                                             \
                more = (unit)(more + more_of);                                             \
                lone = (unit)(lone + ((p[i] & (unit)0xFFFFF800u) == 0xD800));              \
            }                                                                              \
            size += more;                                                                  \
            *surrogates += lone;                                                           \
            p += now;                                                                      \
            n -= now;                                                                      \
        }                                                                                  \
        return size;                                                                       \
    }

ST_DEFINE_UTF8_SIZE(st_utf8_size_1, uint8_t, 255, (p[i] >> 7))
ST_DEFINE_UTF8_SIZE(st_utf8_size_2, uint16_t, 4096, ((p[i] >= 0x80) + (p[i] >= 0x800)))
ST_DEFINE_UTF8_SIZE(st_utf8_size_4, uint32_t, 4096, ((p[i] >= 0x80) + (p[i] >= 0x800) + (p[i] >= 0x10000)))

/* The size in UTF-8 of `n` code units of 1, 2 or 4 bytes (`kind`); counts surrogates in `surrogates`. */
static size_t st_utf8_size(const void *text, int kind, size_t n, size_t *surrogates) {
    switch (kind) {
    case 1: return st_utf8_size_1((const uint8_t *)text, n, surrogates);
    case 2: return st_utf8_size_2((const uint16_t *)text, n, surrogates);
    default: return st_utf8_size_4((const uint32_t *)text, n, surrogates);
    }
}

#endif
