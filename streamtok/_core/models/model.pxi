"""Models other than merges of bytes: find the ids of a pre-token by looking up pieces of it.

`encode_pieces` (`models/pretokens.pxi`) runs them on pre-tokens that are not in the cache. Each model
works like the model of the same name in tokenizers 0.23 (github.com/huggingface/tokenizers, Apache-2.0)
or in SentencePiece 0.2 (github.com/google/sentencepiece, Apache-2.0): see `reference/wordpiece.py` and
`reference/unigram.py`.

A pre-token has at most `most_ids` ids: one for each byte, or three for each byte in SentencePiece, where
a space may become the bytes of "▁".
"""

cdef enum:
    LONGEST_PIECE = 1024        # bytes: limits the cost of a search for each byte of a text
    LOOK_PIECES = (1 << 12) - 1 # pieces between two checks for signals, less one
    SHOWN = 60              # the most bytes of a text in a message


cdef inline size_t character_size(const u8* p, size_t n) noexcept nogil:
    """Size of the first character of p[:n]; a byte that is not UTF-8 counts as a character."""
    cdef size_t size, i
    if p[0] < 0xC0:
        return 1
    size = 2 if p[0] < 0xE0 else 3 if p[0] < 0xF0 else 4
    size = size if size < n else n
    for i in range(1, size):
        if p[i] & 0xC0 != 0x80:
            return i
    return size


cdef bint has_more_characters(const u8* p, size_t n, u64 most) noexcept nogil:
    cdef size_t at = 0
    if n <= most:
        return False
    while at < n:
        if most == 0:
            return True
        most -= 1
        at += character_size(p + at, n - at)
    return False


cdef inline void set_id_span(IdSpan* id_spans, size_t i, size_t start, size_t end) noexcept nogil:
    if id_spans != NULL:
        id_spans[i].start, id_spans[i].end = start, end


cdef inline size_t most_ids(const Model* m, size_t n) noexcept nogil:
    """The most ids that a pre-token of n bytes can have."""
    return 3 * n if m.is_sentencepiece and m.byte_ids != NULL else n


cdef int check_unknown(const Model* m, const u8* p, size_t n) except -1 nogil:
    """Raise ValueError if the model has no id for unknown text such as p[:n]."""
    if m.unknown == NONE:
        with gil:
            text = p[:min(n, <size_t>SHOWN)].decode("utf-8", "replace")
            raise ValueError(
                f"{text!r} is not in the vocabulary, which has no token for unknown text: add its "
                "characters, or an unknown token, to the model"
            )
    return 0


cdef size_t one_unknown(const Model* m, const u8* p, size_t n, u32* out, IdSpan* id_spans) except 0 nogil:
    check_unknown(m, p, n)
    out[0] = m.unknown
    set_id_span(id_spans, 0, 0, n)
    return 1


cdef size_t word_piece(const Model* m, Watch* watch, const u8* p, size_t n, u32* out,
                       IdSpan* id_spans) except? 0 nogil:
    """Repeatedly take the longest piece that the rest of the word begins with."""
    cdef const Trie* t = &m.trie
    cdef size_t start = 0, at, end, count = 0
    cdef u32 node = ROOT
    if has_more_characters(p, n, m.most_characters):
        return one_unknown(m, p, n, out, id_spans)
    while start < n:
        at = end = start
        while node != NONE and at < n:
            node = child_of(t, node, p[at])
            at += 1
            if node != NONE and t.values[node] != NONE:
                out[count] = t.values[node]
                end = at
        if end == start:
            return one_unknown(m, p, n, out, id_spans)
        set_id_span(id_spans, count, start, end)
        count += 1
        if count & LOOK_PIECES == 0:
            look(watch)
        start = end
        node = m.inside
    return count


cdef size_t word_level(const Model* m, const u8* p, size_t n, u32* out, IdSpan* id_spans) except? 0 nogil:
    """Look up the whole word."""
    cdef u32 node = node_of(&m.trie, p, n)
    if node == NONE or m.trie.values[node] == NONE:
        return one_unknown(m, p, n, out, id_spans)
    out[0] = m.trie.values[node]
    set_id_span(id_spans, 0, 0, n)
    return 1


MODEL_KINDS = {
    "Merges": MERGES,
    "WordPiece": WORD_PIECE,
    "WordLevel": WORD_LEVEL,
    "Unigram": UNIGRAM,
    "SentencePiece unigram": UNIGRAM,
}


