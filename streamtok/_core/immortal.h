/* Objects that live as long as the process, whatever is counted up or down: immortal ones since Python
   3.12, before it those with more references than can be given back (2^60). A list of such objects can
   be filled without touching them, and without the GIL. */
#ifndef STREAMTOK_STANDING_H
#define STREAMTOK_STANDING_H

#include <Python.h>
#include <stddef.h>

/* Make it one of these; 0 where that cannot be had: in free-threaded builds (where lists are filled
   with counted references) and on 32 bits before 3.12. */
static inline int st_make_immortal(PyObject *value) {
#if defined(Py_GIL_DISABLED)
    (void)value;
    return 0;
#elif PY_VERSION_HEX < 0x030C0000
    if (sizeof(Py_ssize_t) < 8) return 0;
    if (Py_REFCNT(value) < (Py_ssize_t)((size_t)1 << (8 * sizeof(size_t) - 5)))
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

#endif
