"""A stream whose text is changed before the pattern cuts it: the intake, the levels, then the tail.

The intake makes whole characters of the chunks, following the error policy. The levels find tokens and
change the text between them (`transform/levels.pxi`). The tail encodes the result. Each call works on one
draft, so it takes effect as a whole or not at all, as in `stream/tail.pxi`.
"""

@cython.final
cdef class TailSink(Sink):
    """Feeds changed text to the draft of a tail."""

    cdef Tail tail
    cdef Changer changer
    cdef Mark* draft
    cdef Work* work

    cdef int put_text(self, const u8* p, size_t n, bint ends) except -1:
        return feed_segment(self.tail, self.draft, self.work, p, n, ends)

    cdef int put_token(self, u32 id, size_t size) except -1:
        return put_token(self.work, self.draft, id, size)

    cdef int refuse(self, int level, const u8* p, size_t size, size_t rest) except -1:
        cdef Changer c = self.changer
        cdef u64 end = c.intake_draft.bytes_in + c.intake_draft.grown - c.intake_draft.n_partial
        if level:
            end = row_start(&c.levels[0].rows, &c.draft[0], rows_end(&c.levels[0].rows, &c.draft[0]) - rest)
            rest = 0
        raise DisallowedSpecialError(<i64>(end - rest), p[:size].decode("utf-8"))


cdef int put_token(Work* w, Mark* m, u32 id, size_t size) except -1:
    """Emit the id of a special token, which ends a segment. Its text takes up `size` bytes of the stream."""
    put_id(w, id, m.offset + m.size, m.offset + m.size + size)
    m.offset += size
    m.bytes_in += size
    return 0


cdef int feed_segment(Tail tail, Mark* m, Work* w, const u8* p, size_t n, bint ends) except -1:
    """Feed text of a segment. ends: the segment, and so its last pre-token, ends with this text."""
    cdef Found refused
    refused.kind = PARTIAL
    if n >= RELEASE_FROM:
        with nogil:
            feed_tail(tail, m, w, p, n, True, ends, None, &refused)
    else:
        feed_tail(tail, m, w, p, n, True, ends, None, &refused)
    m.bytes_in += n
    if ends:
        begin_segment(tail, m, w)
    return 0


cdef int begin_segment(Tail tail, Mark* m, Work* w) except -1:
    """Begin a new segment after the one that has ended."""
    scan_begin(&m.scan, m.size)
    m.has_other = False
    m.searched = m.size
    m.retry_at = SECTION
    m.fork_at = 2 * SECTION
    if m.size - tail.mark.size > SLICE:
        drop(tail, m, tail.mark.size)
    return look(&w.watch)


cdef object feed_changing(Tail tail, object chunk, list parts, size_t run_size, bint final, Form form,
                          object out, size_t limit):
    """Like `Tail.encode_draft`, for a tail with rules; also commits the draft."""
    cdef Changer c = tail.changer
    cdef TailSink sink
    cdef Mark draft
    cdef Workspace workspace
    cdef object result
    cdef u64 reached
    c.begin_draft()
    draft = tail.mark
    workspace = tail.encoder.take()
    try:
        sink = TailSink.__new__(TailSink)
        sink.tail, sink.changer, sink.draft, sink.work = tail, c, &draft, &workspace.c
        workspace.c.follows = form == AS_ID_SPANS
        put_before(tail, &draft, &workspace.c)
        if parts is None:
            feed_chunk(c, chunk, final, final, sink, form == AS_ARRAY)
        else:
            feed_parts_changing(c, parts, final, sink)
        if final:
            put_ids(&workspace.c, tail.after)
        reached = draft.offset + draft.scan.start
        c.intake_draft.pending = <size_t>(
            c.intake_draft.bytes_in + c.intake_draft.grown - c.source_of(reached)
        )
        if not final:
            check_limit(c, run_size, limit)
        draft.tokens_out += workspace.c.count
        result = ids_as(form, tail.encoder.table, tail.encoder._spares, &workspace.c, out)
    except BaseException:
        c.roll_back()
        raise
    finally:
        tail.encoder.give(workspace)
    with cython.critical_section(tail):         # nothing from here on can fail
        commit(tail, &draft, final)
        c.commit_draft(reached, form != AS_ID_SPANS)
        c.is_ended = final
        if final:
            memset(&c.intake, 0, sizeof(Intake))
    return result


