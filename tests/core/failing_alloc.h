/* An allocator that fails on request, for tests.

   STREAMTOK_TESTING=1 builds the core with this file before each of its C files. It replaces the calls
   of malloc, calloc, realloc, posix_memalign and free; an ordinary build does not see it. All modules
   count in one place, which `_testing` owns and gives to each by `st_share_allocator`; without it they
   count nothing and never fail. */
#ifndef STREAMTOK_FAILING_ALLOC_H
#define STREAMTOK_FAILING_ALLOC_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1           /* as Python.h wants it, which comes later */
#endif
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    int64_t until_failure;      /* the allocation that fails, counted down; 0 or less: none does */
    int64_t live;               /* blocks that were allocated and not freed */
    int64_t asked;              /* allocations since the last reset */
    int64_t failed;             /* of them, those that were made to fail */
    int64_t keeps_failing;      /* whether all that come after the failing one fail, too */
} st_allocator;

__attribute__((weak)) st_allocator *st_shared_allocator = NULL;

__attribute__((weak, visibility("default"))) void st_share_allocator(st_allocator *shared) {
    st_shared_allocator = shared;
}

/* Whether this allocation has to fail. */
static inline int st_must_fail(void) {
    st_allocator *shared = st_shared_allocator;
    if (shared == NULL) return 0;
    __atomic_add_fetch(&shared->asked, 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&shared->until_failure, __ATOMIC_RELAXED) <= 0) return 0;
    if (__atomic_sub_fetch(&shared->until_failure, 1, __ATOMIC_RELAXED) != 0) return 0;
    if (shared->keeps_failing) __atomic_store_n(&shared->until_failure, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&shared->failed, 1, __ATOMIC_RELAXED);
    return 1;
}

static inline void *st_counted(void *memory, int64_t blocks) {
    st_allocator *shared = st_shared_allocator;
    if (shared != NULL) __atomic_add_fetch(&shared->live, blocks, __ATOMIC_RELAXED);
    return memory;
}

static inline void *st_test_malloc(size_t size) {
    void *memory = st_must_fail() ? NULL : malloc(size);
    return st_counted(memory, memory != NULL);
}

static inline void *st_test_calloc(size_t count, size_t size) {
    void *memory = st_must_fail() ? NULL : calloc(count, size);
    return st_counted(memory, memory != NULL);
}

static inline void *st_test_realloc(void *old, size_t size) {
    void *memory = st_must_fail() ? NULL : realloc(old, size);
    return st_counted(memory, old == NULL && memory != NULL);
}

static inline int st_test_posix_memalign(void **place, size_t alignment, size_t size) {
    if (st_must_fail()) return ENOMEM;
    int failed = posix_memalign(place, alignment, size);
    st_counted(NULL, failed == 0);
    return failed;
}

static inline void st_test_free(void *memory) {
    st_counted(NULL, -(int64_t)(memory != NULL));
    free(memory);
}

#ifndef STREAMTOK_KEEP_MALLOC /* `_testing` calls members of these names */
#define malloc(size) st_test_malloc(size)
#define calloc(count, size) st_test_calloc(count, size)
#define realloc(old, size) st_test_realloc(old, size)
#define posix_memalign(place, alignment, size) st_test_posix_memalign(place, alignment, size)
#define free(memory) st_test_free(memory)
#endif

#endif
