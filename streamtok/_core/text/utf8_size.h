/* How many bytes of UTF-8 a str has. */
#ifndef STREAMTOK_UTF8_SIZE_H
#define STREAMTOK_UTF8_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Sums that cannot overflow their few bits, so that compilers make vectors of them. */

static size_t st_utf8_size_1(const uint8_t *p, size_t n) {
    size_t size = n;
    while (n) {
        size_t now = n < 255 ? n : 255;
        uint8_t more = 0;
        for (size_t i = 0; i < now; i++) more = (uint8_t)(more + (p[i] >> 7));
        size += more;
        p += now;
        n -= now;
    }
    return size;
}

static size_t st_utf8_size_2(const uint16_t *p, size_t n, size_t *surrogates) {
    size_t size = n;
    while (n) {
        size_t now = n < 4096 ? n : 4096;
        uint16_t more = 0, lone = 0;
        for (size_t i = 0; i < now; i++) {
            more = (uint16_t)(more + (uint16_t)(p[i] >= 0x80));
            more = (uint16_t)(more + (uint16_t)(p[i] >= 0x800));
            lone = (uint16_t)(lone + (uint16_t)((uint16_t)(p[i] & 0xF800) == 0xD800));
        }
        size += more;
        *surrogates += lone;
        p += now;
        n -= now;
    }
    return size;
}

static size_t st_utf8_size_4(const uint32_t *p, size_t n, size_t *surrogates) {
    size_t size = n;
    while (n) {
        size_t now = n < 4096 ? n : 4096;
        uint32_t more = 0, lone = 0;
        for (size_t i = 0; i < now; i++) {
            more += (uint32_t)(p[i] >= 0x80) + (uint32_t)(p[i] >= 0x800) + (uint32_t)(p[i] >= 0x10000);
            lone += (uint32_t)((p[i] & 0xFFFFF800u) == 0xD800);
        }
        size += more;
        *surrogates += lone;
        p += now;
        n -= now;
    }
    return size;
}

/* Of `n` code units of 1, 2 or 4 bytes (`kind`); adds the surrogates to `surrogates`. */
static size_t st_utf8_size(const void *text, int kind, size_t n, size_t *surrogates) {
    switch (kind) {
    case 1: return st_utf8_size_1((const uint8_t *)text, n);
    case 2: return st_utf8_size_2((const uint16_t *)text, n, surrogates);
    default: return st_utf8_size_4((const uint32_t *)text, n, surrogates);
    }
}

#endif
