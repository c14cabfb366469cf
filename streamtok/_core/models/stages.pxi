"""Stages: cut and change each pre-token again before the model encodes it.

Hugging Face's pre-tokenizers form a sequence: after the first one that cuts, each cuts or changes every
pre-token of its predecessor as if it were a whole text. Steps that do not fit into one automaton run
here, once for each distinct pre-token, because the cache keeps the result:

- CUT: cut by a pattern, with any of its behaviors (`patterns/splits.py`);
- LETTERS: replace each byte by its letter of GPT-2's byte alphabet;
- MARK: replace spaces by the mark, and optionally put it before text that does not begin with it;
- SYMBOLS: replace the characters of a word by symbols, which are then merged. Symbol i is the character
  U+F0001 + i, and the tokens of the table are sequences of symbols.

`Staged` holds the texts that stages make, end to end, and the origin of each byte.
"""

cdef enum:
    FIRST_SYMBOL = 0xF0001
    SYMBOL_BYTES = 4

cdef enum CutBehavior:
    ISOLATED
    REMOVED
    ONLY
    WITH_PREVIOUS           # in the behaviors up to here, a match ends its piece
    WITH_NEXT
    CONTIGUOUS


CUT_BEHAVIORS = {
    "isolated": ISOLATED,
    "removed": REMOVED,
    "only": ONLY,
    "with previous": WITH_PREVIOUS,
    "with next": WITH_NEXT,
    "contiguous": CONTIGUOUS,
}


cdef list add_stage(Stage* stage, str kind, list settings):
    """Fill a stage; return the owners of its memory. Settings by kind:

    "cut": a Scanner and a key of CUT_BEHAVIORS. "letters": none. "mark": its bytes, and whether to put
    it before a text. "symbols": their names end to end in byte order, uint32 offsets [n + 1] and
    numbers [n]; the prefix of symbols that do not begin a word; the suffix of the last symbol; the
    number of the unknown symbol, or None; whether a run of unknown characters is one symbol; the
    symbols of bytes, uint32 [256], or None.
    """
    cdef bytes mark
    if kind == "cut":
        scanner, behavior = settings
        stage.kind, stage.tables = CUT, (<Scanner?>scanner).tables()
        stage.behavior = CUT_BEHAVIORS[behavior]
        return settings
    if kind == "letters":
        stage.kind = LETTERS
        return []
    if kind == "mark":
        mark, stage.puts_mark = settings
        stage.kind = MARK
        if not 0 < len(mark) <= <Py_ssize_t>sizeof(stage.mark):
            raise ValueError(f"the mark has {len(mark)} bytes, not 1 to {sizeof(stage.mark)}")
        stage.mark_size = <u32>len(mark)
        memcpy(stage.mark, <const u8*><const char*>mark, stage.mark_size)
        return []
    stage.kind = SYMBOLS
    return add_symbols(&stage.symbols, settings)


cdef list add_symbols(Symbols* s, list settings):
    cdef bytes blob, prefix, suffix
    blob, offsets, numbers, prefix, suffix, unknown, fuses, byte_symbols = settings
    cdef ArrayView bounds = read_array(offsets, UINT32, "offsets")
    cdef ArrayView values = read_array(numbers, UINT32, "numbers")
    cdef ArrayView of_bytes
    check_pieces(blob, bounds, values)
    trie_open(&s.names, <const u8*><const char*>blob, <const u32*>bounds.data, <const u32*>values.data,
              <u32>values.size)
    s.prefix, s.prefix_size = <const u8*><const char*>prefix, len(prefix)
    s.suffix, s.suffix_size = <const u8*><const char*>suffix, len(suffix)
    s.inside = node_of(&s.names, s.prefix, s.prefix_size)
    s.unknown = NONE if unknown is None else unknown
    s.fuses = fuses
    owners = [blob, prefix, suffix]
    if byte_symbols is not None:
        of_bytes = read_array(byte_symbols, UINT32, "byte_symbols")
        if of_bytes.size != 256:
            raise ValueError(f"there are symbols for {of_bytes.size} bytes, not for 256")
        s.byte_symbols = <const u32*>of_bytes.data
        owners.append(of_bytes)
    return owners


cdef int encode_staged(TokenTable table, Work* w, const u8* p, size_t n, u64 origin) except -1 nogil:
    """Emit the ids of the pre-token p[:n], which is at `origin`, and their spans if wanted."""
    begin_staged(w, p, n)
    return do_stages(table, w, 0, 0, n, origin)


cdef int begin_staged(Work* w, const u8* p, size_t n) except -1 nogil:
    """Reset `w.staged` to p[:n]."""
    cdef Staged* s = &w.staged
    cdef size_t i
    s.size = 0
    make_staged(s, n)
    memcpy(s.bytes, p, n)
    for i in range(n):
        look_at_staged(w, i)
        s.origins[i].start, s.origins[i].end = <u32>i, <u32>(i + 1)
    s.size = n
    s.left_from = <u32>n
    return 0


