"""From text to ids and back: everything but training.

One unit for the C compiler, so that it sees all of it together. Each part is an algorithm of its
own, and they are included in the order in which they are best read. `encode.pxd` declares what
other units use of it.
"""

cimport cython
cimport numpy as cnp

import codecs
import os
import struct

import numpy as np

from cpython.buffer cimport (
    PyBUF_FORMAT,
    PyBUF_ND,
    PyBUF_STRIDES,
    PyBUF_WRITABLE,
    PyBuffer_IsContiguous,
    PyBuffer_Release,
    PyObject_CheckBuffer,
    PyObject_GetBuffer,
)
from cpython.bytes cimport (
    PyBytes_AS_STRING,
    PyBytes_CheckExact,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cpython.exc cimport PyErr_CheckSignals
from cpython.list cimport PyList_CheckExact, PyList_New
from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
    WAIT_LOCK,
)
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, PyObject
from cpython.tuple cimport PyTuple_CheckExact
from cpython.unicode cimport PyUnicode_Check, PyUnicode_CheckExact
from libc.stdint cimport uint16_t, uint32_t
from libc.stdlib cimport calloc, free, llabs, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from streamtok._core.simd cimport *
from streamtok._core.types cimport *
from streamtok._core.utf8 cimport (
    INCOMPLETE,
    decode_common,
    decode_one,
    valid_bytes,
)

from streamtok.errors import PendingLimitExceeded, StateError, StreamInUseError

hash_begin(os.urandom(ST_SECRET_SIZE))

cdef const void* hash_secret() noexcept:
    return st_hash_secret()

# What all use
include "signals.pxi"
include "guard.pxi"
include "arrays.pxi"
include "text.pxi"

# Tokens and merges
include "token_table.pxi"
include "token_index.pxi"
include "spelling.pxi"
include "merge.pxi"
include "merge_list.pxi"
include "segments.pxi"
include "stable_prefix.pxi"

# From text to pre-tokens, from these to ids
include "marks.pxi"
include "scanner.pxi"
include "special.pxi"
include "pretoken_cache.pxi"
include "pretoken_cache_room.pxi"
include "workspace.pxi"
include "long_pretokens.pxi"
include "waiting.pxi"
include "pretoken_encoder.pxi"
include "shared_ints.pxi"
include "output.pxi"
include "untouched.pxi"
include "encoder.pxi"

# Ids to bytes
include "decoder.pxi"
include "unpack_ids.pxi"
include "spans.pxi"

# Streams
include "stream.pxi"
include "stream_mark.pxi"
include "stream_utf8.pxi"
include "stream_hypotheses.pxi"
include "stream_parts.pxi"
include "stream_untouched.pxi"
include "stream_decoder.pxi"

# Small texts
include "fast_path.pxi"
include "stream_fast_path.pxi"

# Many texts, large ones, several threads
include "source.pxi"
include "cuts.pxi"
include "parallel.pxi"
include "batch.pxi"
include "delimited.pxi"

include "strategy.pxi"
