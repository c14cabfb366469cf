/* SIMD levels: the instructions that kernels are compiled for, and those that this processor has.
 *
 * x86-64 has five levels. Each includes the level before it, and a kernel may use all instructions of
 * its level. The processor's level is found with cpuid. GCC and clang must be told which functions may
 * use the instructions of a level (ST_FOR_..., ST_TARGET_BEGIN); MSVC does not need that. On arm64,
 * kernels use NEON or plain C.
 */
#ifndef STREAMTOK_CPU_H
#define STREAMTOK_CPU_H

#include <stdint.h>

enum {
    ST_PLAIN,  /* plain C, which compilers translate to SSE2 on x86-64 */
    ST_SSE4,   /* SSE4.2 with POPCNT: Nehalem, Bulldozer, and small processors that still lack AVX2 */
    ST_AVX2,   /* AVX2 with BMI, BMI2, LZCNT, POPCNT: Haswell, Zen */
    ST_AVX512, /* AVX-512 with BW, VL, DQ, CD: Skylake-X, Cascade Lake */
    ST_VBMI2,  /* VBMI2 with VBMI: Ice Lake, Zen 4 */
    ST_ANY = ST_VBMI2
};

/* The highest level that a build may use (STREAMTOK_SIMD in setup.py). Lower it to test the code for older
   processors. */
#ifndef ST_MOST
#define ST_MOST ST_ANY
#endif

/* All arm64 processors have NEON. */
#if defined(__aarch64__)
#define ST_NEON 1
#include <arm_neon.h>
#endif

/* clang-cl is left out: there, a function can use only the instructions that the whole file may use. */
#if (defined(__x86_64__) || defined(_M_X64)) && !(defined(_MSC_VER) && defined(__clang__))
#define ST_X86 1
#include <immintrin.h>

#if defined(_MSC_VER)
#include <intrin.h>
#define ST_TARGET(features)
#else
#include <cpuid.h>
#define ST_TARGET(features) __attribute__((target(features)))
#endif
#define ST_FEATURES_SSE4 "ssse3,sse4.1,sse4.2,popcnt"
#define ST_FEATURES_AVX2 "avx2,bmi,bmi2,lzcnt,popcnt"
#define ST_FEATURES_AVX512 ST_FEATURES_AVX2 ",avx512f,avx512bw,avx512vl,avx512dq,avx512cd"
#define ST_FEATURES_VBMI2 ST_FEATURES_AVX512 ",avx512vbmi,avx512vbmi2"
#define ST_FOR_SSE4 ST_TARGET(ST_FEATURES_SSE4)
#define ST_FOR_AVX2 ST_TARGET(ST_FEATURES_AVX2)
#define ST_FOR_AVX512 ST_TARGET(ST_FEATURES_AVX512)
#define ST_FOR_VBMI2 ST_TARGET(ST_FEATURES_VBMI2)

/* As ST_FOR_..., but for all functions between BEGIN and END. */
#define ST_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define ST_TARGET_BEGIN(features) \
    ST_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define ST_TARGET_END ST_PRAGMA(clang attribute pop)
#elif defined(_MSC_VER)
#define ST_TARGET_BEGIN(features)
#define ST_TARGET_END
#else
#define ST_TARGET_BEGIN(features) ST_PRAGMA(GCC push_options) ST_PRAGMA(GCC target(features))
#define ST_TARGET_END ST_PRAGMA(GCC pop_options)
#endif

static inline void st_cpuid(unsigned leaf, unsigned found[4]) {
#if defined(_MSC_VER)
    int values[4];
    __cpuidex(values, (int)leaf, 0);
    for (int i = 0; i < 4; i++) found[i] = (unsigned)values[i];
#else
    __cpuid_count(leaf, 0, found[0], found[1], found[2], found[3]);
#endif
}

/* Bit set of the registers that the operating system saves (XCR0). */
static inline uint64_t st_saved_registers(void) {
#if defined(_MSC_VER)
    return _xgetbv(0);
#else
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
#endif
}

/* Whether all `wanted` bits are set. */
static inline int st_all_of(uint64_t bits, uint64_t wanted) { return (bits & wanted) == wanted; }

static int st_level_of_processor(void) {
    enum { A, B, C };
    unsigned features[4], extended[4], more[4];
    uint64_t saved;
    st_cpuid(0, more);
    if (more[A] < 7) return ST_PLAIN;
    st_cpuid(1, features);
    if (!st_all_of(features[C], 1u << 9 | 1u << 19 | 1u << 20 | 1u << 23)) /* SSSE3, SSE4.1, SSE4.2, POPCNT */
        return ST_PLAIN;
    if (!st_all_of(features[C], 1u << 27)) return ST_SSE4; /* OSXSAVE */
    saved = st_saved_registers();
    st_cpuid(7, extended);
    st_cpuid(0x80000000u, more);
    if (more[A] < 0x80000001u) return ST_SSE4;
    st_cpuid(0x80000001u, more);
    if (!st_all_of(saved, 0x6) || !(more[C] & 1u << 5)                    /* YMM; LZCNT */
        || !st_all_of(extended[B], 1u << 3 | 1u << 5 | 1u << 8))          /* BMI, AVX2, BMI2 */
        return ST_SSE4;
    if (!st_all_of(saved, 0xE6)                                           /* ZMM */
        || !st_all_of(extended[B], 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31)) /* F DQ CD BW VL */
        return ST_AVX2;
    return st_all_of(extended[C], 1u << 1 | 1u << 6) ? ST_VBMI2 : ST_AVX512; /* VBMI, VBMI2 */
}
#endif

/* The highest level that kernels may use, at most `most`. Only tests pass less than ST_ANY. */
static inline int st_level(int most) {
#if defined(ST_X86)
    static int known = -1; /* racing threads store the same value */
    int level = known;
    if (level < 0) known = level = st_level_of_processor();
    if (level > ST_MOST) level = ST_MOST;
    return level < most ? level : most;
#elif defined(ST_NEON)
    return most > ST_PLAIN && ST_MOST > ST_PLAIN ? ST_ANY : ST_PLAIN;
#else
    (void)most;
    return ST_PLAIN;
#endif
}

/* The fastest version of a kernel written with vector/ whose level is at most `most`. */
#if defined(ST_X86)
#define ST_BEST(most, name) \
    (st_level(most) >= ST_VBMI2  ? name##_avx512 \
     : st_level(most) >= ST_AVX2 ? name##_avx2   \
     : st_level(most) >= ST_SSE4 ? name##_sse4   \
                                 : name##_plain)
#elif defined(ST_NEON)
#define ST_BEST(most, name) (st_level(most) > ST_PLAIN ? name##_neon : name##_plain)
#else
#define ST_BEST(most, name) ((void)(most), name##_plain)
#endif

/* The name of a level that st_level returned, as in STREAMTOK_SIMD and in benchmark results. */
static inline const char *st_level_name(int level) {
#if defined(ST_NEON)
    return level > ST_PLAIN ? "neon" : "plain";
#else
    static const char *const names[] = {"plain", "sse4", "avx2", "skylake", "avx512"};
    return names[level];
#endif
}

#endif