cdef int make_staged(Staged* s, size_t more) except -1 nogil:
    cdef size_t wanted = s.size + more, capacity
    if wanted <= s.capacity:
        return 0
    if wanted >= NONE:
        raise MemoryError("a pre-token is too long")
    s.bytes = <u8*>grown(s.bytes, &capacity, wanted, 1, b"bytes that a pre-token becomes")
    s.origins = <Origin*>grown(s.origins, &s.capacity, wanted, sizeof(Origin), b"bytes that a pre-token becomes")
    return 0


cdef inline int look_at_staged(Work* w, size_t i) except -1 nogil:
    """Check for signals now and then in a loop over a text that may be long."""
    return look(&w.watch) if i & LOOK_MASK == LOOK_MASK else 0


cdef int put_staged(Staged* s, const u8* p, size_t n, u32 start, u32 end) except -1 nogil:
    """Append p[:n], which must not be in `s`. Its origin is start:end of the pre-token."""
    cdef size_t i
    make_staged(s, n)
    for i in range(n):
        s.bytes[s.size] = p[i]
        s.origins[s.size].start, s.origins[s.size].end = start, end
        s.size += 1
    return 0


cdef int do_stages(TokenTable table, Work* w, size_t k, size_t at, size_t n, u64 origin) except -1 nogil:
    """Emit the ids of n bytes of `w.staged` from `at` on: run the stages from k on, then the model."""
    cdef const Model* m = table.tokens().model
    cdef size_t made = w.staged.size
    cdef u32 node
    if k == m.n_stages:
        return merge_symbols(table, w, at, n, origin) if m.kind == MERGES else put_pieces(m, w, at, n, origin)
    if m.stages[k].kind == CUT:
        return cut_again(table, w, k, at, n, origin)
    if m.stages[k].kind == LETTERS:
        write_letters(w, at, n)
    elif m.stages[k].kind == MARK:
        write_mark(&m.stages[k], w, at, n)
    else:
        node = node_of(&m.trie, w.staged.bytes + at, n)
        if node != NONE and m.trie.values[node] != NONE:        # a token, whatever its symbols merge into
            return put_id(w, m.trie.values[node], origin + w.staged.origins[at].start,
                          origin + w.staged.origins[at + n - 1].end)
        write_symbols(&m.stages[k].symbols, w, at, n, False, True)
    do_stages(table, w, k + 1, made, w.staged.size - made, origin)
    w.staged.size = made
    return 0


cdef int cut_again(TokenTable table, Work* w, size_t k, size_t at, size_t n, u64 origin) except -1 nogil:
    """Cut n bytes at `at` into pieces, and run the later stages on each.

    A gap is text that no match covers.
    """
    cdef const Stage* stage = &table.tokens().model.stages[k]
    cdef i64[64] ends
    cdef Scan s
    cdef size_t start = at, position = at, i, count = 64
    cdef bint is_match = False, was_match = False
    scan_begin(&s, at)
    while count == 64:
        count = walk(stage.tables, &s, w.staged.bytes, at + n, True, ends, 64, &w.watch)
        for i in range(count):
            is_match = ends[i] > 0
            if position > start and ends_before(stage, was_match, is_match):
                do_piece(table, w, k, start, position, was_match, origin)
                start = position
            position, was_match = <size_t>llabs(ends[i]), is_match
            if is_match and stage.behavior <= WITH_PREVIOUS:
                do_piece(table, w, k, start, position, True, origin)
                start = position
        look(&w.watch)
    if position > start:
        do_piece(table, w, k, start, position, was_match, origin)
    return 0


cdef inline bint ends_before(const Stage* stage, bint was_match, bint is_match) noexcept nogil:
    """Whether an open piece ends before the next match or gap.

    was_match: whether the last part of the piece is a match. is_match: whether a match comes next.
    """
    if stage.behavior == CONTIGUOUS:
        return was_match != is_match
    return is_match and stage.behavior != WITH_PREVIOUS


cdef int do_piece(TokenTable table, Work* w, size_t k, size_t start, size_t end, bint is_match,
                  u64 origin) except -1 nogil:
    if table.tokens().model.stages[k].behavior == (REMOVED if is_match else ONLY):
        return 0
    return do_stages(table, w, k + 1, start, end - start, origin)


cdef int write_letters(Work* w, size_t at, size_t n) except -1 nogil:
    cdef Staged* s = &w.staged
    cdef u8[2] letter
    cdef size_t i, size
    for i in range(at, at + n):
        look_at_staged(w, i)
        size = letter_of(s.bytes[i], letter)
        put_staged(s, letter, size, s.origins[i].start, s.origins[i].end)
    return 0


