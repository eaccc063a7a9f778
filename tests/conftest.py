"""Settings and small helpers shared by all tests."""

import os
import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from databases import fresh_database, postgres_folder, postgres_server

settings.register_profile("surepick", derandomize=True, deadline=None, max_examples=50, print_blob=False)
settings.load_profile("surepick")


LIKE_WINDOWS = Path(__file__).parent / "support" / "like_windows"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--like-windows` takes away what Windows lacks; tests marked `posix`, which name it, are skipped."""
    parser.addoption("--like-windows", action="store_true", help="run without termios, fork, nice and their like")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests that name what is taken away."""
    for item in items:
        if config.getoption("--like-windows") and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip("names termios, fork or nice"))


def pytest_configure(config: pytest.Config) -> None:
    """Take away what Windows lacks, if that is wanted, and drop outdated machine code."""
    config.addinivalue_line("markers", "posix: names termios, fork, nice or signals that Windows lacks")
    if config.getoption("--like-windows"):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(LIKE_WINDOWS), os.environ.get("PYTHONPATH"))))
        runpy.run_path(str(LIKE_WINDOWS / "sitecustomize.py"))
    _drop_old_machine_code()


def _drop_old_machine_code() -> None:
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
