/* The window tables with AVX-512 and VBMI: 64 positions at a time, as `st_mark_plain` in scan/windows.h. */
#ifndef STREAMTOK_WINDOWS_512_H
#define STREAMTOK_WINDOWS_512_H

#include <stddef.h>
#include <stdint.h>

#include "scan/window_seen.h"

#if defined(ST_X86)


#define ST_BLOCKS_512 32 /* whose classes are looked up before any is used */

/* Of the blocks that are marked together: looked up once for each byte, used four times. */
typedef struct {
    ST_ALIGNED(64) uint8_t before[64]; /* the last two: classes of what comes before */
    uint8_t classes[64 * ST_BLOCKS_512 + 64];        /* one more than there are positions */
    uint64_t high[ST_BLOCKS_512 + 1];                /* bytes that are not ASCII */
    uint64_t triggers[ST_BLOCKS_512];
} st_classes_512;

/* As `st_carry_before`: of the bytes from p - ST_MARGIN on, the first eight count. */
ST_FOR_VBMI2 static inline st_carry st_carry_before_512(const st_windows *w, const uint8_t *p) {
    const __m512i classes_low = _mm512_loadu_si512(w->classes);
    const __m512i classes_high = _mm512_loadu_si512(w->classes + 64);
    st_carry carry = {0, 0, 0, 0, 0, 0, 0, 0};
    __m512i here = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(p - ST_MARGIN)));
    __m512i raw = _mm512_permutex2var_epi8(classes_low, here, classes_high);
    uint64_t high = _mm512_movepi8_mask(here), follows = _mm512_movepi8_mask(raw) | high;
    uint64_t harmless = _mm512_test_epi8_mask(raw, _mm512_set1_epi8(ST_HARMLESS)) & ~high;
    uint64_t found = _mm512_cmpeq_epi8_mask(here, _mm512_set1_epi8((char)w->trigger));
    raw = _mm512_and_si512(raw, _mm512_set1_epi8(ST_CLASS));
    found &= follows >> 1 & ~(harmless << 1);
    carry.found = (found | high) << (64 - ST_MARGIN);
    carry.counted = (_mm512_cmpeq_epi8_mask(raw, _mm512_set1_epi8((char)w->counted)) & ~high)
                    << (64 - ST_MARGIN);
    return carry;
}

ST_FOR_VBMI2 static inline void st_classify_512(const st_windows *w, const uint8_t *p, size_t blocks,
                                             st_classes_512 *c) {
    const __m512i low = _mm512_loadu_si512(w->classes), high = _mm512_loadu_si512(w->classes + 64);
    const __m512i trigger = _mm512_set1_epi8((char)w->trigger);
    c->before[62] = w->classes[p[-2] & 127];
    c->before[63] = w->classes[p[-1] & 127];
    for (size_t k = 0; k < blocks; k++, p += 64) {
        __m512i bytes = _mm512_loadu_si512(p);
        c->high[k] = _mm512_movepi8_mask(bytes);
        c->triggers[k] = _mm512_cmpeq_epi8_mask(bytes, trigger);
        _mm512_store_si512(c->classes + 64 * k, _mm512_permutex2var_epi8(low, bytes, high));
    }
    c->classes[64 * blocks] = w->classes[p[0] & 127];
    c->high[blocks] = p[0] >> 7;
}

