"""What an operator needs: how the service is doing in numbers, and the deletion of studies and streams."""

from dataclasses import dataclass

import sqlalchemy as sa

from surepick.store.database import Conflict, Database, NotFound, lock_studies
from surepick.store.log import message_counts
from surepick.store.question_queue import WISH_SECONDS
from surepick.store.schema import (
    comments,
    evaluations,
    events,
    images,
    items,
    judges,
    messages,
    questions,
    replies,
    stream_events,
    streams,
    studies,
)

DELETABLE = ("closed", "archived")


@dataclass(frozen=True)
class Counts:
    """How the service is doing, at one moment."""

    studies: dict[str, int]
    """By state."""
    streams: int
    waiting: int
    """Messages of judges that are not in a log yet."""
    lag: float
    """Seconds that the oldest of them has waited: how far the planners are behind."""
    quarantined: int
    """Messages that cannot enter a log, of studies not archived."""
    judges_waiting: int
    """Judges who asked for a question within the last seconds and got none."""


def counts(database: Database, connection: sa.Connection) -> Counts:
    """The present numbers."""
    now = database.now(connection)
    by_state = sa.select(studies.c.state, sa.func.count().label("number")).group_by(studies.c.state)
    hungry = sa.select(sa.func.count()).where(
        judges.c.wanted > 0, judges.c.wanted_at > now - WISH_SECONDS, judges.c.exhausted.is_(False)
    )
    found = message_counts(connection)
    return Counts(
        studies={row.state: row.number for row in connection.execute(by_state)},
        streams=connection.execute(sa.select(sa.func.count()).select_from(streams)).scalar_one(),
        waiting=found.waiting,
        lag=max(0.0, now - found.oldest) if found.waiting else 0.0,
        quarantined=found.quarantined,
        judges_waiting=connection.execute(hungry).scalar_one(),
    )


def delete_study(connection: sa.Connection, study: str) -> None:
    """Delete a study that is closed or archived, with everything about it: items, judges, answers, log, certificate."""
    lock_studies(connection, [study], shared=False)
    wanted = sa.select(studies.c.state).where(studies.c.id == study).with_for_update(key_share=True)
    state = connection.execute(wanted).scalar()
    if state is None:
        raise NotFound(f"There is no study {study!r}.")
    if state not in DELETABLE:
        raise Conflict(f"A study that is {state} cannot be deleted; close it first.")
    for table in (comments, messages, questions, judges, images, items, evaluations, events):
        connection.execute(sa.delete(table).where(table.c.study == study))
    connection.execute(sa.delete(studies).where(studies.c.id == study))


def delete_stream(connection: sa.Connection, stream: str) -> None:
    """Delete a stream with its log."""
    wanted = sa.select(streams.c.id).where(streams.c.id == stream).with_for_update(key_share=True)
    if connection.execute(wanted).scalar() is None:
        raise NotFound(f"There is no stream {stream!r}.")
    connection.execute(sa.delete(stream_events).where(stream_events.c.stream == stream))
    connection.execute(sa.delete(replies).where(replies.c.scope == stream))
    connection.execute(sa.delete(streams).where(streams.c.id == stream))


def delete_expired(database: Database, days: float) -> tuple[int, int]:
    """Delete archived studies and streams whose logs have not grown for this many days; how many of each."""
    with database.reading() as connection:
        before = database.now(connection) - 86_400 * days
        last = sa.select(sa.func.max(events.c.at)).where(events.c.study == studies.c.id).scalar_subquery()
        old = list(connection.scalars(sa.select(studies.c.id).where(studies.c.state == "archived", last < before)))
        last = (
            sa.select(sa.func.max(stream_events.c.at)).where(stream_events.c.stream == streams.c.id).scalar_subquery()
        )
        idle = list(connection.scalars(sa.select(streams.c.id).where(last < before)))
    for study in sorted(old):
        with database.writing() as connection:
            delete_study(connection, study)
    for stream in sorted(idle):
        with database.writing() as connection:
            delete_stream(connection, stream)
    return len(old), len(idle)
