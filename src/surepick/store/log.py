"""The log of a study: the session's events as rows. Only the planner that holds the study's lease appends to it.

Judges' messages become events here (`ingest_messages`). Messages of several processes come in no particular order; the
order in which they enter the log is decided once, by the planner, and every replay uses that order.
"""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from surepick.answer import Answer, read_answer
from surepick.session import Session, file_answer
from surepick.store.schema import QUESTION_LEASE, events, messages, questions

Event = dict[str, Any]

NO_EVENT = -1
"""`seq` of a message that changes nothing: a skip or tie of a question that had expired before."""

MOST_INGESTED = 1_000
"""Messages that enter the log in one transaction, during which SQLite takes no other write."""


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


def rows(connection: sa.Connection, study: str) -> list[sa.RowMapping]:
    """The rows of all phases, in order."""
    wanted = sa.select(events).where(events.c.study == study).order_by(events.c.seq)
    return list(connection.execute(wanted).mappings())


def replay(connection: sa.Connection, study: str, phase: int) -> Session:
    """The session that this phase's log describes."""
    return Session.replay(read(connection, study, phase))


def ingest_messages(connection: sa.Connection, study: str, phase: int, session: Session, head: int, now: float) -> int:
    """Tell the session what judges said, skip expired questions, and append both to the log; its new length.

    `session` is the one of `phase`, and `head` the length of the log with all its phases. The caller has locked the
    study. A skip without a judge is an expired question. Messages about a question of an earlier phase go into that
    phase's log, where they change no verdict.
    """
    received = list(connection.execute(_not_in_log, {"the_study": study}).mappings())
    written, ingested = len(session.log), []
    for message in received:
        if message["phase"] != phase:
            continue
        before = len(session.log)
        if message["said"] == "undo":
            session.undo(message["number"])
        else:
            file_answer(session, message["number"], _answer(message), judge=message["judge"])
        ingested.append((message, head + before - written if len(session.log) > before else NO_EVENT))
    _mark_ingested(connection, ingested)
    # After the messages: an answer that came just before the deadline counts as one, not as an answer to an expired
    # question.
    late = {"the_study": study, "the_phase": phase, "now": now}
    expired = list(connection.execute(_expired, late).mappings())
    for question in expired:
        session.skip(question["number"])
    _mark_answered(connection, {question["id"]: True for question in expired})
    entries = session.log[written:]
    append(connection, study, phase, head, entries, now)
    head += len(entries)
    earlier = [message for message in received if message["phase"] != phase]
    for place, message in enumerate(earlier):
        append(connection, study, message["phase"], head + place, [_event_of_earlier_phase(message)], now)
    _mark_ingested(connection, [(message, head + place) for place, message in enumerate(earlier)])
    return head + len(earlier)


def _answer(message: sa.RowMapping) -> Answer:
    """What the word of a message means to the session."""
    first, second = message["first"], message["second"]
    return read_answer(message["said"], (first,) if second is None else (first, second))


def _event_of_earlier_phase(message: sa.RowMapping) -> Event:
    event: Event = {"id": message["number"], "judge": message["judge"]}
    if message["said"] in ("skip", "tie"):
        return {"event": message["said"], **event}
    return {"event": "answer", "answer": _answer(message), **event}


def _mark_ingested(connection: sa.Connection, ingested: Sequence[tuple[sa.RowMapping, int]]) -> None:
    """Note for each message its place in the log, and for each question whether it is still waited for."""
    if ingested:
        connection.execute(
            _set_seq,
            [
                {"the_question": message["question"], "the_turn": message["turn"], "the_seq": seq}
                for message, seq in ingested
            ],
        )
        _mark_answered(connection, {message["question"]: message["said"] != "undo" for message, _ in ingested})


def _mark_answered(connection: sa.Connection, answered: dict[str, bool]) -> None:
    if answered:
        connection.execute(
            _set_answered,
            [{"the_question": question, "is_answered": value} for question, value in answered.items()],
        )


def expired_questions() -> sa.ColumnElement[bool]:
    """Questions whose judge let the deadline pass without a message in the log."""
    return sa.and_(QUESTION_LEASE.expired, questions.c.answered.is_(False))


_not_in_log = (
    sa.select(messages, questions.c.number, questions.c.phase, questions.c.first, questions.c.second)
    .join(questions, questions.c.id == messages.c.question)
    .where(messages.c.study == sa.bindparam("the_study"), messages.c.seq.is_(None))
    .order_by(messages.c.at, messages.c.question, messages.c.turn)
    .limit(MOST_INGESTED)
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

_set_seq = (
    sa.update(messages)
    .where(messages.c.question == sa.bindparam("the_question"), messages.c.turn == sa.bindparam("the_turn"))
    .values(seq=sa.bindparam("the_seq"))
)

_set_answered = (
    sa.update(questions)
    .where(questions.c.id == sa.bindparam("the_question"))
    .values(answered=sa.bindparam("is_answered"))
)