/* table[index] for 64 indices and 256 entries. */
ST_FOR_VBMI2 static inline __m512i st_look_up_512(const __m512i *table, __m512i index) {
    __m512i low = _mm512_permutex2var_epi8(table[0], index, table[1]);
    __m512i high = _mm512_permutex2var_epi8(table[2], index, table[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
}

/* The number of two classes that stand side by side; their flags are still in the bytes. */
ST_FOR_VBMI2 static ST_ALWAYS_INLINE __m512i st_pair_512(int pitch, __m512i first,
                                                                          __m512i second) {
    const __m512i nibble = _mm512_set1_epi8(15);
    if (pitch == 8) /* of such an index, only the lower six bits matter */
        return _mm512_ternarylogic_epi64(_mm512_slli_epi16(first, 3), second, _mm512_set1_epi8(0x38),
                                         0xE4);
    first = _mm512_and_si512(first, nibble);
    second = _mm512_and_si512(second, nibble);
    if (pitch == 9)
        return _mm512_add_epi8(_mm512_add_epi8(_mm512_slli_epi16(first, 3), first), second);
    return _mm512_or_si512(_mm512_slli_epi16(first, 4), second);
}

/* pitch: 8 or 9, of the small tables, see `st_fill_small`; 16: of the large ones. */
ST_FOR_VBMI2 static ST_ALWAYS_INLINE void st_mark_in_512(
    int pitch, const st_windows *w, const uint8_t *p, size_t blocks, uint64_t *begins, uint64_t *open) {
    __m512i lefts[4], rights[4], decisions[4];
    st_classes_512 c512;
    for (int k = 0; k < 4; k++) {
        lefts[k] = _mm512_loadu_si512(pitch < 16 ? w->small_lefts + 64 * (k & 1) : w->lefts + 64 * k);
        rights[k] = _mm512_loadu_si512(pitch < 16 ? w->small_rights + 64 * (k & 1) : w->rights + 64 * k);
        decisions[k] = _mm512_loadu_si512(pitch < 16 ? w->small_decisions + 64 * (k & 1)
                                                     : w->decisions + 64 * k);
    }
    const __m512i nibble = _mm512_set1_epi8(15), counted = _mm512_set1_epi8((char)w->counted);
    const __m512i run = _mm512_set1_epi8(ST_RUN), ends_run = _mm512_set1_epi8(ST_ENDS_RUN);
    const __m512i harmless = _mm512_set1_epi8(ST_HARMLESS);
    st_carry carry = st_carry_before_512(w, p);
    uint64_t high_before = (uint64_t)(p[-2] >> 7) << 62 | (uint64_t)(p[-1] >> 7) << 63;
    while (blocks) {
        size_t here = blocks < ST_BLOCKS_512 ? blocks : ST_BLOCKS_512;
        st_classify_512(w, p, here, &c512);
        for (size_t k = 0; k < here; k++) {
            const uint8_t *classes = c512.classes + 64 * k;
            __m512i a = _mm512_loadu_si512(classes - 2), b = _mm512_loadu_si512(classes - 1);
            __m512i c = _mm512_loadu_si512(classes), d = _mm512_loadu_si512(classes + 1);
            uint64_t high = c512.high[k], next_high = high >> 1 | c512.high[k + 1] << 63, undecided;
            uint64_t earlier_high = st_shifted(high, high_before, 1);
            __m512i left = st_pair_512(pitch, a, b), right = st_pair_512(pitch, c, d), decision;
            st_seen seen;
            if (pitch == 8) {
                left = _mm512_permutexvar_epi8(left, lefts[0]);
                right = _mm512_permutexvar_epi8(right, rights[0]);
            } else if (pitch == 9) {
                left = _mm512_permutex2var_epi8(lefts[0], left, lefts[1]);
                right = _mm512_permutex2var_epi8(rights[0], right, rights[1]);
            } else {
                left = _mm512_slli_epi16(st_look_up_512(lefts, left), 4);
                right = st_look_up_512(rights, right);
            }
            if (pitch < 16)
                decision = _mm512_permutex2var_epi8(decisions[0], _mm512_add_epi8(left, right),
                                                    decisions[1]);
            else
                decision = st_look_up_512(decisions, _mm512_or_si512(left, right));
            seen.high = high;
            seen.open = high | earlier_high | next_high | st_shifted(high, high_before, 2);
            seen.found = c512.triggers[k] & (_mm512_movepi8_mask(d) | next_high);
            seen.found &= _mm512_testn_epi8_mask(b, harmless) | earlier_high;
            seen.ends = _mm512_test_epi8_mask(c, ends_run) & ~high;
            seen.rows = _mm512_test_epi8_mask(c, run);
            c = _mm512_and_si512(c, nibble);
            d = _mm512_and_si512(d, nibble);
            seen.counted = _mm512_cmpeq_epi8_mask(c, counted) & ~high;
            undecided = _mm512_test_epi8_mask(decision, _mm512_set1_epi8(2));
            seen.same = _mm512_cmpeq_epi8_mask(c, d) & ~(high | next_high);
            seen.rows &= seen.same & undecided & ~seen.open;
            seen.open |= undecided;
            seen.begins = _mm512_test_epi8_mask(decision, _mm512_set1_epi8(1));
            st_finish(w, &seen, &carry, begins + k, open + k);
            high_before = high;
        }
        p += 64 * here;
        begins += here;
        open += here;
        blocks -= here;
    }
}

ST_FOR_VBMI2 static inline void st_mark_avx512(const st_windows *w, const uint8_t *p, size_t blocks,
                                            uint64_t *begins, uint64_t *open) {
    if (w->pitch == 8)
        st_mark_in_512(8, w, p, blocks, begins, open);
    else if (w->pitch == 9)
        st_mark_in_512(9, w, p, blocks, begins, open);
    else
        st_mark_in_512(16, w, p, blocks, begins, open);
}
#endif

#endif
