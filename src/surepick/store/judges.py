"""Judges: add, list, revoke, and take a person's name out of the record."""

import json
import secrets
from typing import Any

import sqlalchemy as sa

from surepick.store.errors import NotFound
from surepick.store.schema import events, judges, messages, questions, studies


def add(connection: sa.Connection, study: str, name: str, now: float) -> str:
    """A new judge of a study; the id."""
    if connection.execute(sa.select(studies.c.id).where(studies.c.id == study)).first() is None:
        raise NotFound(f"There is no study {study!r}.")
    judge = secrets.token_urlsafe(9)
    connection.execute(sa.insert(judges).values(id=judge, study=study, name=name, created=now, revoked=False))
    return judge


def get(connection: sa.Connection, study: str, judge: str) -> sa.RowMapping:
    """The row of a judge."""
    wanted = sa.select(judges).where(judges.c.study == study, judges.c.id == judge)
    row = connection.execute(wanted).mappings().first()
    if row is None:
        raise NotFound(f"This study has no judge {judge!r}.")
    return row


def every(connection: sa.Connection, study: str) -> list[dict[str, Any]]:
    """All judges of a study, with how many messages each sent."""
    count = (
        sa.select(sa.func.count())
        .where(messages.c.study == study, messages.c.judge == judges.c.id)
        .scalar_subquery()
        .label("messages")
    )
    wanted = sa.select(judges, count).where(judges.c.study == study).order_by(judges.c.created)
    return [dict(row) for row in connection.execute(wanted).mappings()]


def standing_answers(connection: sa.Connection, study: str, judge: str) -> int:
    """How many questions a judge has answered, ties included; undone and skipped ones do not count."""
    later = messages.alias()
    after = sa.exists().where(later.c.question == messages.c.question, later.c.turn > messages.c.turn)
    wanted = sa.select(sa.func.count()).where(
        messages.c.study == study, messages.c.judge == judge, messages.c.said.not_in(["undo", "skip"]), ~after
    )
    return int(connection.execute(wanted).scalar_one())


def revoke(connection: sa.Connection, study: str, judge: str) -> None:
    """Let the judge's link work no longer; what he said so far stays, and his open questions are not waited for."""
    get(connection, study, judge)
    connection.execute(sa.update(judges).where(judges.c.id == judge).values(revoked=True))
    _expire(connection, study, judge)


FORGOTTEN = "deleted-"
"""How pseudonyms of judges whose data were deleted begin; ids are shorter and drawn at random."""


def is_forgotten(judge: str) -> bool:
    """Whether this is the pseudonym of a judge whose data were deleted."""
    return judge.startswith(FORGOTTEN)


def forget(connection: sa.Connection, study: str, judge: str) -> int:
    """Replace a judge by a fresh pseudonym, without name, wherever he is mentioned; how many events were rewritten.

    His answers stay, as nobody's. What they were is all that the evidence counts, so verdict and certificate stand.
    """
    row = get(connection, study, judge)
    _expire(connection, study, judge)
    nobody = FORGOTTEN + secrets.token_urlsafe(9)
    connection.execute(sa.insert(judges).values(id=nobody, study=study, name="", created=row["created"], revoked=True))
    connection.execute(sa.update(questions).where(questions.c.judge == judge).values(judge=nobody))
    connection.execute(sa.update(messages).where(messages.c.judge == judge).values(judge=nobody))
    mentioned = sa.select(events.c.seq, events.c.body).where(
        events.c.study == study, events.c.body.contains(json.dumps(judge), autoescape=True)
    )
    rewritten = 0
    for seq, body in connection.execute(mentioned).all():
        event = json.loads(body)
        if event.get("judge") == judge:
            event["judge"] = nobody
            connection.execute(
                sa.update(events).where(events.c.study == study, events.c.seq == seq).values(body=json.dumps(event))
            )
            rewritten += 1
    connection.execute(sa.delete(judges).where(judges.c.id == judge))
    # Whoever plans the study now has the old name in memory; what an observer wrote has it too.
    connection.execute(
        sa.update(studies)
        .where(studies.c.id == study)
        .values(planner=None, term=studies.c.term + 1, insight=None, insight_head=0, insight_from=0.0)
    )
    return rewritten


def _expire(connection: sa.Connection, study: str, judge: str) -> None:
    connection.execute(
        sa.update(questions)
        .where(questions.c.study == study, questions.c.judge == judge, questions.c.closed.is_(False))
        .values(leased_until=0.0)
    )
