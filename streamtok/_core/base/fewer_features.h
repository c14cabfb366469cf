/*
 * For tests of what other processors get: included before everything else where a build is to do
 * without what this one has (ST_SIMD_NONE, ST_SIMD_AVX2; see setup.py). For GCC and clang.
 */
#ifndef STREAMTOK_FEWER_FEATURES_H
#define STREAMTOK_FEWER_FEATURES_H

/* A macro is not replaced within itself, so the built-in function is asked where it may be. */
#if defined(ST_SIMD_NONE)
#define __builtin_cpu_supports(feature) 0
#elif defined(ST_SIMD_AVX2)
#define __builtin_cpu_supports(feature) \
    (__builtin_strncmp(feature, "avx512", 6) != 0 && __builtin_cpu_supports(feature))
#endif

#endif
