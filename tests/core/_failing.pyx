"""Failures on request. Only in a build with STREAMTOK_TESTING=1, and only for tests.

`fail_core` makes an allocation of the core fail (failing_alloc.h), `fail_python` one of Python's
own: of an object, or of memory that objects hold. `race` is what a race detector has to find.
"""

from libc.stdint cimport int64_t
from posix.dlfcn cimport RTLD_NOW, dlerror, dlopen, dlsym

cdef extern from "<dlfcn.h>":
    int RTLD_NOLOAD

cdef extern from *:
    ctypedef struct st_allocator:
        int64_t until_failure
        int64_t live
        int64_t asked
        int64_t failed
        int64_t keeps_failing

cdef extern from "Python.h":
    ctypedef enum PyMemAllocatorDomain:
        PYMEM_DOMAIN_MEM
        PYMEM_DOMAIN_OBJ

    ctypedef struct PyMemAllocatorEx:
        void *ctx
        void *(*malloc)(void *ctx, size_t size) noexcept
        void *(*calloc)(void *ctx, size_t count, size_t size) noexcept
        void *(*realloc)(void *ctx, void *memory, size_t size) noexcept
        void (*free)(void *ctx, void *memory) noexcept

    void PyMem_GetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator)
    void PyMem_SetAllocator(PyMemAllocatorDomain domain, PyMemAllocatorEx *allocator)

ctypedef void (*Share)(st_allocator *shared) noexcept

cdef st_allocator core_state
cdef st_allocator python_state
cdef PyMemAllocatorEx inner[2]  # what Python had before: of memory, of objects
cdef bint is_hooked = False


def attach(str path):
    """Let the loaded core module of this file count here. OSError if it was not built for tests."""
    cdef void *module = dlopen(path.encode(), RTLD_NOW | RTLD_NOLOAD)
    if module == NULL:
        raise OSError(f"{path} is not loaded: {(<bytes>dlerror()).decode()}")
    cdef void *share = dlsym(module, b"st_share_allocator")
    if share == NULL:
        raise OSError(f"{path} was not built with STREAMTOK_TESTING=1")
    (<Share>share)(&core_state)


def fail_core(int64_t n, bint keeps_failing=False):
    """Make the n-th allocation of the core from now on fail, and all after it if
    `keeps_failing`."""
    arm(&core_state, n, keeps_failing)


def fail_python(int64_t n, bint keeps_failing=False):
    """As `fail_core`, for the allocations of objects and of memory that Python counts."""
    global is_hooked
    if not is_hooked:
        hook(0, PYMEM_DOMAIN_MEM)
        hook(1, PYMEM_DOMAIN_OBJ)
        is_hooked = True
    arm(&python_state, n, keeps_failing)


def calm():
    """Let every allocation succeed again. int: how many were made to fail since the last time."""
    global is_hooked
    if is_hooked:
        PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &inner[0])
        PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &inner[1])
        is_hooked = False
    failed = core_state.failed + python_state.failed
    core_state.until_failure = core_state.failed = 0
    python_state.until_failure = python_state.failed = 0
    return failed


def live_blocks():
    """int: the blocks that the core has allocated and not freed, since its modules were
    attached."""
    return core_state.live


def allocations():
    """int: how often the core has allocated memory since `fail_core` was called last."""
    return core_state.asked


cdef volatile int64_t raced = 0


def race(int64_t n):
    """Write n times to one place without the GIL and without a lock: wrong if two threads do it."""
    global raced
    cdef int64_t i
    with nogil:
        for i in range(n):
            raced = raced + 1


cdef void arm(st_allocator *state, int64_t n, bint keeps_failing) noexcept:
    state.asked = 0
    state.failed = 0
    state.keeps_failing = keeps_failing
    state.until_failure = n


cdef void hook(int i, PyMemAllocatorDomain domain) noexcept:
    cdef PyMemAllocatorEx outer
    PyMem_GetAllocator(domain, &inner[i])
    outer.ctx = &inner[i]
    outer.malloc = python_malloc
    outer.calloc = python_calloc
    outer.realloc = python_realloc
    outer.free = python_free
    PyMem_SetAllocator(domain, &outer)


# Python calls these with the GIL, or with the state attached in a free-threaded build.


cdef bint must_fail() noexcept:
    if python_state.until_failure <= 0:
        return False
    python_state.until_failure -= 1
    if python_state.until_failure != 0:
        return False
    python_state.until_failure = python_state.keeps_failing
    python_state.failed += 1
    return True


cdef void *python_malloc(void *ctx, size_t size) noexcept:
    cdef PyMemAllocatorEx *allocator = <PyMemAllocatorEx*>ctx
    return NULL if must_fail() else allocator.malloc(allocator.ctx, size)


cdef void *python_calloc(void *ctx, size_t count, size_t size) noexcept:
    cdef PyMemAllocatorEx *allocator = <PyMemAllocatorEx*>ctx
    return NULL if must_fail() else allocator.calloc(allocator.ctx, count, size)


cdef void *python_realloc(void *ctx, void *memory, size_t size) noexcept:
    cdef PyMemAllocatorEx *allocator = <PyMemAllocatorEx*>ctx
    return NULL if must_fail() else allocator.realloc(allocator.ctx, memory, size)


cdef void python_free(void *ctx, void *memory) noexcept:
    cdef PyMemAllocatorEx *allocator = <PyMemAllocatorEx*>ctx
    allocator.free(allocator.ctx, memory)
