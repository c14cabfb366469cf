"""Finds special tokens in bytes, as tiktoken's two regular expressions do in a whole text.

tiktoken first refuses the text if a disallowed string occurs anywhere in it. Then it looks for the
leftmost place where any special token matches; where several do, the first in its order is taken;
if that one is not allowed, the search goes on one byte later. Here one trie holds both sets, so
that a stream can see, too, where a string may begin whose end has not arrived.
"""

cdef enum Finding:
    NOTHING         # no special token begins before the end of the bytes
    PARTIAL         # one may begin at `start`: the bytes end too early to tell
    ALLOWED         # buffer[start:end] is the special token `which`
    DISALLOWED      # buffer[start:end] is text that must not be there


cdef struct Found:
    Finding kind
    size_t start
    size_t end
    i32 which


cdef struct TrieNode:
    u8 byte
    bint is_disallowed
    i32 which           # number of the special token that ends here, or -1
    i32 child           # first of the nodes below, or -1
    i32 sibling         # next node below the same parent, or -1


@cython.final
cdef class SpecialMatcher:
    """`specials`: (text, id) in order of preference; `allowed`, `disallowed`: sets of strings.

    Immutable. Strings are compared as UTF-8.
    """

    cdef readonly tuple specials        # the strings that may match, in order of preference
    cdef readonly object allowed
    cdef list _nodes
    cdef TrieNode* nodes
    cdef u8* is_allowed
    cdef u32* ids
    cdef i32[256] roots
    cdef int single                     # the one byte that all begin with, or -1
    cdef int second                     # the one that follows it in all of them, or -1
    cdef bint both                      # whether there are allowed and disallowed ones
    cdef readonly bint is_empty
    cdef size_t longest                 # bytes of the longest string

    def __cinit__(self, specials, allowed, disallowed):
        cdef i32 i
        # Only what can be taken or refused matters, but a special token that is preferred to an
        # allowed one hides it.
        wanted = list(specials) if any(text in allowed for text, _ in specials) else []
        self.specials = tuple(text for text, _ in wanted)
        self.allowed = frozenset(allowed)
        self.both = bool(wanted) and bool(disallowed)
        self.is_empty = not wanted and not disallowed
        self.ids = <u32*>malloc((len(wanted) + 1) * sizeof(u32))
        self.is_allowed = <u8*>malloc(len(wanted) + 1)
        if self.ids == NULL or self.is_allowed == NULL:
            raise MemoryError("no memory for the special tokens")
        root: dict = {}
        for i, (text, token) in enumerate(wanted):
            self.ids[i] = token
            self.is_allowed[i] = text in allowed
            plant(root, text)["which"] = i
        for text in disallowed:
            plant(root, text)["disallowed"] = True
        self.longest = max([len(text.encode("utf-8")) for text in (*self.specials, *disallowed)],
                           default=0)
        flat: list = []
        for i in range(256):
            self.roots[i] = flatten(root[i], i, -1, flat) if i in root else -1
        self.single = next(iter(root)) if len(root) == 1 else -1
        self.second = -1
        for below in root.values():
            letters = [key for key in below if isinstance(key, int)]
            if self.single >= 0 and len(letters) == len(below) == 1:
                self.second = letters[0]
        self.nodes = <TrieNode*>malloc((len(flat) + 1) * sizeof(TrieNode))
        if self.nodes == NULL:
            raise MemoryError("no memory for the special tokens")
        for i, (byte, is_disallowed, which, child, sibling) in enumerate(flat):
            self.nodes[i].byte = byte
            self.nodes[i].is_disallowed = is_disallowed
            self.nodes[i].which = which
            self.nodes[i].child = child
            self.nodes[i].sibling = sibling

    def __dealloc__(self):
        free(self.nodes)
        free(self.ids)
        free(self.is_allowed)

    @property
    def reach(self):
        """Bytes of the longest string that may match."""
        return self.longest

    def split(self, bytes data):
        """list of (start, end, token): segments in order, with token -1, and special tokens.

        token None: a disallowed string stands there; nothing follows.
        """
        cdef const u8* p = <const u8*><const char*>data
        cdef size_t begin = 0, end = len(data)
        cdef Found found
        result = []
        while True:
            found = self.find(p, begin, end, True)
            if found.kind == DISALLOWED:
                return [(found.start, found.end, None)]
            result.append((begin, found.start, -1))
            if found.kind != ALLOWED:
                return result
            result.append((found.start, found.end, self.ids[found.which]))
            begin = found.end

    cdef Found find(self, const u8* p, size_t start, size_t end, bint final) noexcept nogil:
        """The first thing of note in p[start:end]; with `final`, nothing can follow."""
        cdef Found found, inner
        cdef const u8* hit
        cdef size_t i = start
        found.kind = NOTHING
        found.start = found.end = end
        found.which = -1
        if self.is_empty:
            return found
        while i < end:
            if self.second >= 0:
                i += strategy.find_pair(p + i, end - i, <u8>self.single, <u8>self.second)
                if i == end:
                    break
            elif self.single >= 0:
                hit = <const u8*>memchr(p + i, self.single, end - i)
                if hit == NULL:
                    break
                i = hit - p
            elif self.roots[p[i]] < 0:
                i += 1
                continue
            inner = match_at(self, p, i, end, final)
            if inner.kind != NOTHING:
                found = inner
                break
            i += 1
        return found

    cdef bint crosses(self, const u8* p, size_t place, size_t end) noexcept nogil:
        """Whether any of the strings begins before `place` and ends after it, in p[:end]."""
        cdef size_t first = place - self.longest + 1 if place >= self.longest else 0
        cdef size_t i, at
        cdef i32 node
        for i in range(first, place):
            node = self.roots[p[i]]
            at = i + 1
            while node >= 0:
                if at > place and (self.nodes[node].is_disallowed or self.nodes[node].which >= 0):
                    return True
                if at == end:
                    break
                node = self.nodes[node].child
                while node >= 0 and self.nodes[node].byte != p[at]:
                    node = self.nodes[node].sibling
                at += 1
        return False


