"""Settings and small helpers shared by all tests."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from databases import fresh_database, postgres_folder, postgres_server

settings.register_profile("surepick", derandomize=True, deadline=None, max_examples=50, print_blob=False)
settings.load_profile("surepick")


def pytest_configure() -> None:
    """Drop machine code older than any of its sources: numba compares it with a function's own file only."""
    package = Path(__file__).parent.parent / "src/surepick"
    newest = max((package / room / "kernels.py").stat().st_mtime for room in ("glm", "contextual"))
    for index in package.glob("*/__pycache__/*.nbi"):
        if index.stat().st_mtime < newest:
            index.unlink(missing_ok=True)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Randomness that depends on the test's own name, so that tests do not influence each other."""
    return np.random.default_rng(list(f"{request.path.stem}::{request.node.name}".encode()))


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
