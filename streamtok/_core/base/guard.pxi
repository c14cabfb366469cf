"""Objects that accept one call at a time: a second call raises StreamInUseError and changes nothing.

A lock that Python code acquires and releases can stay locked forever: a signal handler that raises
may run between any two bytecode instructions, such as between `acquire` and `try`. Here, C code sets
and clears the flag, and only the call itself is Python.
"""

from functools import update_wrapper
from types import MethodType


cdef int refuse_use(str kind="stream") except -1:
    raise StreamInUseError(f"this {kind} is being used by another call")


cdef int enter(char* busy) except -1:
    """Set the flag, which `st_leave` clears. Raises StreamInUseError if it was set already."""
    if st_enter(busy):
        refuse_use()
    return 0


cdef class OneCall:
    """Base class of objects whose methods marked with `one_call` run one at a time."""

    cdef char busy


def one_call(function):
    """Decorator for methods of a `OneCall`: a call during another one raises StreamInUseError."""
    return OneCallMethod(function)


@cython.final
cdef class OneCallMethod:
    """A method whose object is marked busy until the method returns or raises. Until then, calls from
    other threads or from signal handlers raise StreamInUseError.
    """

    cdef object function
    cdef dict __dict__

    def __init__(self, function):
        self.function = function
        update_wrapper(self, function)

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    def __call__(self, OneCall instance not None, /, *args, **kwargs):
        if st_enter(&instance.busy):
            refuse_use(type(instance)._kind)
        try:
            return self.function(instance, *args, **kwargs)
        finally:
            st_leave(&instance.busy)
