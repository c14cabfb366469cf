"""The two large tables of a tokenizer.json, from its bytes into arrays.

Nine tenths of such a file are an object of texts with their ids (`model.vocab`) and an array of
pairs of these texts (`model.merges`). As Python objects they take seconds and a hundred bytes for
each. Here they are read where they stand, and what is left of the file goes to Python's parser.

Only what is in order is read. For anything else the answer is None, and the caller reads the file in
the slow way, which finds what is wrong, if anything is, and says it: damage, texts given twice, half
surrogate pairs, ids that are no plain integers, merges of what is not in the vocabulary.
"""

cimport cython
cimport numpy as cnp

import os

import numpy as np

from cpython.bytes cimport (
    PyBytes_AS_STRING,
    PyBytes_FromStringAndSize,
    PyBytes_GET_SIZE,
)
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from streamtok._core.types cimport *
from streamtok._core.utf8 cimport valid_bytes

cnp.import_array()
hash_begin(os.urandom(ST_SECRET_SIZE))

include "json/text_ids.pxi"
include "json/cursor.pxi"
include "json/model.pxi"
