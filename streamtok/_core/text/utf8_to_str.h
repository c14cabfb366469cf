/* UTF-8 to CPython's str, in memory of the right width at once: Python's own decoder starts with one
   byte a character and copies to more, and asks about each character. */
#ifndef STREAMTOK_UTF8_TO_STR_H
#define STREAMTOK_UTF8_TO_STR_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"

/* The characters of well-formed UTF-8, and its highest byte: what tells the widest of them. */
static inline size_t st_survey_utf8(const uint8_t *p, size_t n, uint8_t *highest) {
    size_t count = 0, i = 0;
    uint8_t top = 0;
    for (; n - i >= 64; i += 64) {
        uint8_t begun = 0;
        for (int k = 0; k < 64; k++) {
            begun = (uint8_t)(begun + ((int8_t)p[i + k] > -65));
            top = p[i + k] > top ? p[i + k] : top;
        }
        count += begun;
    }
    for (; i < n; i++) {
        count += (int8_t)p[i] > -65;
        top = p[i] > top ? p[i] : top;
    }
    *highest = top;
    return count;
}

/* Write the characters, whose number is known, of p[:n]; 0 at the first that is not well-formed: it
   writes one for each byte that begins one, so never too many. */
#define ST_DEFINE_WIDEN(name, unit)                                                        \
    static inline int name(const uint8_t *p, size_t n, unit *out) {                        \
        size_t i = 0;                                                                      \
        while (i < n) {                                                                    \
            size_t stop;                                                                   \
            while (n - i >= 16 && !((st_load64(p + i) | st_load64(p + i + 8)) &            \
                                    0x8080808080808080ull)) {                              \
                for (int k = 0; k < 16; k++) out[k] = p[i + k];                            \
                i += 16;                                                                   \
                out += 16;                                                                 \
            }                                                                              \
            stop = n - i > 16 ? i + 16 : n;                                                \
            while (i < stop) {                                                             \
                uint32_t a = p[i], b, c, d, code;                                          \
                if (a < 0x80) {                                                            \
                    *out++ = (unit)a;                                                      \
                    i++;                                                                   \
                    continue;                                                              \
                }                                                                          \
                if (n - i < 2) return 0;                                                   \
                b = p[i + 1] ^ 0x80u;                                                      \
                if (a < 0xE0) {                                                            \
                    if (a < 0xC2 || b >= 0x40) return 0;                                   \
                    *out++ = (unit)((a & 0x1F) << 6 | b);                                  \
                    i += 2;                                                                \
                    continue;                                                              \
                }                                                                          \
                if (sizeof(unit) < 2 || n - i < 3) return 0;                               \
                c = p[i + 2] ^ 0x80u;                                                      \
                if (a < 0xF0) {                                                            \
                    code = (a & 0x0F) << 12 | b << 6 | c;                                  \
                    if ((b | c) >= 0x40 || code < 0x800 || (code & 0xF800) == 0xD800)      \
                        return 0;                                                          \
                    *out++ = (unit)code;                                                   \
                    i += 3;                                                                \
                    continue;                                                              \
                }                                                                          \
                if (sizeof(unit) < 4 || n - i < 4 || a > 0xF4) return 0;                   \
                d = p[i + 3] ^ 0x80u;                                                      \
                code = (a & 0x07) << 18 | b << 12 | c << 6 | d;                            \
                if ((b | c | d) >= 0x40 || code < 0x10000 || code > 0x10FFFF) return 0;    \
                *out++ = (unit)code;                                                       \
                i += 4;                                                                    \
            }                                                                              \
        }                                                                                  \
        return 1;                                                                          \
    }

ST_DEFINE_WIDEN(st_widen_1, uint8_t)
ST_DEFINE_WIDEN(st_widen_2, uint16_t)
ST_DEFINE_WIDEN(st_widen_4, uint32_t)

/* str of UTF-8 that may be ill-formed; then Python's decoder does all of it, with this handler. */
static inline PyObject *st_utf8_to_str(const char *data, size_t n, const char *errors) {
    const uint8_t *p = (const uint8_t *)data;
    PyObject *text;
    uint8_t highest;
    size_t count;
    int done;
    count = st_survey_utf8(p, n, &highest);
    if (count < 2 || highest > 0xF4) /* Python has short ones ready */
        return PyUnicode_DecodeUTF8(data, (Py_ssize_t)n, errors);
    text = PyUnicode_New((Py_ssize_t)count, highest < 0x80   ? 0x7F
                                            : highest < 0xC4 ? 0xFF
                                            : highest < 0xF0 ? 0xFFFF
                                                             : 0x10FFFF);
    if (text == NULL) return NULL;
    if (highest < 0x80) {
        memcpy(PyUnicode_1BYTE_DATA(text), p, n);
        return text;
    }
    if (highest < 0xC4) done = st_widen_1(p, n, PyUnicode_1BYTE_DATA(text));
    else if (highest < 0xF0) done = st_widen_2(p, n, PyUnicode_2BYTE_DATA(text));
    else done = st_widen_4(p, n, PyUnicode_4BYTE_DATA(text));
    if (done) return text;
    Py_DECREF(text);
    return PyUnicode_DecodeUTF8(data, (Py_ssize_t)n, errors);
}

#endif
