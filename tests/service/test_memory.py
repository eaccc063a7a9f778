"""Memory that is free goes back to the system."""

import sys

import numpy as np
import psutil
import pytest

from surepick.service.memory import give_back_memory


def held() -> float:
    return psutil.Process().memory_info().rss / 1e6


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can give back what is free inside its heap")
def test_what_is_free_between_what_stays_is_given_back() -> None:
    before = held()
    arrays = [np.ones(8_000) for _ in range(1_000)]  # 64 MB, in pieces that malloc takes from its heap
    kept = arrays[:: len(arrays) - 1]  # the first and the last: nothing is free at the end of the heap
    del arrays
    assert held() > before + 40
    give_back_memory()
    assert held() < before + 10
    assert [array.sum() for array in kept] == [8_000, 8_000]
