"""Training: count pre-tokens, then merge the most frequent pair, again and again.

This is one unit for the C compiler. It uses the scanner and the texts of `encode.pyx`.
"""

cimport cython

import numpy as np

from libc.stdlib cimport calloc, free, llabs, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from streamtok._core.encode cimport (
    BATCH,
    BIT_WORDS,
    CELL_NUMBERS,
    IN_ARENA,
    UINT8,
    UINT32,
    UINT64,
    ArrayView,
    Cell,
    Marks,
    PretokenCells,
    TextBuffer,
    Scan,
    Scanner,
    Source,
    Text,
    array_memory,
    explain,
    hash_secret,
    marks_begin,
    read_array,
    scan,
    scan_begin,
    source_close,
    source_open,
    source_utf8,
    strategy,
    text_close,
    text_open,
)
from streamtok._core.types cimport *
from streamtok._core.encode import text_bytes
from streamtok._core.utf8 cimport INCOMPLETE, INVALID, decode_one, unfinished_at_end, valid_bytes

st_hash_begin(hash_secret())         # the same hash, so that strategy.keys can be used here

include "base/memory.pxi"
include "cache/table.pxi"
include "training/pretoken_counts.pxi"
include "training/counter.pxi"
include "training/counter_feed.pxi"
include "training/counter_documents.pxi"

include "training/pair_state.pxi"
include "training/pair_queue.pxi"
include "training/first_pairs.pxi"
include "training/merge_loop.pxi"
