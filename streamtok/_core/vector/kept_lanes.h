/* For each value of eight bits, the indices of the set bits, one byte each, the lowest first; then zeros. The
   preprocessor builds the table, so that it is constant. */
#ifndef STREAMTOK_KEPT_LANES_H
#define STREAMTOK_KEPT_LANES_H

#define ST_SET_BELOW(bits, k) \
    ((k > 0 && (bits & 1)) + (k > 1 && (bits & 2)) + (k > 2 && (bits & 4)) + (k > 3 && (bits & 8)) + \
     (k > 4 && (bits & 16)) + (k > 5 && (bits & 32)) + (k > 6 && (bits & 64)))
#define ST_LANE(bits, k) (((bits) >> k) & 1 ? (uint64_t)k << (8 * ST_SET_BELOW((bits), k)) : 0)
#define ST_LANES(bits) \
    (ST_LANE(bits, 1) | ST_LANE(bits, 2) | ST_LANE(bits, 3) | ST_LANE(bits, 4) | ST_LANE(bits, 5) | \
     ST_LANE(bits, 6) | ST_LANE(bits, 7))
#define ST_FOUR(bits) ST_LANES(bits), ST_LANES(bits + 1), ST_LANES(bits + 2), ST_LANES(bits + 3)
#define ST_SIXTEEN(bits) ST_FOUR(bits), ST_FOUR(bits + 4), ST_FOUR(bits + 8), ST_FOUR(bits + 12)
#define ST_64(bits) ST_SIXTEEN(bits), ST_SIXTEEN(bits + 16), ST_SIXTEEN(bits + 32), ST_SIXTEEN(bits + 48)
static const uint64_t st_kept_lanes[256] = {ST_64(0), ST_64(64), ST_64(128), ST_64(192)};

#endif
