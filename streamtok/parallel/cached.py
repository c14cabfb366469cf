"""`cached_property` without a lock, which functools' has before Python 3.12.

Such a lock is of the class. A process that was forked while another thread held it would wait for
ever where it first asks for the property of any object. Two threads that ask at once may both
compute it here, which gives equal values.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:
        """See `functools.cached_property`."""

        def __init__(self, function: Any) -> None:
            self.func = function
            self.attrname: Any = None
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: Any, name: str) -> None:
            self.attrname = name

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]
