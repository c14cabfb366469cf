"""A work list of whole texts, which any number of threads encode, mostly without the GIL.

The list has *pieces*: each is a text, or a part of one large text between two clean cuts. A thread takes a
*run* of neighbouring pieces. The runs have about the same size, except that the last ones are smaller, so
that other threads can make up for a slow one. The thread opens the texts of a run with the GIL, and encodes
them without it into its own workspace, which stays in its processor's cache. Unusual text (bytes or
characters that must be repaired) is encoded with the GIL when its turn comes.

The output is in the order of the texts, whichever thread encoded them. `lists` returns a list of ids for
each text, made by the thread that has the ids in its cache; `flat` returns all ids in one array. For the
array, a run's ids are copied into the result once the number of ids before them is known; until then they
are kept with the run. The result is a reusable block for the expected number of ids. Ids that do not fit
into it are copied at the end.

If encoding a text raises an error, the whole list raises it in the end. If several texts fail, the error of
the first one counts, as if the texts were encoded one after the other. So after an error no further run is
taken, but all runs already taken are finished.

The garbage collector tracks the new lists only once all of them are done. Otherwise Python would collect
after every 700 lists and visit each of their items several times, which takes a fifth of the time of a
batch.
"""

cdef enum:
    RUN_PIECES = 1024       # most pieces of a run
    SMALL_RUNS = 16         # this many of the smallest runs are as large as the largest one
    RUNS_LEFT = 4           # runs for each thread that the rest of the pieces is divided into
    LOOK_BYTES = 1 << 14    # bytes or characters between two checks for signals
    FORESEEN = 1 << 13      # least number of ids for which `foresee` reserves memory
    UNITS_PER_ID = 3        # expected bytes or characters for each id; with fewer, some runs are copied at the end


cdef extern from "Python.h":
    bint PyObject_GC_IsTracked(object value)


cdef struct RunIds:
    size_t first            # index of its first piece
    size_t start            # where its ids belong, once it is settled
    size_t count            # number of its ids
    u32* ids                # ids that have not been copied yet, or NULL
    bint is_done


cdef struct RunSources:     # open texts of a thread's run
    size_t n
    Source[RUN_PIECES] sources
    bint[RUN_PIECES] is_open


