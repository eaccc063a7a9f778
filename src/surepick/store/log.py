"""The log of a study: the session's events as rows. Only the planner that holds the lease appends to it."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from surepick.session import Session
from surepick.store.schema import events

Event = dict[str, Any]


def append(connection: sa.Connection, study: str, phase: int, seq: int, entries: Sequence[Event], at: float) -> None:
    """Append events from `seq` on."""
    if entries:
        connection.execute(
            sa.insert(events),
            [
                {"study": study, "seq": seq + place, "phase": phase, "at": at, "body": json.dumps(entry)}
                for place, entry in enumerate(entries)
            ],
        )


def read(connection: sa.Connection, study: str, phase: int) -> list[Event]:
    """The events of one phase, in order."""
    wanted = sa.select(events.c.body).where(events.c.study == study, events.c.phase == phase).order_by(events.c.seq)
    return [json.loads(body) for body in connection.scalars(wanted)]


def fold(connection: sa.Connection, study: str, phase: int) -> Session:
    """The session that this phase's log describes."""
    return Session.replay(read(connection, study, phase))
