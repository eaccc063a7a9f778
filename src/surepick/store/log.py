"""The log of a study: the session's events as rows. Only the planner that holds the study's lease appends to it.

Judges' messages become events here (`ingest_messages`), in the order of their ids. A message is accepted only after
those before it about the same question were committed, so this order has the turns of every question in sequence,
whichever process took them and whatever its clock said. No message can stop this: one that contradicts the log is
quarantined, and the others go on.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any, cast

import sqlalchemy as sa

from surepick.errors import InvalidInput
from surepick.session import Session, file_answer
from surepick.store.answers import as_logged, meaning
from surepick.store.schema import QUESTION_LEASE, events, messages, questions, studies

Event = dict[str, Any]

logger = logging.getLogger("surepick.log")

NO_EVENT = -1
"""`seq` of a message that changes nothing: a skip or tie of a question that had expired before."""

QUARANTINED = -2
"""`seq` of a message that cannot enter the log; its column `quarantine` says why."""

MOST_INGESTED = 1_000
"""Messages that enter the log in one transaction, during which SQLite takes no other write."""


class SessionBroken(Exception):
    """A message made the session fail halfway, so the session in memory is of no more use; `quarantine` the message."""

    def __init__(self, message: sa.RowMapping, reason: str) -> None:
        super().__init__(reason)
        self.message = message


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


def read(connection: sa.Connection, study: str, phase: int) -> Iterator[Event]:
    """The events of one phase, in order, one after the other: all at once would take ten times a session's memory."""
    wanted = sa.select(events.c.body).where(events.c.study == study, events.c.phase == phase).order_by(events.c.seq)
    return (json.loads(body) for body in connection.scalars(wanted))


def rows(connection: sa.Connection, study: str) -> list[sa.RowMapping]:
    """The rows of all phases, in order."""
    wanted = sa.select(events).where(events.c.study == study).order_by(events.c.seq)
    return list(connection.execute(wanted).mappings())


def replay(connection: sa.Connection, study: str, phase: int) -> Session:
    """The session that this phase's log describes."""
    return Session.replay(read(connection, study, phase))


def ingest_messages(
    connection: sa.Connection, study: str, phase: int, session: Session, head: int, now: float
) -> tuple[int, bool]:
    """Tell the session what judges said and append it to the log; its new length, and whether that was all.

    `session` is the one of `phase`, and `head` the length of the log with all its phases. The caller has locked the
    study, and evaluates nothing before all messages are in: behind an answer there may be its undo. With the last
    messages expired questions are skipped, which are skips without a judge. Messages about a question of an earlier
    phase go into that phase's log, where they change no verdict.
    """
    known = {"the_study": study, "the_phase": phase, "now": now, "most": MOST_INGESTED}
    received = list(connection.execute(_not_in_log, known).mappings())
    everything = len(received) < MOST_INGESTED
    written = len(session.log)
    ingested: list[tuple[sa.RowMapping, int]] = []
    earlier: list[tuple[sa.RowMapping, Event]] = []
    blocked = {message["question"] for message in received if message["follows_quarantined"]}
    for message in received:
        before = len(session.log)
        try:
            if message["question"] in blocked:
                raise InvalidInput("It follows a message about the same question that is quarantined.")
            if message["phase"] == phase:
                _tell(session, message)
                ingested.append((message, head + before - written if len(session.log) > before else NO_EVENT))
            else:
                earlier.append((message, _event_of_earlier_phase(message)))
        except Exception as error:  # whatever it is, it must not keep the other messages waiting
            if len(session.log) > before:
                raise SessionBroken(message, str(error)) from error
            quarantine(connection, message, str(error))
            blocked.add(message["question"])
    # After the messages: an answer that came just before the deadline counts as one, not as an answer to an expired
    # question.
    expired = list(connection.execute(_expired, known).mappings()) if everything else []
    open_now = {question.id for question in session.outstanding}
    for question in expired:
        if question["number"] in open_now:
            session.skip(question["number"])
    entries = session.log[written:]
    append(connection, study, phase, head, entries, now)
    head += len(entries)
    for place, (message, event) in enumerate(earlier):
        append(connection, study, message["phase"], head + place, [event], now)
        ingested.append((message, head + place))
    _mark_ingested(connection, ingested)
    # By the session, not by the message: a quarantined undo leaves its question answered.
    answered = {row["question"]: row["number"] not in open_now for row in received if row["phase"] == phase}
    answered |= {message["question"]: message["said"] != "undo" for message, _ in earlier}
    _mark_answered(connection, answered | {question["id"]: True for question in expired})
    return head + len(earlier), everything


