"""Two hypotheses about where the open pre-token of a stream ends; `stream/tail.pxi` explains why.

`advance` follows both, `fork` starts the second one, and `commit_both` emits what is final under both.
"""

cdef int advance(Tail tail, Mark* m, Work* w, size_t end, bint final) except -1 nogil:
    """Encode as much of the bytes before `end` as can be decided."""
    cdef i64[1] closed
    cdef size_t start = m.scan.start, count
    if m.has_other:
        # m.scan.accept == start: the last acceptance is still the one at the fork.
        count = walk(tail.encoder.scanner.tables(), &m.scan, tail.bytes, end, final, closed, 1, &w.watch)
        if count == 0 and m.scan.accept == start:
            return 0
        m.has_other = False
        if count and <size_t>closed[0] == start:
            m.scan = m.other
        elif count:
            encode_rest(tail.encoder.table, w, tail.bytes + start, <size_t>closed[0] - start)
    return encode_span(tail.encoder, w, tail.bytes, m.size + SLACK, end, final, &m.scan)


cdef int fork(Tail tail, Mark* m, Work* w) except -1 nogil:
    """Start a second hypothesis if the walk is far past the last acceptance and both hypotheses agree so
    far.
    """
    cdef Scan* s = &m.scan
    cdef const Tokens* t = tail.encoder.table.tokens()
    cdef size_t size = s.accept - s.start, seen = s.position - s.start, stable, bytes = 0
    cdef Py_ssize_t count, kept = 0
    cdef u32 token
    if (t.model != NULL or tail.encoder.scanner.tables().settled[s.state] or s.position - s.accept < m.fork_at
            or (size == 0 and not s.committed)):
        return 0
    m.fork_at = 2 * (s.position - s.accept)
    if not s.committed and s.position - s.start <= t.longest_unreachable:
        return 0
    if not is_sorted(t):
        with gil:
            tail.encoder.table.prepare_prefixes()
    count = stable_tokens(t, &w.merger, &w.scratch, tail.bytes + s.start, seen, &stable)
    while bytes < size and kept < count:
        token = w.merger.result[kept]
        bytes += t.offsets[token + 1] - t.offsets[token]
        kept += 1
    if bytes != size:
        return 0
    if not s.committed:
        # If the pre-token ended here and were a token, merges would not be used.
        token = find_token(t, tail.bytes + s.start, size)
        if token != NONE and (kept != 1 or w.merger.result[0] != token):
            return 0
    emit(t, w, w.merger.result, kept)
    scan_begin(&m.other, s.accept)
    s.start = s.accept
    s.committed = True
    m.has_other = True
    m.fork_at = 2 * SECTION
    return 0


cdef int commit_both(Tail tail, Mark* m, Work* w) except -1 nogil:
    """Emit what is final under both hypotheses."""
    cdef const Tokens* t = tail.encoder.table.tokens()
    cdef const ScanTables* tables = tail.encoder.scanner.tables()
    cdef Scan trial
    cdef i64[1] closed
    cdef size_t certain, done
    if m.scan.position - m.scan.start < m.fork_at:
        return 0
    m.fork_at = 2 * (m.scan.position - m.scan.start)
    trial = m.other
    if walk(tables, &trial, tail.bytes, m.scan.position, False, closed, 1, &w.watch):
        return 0            # a pre-token ends under one hypothesis but not the other: wait
    m.other = trial
    certain = trial.position if tables.settled[trial.state] else trial.accept
    if not trial.committed and certain < trial.start + t.longest_unreachable + 1:
        return 0
    if certain < m.scan.start + SECTION:
        return 0
    done = commit_certain(tail.encoder.table, w, tail.bytes + m.scan.start, certain - m.scan.start)
    if done == 0:
        return 0
    m.scan.start += done
    m.scan.accept = m.scan.start
    m.other.start = m.scan.start
    if m.other.accept < m.other.start:
        m.other.accept = m.other.start
    m.other.committed = True
    m.fork_at = 2 * (m.scan.position - m.scan.start)
    if m.fork_at < 2 * SECTION:
        m.fork_at = 2 * SECTION
    return 0
