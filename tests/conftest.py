"""Settings and small helpers shared by all tests."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy.stats import binom

settings.register_profile("surepick", derandomize=True, deadline=None, max_examples=50, print_blob=False)
settings.load_profile("surepick")


def pytest_configure() -> None:
    """Drop machine code older than any of its sources: numba compares it with a function's own file only."""
    folder = Path(__file__).parent.parent / "src/surepick/contextual/compiled"
    newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
    for index in folder.glob("__pycache__/*.nbi"):
        if index.stat().st_mtime < newest:
            index.unlink(missing_ok=True)


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
