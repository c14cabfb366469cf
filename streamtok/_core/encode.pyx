"""From text to ids and back: everything except training.

This is one unit, so that the C compiler sees all of it together. Each part is an algorithm of its own. The
parts are included in the order in which they are best read; any other order would work. `encode.pxd`
declares what other units use, and what the parts share.
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
from cpython.unicode cimport (
    PyUnicode_AsUTF8AndSize,
    PyUnicode_Check,
    PyUnicode_CheckExact,
    PyUnicode_DecodeUTF8,
)
from libc.stdint cimport uint16_t, uint32_t
from libc.stdlib cimport calloc, free, llabs, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from streamtok._core.simd cimport *
from streamtok._core.types cimport *
from streamtok._core.utf8 cimport (
    INCOMPLETE,
    decode_common,
    decode_one,
    st_whole_characters,
    unfinished_at_end,
    valid_bytes,
)

from streamtok.errors import DisallowedSpecialError, PendingLimitExceeded, StateError, StreamInUseError

hash_begin(os.urandom(ST_SECRET_SIZE))

cdef const void* hash_secret() noexcept:
    return st_hash_secret()

# Basics
include "base/signals.pxi"
include "base/guard.pxi"
include "base/memory.pxi"
include "base/arrays.pxi"
include "text/text.pxi"

# Models that do not merge bytes
include "models/trie.pxi"
include "models/unigram.pxi"
include "models/model.pxi"

# Tokens and merges
include "tokens/table.pxi"
include "tokens/index.pxi"
include "tokens/spelling.pxi"
include "merge/merge.pxi"
include "tokens/merge_list.pxi"
include "tokens/merge_rows.pxi"
include "merge/segments.pxi"
include "merge/stable_prefix.pxi"

# From text to pre-tokens, and from these to ids
include "scan/marks.pxi"
include "scan/scanner.pxi"
include "scan/special.pxi"
include "cache/table.pxi"
include "cache/pretoken_cache.pxi"
include "cache/growth.pxi"
include "cache/workspace.pxi"
include "merge/long_pretokens.pxi"
include "cache/waiting.pxi"
include "models/stages.pxi"
include "models/pretokens.pxi"
include "cache/pretoken_encoder.pxi"
include "base/shared_ints.pxi"
include "base/output.pxi"
include "transform/elements.pxi"
include "transform/rows_of_text.pxi"
include "transform/element_walk.pxi"
include "transform/levels.pxi"
include "texts/encoder.pxi"
include "texts/prompt.pxi"

# Ids to bytes
include "decode/decoder.pxi"
include "decode/unpack_ids.pxi"
include "decode/spans.pxi"

# Streams
include "stream/tail.pxi"
include "stream/mark.pxi"
include "stream/utf8.pxi"
include "stream/hypotheses.pxi"
include "stream/changing.pxi"
include "decode/stream_decoder.pxi"

# Small texts
include "texts/fast_path.pxi"
include "stream/fast_path.pxi"

# Many texts, large texts, several threads
include "text/source.pxi"
include "scan/cuts.pxi"
include "texts/work_list.pxi"
include "texts/delimited.pxi"

include "merge/strategy.pxi"
