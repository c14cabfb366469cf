/* Int objects that live as long as the process, whatever is counted up or down: immortal ones since
   Python 3.12, before it those with more references than can be given back (2^60). A list of such objects
   can be filled without touching them, and without the GIL. They stand side by side, so that their
   addresses are known as well. */
#ifndef STREAMTOK_IMMORTAL_H
#define STREAMTOK_IMMORTAL_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Make it one of these; 0 where that cannot be had: in free-threaded builds and on 32 bits before 3.12,
   where each list has ints of its own. */
static inline int st_make_immortal(PyObject *value) {
#if defined(Py_GIL_DISABLED)
    (void)value;
    return 0;
#elif PY_VERSION_HEX < 0x030C0000
    if (sizeof(Py_ssize_t) < 8) return 0;
    Py_SET_REFCNT(value, (Py_ssize_t)((size_t)1 << (8 * sizeof(size_t) - 4)));
    return 1;
#else
    Py_ssize_t before;
#if defined(_Py_IMMORTAL_INITIAL_REFCNT)
    Py_SET_REFCNT(value, _Py_IMMORTAL_INITIAL_REFCNT);
#else
    Py_SET_REFCNT(value, _Py_IMMORTAL_REFCNT);
#endif
    /* Believed only once it is seen. */
    before = Py_REFCNT(value);
    Py_INCREF(value);
    if (Py_REFCNT(value) == before) return 1;
    Py_DECREF(value);
    return 0;
#endif
}

#define ST_INT_SIZE 32    /* bytes from one to the next, as many as pymalloc gives an int */
#define ST_SMALL_INTS 2048 /* the interpreter may know its own of these by a flag */
#define ST_POINTED 32     /* items of a list that are pointed at ints together */

/* Copy an int of the interpreter's to `place`, immortal; 0 if that is no whole int. -1: an exception. */
static inline int st_copy_int(char *place, size_t value) {
    PyObject *made = PyLong_FromSize_t(value);
    size_t size;
    int is_good = 0;
    if (made == NULL) return -1;
    size = (size_t)PyLong_Type.tp_basicsize + sizeof(digit);
    if (size <= ST_INT_SIZE && PyLong_CheckExact(made)) {
        memcpy(place, made, size);
        is_good = st_make_immortal((PyObject *)place) && PyLong_AsSize_t((PyObject *)place) == value;
    }
    Py_DECREF(made);
    return PyErr_Occurred() ? -1 : is_good;
}

/* Make begin .. end - 1 in a block for more: 1, or 0 where ints are not what is believed here: a head
   that is the same for all of one digit, and the digit. -1: an exception. */
static inline int st_make_ints(char *block, size_t begin, size_t end) {
    char model[ST_INT_SIZE] = {0}, expected[ST_INT_SIZE];
    const size_t at = (size_t)PyLong_Type.tp_basicsize, digits = (size_t)1 << PyLong_SHIFT;
    size_t value = begin;
    int good = 1;
    if (end > digits) return 0;
    for (; good == 1 && value < end && value < ST_SMALL_INTS; value++)
        good = st_copy_int(block + value * ST_INT_SIZE, value);
    if (good != 1 || value == end) return good;
    good = st_copy_int(model, ST_SMALL_INTS);
    if (good != 1) return good;
    for (; value < end; value++) {
        digit last = (digit)value;
        memcpy(block + value * ST_INT_SIZE, model, ST_INT_SIZE);
        memcpy(block + value * ST_INT_SIZE + at, &last, sizeof last);
    }
    good = st_copy_int(expected, end - 1);
    return good == 1 ? !memcmp(expected, block + (end - 1) * ST_INT_SIZE, at + sizeof(digit)) : good;
}

/* Point the items of a list at the ints ids[0], ids[1], … up to the first that is not below `limit`; how
   many that are. Of the items behind them fewer than ST_POINTED may be written, too. */
static inline size_t st_point_at_ints(PyObject **items, char *block, const uint32_t *ids, size_t count,
                                      size_t limit) {
    const uint32_t below = (uint32_t)limit;
    size_t i = 0, k;
    if (limit == 0) return 0; /* there is no block */
    for (; i + ST_POINTED <= count; i += ST_POINTED) {
        uint32_t beyond = 0;
        for (k = 0; k < ST_POINTED; k++) {
            beyond |= ids[i + k] >= below;
            items[i + k] = (PyObject *)(block + (size_t)ids[i + k] * ST_INT_SIZE);
        }
        if (beyond) break;
    }
    for (; i < count && ids[i] < below; i++) items[i] = (PyObject *)(block + (size_t)ids[i] * ST_INT_SIZE);
    return i;
}

#endif
