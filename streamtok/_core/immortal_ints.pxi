"""The int objects in lists of ids. They are made once in a process and shared by all vocabularies.

They stand side by side in one block and are immortal (`immortal.h`). So a list of ids is filled
without a look at any object, by arithmetic alone, and without the GIL.
"""

cdef extern from "immortal.h":
    enum:
        ST_INT_SIZE
        ST_POINTED
    bint st_make_ints(char* block, size_t begin, size_t end) except -1
    size_t st_point_at_ints(PyObject** items, char* block, const u32* ids, size_t count,
                            size_t limit) noexcept nogil


cdef Ints newest            # all zero at first
cdef bint never = False     # this interpreter's ints are not what we believe they are
cdef object newest_lock = object()      # whoever holds it may change `newest`


cdef Ints shared_ints(size_t count) except *:
    """Ints 0, 1, …, at least `count` of them, or no block where there cannot be any.

    They stay where they are as long as the process lives: lists point to them. When a larger
    vocabulary comes, another block is made, which is at least twice as large.
    """
    global newest, never
    cdef Ints wanted
    cdef bint is_good = False
    with cython.critical_section(newest_lock):
        wanted = newest
        if wanted.made < count and not never:
            if wanted.room < count:
                wanted.room = 1 << 16
                while wanted.room < count:
                    wanted.room *= 2
                wanted.made = 0
                wanted.block = <char*>st_new_block(wanted.room * ST_INT_SIZE, 64)
                if wanted.block == NULL:
                    raise MemoryError(f"no memory for {wanted.room} int objects")
            try:
                is_good = st_make_ints(wanted.block, wanted.made, count)
                never = not is_good
            finally:
                if is_good:
                    wanted.made = count
                    newest = wanted
                elif wanted.block != newest.block:
                    st_free_block(wanted.block)
        return newest
