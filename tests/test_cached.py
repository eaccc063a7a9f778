"""Properties that are computed once: also where two threads read those that need one another."""

import functools
import sys
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from surepick._cached import cached_property


def crossing(kind: Any) -> type:
    """A class with two properties that read each other, of other objects, once both are being computed."""

    @dataclass
    class Crossing:
        begun: threading.Barrier
        other: Any = None

        @kind
        def first(self) -> int:
            if self.other is None:
                return 1
            self.begun.wait(10)
            return self.other.second + 1

        @kind
        def second(self) -> int:
            if self.other is None:
                return 2
            self.begun.wait(10)
            return self.other.first + 1

    return Crossing


def ends(kind: Any) -> list[int]:
    """What two threads find that read one property each; less than two where they stop each other."""
    made, begun, found = crossing(kind), threading.Barrier(2), list[int]()
    readers = [
        threading.Thread(target=lambda: found.append(made(begun, made(begun)).first), daemon=True),
        threading.Thread(target=lambda: found.append(made(begun, made(begun)).second), daemon=True),
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(1.0 if kind is functools.cached_property else 20.0)
    return sorted(found)


def test_two_threads_do_not_stop_each_other() -> None:
    assert ends(cached_property) == [2, 3]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 dropped the lock")
def test_the_lock_of_the_library_stops_them() -> None:
    assert ends(functools.cached_property) == []


def test_it_is_computed_once_and_can_be_looked_up_on_the_class() -> None:
    @dataclass(frozen=True)
    class Squared:
        side: float
        counted: list[int]

        @cached_property
        def area(self) -> float:
            """The area."""
            self.counted.append(1)
            return self.side**2

    square = Squared(3.0, [])
    assert (square.area, square.area, square.counted) == (9.0, 9.0, [1])
    assert Squared.area.__doc__ == "The area."
    assert vars(square)["area"] == 9.0
