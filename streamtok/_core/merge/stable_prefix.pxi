"""The stable prefix: how many tokens of an open pre-token are final, whatever follows.

Let e(n) be the byte pair encoding of the first n bytes of a segment, by the merge loop alone.

Lemma. If e(n) has a token boundary at c, then e(n) = e(c) + BPE(p[c:n]): nothing merged across c,
so both sides merged as they would alone. Conversely, if the last token u of e(c) and the first token v
of BPE(p[c:n]) are compatible, which means BPE(u v) = [u, v], then e(n) has a boundary at c. To see
this, look at the first merge across c: up to it, the bytes of u and of v merge as in the run over u v
alone, so that run would have this merge, too. Neither direction assumes anything about the rank table.

Any longer encoding e(N) either has a boundary at n or covers n with a token that starts at some m < n
and has p[m:n] as a proper prefix. So it begins with e(m), where m is n or a position such that p[m:n]
is a proper prefix of a token. If all these e(m) have a boundary at c, the tokens up to c are final
whatever follows. So c is the last boundary that e(n) shares with every e(m).

To find it, no e(m) is encoded from the beginning. Let a < m be a boundary of e(n), and S =
BPE(p[a:m]). If e(n) and S have the same token p[i:j], then e(m) is e(n) up to j, followed by S from j
on: e(n) up to j is e(j), S from j on is BPE(p[j:m]), and the token before j is compatible with the
token after it, since they are neighbours in S. So the boundaries that e(n) and S share from j on are
shared with e(m). If no token agrees, S begins earlier; at a = 0 it is e(m) itself.

The work is bounded, whatever the vocabulary and the text: an attempt that would cost more than
WORK_PER_BYTE for each of its n bytes ends without a result, and the caller tries again when twice
as many bytes are pending.

The observation that the last token determines the whole encoding is from GitHub's rust-gems `bpe`;
eager emission at the common root of the live encodings is from "mtc-inc-bpe" (arXiv 2605.30813).
"""

cdef enum:
    SECTION = 1024       # bytes of a long pre-token that are merged at a time


cdef enum:
    FIRST_OVERLAP = 32          # bytes before m that the first attempt encodes again
    WORK_PER_BYTE = 32          # the most bytes merged or compared for each byte of a segment
    WORK_PER_START = 8          # the cost of checking whether a token may start at a position


cdef Py_ssize_t stable_tokens(const Tokens* t, Merger* m, Merger* scratch, const u8* p, size_t n,
                              size_t* stable_bytes) except -1 nogil:
    """Encode p[:n] into m.result; return how many of its tokens no continuation can change.

    p must begin at a boundary that every continuation shares. `stable_bytes` is set to the bytes that
    those tokens cover. The caller has called `prepare_prefixes`.
    """
    cdef size_t reach, start, cut = n, overlap = FIRST_OVERLAP, work = 0
    cdef Py_ssize_t kept
    cdef size_t count = merge_into(t, scratch, m, p, n, NULL)
    kept = <Py_ssize_t>count
    stable_bytes[0] = 0
    reach = t.longest - 1 if t.longest - 1 < n else n
    for start in range(n - reach, n):
        work += WORK_PER_START
        if is_proper_prefix(t, p + start, n - start):
            move_cut(t, m.result, count, scratch, p, n, start, &overlap, &cut, &kept, &work)
        if cut == 0 or work > WORK_PER_BYTE * n:
            return 0
    stable_bytes[0] = cut
    return kept


cdef int move_cut(const Tokens* t, const u32* tokens, size_t count, Merger* scratch, const u8* p, size_t n,
                  size_t end, size_t* overlap, size_t* cut, Py_ssize_t* kept, size_t* work) except -1 nogil:
    """Move `cut` back to the last boundary that tokens[:count], which are e(n), share with e(end).

    `kept` is set to the number of tokens before it. The comparison begins at least `overlap` bytes
    before `end`; pass the value that one call leaves to the next call.
    """
    cdef size_t i, k, found, at, mine, other, shared, shared_count
    cdef const u32* again
    cdef bint agreed
    while True:
        i = count
        at = n
        while i > 0 and at + overlap[0] > end:
            i -= 1
            at -= token_size(t, tokens[i])
        work[0] += n - at
        if work[0] > WORK_PER_BYTE * n:
            return 0
        found = <size_t>merge(t, scratch, p + at, end - at)
        again = scratch.result
        agreed = i == 0
        shared = mine = other = at
        shared_count = i
        k = 0
        while k < found and i < count:
            if mine == other and tokens[i] == again[k]:
                agreed = True
                mine += token_size(t, tokens[i])
                other = mine
                i += 1
                k += 1
            elif mine <= other:
                mine += token_size(t, tokens[i])
                i += 1
            else:
                other += token_size(t, again[k])
                k += 1
            if agreed and mine == other:
                shared = mine
                shared_count = i
        if agreed:
            if shared < cut[0]:
                cut[0] = shared
                kept[0] = <Py_ssize_t>shared_count
            return 0
        overlap[0] *= 2