cdef inline size_t letter_of(u8 byte, u8* letter) noexcept nogil:
    """Write the UTF-8 of a byte's letter; return its size. Invisible bytes have letters from U+0100 on."""
    cdef u32 code = byte
    if byte <= 0x20:
        code = 0x100 + byte
    elif 0x7F <= byte <= 0xA0:
        code = 0x121 + byte - 0x7F
    elif byte == 0xAD:
        code = 0x143
    return st_put_utf8(letter, code)


cdef int write_mark(const Stage* stage, Work* w, size_t at, size_t n) except -1 nogil:
    cdef Staged* s = &w.staged
    cdef size_t i, size = stage.mark_size, first = character_size(s.bytes + at, n)
    cdef bint has_mark = s.bytes[at] == c" " or (n >= size and memcmp(s.bytes + at, stage.mark, size) == 0)
    if stage.puts_mark and not has_mark:        # the origin of the mark is the first character
        put_staged(s, stage.mark, size, s.origins[at].start, s.origins[at + first - 1].end)
    for i in range(at, at + n):
        look_at_staged(w, i)
        if s.bytes[i] == c" ":
            put_staged(s, stage.mark, size, s.origins[i].start, s.origins[i].end)
        else:
            make_staged(s, 1)
            s.bytes[s.size], s.origins[s.size] = s.bytes[i], s.origins[i]
            s.size += 1
    return 0


cdef int put_symbol(Staged* s, u32 number, Origin origin) except -1 nogil:
    cdef u8[SYMBOL_BYTES] out
    st_put_utf8(out, FIRST_SYMBOL + number)
    return put_staged(s, out, SYMBOL_BYTES, origin.start, origin.end)


cdef int write_symbols(const Symbols* y, Work* w, size_t at, size_t n, bint is_begun,
                       bint ends) except -1 nogil:
    """Append the symbols of some characters of a pre-token.

    is_begun: ids of earlier characters were emitted. ends: these characters are the last; otherwise
    symbols that depend on later characters are left out.
    """
    cdef Staged* s = &w.staged
    cdef size_t i = at, end = at + n, size
    cdef u32 node, number
    cdef bint is_first, is_last
    cdef bint has_bytes, is_pending = False      # an unknown symbol, which the next character may extend
    cdef Origin origin, waiting
    while i < end:
        look_at_staged(w, i)
        size = character_size(s.bytes + i, end - i)
        origin.start, origin.end = s.origins[i].start, s.origins[i + size - 1].end
        is_first, is_last = i == at and not is_begun, i + size == end
        if is_last and not ends and y.suffix_size:
            s.left_from = waiting.start if is_pending else origin.start
            return 0
        is_last = is_last and ends
        node = node_after(&y.names, ROOT if is_first else y.inside, s.bytes + i, size)
        if is_last:
            node = node_after(&y.names, node, y.suffix, y.suffix_size)
        number = y.names.values[node] if node != NONE else NONE
        has_bytes = number == NONE and y.byte_symbols != NULL and (
            (is_first or are_symbols(y, y.prefix, y.prefix_size)) and are_symbols(y, s.bytes + i, size)
            and (not is_last or are_symbols(y, y.suffix, y.suffix_size)))
        # An unknown symbol stays pending before a character that becomes its bytes, as in tokenizers.
        if is_pending and not has_bytes and (number != NONE or (not y.fuses and y.unknown != NONE)):
            put_symbol(s, y.unknown, waiting)
            is_pending = False
        if number != NONE:
            put_symbol(s, number, origin)
        elif has_bytes:
            if not is_first:
                put_bytes(y, s, y.prefix, y.prefix_size, origin)
            put_own_bytes(y, s, i, size, origin)
            if is_last:
                put_bytes(y, s, y.suffix, y.suffix_size, origin)
        elif y.unknown != NONE:
            if not is_pending:
                waiting = origin
            waiting.end = origin.end
            is_pending = True
        i += size
    if is_pending and ends:
        put_symbol(s, y.unknown, waiting)
    elif is_pending:
        s.left_from = waiting.start
    return 0


cdef inline u32 node_after(const Trie* t, u32 node, const u8* p, size_t n) noexcept nogil:
    """The node that p[:n] leads to from `node`, or NONE."""
    cdef size_t i = 0
    while i < n and node != NONE:
        node = child_of(t, node, p[i])
        i += 1
    return node


cdef bint are_symbols(const Symbols* y, const u8* p, size_t n) noexcept nogil:
    """Whether all bytes of p[:n] have symbols."""
    cdef size_t i
    for i in range(n):
        if y.byte_symbols[p[i]] == NONE:
            return False
    return True


