"""Memory that is free goes back to the system."""

import subprocess
import sys

import pytest

TRIAL = """
import numpy as np
import psutil

from surepick.service.memory import give_back_memory


def held():
    return psutil.Process().memory_info().rss / 1e6


before = held()
arrays = [np.ones(8_000) for _ in range(1_000)]  # 64 MB, in pieces that malloc takes from its heap
kept = arrays[:: len(arrays) - 1]  # the first and the last: nothing is free at the end of the heap
del arrays
between = held()
give_back_memory()
print(between - before, held() - before, *(array.sum() for array in kept))
"""
"""In a process of its own: one that has held more before has room for the arrays, and takes nothing."""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can give back what is free inside its heap")
def test_what_is_free_between_what_stays_is_given_back() -> None:
    told = subprocess.run([sys.executable, "-c", TRIAL], capture_output=True, text=True, check=True).stdout.split()
    between, after, first, last = map(float, told)
    assert between > 40
    assert after < 10
    assert first == last == 8_000