@cython.final
cdef class WorkList:
    """Texts to encode. Threads call `work`; once all have returned, the list has the result."""

    cdef Encoder encoder
    cdef ChangeRules rules
    cdef str errors
    cdef Form form
    cdef list texts, results
    cdef i64 before, after      # ids to put around each text, or -1
    cdef Source source          # the text, if there is one that is cut
    cdef bint is_cut, is_ordered
    cdef readonly size_t n_threads      # the number of threads that there is enough work for
    cdef readonly size_t n_pieces
    cdef readonly size_t n_runs
    cdef size_t* offsets         # [n_pieces + 1] start of each piece, in characters or bytes
    cdef size_t* ends           # [n_pieces + 1] where the ids of each piece end, within the run
    cdef RunIds* runs           # [n_runs + 1]
    cdef size_t taken           # runs that threads have taken
    cdef size_t settled         # runs whose `start` is known,
    cdef size_t n_ids           # and the number of their ids
    cdef size_t n_done          # finished runs
    cdef Work ids               # the result: only out, count and capacity are used
    cdef size_t bytes           # size of all texts in UTF-8
    cdef bint is_stopped, has_failed, is_given
    cdef object error           # error of the first text that failed,
    cdef size_t failed          # and the index of its piece
    cdef PyThread_type_lock lock

    def __cinit__(self, Encoder encoder not None, ChangeRules rules not None, list texts not None,
                  str errors not None, Output output not None, size_t n_threads, sizes, Cuts cuts=None,
                  i64 before=-1, i64 after=-1):
        """output: LIST, ARRAY or COUNT. n_threads: the maximum number of threads. sizes: (size of the
        largest runs, size that is worth one more thread), in characters or bytes. cuts: given for a single
        text, which is then cut into runs. before, after: ids to put around those of each text, or -1 for
        none.
        """
        cdef size_t largest, pays, i
        largest, pays = sizes
        if output.form > AS_COUNT or (output.form == AS_COUNT and cuts is None):
            raise ValueError("expected LIST, ARRAY, or COUNT of one text")
        need_scanner(encoder)
        if largest == 0 or pays == 0:
            raise ValueError("sizes must be positive")
        self.lock = PyThread_allocate_lock()
        if self.lock == NULL:
            raise MemoryError("no lock")
        self.encoder, self.rules, self.errors = encoder, rules, errors
        self.texts, self.form, self.before, self.after = list(texts), output.form, before, after
        self.n_pieces = len(self.texts)
        if cuts is not None:
            self.cut(cuts, largest)
        else:
            self.offsets = <size_t*>memory_for(self.n_pieces + 1, sizeof(size_t), b"texts")
            self.offsets[0] = 0
            for i in range(self.n_pieces):
                self.offsets[i + 1] = self.offsets[i] + source_size(self.texts[i])
        self.ends = <size_t*>zeros_for(self.n_pieces + 1, sizeof(size_t), b"texts")
        self.n_threads = max(min(n_threads, self.offsets[self.n_pieces] // pays), <size_t>1)
        self.make_runs(largest)
        self.is_ordered = self.form == AS_ARRAY or (self.is_cut and self.form == AS_LIST)
        if self.is_ordered:
            foresee(encoder._spares, &self.ids, max(self.offsets[self.n_pieces] // UNITS_PER_ID, <size_t>FORESEEN))
        elif self.form == AS_LIST:
            self.results = [None] * self.n_pieces

    cdef int cut(self, Cuts cuts, size_t size) except -1:
        """Cut the one text into pieces of about `size` characters or bytes."""
        cdef Watch watch
        cdef size_t most, cut, stop, i
        watch.looked = 0
        if self.n_pieces != 1 or self.before >= 0 or self.after >= 0:
            raise ValueError("only one text is cut, and nothing is put around it")
        self.n_pieces = 0
        self.is_cut = source_open(&self.source, self.texts[0], self.errors)
        if not self.is_cut:
            raise TypeError(f"text must be str or bytes-like, not {type(self.texts[0]).__name__}")
        stop = self.source.size
        most = stop // size + 1
        self.offsets = <size_t*>memory_for(most + 1, sizeof(size_t), b"pieces of a text")
        with nogil:
            self.offsets[0] = 0
            self.n_pieces = 1
            for i in range(1, most):
                if i * size <= self.offsets[self.n_pieces - 1]:
                    continue
                cut = i * size
                while True:
                    cut = cuts.next(&self.source, self.rules.first_tokens.matcher, &watch, cut, stop)
                    if cut == stop or is_cut_in_changed(self.rules, &self.source, &watch, cut):
                        break
                    cut += 1
                if cut == stop:
                    break
                self.offsets[self.n_pieces] = cut
                self.n_pieces += 1
            self.offsets[self.n_pieces] = stop
        return 0

    cdef int make_runs(self, size_t largest) except -1:
        cdef size_t at = 0, begin, wanted, capacity = 0, smallest = max(largest // SMALL_RUNS, <size_t>1)
        while True:
            if self.n_runs + 1 >= capacity:
                self.runs = <RunIds*>grown(self.runs, &capacity, self.n_runs + 2, sizeof(RunIds), b"runs of texts")
            memset(&self.runs[self.n_runs], 0, sizeof(RunIds))
            self.runs[self.n_runs].first = begin = at
            if at == self.n_pieces:
                return 0
            self.n_runs += 1
            wanted = (self.offsets[self.n_pieces] - self.offsets[at]) // (self.n_threads * RUNS_LEFT)
            wanted = self.offsets[at] + min(max(wanted, smallest), largest)
            at += 1
            if not self.is_cut:
                while at < self.n_pieces and at - begin < RUN_PIECES and self.offsets[at] < wanted:
                    at += 1

    def __dealloc__(self):
        cdef size_t i
        if self.is_cut:
            source_close(&self.source)
        if self.runs != NULL:
            for i in range(self.n_runs):
                free(self.runs[i].ids)
        free(self.runs)
        free(self.offsets)
        free(self.ends)
        free(self.ids.out)      # not to the spares: the collector may have freed the encoder already
        if self.lock != NULL:
            PyThread_free_lock(self.lock)

    def work(self):
        """Encode runs until all are taken."""
        cdef Workspace workspace = self.encoder.take()
        cdef RunSources* open = NULL
        cdef size_t k
        enter_rules(self.rules)
        try:
            open = <RunSources*>memory_for(1, sizeof(RunSources), b"run of texts")
            while True:
                k = self.next_run()
                if k == self.n_runs or not self.encode_run(k, &workspace.c, open):
                    break
        finally:
            leave_rules(self.rules)
            free(open)
            self.encoder.give(workspace)

    def stop(self):
        """Keep threads from taking another run."""
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        self.is_stopped = True
        PyThread_release_lock(self.lock)

    cdef size_t next_run(self) noexcept:
        """The next run to encode, or n_runs if none is left."""
        cdef size_t k
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        k = self.n_runs if self.is_stopped else self.taken
        if k < self.n_runs:
            self.taken += 1
        PyThread_release_lock(self.lock)
        return k

    cdef bint encode_run(self, size_t k, Work* w, RunSources* open) except -1:
        """Encode run `k`. Returns False if one of its texts cannot be encoded; no other run should then be
        taken.
        """
        cdef size_t first = self.runs[k].first, stop = self.runs[k + 1].first, at = first, total, counted = 0, i
        cdef size_t bytes = 0
        PyErr_CheckSignals()
        w.count = 0
        try:
            try:
                open.n = 0
                if not self.is_cut:
                    for i in range(stop - first):
                        open.is_open[i] = source_open(&open.sources[i], self.texts[first + i], self.errors)
                        open.n += 1
                while True:
                    with nogil:
                        self.encode_pieces(w, open, first, stop, &at, &counted, &bytes)
                    if at == stop:
                        break
                    if self.is_cut:         # offsets are those of the whole text: see `result`
                        return self.fail(at, None)
                    put_around(w, self.before)
                    i = w.count
                    encode_object(self.encoder, w, self.rules, self.texts[at], self.errors, False, &total)
                    put_around(w, self.after)
                    self.ends[at] = w.count
                    bytes += input_size(self.texts[at])
                    at += 1
            finally:
                for i in range(open.n):
                    if open.is_open[i]:
                        source_close(&open.sources[i])
            if self.results is not None:
                self.make_lists(w, first, stop)
        except Exception as error:
            return self.fail(at, error)
        with nogil:
            self.settle(k, w, counted, bytes)
        return True

    cdef int encode_pieces(self, Work* w, RunSources* open, size_t first, size_t stop, size_t* at, size_t* counted,
                           size_t* bytes) except -1 nogil:
        """Encode the pieces from `at` on, up to the first that is unusual or raises an error."""
        cdef size_t i, start, end, size, total, unseen = 0
        cdef Source* source = &self.source
        cdef const u8* p
        while at[0] < stop:
            i = at[0]
            start, end = self.offsets[i], self.offsets[i + 1]
            if not self.is_cut:
                source = &open.sources[i - first]
                if not open.is_open[i - first]:
                    return 0
                start, end = 0, source.size
            unseen += end - start
            if unseen > LOOK_BYTES:
                unseen = 0
                look(&w.watch)
            p = source_utf8(source, &w.buffer, start, end, &size)
            if p == NULL:
                return 0
            put_around(w, self.before)
            encode_whole(self.encoder, w, self.rules, p, size, size, source.is_ascii, self.form == AS_COUNT,
                         &total)
            put_around(w, self.after)
            if self.form == AS_COUNT:
                counted[0] += total
                w.count = 0
            self.ends[i] = w.count
            bytes[0] += size
            at[0] += 1
        return 0

    cdef bint fail(self, size_t i, object error):
        """Record that piece `i` raises `error`. Returns False."""
        with cython.critical_section(self):
            if not self.has_failed or i < self.failed:
                self.has_failed, self.failed, self.error = True, i, error
        self.stop()
        return False

    cdef int make_lists(self, Work* w, size_t first, size_t stop) except -1:
        cdef size_t i, begin = 0
        cdef list made
        for i in range(first, stop):
            made = ids_to_list(self.encoder.table, w.out + begin, self.ends[i] - begin)
            PyObject_GC_UnTrack(made)
            self.results[i] = made
            begin = self.ends[i]
        return 0

    cdef int settle(self, size_t k, Work* w, size_t counted, size_t bytes) except -1 nogil:
        """Copy the ids of a run to where they belong, or keep them for now. Then copy those of later runs
        whose position has become known.
        """
        cdef size_t i, first, last, capacity = w.capacity
        cdef RunIds* run = &self.runs[k]
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        self.bytes += bytes
        self.n_done += 1
        run.count = w.count if self.is_ordered else counted
        run.is_done = True
        first = self.settled
        while self.settled < self.n_runs and self.runs[self.settled].is_done:
            self.runs[self.settled].start = self.n_ids
            self.n_ids += self.runs[self.settled].count
            self.settled += 1
        last = self.settled
        if self.is_ordered and (k >= last or not self.has_capacity(run)):
            run.ids = w.out
            w.out = NULL
            w.capacity = w.count = 0
        PyThread_release_lock(self.lock)
        if w.out == NULL:           # the next run needs about as much
            w.out = <u32*>malloc(capacity * sizeof(u32))
            w.capacity = capacity if w.out != NULL else 0
        if self.is_ordered:
            for i in range(first, last):
                self.copy_ids(&self.runs[i], w.out)
        return 0

    cdef bint has_capacity(self, const RunIds* run) noexcept nogil:
        return run.start + run.count <= self.ids.capacity

    cdef void copy_ids(self, RunIds* run, u32* ids) noexcept nogil:
        """Copy a run's ids to their position, if there is capacity. They are the ids kept with the run, or
        else `ids`.
        """
        if not self.has_capacity(run) or run.count == 0:
            return
        memcpy(self.ids.out + run.start, run.ids if run.ids != NULL else ids, run.count * sizeof(u32))
        free(run.ids)
        run.ids = NULL

    cdef int join(self) except -1:
        """Copy the ids of all runs whose ids have not been copied yet."""
        cdef size_t k
        reserve(&self.ids, self.n_ids)
        with nogil:
            for k in range(self.n_runs):
                if self.runs[k].ids != NULL:
                    self.copy_ids(&self.runs[k], NULL)
        self.ids.count = self.n_ids
        return 0

    cdef int check(self, bint is_right) except -1:
        """Raise the error of the first text that failed, if any. is_right: whether the list was made for
        this result.
        """
        if self.error is not None:
            raise self.error
        if not is_right or self.is_given:
            raise ValueError("the list was made for another kind of result, or has returned it already")
        if self.n_done < self.n_runs:
            raise ValueError("the list is not done: call work, and do not call stop")
        self.is_given = True
        return 0

    def lists(self):
        """list[list[int]]: the ids of each text."""
        self.check(self.results is not None)
        for made in self.results:
            if not PyObject_GC_IsTracked(made):
                PyObject_GC_Track(made)
        return self.results

    def flat(self):
        """(numpy.uint32 [n], int64 [texts], int): the ids of all texts, the positions where those of each
        text end, and the size of all texts in UTF-8.
        """
        cdef size_t i, k
        cdef i64* offsets
        self.check(self.form == AS_ARRAY and not self.is_cut)
        ends = np.empty(self.n_pieces, np.int64)
        offsets = <i64*>array_memory(ends, INT64)
        for k in range(self.n_runs):
            for i in range(self.runs[k].first, self.runs[k + 1].first):
                offsets[i] = <i64>(self.runs[k].start + self.ends[i])
        self.join()
        return ids_to_array(self.encoder._spares, &self.ids), ends, self.bytes

    def result(self):
        """What `Encoder.encode` returns for the one text."""
        if self.has_failed:         # encoding the whole text repairs it, or raises with its own offsets
            return self.encoder.encode(self.texts[0], self.rules, self.errors, outputs[<int>self.form])
        self.check(self.is_cut)
        if self.form == AS_COUNT:
            return self.n_ids
        self.join()
        if self.form == AS_LIST:
            return ids_to_list(self.encoder.table, self.ids.out, self.ids.count)
        return ids_to_array(self.encoder._spares, &self.ids)


cdef size_t input_size(object text) except? 0:
    """The number of bytes of a text before it is repaired."""
    return utf8_size(str.__str__(text)) if PyUnicode_Check(text) else source_size(text)


cdef inline int put_around(Work* w, i64 id) except -1 nogil:
    if id >= 0:
        put_id(w, <u32>id, 0, 0)
    return 0


cdef bint is_cut_in_changed(ChangeRules r, const Source* s, Watch* watch, size_t offset) except -1 nogil:
    """Whether a clean cut is also a clean cut of the changed text: no step changes the characters around it
    or joins them to anything, so they stay neighbours.
    """
    cdef i32[4] near
    cdef int i, size = 0
    if r.is_plain:
        return True
    near[0] = near[1] = near[2] = near[3] = -1
    if r.second_tokens is not None and is_crossed(s, r.second_tokens.matcher, watch, offset):
        return False
    if s.unit == 0:
        near[1] = char_before(s.data, offset)
        size = utf8_length(near[1])
        if near[1] >= 0 and offset > <size_t>size:
            near[0] = char_before(s.data, offset - size)
        near[2] = char_at(s.data + offset, s.size - offset)
        size = utf8_length(near[2])
        if near[2] >= 0 and s.size - offset > <size_t>size:
            near[3] = char_at(s.data + offset + size, s.size - offset - size)
    else:
        for i in range(4):
            if offset + i >= 2 and offset + i - 2 < s.size:
                near[i] = unit_at(s, offset + i - 2)
    return (r.first_table is None or stays(r.first_table, near)) and (
        r.second_table is None or stays(r.second_table, near)
    )


cdef inline bint stays(ElementTable t, const i32* near) noexcept nogil:
    cdef CharKind kind
    cdef int i
    for i in range(4):
        if near[i] < 0:
            return False
        kind = kind_at(t, <u32>near[i])
        if kind.flags or (i and kind.joins):
            return False
    return True


cdef inline int utf8_length(i32 code) noexcept nogil:
    return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)
