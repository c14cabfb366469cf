/* The functions of each tier's back end, under names without the tier: v_load is v_load_avx2 and so on.
   A vec is LANES bytes; PARTS of them are 64 bytes. */
#define ST_JOIN_(name, tier) name##_##tier
#define ST_JOIN(name, tier) ST_JOIN_(name, tier)
#define ST_OWN(name) ST_JOIN(name, ST_TIER)
#define PARTS (64 / LANES)

#define vec ST_OWN(vec)
#define v_load ST_OWN(v_load)   /* from any address; v_store stores to any */
#define v_store ST_OWN(v_store)
#define v_store_pairs ST_OWN(v_store_pairs) /* (p, a, b): a[0], b[0], a[1], b[1] and so on, as uint16_t */
#define v_splat ST_OWN(v_splat) /* the same byte LANES times */
#define v_and ST_OWN(v_and)
#define v_or ST_OWN(v_or)
#define v_xor ST_OWN(v_xor)
#define v_add ST_OWN(v_add)
#define v_subtract ST_OWN(v_subtract) /* a - b, or 0 if b is larger */
#define v_next ST_OWN(v_next)             /* (a, b): all bytes of a except the first, then the first of b */
#define v_two_before ST_OWN(v_two_before) /* (a, b): the last two bytes of a, then all of b except the last two */
#define v_upper ST_OWN(v_upper)       /* the upper half of each byte, as a number */
#define v_select ST_OWN(v_select)     /* (by, yes, no): yes where bit 7 of `by` is set */

/* A truth value for each byte of a vec. m_bits and m_any take arrays of PARTS of them. */
#define vmask ST_OWN(vmask)
#define v_equal ST_OWN(v_equal)
#define v_at_least ST_OWN(v_at_least) /* a >= b, unsigned */
#define v_tops ST_OWN(v_tops)         /* bit 7; only for m_and, m_or, m_bits and m_any */
#define m_and ST_OWN(m_and)
#define m_or ST_OWN(m_or)
#define m_without ST_OWN(m_without)   /* a & ~b */
#define m_bits ST_OWN(m_bits)         /* 64 bits, the first byte lowest */
#define m_any ST_OWN(m_any)           /* whether any of the 64 is true */

/* Look-ups. The number of entries is a constant of at least 64. */
#define v_row ST_OWN(v_row)             /* a table of 16 bytes */
#define v_look_16 ST_OWN(v_look_16)     /* (row, index): for indices below 16 */
#define vtable ST_OWN(vtable)           /* a table of up to 256 bytes */
#define v_fill ST_OWN(v_fill)           /* (table, bytes, entries): fills it */
#define v_look ST_OWN(v_look)           /* (table, entries, index): looks up; any byte if the index is too large */
#define v_compress ST_OWN(v_compress)   /* (to, from, keep): stores the bytes of 64 whose bit in `keep` is set;
                                           may write 64 bytes; returns the end of the stored ones */
