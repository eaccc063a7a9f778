"""Settings and small helpers shared by all tests."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy.stats import binom

from databases import fresh_database, postgres_folder, postgres_server

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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that runs as long as the tests do."""
    if postgres_folder() is None:
        pytest.skip("no PostgreSQL server is installed; the Debian package is postgresql")
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/studies.db"
    else:
        with fresh_database(request.getfixturevalue("postgres")) as url:
            yield url
