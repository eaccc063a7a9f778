"""Settings and small helpers shared by all tests."""

import math

import numpy as np
import pytest
from hypothesis import settings
from scipy.stats import binom

settings.register_profile("surepick", derandomize=True, deadline=None, max_examples=50, print_blob=False)
settings.load_profile("surepick")

FALSE_ALARM = 1e-4
"""Chance that a statistical test fails although what it tests is true."""


def most_failures(runs: int, probability: float) -> int:
    """Failures in `runs` runs; a true rate of at most `probability` gives more with chance FALSE_ALARM at most."""
    return int(binom.isf(FALSE_ALARM, runs, probability))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Randomness that depends on the test's own name, so that tests do not influence each other."""
    return np.random.default_rng(list(request.node.nodeid.encode()))


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))
