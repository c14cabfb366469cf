/* Read ids from Python objects: from the items of a list or tuple, or from the memory of an array. */
#ifndef STREAMTOK_READ_IDS_H
#define STREAMTOK_READ_IDS_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "base/native.h"

/* Whether no other thread can change a list while this thread holds the GIL. */
#if defined(Py_GIL_DISABLED)
#define ST_LISTS_HOLD_STILL 0
#else
#define ST_LISTS_HOLD_STILL 1
#endif

/* The value of an object if it is an int (not of a subclass) from 0 to 2^32 - 1, else -1. Never raises. */
static inline int64_t st_read_int(PyObject *value) {
    long long found;
    int is_over;
    if (ST_RARELY(!PyLong_CheckExact(value))) return -1;
#if PY_VERSION_HEX >= 0x030C0000
    if (!ST_RARELY(!PyUnstable_Long_IsCompact((PyLongObject *)value))) {
        found = (long long)PyUnstable_Long_CompactValue((PyLongObject *)value);
        return found < 0 || found > 0xFFFFFFFFll ? -1 : (int64_t)found;
    }
#endif
    found = PyLong_AsLongLongAndOverflow(value, &is_over);
    return is_over || found < 0 || found > 0xFFFFFFFFll ? -1 : (int64_t)found;
}

#define ST_AHEAD 24 /* how many items ahead to prefetch: their objects are scattered in memory */

/* Reads the first n of `have` >= n items; returns 0 if one of them is not an id, else 1. Also prefetches
   each id's entry, of `width` bytes, in `table`: otherwise, later look-ups would mostly wait for memory. */
static inline int st_read_ints(PyObject *const *items, size_t n, size_t have, uint32_t *ids,
                               const void *table, size_t width) {
    for (size_t i = 0; i < n; i++) {
        int64_t id;
        ST_PREFETCH(items[i + ST_AHEAD < have ? i + ST_AHEAD : i]);
        id = st_read_int(items[i]);
        if (ST_RARELY(id < 0)) return 0;
        ids[i] = (uint32_t)id;
        ST_PREFETCH((const void *)((uintptr_t)table + (uintptr_t)id * width));
    }
    return 1;
}

/* As st_read_ints, but for n integers of a C type in memory, aligned or not. */
#define ST_DEFINE_READ(name, type)                                                         \
    static inline int name(const char *p, size_t n, uint32_t *ids) {                       \
        uint64_t any = 0;                                                                  \
        for (size_t i = 0; i < n; i++) {                                                   \
            type value;                                                                    \
            memcpy(&value, p + i * sizeof value, sizeof value);                            \
            any |= (uint64_t)value;                                                        \
            ids[i] = (uint32_t)value;                                                      \
        }                                                                                  \
        return any <= 0xFFFFFFFFu;                                                         \
    }

ST_DEFINE_READ(st_read_u16, uint16_t)
ST_DEFINE_READ(st_read_i32, int32_t)
ST_DEFINE_READ(st_read_u32, uint32_t)
ST_DEFINE_READ(st_read_u64, uint64_t) /* also for int64: read as uint64, negative numbers are too large */

/* The reader for an array whose buffer has this format and item size; NULL if there is none. */
typedef int (*st_reader)(const char *p, size_t n, uint32_t *ids);

static inline st_reader st_reader_for(const char *format, Py_ssize_t size) {
    if (format == NULL || format[0] == 0 || format[1] != 0) return NULL;
    switch (format[0]) {
    case 'H': return size == 2 ? st_read_u16 : NULL;
    case 'i':
    case 'l': return size == 4 ? st_read_i32 : size == 8 ? st_read_u64 : NULL;
    case 'I':
    case 'L': return size == 4 ? st_read_u32 : size == 8 ? st_read_u64 : NULL;
    case 'q':
    case 'Q': return size == 8 ? st_read_u64 : NULL;
    default: return NULL;
    }
}

#endif
