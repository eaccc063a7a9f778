"""Messages become events: the one place where the order of answers is decided."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from surepick.session import Answer, Session, file_answer
from surepick.store import log
from surepick.store import planner_queries as need
from surepick.store.schema import messages, questions

MEANING: dict[str, Answer] = {"a": 1, "yes": 1, "b": 0, "no": 0, "tie": "tie", "skip": None}
"""What a judge's word is to the session."""

NO_EVENT = -1
"""`seq` of a message that changes nothing: a skip or tie of a question that had expired before."""


def file_messages(connection: sa.Connection, study: str, phase: int, session: Session, head: int, now: float) -> int:
    """Tell the session what judges said, skip expired questions, and append all that to the log; its new length.

    A skip without a judge is an expired question. Messages about a question of an earlier phase go into that phase's
    log, where they change no verdict.
    """
    told = list(connection.execute(need.unfiled, {"the_study": study}).mappings())
    written, filed = len(session.log), []
    for message in told:
        if message["phase"] != phase:
            continue
        before = len(session.log)
        tell(session, message["number"], message["said"], message["judge"])
        filed.append((message, head + before - written if len(session.log) > before else NO_EVENT))
    _mark(connection, filed)
    expired = list(connection.execute(need.expired, {"the_study": study, "the_phase": phase, "now": now}).mappings())
    for question in expired:
        session.skip(question["number"])
    if expired:
        connection.execute(_closing, [{"the_question": question["id"], "is_closed": True} for question in expired])
    entries = session.log[written:]
    log.append(connection, study, phase, head, entries, now)
    head += len(entries)
    late = [message for message in told if message["phase"] != phase]
    for place, message in enumerate(late):
        log.append(connection, study, message["phase"], head + place, [_late_event(message)], now)
    _mark(connection, [(message, head + place) for place, message in enumerate(late)])
    return head + len(late)


def tell(session: Session, question: int, said: str, judge: str) -> None:
    """One message to the session."""
    if said == "undo":
        session.undo(question)
    else:
        file_answer(session, question, MEANING[said], judge=judge)


def _late_event(message: Any) -> log.Event:
    event: log.Event = {"id": message["number"], "judge": message["judge"]}
    if message["said"] in ("skip", "tie"):
        return {"event": message["said"], **event}
    return {"event": "answer", "answer": MEANING[message["said"]], **event}


def _mark(connection: sa.Connection, filed: Sequence[tuple[Any, int]]) -> None:
    if filed:
        connection.execute(
            _filing,
            [{"the_question": each["question"], "the_turn": each["turn"], "the_seq": seq} for each, seq in filed],
        )
        closed = {each["question"]: each["said"] != "undo" for each, _ in filed}
        connection.execute(
            _closing, [{"the_question": question, "is_closed": done} for question, done in closed.items()]
        )


_filing = (
    sa.update(messages)
    .where(messages.c.question == sa.bindparam("the_question"), messages.c.turn == sa.bindparam("the_turn"))
    .values(seq=sa.bindparam("the_seq"))
)
_closing = (
    sa.update(questions).where(questions.c.id == sa.bindparam("the_question")).values(closed=sa.bindparam("is_closed"))
)
