"""Encodes many texts on several threads into lists of ids, mostly without the GIL.

A thread takes a run of neighbouring texts; all runs have about the same size. It opens the texts of
a run with the GIL, encodes them without it, and makes their lists with it.

The garbage collector tracks the new lists only when all are done. Otherwise Python would collect
after every 700 lists and visit each of their items several times: a fifth of the time of a batch.
"""

cdef enum:
    RUN_TEXTS = 1024        # most texts of a run
    SMALLEST_RUN = 1 << 14  # characters or bytes
    LARGEST_RUN = 1 << 18   # so that ids stay in the cache until they are in lists
    RUNS_LEFT = 4           # for each thread, so that a slow one is made up for by the others
    LOOK_BYTES = 1 << 14    # or characters between two looks at signals


cdef extern from "Python.h":
    bint PyObject_GC_IsTracked(object value)


cdef struct Run:
    size_t first                    # of its texts
    size_t count
    Source[RUN_TEXTS] sources
    size_t[RUN_TEXTS + 1] ends      # of each text's ids
    bint[RUN_TEXTS] is_refused      # left to `Encoder.encode`


@cython.final
cdef class Batch:
    """The lists of ids of many texts: `work`, from any number of threads, and then `lists`.

    Nothing of Python's is called while the lock is held: what has to be asked of a text is asked
    when the batch is made.
    """

    cdef Encoder encoder
    cdef SpecialMatcher matcher
    cdef str errors
    cdef list texts, results
    cdef size_t n_texts, n_threads, limit
    cdef size_t* sizes          # [n_texts] characters or bytes
    cdef readonly size_t size   # characters or bytes of all texts together, but the large ones
    cdef readonly list large    # numbers of the texts that are left out
    cdef size_t taken, taken_size       # texts that threads have taken, and their size
    cdef bint is_stopped
    cdef PyThread_type_lock lock

    def __cinit__(self, Encoder encoder not None, SpecialMatcher matcher not None, list texts not None,
                  str errors not None, size_t limit):
        """limit: characters or bytes from which a text is left out."""
        cdef size_t i, size
        self.lock = PyThread_allocate_lock()
        if self.lock == NULL:
            raise MemoryError("no lock")
        need_scanner(encoder)
        self.encoder = encoder
        self.matcher = matcher
        self.errors = errors
        self.texts = list(texts)
        self.n_texts = len(self.texts)
        self.results = [None] * self.n_texts
        self.n_threads = 1
        self.limit = limit
        self.large = []
        self.sizes = <size_t*>malloc((self.n_texts + 1) * sizeof(size_t))
        if self.sizes == NULL:
            raise MemoryError(f"no memory for {self.n_texts} texts")
        for i in range(self.n_texts):
            size = source_size(self.texts[i])
            self.sizes[i] = size
            if size < limit:
                self.size += size
            else:
                self.large.append(i)

    def __dealloc__(self):
        free(self.sizes)
        if self.lock != NULL:
            PyThread_free_lock(self.lock)

    def share(self, size_t n_threads):
        """How many threads there will be."""
        self.n_threads = max(n_threads, <size_t>1)

    def stop(self):
        """Let no thread take any more texts."""
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        self.is_stopped = True
        PyThread_release_lock(self.lock)

    def work(self):
        """Encode texts until all are taken."""
        cdef Workspace workspace = self.encoder.take()
        cdef Run* run = <Run*>calloc(1, sizeof(Run))
        try:
            if run == NULL:
                raise MemoryError("no memory for a run of texts")
            while self.take(run):
                PyErr_CheckSignals()
                with nogil:
                    workspace.c.count = 0
                    self.encode_run(run, &workspace.c)
                self.make(run, &workspace.c)
        finally:
            if run != NULL:
                self.close(run)
            free(run)
            self.encoder.give(workspace)

    def lists(self):
        """list[list[int] | None]: None for texts that `Encoder.encode` must be asked for."""
        results, self.results = self.results, []
        for made in results:
            if made is not None and not PyObject_GC_IsTracked(made):
                PyObject_GC_Track(made)
        return results

    cdef bint take(self, Run* run):
        """Open the texts of the next run; whether there are any."""
        cdef size_t wanted, size = 0, at, i
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        wanted = (self.size - self.taken_size) // (self.n_threads * RUNS_LEFT)
        wanted = min(max(wanted, <size_t>SMALLEST_RUN), <size_t>LARGEST_RUN)
        run.first = at = self.taken
        while not self.is_stopped and at < self.n_texts and at - run.first < RUN_TEXTS and size < wanted:
            size += self.sizes[at] if self.sizes[at] < self.limit else 0
            at += 1
        run.count = at - run.first
        self.taken += run.count
        self.taken_size += size
        PyThread_release_lock(self.lock)
        for i in range(run.count):
            run.is_refused[i] = True
            if self.sizes[run.first + i] < self.limit:
                run.is_refused[i] = not source_open(&run.sources[i], self.texts[run.first + i],
                                                self.errors)
        return run.count != 0

    cdef void close(self, Run* run) noexcept:
        cdef size_t i
        for i in range(run.count):
            source_close(&run.sources[i])

    cdef int encode_run(self, Run* run, Work* w) except -1 nogil:
        cdef size_t i, total, before, size, unseen = 0
        cdef const u8* p
        cdef Found refused
        for i in range(run.count):
            before = w.count
            unseen += run.sources[i].size
            if unseen > LOOK_BYTES:
                unseen = 0
                look(&w.watch)
            if not run.is_refused[i]:
                refused.kind = PARTIAL
                p = source_utf8(&run.sources[i], &w.room, 0, run.sources[i].size, &size)
                if p != NULL:
                    encode_whole(self.encoder, w, self.matcher, p, size, False, &total, &refused)
                if p == NULL or refused.kind == DISALLOWED:
                    run.is_refused[i] = True
                    w.count = before
            run.ends[i + 1] = w.count
        return 0

    cdef int make(self, Run* run, Work* w) except -1:
        """Make the lists of a run."""
        cdef size_t i
        cdef list made
        for i in range(run.count):
            source_close(&run.sources[i])
            if not run.is_refused[i]:
                made = ids_to_list(self.encoder.table, w.out + run.ends[i], run.ends[i + 1] - run.ends[i])
                PyObject_GC_UnTrack(made)
                self.results[run.first + i] = made
        return 0


