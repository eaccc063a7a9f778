"""A property that is computed once per object, without a lock.

`functools.cached_property` of Python 3.11 holds one lock for all objects of a class while it computes. Properties that
need one another then stop two threads for good: each waits for the other's lock (Python 3.12 dropped the lock). Here
two threads that ask at the same time may both compute, which is harmless: what is cached is a pure function of the
object.
"""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value_co = TypeVar("Value_co", covariant=True)


class cached_property(Generic[Value_co]):
    """Computed when first read, then kept in the object's `__dict__`, also of a frozen dataclass.

    >>> class Circle:
    ...     @cached_property
    ...     def area(self) -> float:
    ...         print("computed")
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area, circle.area
    computed
    (3.14, 3.14)
    """

    def __init__(self, compute: Callable[[Any], Value_co]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type) -> Value_co: ...
    def __get__(self, owner: object | None, kind: type) -> Any:
        # Not a data descriptor, so what is in the object's `__dict__` is found before this is called.
        if owner is None:
            return self
        return vars(owner).setdefault(self._name, self._compute(owner))
