"""Databases for tests: SQLite in a folder of the test, and a PostgreSQL server started for the test run."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDERS = "/usr/lib/postgresql/*/bin"


def postgres_folder() -> Path | None:
    """Where the server's programs are; None if it is not installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return folders[-1] if folders else None


@contextmanager
def postgres_server() -> Iterator[str]:
    """A server on a socket in a folder of its own; the URL of its database `postgres`."""
    programs = postgres_folder()
    if programs is None:
        raise RuntimeError(f"There is no PostgreSQL server under {FOLDERS}.")
    folder = Path(tempfile.mkdtemp(prefix="surepick-pg-"))
    user: dict[str, object] = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(folder, "postgres")
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **user}
    data = folder / "data"
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"],
        check=True,
        **quiet,
    )
    options = f"-k {folder} -c listen_addresses='' -c max_connections=200"
    subprocess.run([programs / "pg_ctl", "-D", data, "-w", "-o", options, "start"], check=True, **quiet)
    try:
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        subprocess.run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], check=True, **quiet)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """An empty database on a server; its URL."""
    import secrets

    import psycopg

    name = "test_" + secrets.token_hex(6)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