cdef int put_bytes(const Symbols* y, Staged* s, const u8* p, size_t n, Origin origin) except -1 nogil:
    cdef size_t i
    for i in range(n):
        put_symbol(s, y.byte_symbols[p[i]], origin)
    return 0


cdef int put_own_bytes(const Symbols* y, Staged* s, size_t at, size_t n, Origin origin) except -1 nogil:
    cdef size_t i
    for i in range(at, at + n):             # `s.bytes` may be reallocated
        put_symbol(s, y.byte_symbols[s.bytes[i]], origin)
    return 0


cdef int merge_symbols(TokenTable table, Work* w, size_t at, size_t n, u64 origin) except -1 nogil:
    """Emit the ids of n bytes of symbols at `at`."""
    cdef const Tokens* t = table.tokens()
    cdef size_t count = merge_into(t, &w.merger, &w.scratch, w.staged.bytes + at, n, &w.watch)
    put_tokens(t, w, w.scratch.result, count, at, origin)
    return 0


cdef size_t put_tokens(const Tokens* t, Work* w, const u32* tokens, size_t count, size_t at,
                       u64 origin) except? 0 nogil:
    """Emit the ids of tokens whose symbols begin at `at`; return where the symbols end."""
    cdef const Origin* origins = w.staged.origins
    cdef size_t i, end
    for i in range(count):
        look_at_staged(w, i)
        end = at + token_size(t, tokens[i])
        put_id(w, t.ids[tokens[i]], origin + origins[at].start, origin + origins[end - 1].end)
        at = end
    return at


cdef size_t write_begun(const Model* m, Work* w, const u8* p, size_t n, bint is_begun,
                        bint ends) except? 0 nogil:
    """Run the stages, none of which cuts, on p[:n]; return where its symbols begin. See `write_symbols`."""
    cdef Staged* s = &w.staged
    cdef size_t k, at = 0, made
    begin_staged(w, p, n)
    for k in range(m.n_stages):
        made = s.size
        if m.stages[k].kind == LETTERS:
            write_letters(w, at, made - at)
        else:
            write_symbols(&m.stages[k].symbols, w, at, made - at, is_begun, ends)
        at = made
    return at


cdef bint can_emit_early(const Model* m) noexcept nogil:
    """Whether ids of a pre-token may be emitted before it ends. This requires that each character
    becomes symbols by itself, in order.
    """
    cdef size_t k
    for k in range(m.n_stages):
        if m.stages[k].kind == CUT or m.stages[k].kind == MARK:
            return False
    return m.kind == MERGES and (m.stages[m.n_stages - 1].symbols.byte_symbols == NULL
                                 or m.stages[m.n_stages - 1].symbols.unknown == NONE)


cdef size_t commit_symbols(TokenTable table, Work* w, const u8* p, size_t n, bint is_begun,
                       u64 origin) except? 0 nogil:
    """Emit the ids that are final, whatever follows p[:n]; return the bytes that they cover."""
    cdef const Tokens* t = table.tokens()
    cdef Staged* s = &w.staged
    cdef size_t at = write_begun(t.model, w, p, n, is_begun, False), stable, end
    cdef Py_ssize_t count
    if not is_sorted(t):
        with gil:
            table.prepare_prefixes()
    if s.size == at:
        return 0
    count = stable_tokens(t, &w.merger, &w.scratch, s.bytes + at, s.size - at, &stable)
    end = at + stable
    # Emit all symbols of a character or none.
    while count and (s.origins[end].start if end < s.size else s.left_from) <= s.origins[end - 1].start:
        count -= 1
        end -= token_size(t, w.merger.result[count])
    if count == 0:
        return 0
    put_tokens(t, w, w.merger.result, count, at, origin)
    return s.origins[end - 1].end


cdef int end_symbols(TokenTable table, Work* w, const u8* p, size_t n, u64 origin) except -1 nogil:
    """Emit the ids of p[:n], the rest of a pre-token whose first ids were already emitted."""
    cdef size_t at
    if n == 0:
        return 0
    at = write_begun(table.tokens().model, w, p, n, True, True)
    return merge_symbols(table, w, at, w.staged.size - at, origin)


cdef int put_pieces(const Model* m, Work* w, size_t at, size_t n, u64 origin) except -1 nogil:
    """Emit the ids that a model of pieces finds for a staged pre-token."""
    cdef const Origin* origins = w.staged.origins + at
    cdef IdSpan* id_spans = reserve_ids(w, most_ids(m, n))
    cdef size_t i, count = model_ids(m, w, w.staged.bytes + at, n, w.out + w.count, id_spans)
    if id_spans != NULL:
        for i in range(count):
            id_spans[i].start, id_spans[i].end = origins[id_spans[i].start].start, origins[id_spans[i].end - 1].end
    return keep_ids(w, count, origin)
