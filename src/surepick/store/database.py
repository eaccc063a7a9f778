"""A database by URL: SQLite in WAL mode or PostgreSQL, brought to the newest schema when it is opened."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from surepick.errors import InvalidInput

BUSY_SECONDS = 30.0
"""How long a writer waits for another one on SQLite; all writes are short."""

_WRITES = "surepick_writes"
_MIGRATION_LOCK = 0x73757265  # any number, the same on all machines


class Database:
    """Short transactions on one database. `reading()` and `writing()` give a connection inside a transaction."""

    def __init__(self, url: str) -> None:
        self.url = clean_url(url)
        if self.url.get_backend_name() == "sqlite":
            self._engine = sa.create_engine(self.url, connect_args={"timeout": BUSY_SECONDS})
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
        else:
            self._engine = sa.create_engine(self.url, pool_pre_ping=True, pool_size=8, max_overflow=40)
            sa.event.listen(self._engine, "begin", _begin_postgresql)
        self._durable = self._engine.execution_options(**{_WRITES: "durable"})
        self._quick = self._engine.execution_options(**{_WRITES: "quick"})

    @property
    def is_sqlite(self) -> bool:
        """Whether it is SQLite: one writer at a time, no row locks needed."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A consistent view; nothing is written."""
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """A transaction that is committed at the end, or undone by an exception.

        Without `durable` the commit does not wait for the disk. A power cut may then take the last such commits, never
        ones before a durable commit: good enough for what can be derived again.
        """
        with (self._durable if durable else self._quick).begin() as connection:
            yield connection

    def insert_new(self, table: sa.Table) -> Any:
        """An INSERT that leaves rows alone which are there already."""
        made = sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)
        return made.on_conflict_do_nothing()

    def migrate(self) -> None:
        """Bring the schema up to date; of several processes that start at once one does it."""
        with self.writing() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            command.upgrade(_alembic(connection), "head")

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()


def open_database(url: str) -> Database:
    """Connect and migrate, or say in one sentence why not."""
    database = Database(url)
    try:
        database.migrate()
    except (sa.exc.OperationalError, sa.exc.DatabaseError) as error:
        shown = database.url.render_as_string(hide_password=True)
        reason = " ".join(str(error.orig or error).split())
        database.close()
        raise InvalidInput(f"The database {shown} cannot be used ({reason}); check the URL and its rights.") from error
    return database


def clean_url(url: str) -> sa.URL:
    """The URL with the driver surepick uses, or a sentence about what is accepted."""
    accepted = "sqlite:///surepick.db and postgresql://user@host/name are such"
    try:
        given = make_url(url)
    except ArgumentError:
        raise InvalidInput(f"A database is named by a URL, got {url!r}; {accepted}.") from None
    if given.get_backend_name() in ("postgresql", "postgres"):
        return given.set(drivername="postgresql+psycopg")
    if given.get_backend_name() != "sqlite":
        raise InvalidInput(f"surepick keeps its data in SQLite or PostgreSQL, got {url!r}; {accepted}.")
    if not given.database or given.database == ":memory:":
        raise InvalidInput(f"A database in memory is lost with the process, got {url!r}; {accepted}.")
    return given


def _alembic(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(resources.files("surepick.store") / "migrations"))
    config.attributes["connection"] = connection
    return config


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Autocommit mode, so that `_begin_sqlite` begins transactions."""
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sa.Connection) -> None:
    """Writers queue at the beginning, where waiting is allowed, never at their first write, where it is an error."""
    writes = connection.get_execution_options().get(_WRITES)
    if writes:
        connection.exec_driver_sql(f"PRAGMA synchronous = {'FULL' if writes == 'durable' else 'NORMAL'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgresql(connection: sa.Connection) -> None:
    if connection.get_execution_options().get(_WRITES) == "quick":
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO off")
