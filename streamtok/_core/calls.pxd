"""The calls that have to be quick."""

from streamtok._core.decoder cimport Decoder
from streamtok._core.encoder cimport Encoder
from streamtok._core.special cimport SpecialMatcher

cdef class QuickCalls:
    cdef Encoder encoder            # None: nothing goes the short way
    cdef SpecialMatcher default     # refuses all special tokens
    cdef SpecialMatcher ordinary    # all text is plain text
    cdef Decoder decoder
    cdef bint drops_space           # the text begins with a space that decoding leaves out
