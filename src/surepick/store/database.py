"""A database by URL (SQLite in WAL mode or PostgreSQL), its transactions, and group commit.

`open_database` connects and migrates; `Database` gives transactions; `GroupCommit` lets many requests of one process
share a commit. What the store refuses besides unusable input is here too: `NotFound`, `Conflict`, `Forbidden`.
"""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import resources
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from surepick.errors import InvalidInput, SurepickError

BUSY_SECONDS = 30.0
"""How long a write transaction waits for another one on SQLite; all of them are short."""

MOST_REQUESTS = 500
"""Requests that share a transaction at most: a larger one would let its first request wait too long."""

_WRITES = "surepick_writes"
_MIGRATION_LOCK = 0x73757265  # any number, the same on all machines


class NotFound(SurepickError):
    """There is no such study, question, judge or item, or it belongs to somebody else."""


class Conflict(SurepickError):
    """It contradicts what was recorded or decided before; nothing was changed."""


class Forbidden(SurepickError):
    """The judge's link was revoked."""


class Database:
    """Short transactions on one database. `reading()` and `writing()` give a connection inside a transaction.

    PostgreSQL runs at its default isolation, READ COMMITTED. Whoever decides by what was read locks the row first
    (SELECT ... FOR UPDATE) or puts the condition into the UPDATE itself, which PostgreSQL checks again after it waited
    for the row. Rows of one table are locked in the order of their keys. Where two transactions wait for each other all
    the same, PostgreSQL ends one of them, and its work is repeated (`GroupCommit`, `Planner.round`). SQLite has one
    write transaction at a time.
    """

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
        """A transaction that only reads. On SQLite it sees one snapshot, on PostgreSQL one per statement."""
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """A transaction that is committed at the end, or rolled back by an exception.

        Without `durable` the commit does not wait for the disk. A power cut may then lose the last such commits, but
        none before a durable one: good enough for what can be derived again from judges' messages, which are durable.
        """
        with (self._durable if durable else self._quick).begin() as connection:
            yield connection

    def insert_new(self, table: sa.Table) -> Any:
        """An INSERT that skips rows whose key is there already."""
        made = sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)
        return made.on_conflict_do_nothing()

    def migrate(self) -> None:
        """Bring the schema up to date; of several processes that start together one does it, the others wait."""
        with self.writing() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
            command.upgrade(_alembic(connection), "head")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


Handler = Callable[[Database, sa.Connection, Sequence[Any]], Sequence[Any]]
"""Carries out several requests of one kind inside one transaction; one result per request, in the same order.

A refused request has the exception as its result and has written nothing: an exception raised instead would roll back
the requests of others.
"""

_Job = tuple[Handler, Any, "Future[Any]"]


class GroupCommit:
    """All writes of judges' requests in a process go through one thread, and many of them share a transaction.

    A commit costs a write to the disk, however much is in it. While one commit is under way further requests queue up,
    and the next transaction carries them out together. Each request is acknowledged only after its own commit, so
    whatever a judge was told is on the disk.

    Requests come from any thread; `close` carries out what is queued.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="group commit", daemon=True)
        self._thread.start()

    def submit(self, handler: Handler, request: Any) -> "Future[Any]":
        """A future of the handler's result; it is set once the transaction is committed."""
        future: Future[Any] = Future()
        self._jobs.put((handler, request, future))
        return future

    def close(self) -> None:
        """Carry out what is queued, then stop."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            jobs = [job]
            while len(jobs) < MOST_REQUESTS and not self._jobs.empty():
                following = self._jobs.get()
                if following is None:
                    self._jobs.put(None)
                    break
                jobs.append(following)
            # A request whose caller went away is dropped here. After this it can no longer be cancelled: its rows may
            # be committed, and the result must say so.
            wanted = [job for job in jobs if job[2].set_running_or_notify_cancel()]
            if wanted:
                self._commit(wanted)

    def _commit(self, jobs: list[_Job]) -> None:
        results: list[Any] = []
        try:
            with self._database.writing() as connection:
                for handler, group in groupby(jobs, key=lambda job: job[0]):
                    results.extend(handler(self._database, connection, [request for _, request, _ in group]))
        except Exception as error:  # from the database, or a bug: the whole transaction was rolled back
            if len(jobs) > 1:  # one of them broke it; alone, the others succeed
                for job in jobs:
                    self._commit([job])
            else:
                jobs[0][2].set_exception(error)
            return
        for (_, _, future), result in zip(jobs, results, strict=True):
            if isinstance(result, SurepickError):
                future.set_exception(result)
            else:
                future.set_result(result)


def open_database(url: str) -> Database:
    """Connect and migrate, or raise InvalidInput with the reason in one sentence."""
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
    """The URL with the driver that surepick uses; InvalidInput says which URLs are accepted."""
    accepted = "use one like sqlite:///surepick.db or postgresql://user@host/name"
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
    """Autocommit mode, because `_begin_sqlite` begins the transactions: Python's driver would begin them too late."""
    connection.isolation_level = None
    for pragma in ("journal_mode = WAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # BEGIN IMMEDIATE takes the write lock at once. A transaction that read first and asked for the lock at its first
    # write would not wait for another one but fail: its snapshot could be out of date.
    writes = connection.get_execution_options().get(_WRITES)
    if writes:
        connection.exec_driver_sql(f"PRAGMA synchronous = {'FULL' if writes == 'durable' else 'NORMAL'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _begin_postgresql(connection: sa.Connection) -> None:
    if connection.get_execution_options().get(_WRITES) == "quick":
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO off")
