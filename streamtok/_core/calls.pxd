"""The calls that have to be quick."""

from streamtok._core.encoder cimport Encoder
from streamtok._core.special cimport SpecialMatcher

cdef class QuickCalls:
    cdef Encoder encoder            # None: nothing goes the short way
    cdef SpecialMatcher default     # refuses all special tokens
    cdef SpecialMatcher ordinary    # all text is plain text
