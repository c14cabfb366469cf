"""How much of an open piece is already encoded for good: the frontier rule.

Let e(n) be the byte pair encoding of the first n bytes of a stretch, by the merge loop alone.

Lemma. If e(n) has a token boundary at c, then e(n) = e(c) + BPE(p[c:n]): nothing merged across c, so
both sides ran as they would alone. Conversely, if the last token u of e(c) and the first token v of
BPE(p[c:n]) are compatible, BPE(u v) = [u, v], then e(n) has a boundary at c: look at the first merge
across it; up to then the bytes of u and of v merged as they do in the run over u v alone, so that
merge would happen there, too. Neither direction asks anything of the rank table.

Any longer encoding e(N) either has a boundary at n or covers n by a token that starts at some m < n
and has p[m:n] as a proper prefix. So it begins with e(m) for one m of the *frontier*: n, and every m
for which p[m:n] is a proper prefix of a token. If all those e(m) have a boundary at c, the tokens
up to c are final whatever follows. To certify a c that is a boundary of e(n), encode p[c:m] for
every m and test one pair, by merging it. If some m fails, c moves to the left.

The observation that the last token determines the whole encoding is from GitHub's rust-gems `bpe`;
eager emission at the common root of the live encodings is in "mtc-inc-bpe" (arXiv 2605.30813).
"""

from streamtok._core.merge cimport Merger, merge
from streamtok._core.stretches cimport Growing, merge_stretches
from streamtok._core.types cimport u8, u32
from streamtok._core.vocab cimport Tokens, is_proper_prefix


cdef enum:
    FIRST_STEP_BACK = 48        # bytes before the end where certification is tried first


cdef Py_ssize_t stable_tokens(const Tokens* t, Merger* m, Merger* scratch, const u8* p, size_t n,
                              size_t* stable_bytes) except -1 nogil:
    """Encode p[:n] into m.result; the number of its tokens that no continuation can change.

    p begins at a boundary that every continuation shares. `stable_bytes` is what those tokens
    cover. The caller has prepared the table for prefix queries.
    """
    cdef Py_ssize_t count, kept, tokens
    cdef size_t cut, first, back = FIRST_STEP_BACK, reach, width
    cdef size_t start
    cdef u32 last
    cdef bint agreed
    cdef Growing into
    into.items = m.result
    into.capacity = m.result_capacity
    into.count = 0
    try:
        merge_stretches(t, scratch, p, n, &into, NULL)
    finally:
        m.result = into.items
        m.result_capacity = into.capacity
    count = <Py_ssize_t>into.count
    stable_bytes[0] = 0
    reach = t.longest - 1 if t.longest - 1 < n else n
    while back < n:
        # The last boundary of e(n) that is at least `back` bytes before the end.
        cut = n
        kept = count
        while kept > 0 and cut > n - back:
            kept -= 1
            cut -= t.offsets[m.result[kept] + 1] - t.offsets[m.result[kept]]
        if kept == 0:
            return 0
        last = m.result[kept - 1]
        width = t.offsets[last + 1] - t.offsets[last]
        agreed = True
        for start in range(n - reach, n):
            if not is_proper_prefix(t, p + start, n - start):
                continue
            if start < cut:
                agreed = False
                break
            if start == cut:
                continue
            merge(t, scratch, p + cut, start - cut)
            first = t.offsets[scratch.result[0] + 1] - t.offsets[scratch.result[0]]
            tokens = merge(t, scratch, p + cut - width, width + first)
            if tokens != 2 or scratch.result[0] != last:
                agreed = False
                break
        if agreed:
            stable_bytes[0] = cut
            return kept
        back *= 2
    return 0