def encode_documents(Encoder encoder not None, SpecialMatcher matcher not None, list texts not None,
                     str errors not None, i64 prepend, i64 append):
    """(numpy.uint32 [n], ends, bytes) of many texts in a row, almost all without the GIL.

    ends: list[int], the places at which they end; bytes: of UTF-8 in all. prepend, append: ids
    around each, or -1. None where one of the texts must be left to a stream.
    """
    cdef size_t n = len(texts), i, size, total, bytes = 0, looked = 0
    cdef Source* sources = <Source*>calloc(n + 1, sizeof(Source))
    cdef size_t* ends = <size_t*>malloc((n + 1) * sizeof(size_t))
    cdef Workspace workspace = encoder.take()
    cdef Work* w = &workspace.c
    cdef const u8* p
    cdef Found refused
    cdef bint is_refused = False
    try:
        if sources == NULL or ends == NULL:
            raise MemoryError(f"no memory for {n} texts")
        total = 0
        for i in range(n):
            if not source_open(&sources[i], texts[i], errors):
                return None
            total += sources[i].size
        foresee(encoder._spares, w, total // 3)
        with nogil:
            for i in range(n):
                refused.kind = PARTIAL
                if bytes - looked > LOOK_BYTES:
                    looked = bytes
                    look(&w.watch)
                p = source_utf8(&sources[i], &w.room, 0, sources[i].size, &size)
                if p != NULL:
                    if prepend >= 0:
                        put(w, <u32>prepend)
                    encode_whole(encoder, w, matcher, p, size, False, &total, &refused)
                    if append >= 0:
                        put(w, <u32>append)
                if p == NULL or refused.kind == DISALLOWED:
                    is_refused = True
                    break
                bytes += size
                ends[i] = w.count
        if is_refused:
            return None
        places = [ends[i] for i in range(n)]
        return ids_to_array(encoder._spares, w), places, bytes
    finally:
        if sources != NULL:
            for i in range(n):
                source_close(&sources[i])
        free(sources)
        free(ends)
        encoder.give(workspace)


cdef int put(Work* w, u32 one) except -1 nogil:
    reserve(w, 1)
    w.out[w.count] = one
    w.count += 1
    return 0
