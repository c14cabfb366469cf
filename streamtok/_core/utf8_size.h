/* How many bytes of UTF-8 a str has. */
#ifndef STREAMTOK_UTF8_SIZE_H
#define STREAMTOK_UTF8_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Counts in steps that cannot overflow 16 or 32 bits, so that compilers make vectors of them. */
#define ST_DEFINE_UTF8_SIZE(bits, step)                                                            \
    static size_t st_utf8_size_##bits(const uint##bits##_t *p, size_t n, size_t *surrogates) {     \
        size_t size = n;                                                                           \
        while (n) {                                                                                \
            size_t now = n < step ? n : step;                                                      \
            uint##bits##_t more = 0, lone = 0;                                                     \
            for (size_t i = 0; i < now; i++) {                                                     \
                uint##bits##_t c = p[i];                                                           \
                more = (uint##bits##_t)(more + (c >= 0x80) + ((uint32_t)c >= 0x800) +              \
                                        ((uint32_t)c >= 0x10000));                                 \
                lone = (uint##bits##_t)(lone + (((uint32_t)c & 0x1FF800) == 0xD800));              \
            }                                                                                      \
            size += more;                                                                          \
            *surrogates += lone;                                                                   \
            p += now;                                                                              \
            n -= now;                                                                              \
        }                                                                                          \
        return size;                                                                               \
    }

ST_DEFINE_UTF8_SIZE(8, 255)
ST_DEFINE_UTF8_SIZE(16, 4096)
ST_DEFINE_UTF8_SIZE(32, 4096)

/* Of `n` code units of 1, 2 or 4 bytes (`kind`); adds the surrogates to `surrogates`. */
static size_t st_utf8_size(const void *text, int kind, size_t n, size_t *surrogates) {
    switch (kind) {
    case 1: return st_utf8_size_8((const uint8_t *)text, n, surrogates);
    case 2: return st_utf8_size_16((const uint16_t *)text, n, surrogates);
    default: return st_utf8_size_32((const uint32_t *)text, n, surrogates);
    }
}

#endif
