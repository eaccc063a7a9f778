"""Settings and small helpers shared by all tests."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from scipy.io import savemat
from scipy.stats import binom

from databases import fresh_database, postgres_folder, postgres_server
from surepick import Tally
from surepick.logistic import probability_of_yes

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


def write_zappos(folder: Path, *, images: int = 60, features: int = 12, votes: int = 900) -> np.ndarray:
    """Small files in the format of UT-Zap50K."""
    rng = np.random.default_rng(0)
    gist = rng.normal(size=(images, features)) / np.arange(1, features + 1)
    theta = rng.normal(size=features) * 2
    labels = np.empty((1, 4), dtype=object)
    for attribute in range(4):
        pairs = rng.integers(images, size=(votes, 2))
        first = rng.random(votes) < probability_of_yes((gist[pairs[:, 0]] - gist[pairs[:, 1]]) @ theta)
        answers = np.where(first, 1, 2)
        answers[:5] = 3  # "equal" is left out
        rest = np.ones((votes, 2))
        labels[0, attribute] = np.column_stack([pairs + 1, np.full(votes, attribute + 1), answers, rest])
    savemat(folder / "zappos-labels.mat", {"mturkOrder": labels})
    savemat(folder / "zappos-gist.mat", {"gistfeats": gist})
    return gist @ theta


def random_tally(rng, rows=40, dimension=3, most=20, scale=1.0) -> Tally:
    """Counts drawn from a logistic model, overlapping so that the estimate exists."""
    vectors = rng.normal(size=(rows, dimension))
    pulls = rng.integers(2, most + 1, size=rows)
    wins = rng.binomial(pulls, probability_of_yes(scale * vectors @ rng.normal(size=dimension)))
    wins[: dimension + 1] = np.clip(wins[: dimension + 1], 1, pulls[: dimension + 1] - 1)
    return Tally(vectors, pulls, wins)