cdef Found match_at(SpecialMatcher m, const u8* p, size_t start, size_t end,
                    bint final) noexcept nogil:
    cdef Found found, inner
    cdef i32 node = m.roots[p[start]], child
    cdef size_t i = start, refused = 0, best = 0
    cdef i32 which = -1
    found.kind = NOTHING
    found.start = start
    found.end = start
    found.which = -1
    while node >= 0:
        i += 1
        if m.nodes[node].is_disallowed:
            refused = i
        if m.nodes[node].which >= 0 and (which < 0 or m.nodes[node].which < which):
            which = m.nodes[node].which
            best = i
        child = m.nodes[node].child
        if i == end:
            if child >= 0 and not final and refused == 0:
                found.kind = PARTIAL
                found.end = end
                return found
            break
        while child >= 0 and m.nodes[child].byte != p[i]:
            child = m.nodes[child].sibling
        node = child
    if refused:
        found.kind = DISALLOWED
        found.end = refused
        return found
    if which < 0 or not m.is_allowed[which]:
        return found
    if m.both:
        # A disallowed string that begins inside the special token refuses the text all the same.
        for i in range(start + 1, best):
            inner = refused_at(m, p, i, end, final)
            if inner.kind == DISALLOWED:
                return inner
            if inner.kind == PARTIAL:
                found.kind = PARTIAL
                found.end = end
                return found
    found.kind = ALLOWED
    found.end = best
    found.which = which
    return found


cdef Found refused_at(SpecialMatcher m, const u8* p, size_t start, size_t end,
                      bint final) noexcept nogil:
    cdef Found found
    cdef i32 node = m.roots[p[start]], child
    cdef size_t i = start
    found.kind = NOTHING
    found.start = start
    found.end = start
    found.which = -1
    while node >= 0:
        i += 1
        if m.nodes[node].is_disallowed:
            found.kind = DISALLOWED
            found.end = i
        child = m.nodes[node].child
        if i == end:
            if child >= 0 and not final and found.kind == NOTHING:
                found.kind = PARTIAL
            break
        while child >= 0 and m.nodes[child].byte != p[i]:
            child = m.nodes[child].sibling
        node = child
    return found


def plant(root: dict, text: str) -> dict:
    """The node of `text` in the trie of dicts below `root`, made where it is missing."""
    node = root
    for byte in text.encode("utf-8"):
        node = node.setdefault(byte, {})
    return node


def flatten(root: dict, byte: int, sibling: int, flat: list) -> int:
    """Append the node and all below it to `flat`, children first; returns its place."""
    waiting = [(root, byte, False)]
    places: dict = {}           # id of a node -> its place
    while waiting:
        node, byte, is_ready = waiting.pop()
        below = [key for key in node if isinstance(key, int)]
        if not is_ready:
            waiting.append((node, byte, True))
            waiting.extend((node[key], key, False) for key in below)
            continue
        child = -1
        for key in below:
            place = places.pop(id(node[key]))
            flat[place][4] = child
            child = place
        flat.append([byte, node.get("disallowed", False), node.get("which", -1), child, -1])
        places[id(node)] = len(flat) - 1
    place = len(flat) - 1
    flat[place][4] = sibling
    return place
