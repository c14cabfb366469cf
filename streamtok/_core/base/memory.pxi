"""Allocate arrays: sizes cannot overflow, and each MemoryError says what the memory was for."""

cdef int no_memory(size_t count, const char* what) except -1 nogil:
    with gil:
        raise MemoryError(f"no memory for {count} {what.decode()}")


cdef void* memory_for(size_t count, size_t size, const char* what) except NULL nogil:
    """Allocate `count` items of `size` bytes, at least one item. The caller frees them with `free`."""
    cdef void* items = NULL
    if count <= <size_t>-1 // size:
        items = malloc(count * size if count else size)
    if items == NULL:
        no_memory(count, what)
    return items


cdef void* zeros_for(size_t count, size_t size, const char* what) except NULL nogil:
    """As `memory_for`, but filled with zeros."""
    cdef void* items = calloc(count if count else 1, size)
    if items == NULL:
        no_memory(count, what)
    return items


cdef void* grown(void* items, size_t* capacity, size_t wanted, size_t size, const char* what) except NULL nogil:
    """Reallocate `items` with room for half as many again as `wanted`; set `capacity` to the new room."""
    cdef size_t more = wanted + wanted // 2 + 64
    cdef void* larger = NULL
    if more > wanted and more <= <size_t>-1 // size:
        larger = realloc(items, more * size)
    if larger == NULL:
        no_memory(wanted, what)
    capacity[0] = more
    return larger
