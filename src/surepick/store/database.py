"""A database by URL (SQLite in WAL mode or PostgreSQL), its transactions, and leases on its rows.

`open_database` connects and migrates; `Database` gives transactions; `Lease` lets one of several processes work on a
row. What the store refuses besides unusable input is here too: `NotFound`, `Conflict`, `Forbidden`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from surepick.errors import InvalidInput, SurepickError

BUSY_SECONDS = 5.0
"""How long a transaction waits for another one's lock, or for the database to answer; all transactions are short.
Whoever sent the request is told to try again then."""

UNAVAILABLE = (sa.exc.OperationalError, sa.exc.InternalError, sa.exc.InterfaceError, sa.exc.TimeoutError)
"""What is raised while the database is away, locked, full or read-only. Nothing is wrong with the request."""

_WRITES = "surepick_writes"
_NOW = "surepick_now"
_EPOCH = sa.select(sa.extract("epoch", sa.func.clock_timestamp()))
_MIGRATION_LOCK = 0x73757265  # any number, the same on all machines
_LOCK_STUDIES, _SHARE_STUDIES = (  # in the order of the array; two studies with one number would do no harm
    sa.text(f"SELECT {lock}(hashtextextended(study, 0)) FROM unnest(CAST(:studies AS text[])) AS study")
    for lock in ("pg_advisory_xact_lock", "pg_advisory_xact_lock_shared")
)


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
    for the row. Every transaction locks in one order, so no two of them wait for each other: studies (`lock_studies`),
    rows of studies, judges, streams, and then only what belongs to one of these (questions, messages, events, kept
    replies), which nobody else locks meanwhile; rows of one table in the order of their keys. SQLite has one write
    transaction at a time.
    """

    def __init__(self, url: str) -> None:
        self.url = clean_url(url)
        if self.url.get_backend_name() == "sqlite":
            self.clock: Callable[[], float] | None = time.time  # all processes are on the machine of the file
            self._engine = sa.create_engine(self.url, connect_args={"timeout": BUSY_SECONDS})
            sa.event.listen(self._engine, "connect", _prepare_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
        else:
            self.clock = None  # the server's; tests set another
            self._engine = sa.create_engine(
                self.url,
                pool_pre_ping=True,
                pool_size=8,
                max_overflow=40,
                pool_timeout=BUSY_SECONDS,
                connect_args={"connect_timeout": int(BUSY_SECONDS), "tcp_user_timeout": int(2_000 * BUSY_SECONDS)},
            )
            sa.event.listen(self._engine, "connect", _prepare_postgresql)
            sa.event.listen(self._engine, "begin", _begin_postgresql)
        # At READ COMMITTED every statement has a snapshot of its own anyway, and a transaction takes two round trips
        # more. SQLite needs one for its single snapshot.
        level = {} if self.is_sqlite else {"isolation_level": "AUTOCOMMIT"}
        self._reading = self._engine.execution_options(**level)
        self._durable = self._engine.execution_options(**{_WRITES: "durable"})
        self._quick = self._engine.execution_options(**{_WRITES: "quick"})

    @property
    def is_sqlite(self) -> bool:
        """Whether it is SQLite: one writer at a time, no row locks needed."""
        return self._engine.dialect.name == "sqlite"

    def now(self, connection: sa.Connection | None = None) -> float:
        """Seconds since 1970 by the one clock that all processes on this database share.

        Deadlines of leases are set and compared by it. Clocks of two servers may differ by more than a lease. In a
        transaction that writes it is the time when it was first asked for, which is after its locks.
        """
        if self.clock is not None:
            return self.clock()
        if connection is None:
            with self.reading() as own:
                return self.now(own)
        if not connection.get_execution_options().get(_WRITES):
            return float(connection.execute(_EPOCH).scalar_one())
        if connection.info.get(_NOW) is None:  # as `_begin_postgresql` leaves it
            connection.info[_NOW] = float(connection.execute(_EPOCH).scalar_one())
        return float(connection.info[_NOW])

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Only to read. On SQLite it is a transaction with one snapshot, on PostgreSQL each statement has its own."""
        with self._reading.connect() as connection:
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

    def probe(self) -> None:
        """Write something that changes nothing; raises one of UNAVAILABLE where the database cannot be written."""
        with self.writing() as connection:
            connection.exec_driver_sql("UPDATE server SET value = value WHERE key = 'link secret'")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def lock_studies(connection: sa.Connection, wanted: Iterable[str], *, shared: bool) -> None:
    """Lock studies until the transaction ends: judges share a study, planners and admins have it for themselves.

    These are PostgreSQL's advisory locks, for which transactions wait in line. A planner that waited for the lock on a
    row would wait for as long as there is always one more judge: shared locks on rows overtake an exclusive one.
    """
    if connection.dialect.name != "sqlite":  # which has one writer at a time
        connection.execute(_SHARE_STUDIES if shared else _LOCK_STUDIES, {"studies": sorted(wanted)})


@dataclass(frozen=True)
class Lease:
    """Columns by which at most one holder works on a row at a time; a holder that died keeps it until a deadline only.

    A row is available when nobody holds it or the deadline has passed. To claim is an UPDATE with that condition:
    whoever changes the row has it. To renew is to move the deadline, to release is to clear it. Deadlines are set and
    compared by the database's clock (`Database.now`).

    A deadline alone does not stop a slow holder that believes in an expired lease. Where that matters the row has a
    term as well, which grows with every change of the holder and which each of its transactions compares
    (`Planner._lock`).

    Conditions have the parameters `now` and, where there is a column for it, `holder`.
    """

    key: sa.Column[Any]
    until: sa.Column[Any]
    holder: sa.Column[Any] | None = None
    """Null while nobody holds the row. Without this column only the deadline tells."""

    @property
    def never_claimed(self) -> sa.ColumnElement[bool]:
        """Rows that nobody holds or held since the last release."""
        return sa.false() if self.holder is None else self.holder.is_(None)

    @property
    def expired(self) -> sa.ColumnElement[bool]:
        """Rows whose holder let the deadline pass."""
        late = self.until < sa.bindparam("now")
        return late if self.holder is None else sa.and_(self.holder.is_not(None), late)

    @property
    def available(self) -> sa.ColumnElement[bool]:
        """Rows that `holder` may claim: held by nobody, by itself, or by one whose deadline has passed."""
        if self.holder is None:
            return self.expired
        return sa.or_(self.never_claimed, self.holder == sa.bindparam("holder"), self.until < sa.bindparam("now"))

    def claim(
        self, connection: sa.Connection, row: str, *, now: float, seconds: float, holder: str | None = None, **more: Any
    ) -> bool:
        """Take or keep the row, and set the columns `more` with it; whether it was available."""
        claimed = connection.execute(
            sa.update(self.key.table)
            .where(self.key == row, self.available)
            .values({self.until.name: now + seconds, **self._held_by(holder), **more}),
            {"now": now, "holder": holder},
        )
        return claimed.rowcount == 1

    def claim_locked(self, connection: sa.Connection, claims: Mapping[str, tuple[str, float]], **more: Any) -> None:
        """Take rows that this transaction has locked, or keep rows held already; each has its holder and deadline."""
        if claims:
            assert self.holder is not None
            held: dict[str, Any] = {self.until.name: sa.bindparam("deadline"), self.holder.name: sa.bindparam("by")}
            connection.execute(
                sa.update(self.key.table).where(self.key == sa.bindparam("row")).values({**held, **more}),
                [{"row": row, "by": holder, "deadline": deadline} for row, (holder, deadline) in claims.items()],
            )

    def lock(self, connection: sa.Connection, *rows: sa.ColumnElement[bool]) -> None:
        """Lock several rows in the order of their keys, before they are changed: an UPDATE takes them as they come."""
        wanted = sa.select(self.key).where(*rows).order_by(self.key)
        connection.execute(wanted.with_for_update(key_share=True)).all()

    def extend(self, connection: sa.Connection, *rows: sa.ColumnElement[bool], until: float, **more: Any) -> None:
        """Move the deadline of rows that are held, and set the columns `more` with it; 0 lets it pass now."""
        connection.execute(sa.update(self.key.table).where(*rows).values({self.until.name: until, **more}))

    def release(
        self, connection: sa.Connection, *rows: sa.ColumnElement[bool], until: float = 0.0, **more: Any
    ) -> None:
        """Make rows available at once, or without a holder's column from `until` on, and set the columns `more`."""
        self.extend(connection, *rows, until=until, **self._held_by(None), **more)

    def _held_by(self, holder: str | None) -> dict[str, str | None]:
        return {} if self.holder is None else {self.holder.name: holder}


def open_database(url: str) -> Database:
    """Connect and migrate, or raise InvalidInput with the reason in one sentence."""
    database = Database(url)
    try:
        database.migrate()
    except (sa.exc.OperationalError, sa.exc.DatabaseError) as error:
        shown = database.url.render_as_string(hide_password=True)
        reason = reason_of(error)
        database.close()
        raise InvalidInput(f"The database {shown} cannot be used ({reason}); check the URL and its rights.") from error
    return database


def reason_of(error: BaseException) -> str:
    """Why the database refused, in its own words on one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


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


def _prepare_postgresql(connection: Any, _: Any) -> None:
    connection.execute(f"SET lock_timeout = {int(1_000 * BUSY_SECONDS)}")
    connection.commit()


def _begin_postgresql(connection: sa.Connection) -> None:
    connection.info.pop(_NOW, None)
    if connection.get_execution_options().get(_WRITES) == "quick":
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO off")
