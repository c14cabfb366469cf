"""Encodes one large text on several threads: each encodes parts between clean cuts.

A thread takes the next free part, so faster threads take more. It encodes into its own workspace,
which stays in its processor's cache. The ids are copied into the result once it is known how many
ids come before them; until then they wait. One slow part must not make the ids of all others wait
in memory: a thread sleeps when it is too far ahead of the first unfinished part.

The result is a block for as many ids as there are likely to be, which calls use again. Where there
are more, the ids of the parts that are left stay where their threads put them, and all are put
together at the end: how many ids a text may have depends on the model, and no block is too small.

There is no result for ill-formed bytes, a lone surrogate, a disallowed special token, or where
memory is short. The caller then asks `Encoder.encode`, which repairs the text or raises.
"""

cdef enum:
    FORESEEN = 1 << 13      # ids for which `foresee` makes room at least
    UNITS_PER_ID = 3        # at the least, or some parts wait for the end
    PARTS_AHEAD = 4         # parts for each thread that may be taken from the first that is not done
    NAP = 100_000           # microseconds after which one who waits looks at signals


cdef extern from "Python.h":
    ctypedef enum PyLockStatus:
        PY_LOCK_ACQUIRED
    PyLockStatus PyThread_acquire_lock_timed(PyThread_type_lock lock, long long microseconds,
                                             int intr_flag) noexcept nogil


cdef struct WaitingIds:          # ids of a part that wait for those before them, or for the end
    u32* ids
    size_t capacity
    bint is_waiting


cdef struct Sleeper:            # a thread that is too far ahead
    PyThread_type_lock alarm    # it waits until another releases this
    Sleeper* next