@cython.final
cdef class PieceModel:
    """The tables of a model. Immutable.

    kind: a key of MODEL_KINDS. blob, offsets, ids: the pieces end to end, in byte order, uint32
    offsets [n + 1] and uint32 ids [n]. unknown: the id of text without pieces, which SentencePiece
    needs; 0xFFFFFFFF: there is none, and encoding such text raises ValueError. prefix,
    most_characters: for WordPiece, the prefix of pieces that do not begin a word, and the number of
    characters above which a word is unknown. scores: for Unigram, float64 by id; in SentencePiece, the
    score of `unknown` is that of a character without a piece. byte_ids: for Unigram, uint32 [256], or
    None. stages: applied to each pre-token before the model, see `add_stage`.

    Raises ValueError for an unknown kind, a piece that is too long, or arrays that do not fit together.
    Takes time proportional to the bytes of the pieces.
    """

    def __cinit__(self, str kind not None, bytes blob not None, offsets, ids, u32 unknown, bytes prefix=b"",
                  u64 most_characters=0, scores=None, byte_ids=None, tuple stages not None=()):
        cdef Model* m = &self.c
        cdef ArrayView offset_view = read_array(offsets, UINT32, "offsets")
        cdef ArrayView id_view = read_array(ids, UINT32, "ids")
        cdef ArrayView view
        cdef const u32* bounds = <const u32*>offset_view.data
        cdef u32 i, n = <u32>id_view.size, n_ids = 0
        if kind not in MODEL_KINDS:
            raise ValueError(f"there is no model {kind!r}")
        m.kind = <ModelKind><int>MODEL_KINDS[kind]
        m.is_sentencepiece = kind == "SentencePiece unigram"
        check_pieces(blob, offset_view, id_view)
        for i in range(n):
            m.longest = max(m.longest, bounds[i + 1] - bounds[i])
            if bounds[i + 1] - bounds[i] > LONGEST_PIECE and looks_for_pieces(m):
                raise ValueError(
                    f"a piece of {kind} has at most {<int>LONGEST_PIECE} bytes: "
                    f"{blob[bounds[i]:bounds[i] + 40].decode('utf-8', 'replace')!r}… has "
                    f"{bounds[i + 1] - bounds[i]}"
                )
            n_ids = max(n_ids, (<const u32*>id_view.data)[i] + 1)
        self._owners = []
        self.max_id = max(unknown if unknown != NONE else 0, n_ids - 1 if n_ids else 0)
        if unknown == NONE and m.is_sentencepiece:
            raise ValueError(f"{kind} needs an id for unknown characters")
        m.unknown, m.most_characters = unknown, most_characters
        if m.kind == UNIGRAM:
            view = read_array(scores, FLOAT64, "scores")
            self._owners.append(view)
            m.scores = <const double*>view.data
            m.n_scores = <u32>view.size
            if view.size < n_ids or (unknown >= view.size and unknown != NONE):
                raise ValueError(f"there are {view.size} scores for ids up to {self.max_id}")
            if m.is_sentencepiece:
                m.unknown_score = m.scores[unknown]
            else:
                for i in range(m.n_scores):
                    if i == 0 or m.scores[i] < m.unknown_score:
                        m.unknown_score = m.scores[i]
                m.unknown_score -= UNKNOWN_PENALTY
        if byte_ids is not None:
            view = read_array(byte_ids, UINT32, "byte_ids")
            self._owners.append(view)
            if view.size != 256:
                raise ValueError(f"there are ids for {view.size} bytes, not for 256")
            m.byte_ids = <const u32*>view.data
            for i in range(256):
                if m.is_sentencepiece and m.byte_ids[i] == NONE:
                    raise ValueError(f"byte {i} has no id")
                self.max_id = max(self.max_id, m.byte_ids[i] if m.byte_ids[i] != NONE else 0)
        trie_open(&m.trie, <const u8*><const char*>blob, bounds, <const u32*>id_view.data, n)
        m.inside = node_of(&m.trie, <const u8*><const char*>prefix, len(prefix))
        if stages:
            m.stages = self.stages = <Stage*>zeros_for(len(stages), sizeof(Stage), b"stages of a model")
        for kind, *settings in stages:
            m.n_stages += 1
            self._owners += add_stage(&self.stages[m.n_stages - 1], kind, settings)

    def __dealloc__(self):
        cdef size_t i
        trie_close(&self.c.trie)
        for i in range(self.c.n_stages):
            trie_close(&self.stages[i].symbols.names)
        free(self.stages)


cdef bint looks_for_pieces(const Model* m) noexcept nogil:
    """Whether a search for pieces may begin at any byte of a text, not only at the start of a word."""
    return m.kind == WORD_PIECE or m.kind == UNIGRAM


cdef int check_pieces(bytes blob, ArrayView offsets, ArrayView ids) except -1:
    """Raise ValueError unless the pieces are in byte order and each has an id."""
    cdef const u32* bounds = <const u32*>offsets.data
    cdef size_t i
    if ids.size >= NONE or offsets.size != ids.size + 1 or bounds[0] != 0:
        raise ValueError("a model needs one more offset than ids, the first of them 0")
    for i in range(ids.size):
        if bounds[i] > bounds[i + 1] or bounds[i + 1] > <size_t>len(blob):
            raise ValueError("the offsets do not fit the pieces")
        if i and not st_comes_before(<const u8*><const char*>blob, bounds, <u32>(i - 1), <u32>i):
            raise ValueError("the pieces are not in order of their bytes")
        if (<const u32*>ids.data)[i] == NONE:
            raise ValueError(f"piece {i} has no id")
    if bounds[ids.size] != <size_t>len(blob):
        raise ValueError("the offsets do not fit the pieces")
    return 0
