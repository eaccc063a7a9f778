"""One thread for small matrix products, all of them for large ones.

NumPy and SciPy usually bring a pool of threads each. On products that take microseconds, handing work to them and
having two pools spin against each other costs several times the work itself (measured on two cores: 0.30 s with the
pools, 0.04 s without, for a design of 500 items).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock

from threadpoolctl import LibController, ThreadpoolController

for _library in ("numpy.linalg", "scipy.linalg"):
    import_module(_library)  # both pools must be loaded before they are looked up

LARGE = 2e9
"""From this many floating-point operations on, several threads are faster than one."""

_lock = Lock()
_small, _large = 0, 0


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """Run the products inside on one thread, or on all if they take this many operations together.

    Contexts nest: large work inside small work has all threads. The number of threads belongs to the whole process,
    so where several of its threads compute at once, one large product is enough to keep the pools awake.
    """
    large = operations >= LARGE
    _count(large, 1)
    try:
        yield
    finally:
        _count(large, -1)


def _count(large: bool, change: int) -> None:
    """Enter or leave a context; the pools are set only when the rule (small work and no large work) changes."""
    global _small, _large
    with _lock:
        before = _small > 0 and _large == 0
        _small, _large = _small + (0 if large else change), _large + (change if large else 0)
        after = _small > 0 and _large == 0
        if before != after:
            for pool, usual in _pools():
                pool.set_num_threads(1 if after else usual)


@cache
def _pools() -> list[tuple[LibController, int]]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [(pool, pool.get_num_threads()) for pool in found]