@cython.final
cdef class LargeText:
    """A text in parts: `work`, from any number of threads, and when all are back, `result`."""

    cdef Encoder encoder
    cdef SpecialMatcher matcher
    cdef object text
    cdef Source source
    cdef bint is_open, count_only, failed
    cdef Form form
    cdef readonly size_t n_parts
    cdef readonly size_t most_ahead     # parts between one that was done and the first that was not
    cdef size_t* places         # [n_parts + 1]
    cdef size_t* counts         # [n_parts] ids
    cdef u32** targets          # [n_parts] where their ids belong; NULL: they wait for the end
    cdef WaitingIds* blocks          # [n_parts] ids that wait, and blocks to be used again
    cdef size_t n_spare
    cdef WaitingIds[8] spare
    cdef size_t taken           # parts that threads have taken
    cdef size_t settled         # parts of which it is known how many ids come before and in them
    cdef size_t n_workers
    cdef Sleeper* sleepers
    cdef Work ids               # the result: only out, count and capacity
    cdef size_t rest_count      # ids of the parts that wait for the end
    cdef PyThread_type_lock lock

    def __cinit__(self, Encoder encoder not None, Cuts cuts not None,
                  SpecialMatcher matcher not None, text, str errors not None,
                  Output output not None, size_t part_size):
        """part_size: characters or bytes of a part, about. output: as for `Encoder.encode`."""
        cdef size_t most, place, i
        cdef Watch watch
        watch.looked = 0
        need_scanner(encoder)
        if part_size == 0:
            raise ValueError("part_size must be positive")
        self.encoder = encoder
        self.matcher = matcher
        self.text = text
        self.form = output.form
        self.count_only = self.form == AS_COUNT
        self.lock = PyThread_allocate_lock()
        if self.lock == NULL:
            raise MemoryError("no lock")
        if not source_open(&self.source, text, errors):
            return
        self.is_open = True
        most = self.source.size // part_size + 1
        self.places = <size_t*>malloc((most + 1) * sizeof(size_t))
        self.counts = <size_t*>calloc(most, sizeof(size_t))
        self.targets = <u32**>calloc(most, sizeof(u32*))
        self.blocks = <WaitingIds*>calloc(most, sizeof(WaitingIds))
        if (self.places == NULL or self.counts == NULL or self.targets == NULL
                or self.blocks == NULL):
            raise MemoryError(f"no memory for {most} parts of a text")
        with nogil:
            self.places[0] = 0
            self.n_parts = 1
            for i in range(1, most):
                if i * part_size <= self.places[self.n_parts - 1]:
                    continue
                place = cuts.next(&self.source, matcher, &watch, i * part_size, self.source.size)
                if place == self.source.size:
                    break
                self.places[self.n_parts] = place
                self.n_parts += 1
            self.places[self.n_parts] = self.source.size
        if not self.count_only and self.n_parts > 1:
            most = self.source.size // UNITS_PER_ID
            try:
                foresee(encoder._spares, &self.ids, most if most > FORESEEN else FORESEEN)
            except MemoryError:
                self.failed = True

    def __dealloc__(self):
        cdef size_t i
        if self.is_open:
            source_close(&self.source)
        if self.blocks != NULL:
            for i in range(self.n_parts):
                free(self.blocks[i].ids)
        for i in range(self.n_spare):
            free(self.spare[i].ids)
        free(self.places)
        free(self.counts)
        free(self.targets)
        free(self.blocks)
        free(self.ids.out)      # the collector may have taken the encoder, and its spares, already
        if self.lock != NULL:
            PyThread_free_lock(self.lock)

    def work(self):
        """Encode parts until all are taken."""
        cdef Workspace workspace = self.encoder.take()
        cdef Sleeper me
        me.alarm = PyThread_allocate_lock()
        try:
            if me.alarm == NULL:
                raise MemoryError("no lock")
            PyThread_acquire_lock(me.alarm, WAIT_LOCK)
            with nogil:
                self.run(&workspace.c, &me)
        except BaseException:
            self.stop()             # nobody knows `me` from here on
            raise
        finally:
            if me.alarm != NULL:
                PyThread_free_lock(me.alarm)
            self.encoder.give(workspace)

    def stop(self):
        """Let no thread take any more parts; there is no result then."""
        with nogil:
            self.fail()

    cdef void fail(self) noexcept nogil:
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        self.failed = True
        self.wake()
        PyThread_release_lock(self.lock)

    cdef void wake(self) noexcept nogil:
        """Wake those who wait. With the lock."""
        cdef Sleeper* one = self.sleepers
        cdef Sleeper* after
        self.sleepers = NULL
        while one != NULL:
            after = one.next        # `one` may be gone as soon as it is awake
            PyThread_release_lock(one.alarm)
            one = after

    cdef size_t next_part(self, Work* w, Sleeper* me) except? 0 nogil:
        """The next part that nobody has, or n_parts: none is left."""
        cdef size_t part
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        while (not self.failed and self.taken < self.n_parts and not self.count_only
               and self.taken >= self.settled + PARTS_AHEAD * self.n_workers):
            # The first that is not done is done by another, who does not wait.
            me.next = self.sleepers
            self.sleepers = me
            PyThread_release_lock(self.lock)
            while PyThread_acquire_lock_timed(me.alarm, NAP, 0) != PY_LOCK_ACQUIRED:
                look(&w.watch)
            PyThread_acquire_lock(self.lock, WAIT_LOCK)
        part = self.n_parts if self.failed else self.taken
        if part < self.n_parts:
            self.taken += 1
        PyThread_release_lock(self.lock)
        return part

    cdef int run(self, Work* w, Sleeper* me) except -1 nogil:
        cdef size_t part, total, size, i, first, last
        cdef const u8* p
        cdef Found refused
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        self.n_workers += 1
        PyThread_release_lock(self.lock)
        while True:
            part = self.next_part(w, me)
            if part >= self.n_parts:
                return 0
            look(&w.watch)
            p = source_utf8(&self.source, &w.room, self.places[part], self.places[part + 1], &size)
            refused.kind = PARTIAL
            if p != NULL:
                encode_whole(self.encoder, w, self.matcher, p, size, self.count_only, &total,
                             &refused)
            if p == NULL or refused.kind == DISALLOWED:
                self.fail()
                return 0
            PyThread_acquire_lock(self.lock, WAIT_LOCK)
            self.counts[part] = total
            first = last = self.settled
            if self.count_only:
                self.ids.count += total
            elif part == self.settled:
                # What waited for this part follows it, up to the next that is not there yet.
                last = part + 1
                self.place(part)
                while last < self.n_parts and self.blocks[last].is_waiting:
                    self.place(last)
                    last += 1
                self.settled = last
                self.wake()
                if self.targets[part] == NULL:
                    self.hold(part, w)
            else:
                if part - self.settled > self.most_ahead:
                    self.most_ahead = part - self.settled
                self.blocks[part].is_waiting = True
                self.hold(part, w)
            PyThread_release_lock(self.lock)
            if last > first:
                if self.targets[part] != NULL:
                    memcpy(self.targets[part], w.out, total * sizeof(u32))
                for i in range(first + 1, last):
                    if self.targets[i] != NULL:
                        memcpy(self.targets[i], self.blocks[i].ids, self.counts[i] * sizeof(u32))
                        self.keep(i)
            w.count = 0
        return 0

    cdef void hold(self, size_t part, Work* w) noexcept nogil:
        """Leave the ids of a part where they are; `w` goes on with another block. With the lock."""
        self.blocks[part].ids = w.out
        self.blocks[part].capacity = w.capacity
        w.out = NULL
        w.capacity = 0
        if self.n_spare:
            self.n_spare -= 1
            w.out = self.spare[self.n_spare].ids
            w.capacity = self.spare[self.n_spare].capacity

    cdef void place(self, size_t part) noexcept nogil:
        """Choose where the ids of the next part belong. With the lock."""
        cdef size_t count = self.counts[part]
        if count <= self.ids.capacity - self.ids.count and self.rest_count == 0:
            self.targets[part] = self.ids.out + self.ids.count
            self.ids.count += count
        else:
            self.rest_count += count

    cdef int join(self) except -1:
        """Append the ids of the parts that waited for the end."""
        cdef size_t part
        if self.rest_count == 0:
            return 0
        reserve(&self.ids, self.rest_count)
        with nogil:
            for part in range(self.n_parts):
                if self.targets[part] == NULL and self.counts[part]:
                    memcpy(self.ids.out + self.ids.count, self.blocks[part].ids,
                           self.counts[part] * sizeof(u32))
                    self.ids.count += self.counts[part]
        return 0

    cdef void keep(self, size_t part) noexcept nogil:
        """The block of a part that is done is for others to use."""
        PyThread_acquire_lock(self.lock, WAIT_LOCK)
        if self.n_spare < 8:
            self.spare[self.n_spare] = self.blocks[part]
            self.n_spare += 1
        else:
            free(self.blocks[part].ids)
        self.blocks[part].ids = NULL
        PyThread_release_lock(self.lock)

    def result(self):
        """What `Encoder.encode` gives for this text, or None: it must be asked."""
        if self.failed or self.n_parts < 2:
            return None
        if self.count_only:
            return self.ids.count
        self.join()
        if self.form == AS_ARRAY:
            return ids_to_array(self.encoder._spares, &self.ids)
        return ids_to_list(self.encoder.table, self.ids.out, self.ids.count)
