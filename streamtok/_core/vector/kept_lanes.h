/* For each eight bits, the numbers of those that are set, a byte each, the lowest first; then zeros. Made by the
   preprocessor, so that the table is constant. */
#ifndef STREAMTOK_KEPT_LANES_H
#define STREAMTOK_KEPT_LANES_H

#define ST_SET_BELOW(bits, k) \
    ((k > 0 && (bits & 1)) + (k > 1 && (bits & 2)) + (k > 2 && (bits & 4)) + (k > 3 && (bits & 8)) + \
     (k > 4 && (bits & 16)) + (k > 5 && (bits & 32)) + (k > 6 && (bits & 64)))
#define ST_PLACE(bits, k) (((bits) >> k) & 1 ? (uint64_t)k << (8 * ST_SET_BELOW((bits), k)) : 0)
#define ST_PLACES(bits) \
    (ST_PLACE(bits, 1) | ST_PLACE(bits, 2) | ST_PLACE(bits, 3) | ST_PLACE(bits, 4) | ST_PLACE(bits, 5) | \
     ST_PLACE(bits, 6) | ST_PLACE(bits, 7))
#define ST_FOUR(bits) ST_PLACES(bits), ST_PLACES(bits + 1), ST_PLACES(bits + 2), ST_PLACES(bits + 3)
#define ST_SIXTEEN(bits) ST_FOUR(bits), ST_FOUR(bits + 4), ST_FOUR(bits + 8), ST_FOUR(bits + 12)
#define ST_64(bits) ST_SIXTEEN(bits), ST_SIXTEEN(bits + 16), ST_SIXTEEN(bits + 32), ST_SIXTEEN(bits + 48)
static const uint64_t st_kept_lanes[256] = {ST_64(0), ST_64(64), ST_64(128), ST_64(192)};

#endif
