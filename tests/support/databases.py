"""Databases for tests: SQLite in a folder of the test, and a PostgreSQL server started for the test run."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

FOLDERS = "/usr/lib/postgresql/*/bin"


def postgres_folder() -> Path | None:
    """Where the server's programs are; None if it is not installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return folders[-1] if folders else None


class PostgresServer:
    """A server on a socket in a folder of its own, which tests may kill and start again."""

    def __init__(self) -> None:
        programs = postgres_folder()
        if programs is None:
            raise RuntimeError(f"There is no PostgreSQL server under {FOLDERS}.")
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="surepick-pg-"))
        self._data = self._folder / "data"
        self._user: dict[str, object] = {}
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self._folder, "postgres")
            self._user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.url = f"postgresql://postgres@/postgres?host={self._folder}"
        """Of its database `postgres`."""

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = f"-k {self._folder} -c listen_addresses='' -c max_connections=200"
        self._run("pg_ctl", "-D", self._data, "-w", "-o", options, "start")

    def kill(self) -> None:
        """SIGKILL to the server and all of its processes, as a power cut or the kernel does."""
        server = psutil.Process(int((self._data / "postmaster.pid").read_text().splitlines()[0]))
        for process in [server, *server.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs([server], timeout=30)

    def close(self) -> None:
        """Stop it and delete its data."""
        with contextlib.suppress(subprocess.CalledProcessError):  # it was killed
            self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *options: object) -> None:
        quiet: dict[str, object] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self._folder}
        subprocess.run([self._programs / program, *map(str, options)], check=True, **quiet, **self._user)  # type: ignore[call-overload]


@contextmanager
def postgres_server() -> Iterator[str]:
    """A running server; the URL of its database `postgres`."""
    server = PostgresServer()
    server.start()
    try:
        yield server.url
    finally:
        server.close()


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