def quarantine(connection: sa.Connection, message: sa.RowMapping, reason: str) -> None:
    """Keep a message out of the log for good, and say why."""
    logger.error("Message %s of study %s is quarantined: %s", message["id"], message["study"], reason)
    connection.execute(
        sa.update(messages)
        .where(messages.c.id == message["id"])
        .values(seq=QUARANTINED, quarantine=reason or "It cannot be read.")
    )


def quarantined(connection: sa.Connection, study: str) -> list[sa.RowMapping]:
    """The messages of a study that could not enter its log, the oldest first."""
    wanted = sa.select(messages).where(messages.c.study == study, messages.c.quarantine.is_not(None))
    return list(connection.execute(wanted.order_by(messages.c.id)).mappings())


def message_counts(connection: sa.Connection) -> sa.Row[Any]:
    """Of all studies: messages `waiting` to enter a log, when the `oldest` of them came, and those `quarantined`.

    Archived studies no longer count as quarantined: archiving says that the admin has seen it.
    """
    waiting = sa.select(sa.func.count().label("waiting"), sa.func.min(messages.c.at).label("oldest")).where(
        messages.c.seq.is_(None)
    )
    refused = (
        sa.select(sa.func.count())
        .join(studies, studies.c.id == messages.c.study)
        .where(messages.c.quarantine.is_not(None), studies.c.state != "archived")
    )
    return connection.execute(waiting.add_columns(refused.scalar_subquery().label("quarantined"))).one()


def _tell(session: Session, message: sa.RowMapping) -> None:
    number, judge = message["number"], message["judge"]
    if message["said"] == "undo":
        session.undo(number)
    elif message["said"] not in ("skip", "tie") and message["late"]:
        # The study counts stages as evaluated a moment before the session does, and the judge was told by the study.
        session.tell(number, cast("Any", meaning(message, message["said"])), judge=judge, late=True)
    else:
        file_answer(session, number, meaning(message, message["said"]), judge=judge)


def _event_of_earlier_phase(message: sa.RowMapping) -> Event:
    if message["said"] == "undo":
        return {"event": "undo", "id": message["number"]}
    event: Event = {"id": message["number"], "judge": message["judge"]}
    if message["said"] in ("skip", "tie"):
        return {"event": message["said"], **event}
    return {"event": "answer", "answer": as_logged(message), **event} | ({"late": True} if message["late"] else {})


def _mark_ingested(connection: sa.Connection, ingested: Sequence[tuple[sa.RowMapping, int]]) -> None:
    """Note for each message its place in the log."""
    if ingested:
        connection.execute(_set_seq, [{"the_id": message["id"], "the_seq": seq} for message, seq in ingested])


def _mark_answered(connection: sa.Connection, answered: dict[str, bool]) -> None:
    if answered:
        connection.execute(
            _set_answered, [{"the_question": question, "is_answered": value} for question, value in answered.items()]
        )


def expired_questions() -> sa.ColumnElement[bool]:
    """Questions whose judge let the deadline pass without a message in the log."""
    return sa.and_(QUESTION_LEASE.expired, questions.c.answered.is_(False))


_before = messages.alias()
_follows_quarantined = sa.exists().where(_before.c.question == messages.c.question, _before.c.quarantine.is_not(None))

_not_in_log = (
    sa.select(
        messages,
        questions.c.number,
        questions.c.phase,
        questions.c.first,
        questions.c.second,
        questions.c.others,
        questions.c.top,
        _follows_quarantined.label("follows_quarantined"),
    )
    .join(questions, questions.c.id == messages.c.question)
    .where(messages.c.study == sa.bindparam("the_study"), messages.c.seq.is_(None))
    .order_by(messages.c.id)
    .limit(sa.bindparam("most", type_=sa.Integer))
)

_expired = (
    sa.select(questions.c.id, questions.c.number)
    .where(
        questions.c.study == sa.bindparam("the_study"),
        questions.c.phase == sa.bindparam("the_phase"),
        expired_questions(),
    )
    .order_by(questions.c.number)
)

_set_seq = sa.update(messages).where(messages.c.id == sa.bindparam("the_id")).values(seq=sa.bindparam("the_seq"))

_set_answered = (
    sa.update(questions)
    .where(questions.c.id == sa.bindparam("the_question"))
    .values(answered=sa.bindparam("is_answered"))
)
