/* CPython's str to UTF-8, into memory that is used again: PyUnicode_AsUTF8AndSize would leave a second
   copy with every str that has passed. */
#ifndef STREAMTOK_TRANSCODE_H
#define STREAMTOK_TRANSCODE_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

/* The UTF-8 that the str holds already (all of an ASCII one); NULL if none. */
static inline const char *st_ready_utf8(PyObject *text, Py_ssize_t *size) {
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        *size = PyUnicode_GET_LENGTH(text);
        return (const char *)PyUnicode_1BYTE_DATA(text);
    }
#if !defined(Py_GIL_DISABLED)
    *size = ((PyCompactUnicodeObject *)text)->utf8_length;
    return ((PyCompactUnicodeObject *)text)->utf8;
#else
    return NULL;
#endif
}

static inline size_t st_put_utf8(uint8_t *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 63));
        out[2] = (uint8_t)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 63));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 63));
    out[3] = (uint8_t)(0x80 | (code & 63));
    return 4;
}

/* UTF-8 of `n` code units into `out`, which has room for 4 bytes each and 16 more; the bytes written,
   or SIZE_MAX if there is a lone surrogate. 16 ASCII characters at a time while there are so many. */
#define ST_DEFINE_TRANSCODE(name, unit)                                                    \
    static inline size_t name(const unit *p, size_t n, uint8_t *out) {                     \
        uint8_t *begin = out;                                                              \
        size_t i = 0;                                                                      \
        while (i < n) {                                                                    \
            while (i + 16 <= n) {                                                          \
                unit any = 0;                                                              \
                for (int k = 0; k < 16; k++) {                                             \
                    any |= p[i + k];                                                       \
                    out[k] = (uint8_t)p[i + k];                                            \
                }                                                                          \
                if (any & (unit)~0x7F) break;                                              \
                i += 16;                                                                   \
                out += 16;                                                                 \
            }                                                                              \
            for (size_t stop = i + 16 < n ? i + 16 : n; i < stop; i++) {                   \
                uint32_t code = p[i];                                                      \
                if ((code & 0xFFFFF800u) == 0xD800) return SIZE_MAX;                       \
                out += st_put_utf8(out, code);                                             \
            }                                                                              \
        }                                                                                  \
        return (size_t)(out - begin);                                                      \
    }

ST_DEFINE_TRANSCODE(st_transcode_1, uint8_t)
ST_DEFINE_TRANSCODE(st_transcode_2, uint16_t)
ST_DEFINE_TRANSCODE(st_transcode_4, uint32_t)

/* The most that st_transcode writes for this str. */
static inline size_t st_transcode_room(PyObject *text) {
    size_t kind = PyUnicode_KIND(text);
    return (size_t)PyUnicode_GET_LENGTH(text) * (kind == 1 ? 2 : kind == 2 ? 3 : 4) + 16;
}

static inline size_t st_transcode(PyObject *text, uint8_t *out) {
    size_t n = (size_t)PyUnicode_GET_LENGTH(text);
    switch (PyUnicode_KIND(text)) {
    case 1: return st_transcode_1(PyUnicode_1BYTE_DATA(text), n, out);
    case 2: return st_transcode_2(PyUnicode_2BYTE_DATA(text), n, out);
    default: return st_transcode_4(PyUnicode_4BYTE_DATA(text), n, out);
    }
}

#endif