cdef int check_limit(Changer c, size_t run_size, size_t limit) except -1:
    cdef size_t pending = c.intake_draft.pending + run_size
    cdef u64 offset = c.intake_draft.bytes_in + c.intake_draft.grown - c.intake_draft.pending
    if pending > limit:
        raise PendingLimitExceeded(
            f"{pending} bytes from offset {offset} of the stream would be pending, "
            f"max_pending allows {limit}",
            offset=offset, pending=pending, limit=limit,
        )
    return 0


cdef int feed_parts_changing(Changer c, list parts, bint final, TailSink sink) except -1:
    """Like `feed_parts`, for a stream with a changer: all text passes through the intake."""
    cdef GivenToken given
    for part in parts:
        if type(part) is GivenToken:
            given = <GivenToken>part
            if given.level >= c.n_levels:
                raise ValueError(f"a token is given to level {given.level}, and there are {c.n_levels}")
            end_characters(c, sink)
            c.intake_draft.bytes_in += given.size
            feed_given(c, 0, given, sink)
        elif part is None:
            end_characters(c, sink)
        else:
            feed_chunk(c, part, False, False, sink, False)
    if final:
        feed_chunk(c, b"", True, True, sink, False)
    return 0


cdef int end_characters(Changer c, TailSink sink) except -1:
    """Handle the bytes of an incomplete character as at the end of a text."""
    if c.intake_draft.n_partial:
        feed_chunk(c, b"", True, False, sink, False)
    return 0


cdef int feed_chunk(Changer c, object chunk, bint is_last, bint final, TailSink sink, bint foresees) except -1:
    """The intake: make whole characters of a chunk, and feed them to the levels.

    is_last: no bytes follow that could complete a character. final: no text follows. foresees: whether the
    ids will be returned as an array.
    """
    cdef Text text
    cdef TextBuffer buffer, joined
    cdef Intake* d = &c.intake_draft
    cdef bint is_text = PyUnicode_Check(chunk)
    cdef const u8* p
    cdef size_t size, fine
    cdef i32 why = 0
    cdef int length = 0
    cdef bytes repaired_text
    if is_text and d.n_partial and len(<str>chunk) and c.errors != "surrogateescape":
        raise UnicodeDecodeError(
            "utf-8", d.partial[:d.n_partial], d.bytes_in - d.n_partial, d.bytes_in,
            "a str chunk follows bytes that end inside a character",
        )
    buffer.bytes = joined.bytes = NULL
    buffer.size = joined.size = 0
    try:
        # The policy is applied below, since a sequence may have begun in the last chunk.
        text_open(&text, &buffer, chunk, c.errors)
        try:
            p, size = text.data, text.size
            if foresees:
                foresee(sink.tail.encoder._spares, sink.work, size // 3)
            d.bytes_in += size
            if d.n_partial:
                buffer_ensure(&joined, d.n_partial + size + SLACK)
                memcpy(joined.bytes, d.partial, d.n_partial)
                if size:
                    memcpy(joined.bytes + d.n_partial, p, size)
                p, size = joined.bytes, d.n_partial + size
                d.n_partial = 0
            fine = size
            if not is_text or text.owner != NULL or p != text.data:
                fine = valid_bytes(p, size, &why, &length)
            if why == 0 or (why == INCOMPLETE and not is_last):
                hold_partial(d, p + fine, size - fine)
                return feed_level(c, 0, p, fine, final, sink)
            if c.errors == "strict":
                raise UnicodeDecodeError(
                    "utf-8", p[fine:fine + length], d.bytes_in - size + fine,
                    d.bytes_in - size + fine + length, explain(p[fine], why),
                )
            fine = size if is_last else size - unfinished_at_end(p, size)
            hold_partial(d, p + fine, size - fine)
            if c.errors == "surrogateescape":
                return feed_level(c, 0, p, fine, final, sink)
            repaired_text = p[:fine].decode("utf-8", "replace").encode()
            d.grown += <u64>len(repaired_text) - fine
            return feed_level(c, 0, repaired_text, len(repaired_text), final, sink)
        finally:
            text_close(&text)
    finally:
        st_free_block(buffer.bytes)
        st_free_block(joined.bytes)


cdef void hold_partial(Intake* d, const u8* p, size_t n) noexcept:
    memcpy(d.partial, p, n)
    d.n_partial = <u8>n
