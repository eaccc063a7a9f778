"""The planner: files judges' messages into the log, evaluates, and keeps questions ready so that nobody waits.

Any number of planners, in any processes and on any machines, can share a database. A study is tended by the one that
holds its lease; each of its transactions begins by locking the study and checking that, so one
that was overtaken writes nothing.

    1. file      messages and expired questions become events; stages that are complete now are sealed
    2. think     the session plans or evaluates, however long that takes
    3. publish   new stages, questions and the verdict are written

File and publish are one short transaction each; while the session thinks none is open. Only a final verdict waits for
the disk: all else would be derived again.
"""

import json
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from surepick.errors import InvalidInput
from surepick.identify import CannotClose, Verdict
from surepick.session import Question, Session
from surepick.store import ingest as filing
from surepick.store import log
from surepick.store import planner_queries as need
from surepick.store.database import Database
from surepick.store.schema import looks, questions, studies

LEASE_SECONDS = 5.0
"""A planner that says nothing for so long has lost its studies; `Planner.renew` is called more often than that."""

IDLE_SECONDS = 60.0
"""A study without any work for so long is given back and forgotten."""

LOOK_SHARE = 0.2
"""Looking at the evidence between plans takes at most this share of the time."""

SHOWN_RIVALS = 20
"""Closest rivals whose evidence is kept for the picture of its growth."""

logger = logging.getLogger("surepick.planner")


class Overtaken(Exception):
    """Another planner has taken over the study."""


@dataclass
class _Hand:
    """A study in hand: its session, and how much of that is in the database."""

    term: int
    phase: int
    session: Session
    head: int
    """Events in the database, of all phases."""
    written: int
    """Events of the session's log in the database."""
    sealed: int
    touched: float
    ours_until: float = 0.0
    """Until then nobody else can have claimed it."""
    looked: int = 0
    """Stages that were complete at the last look at the evidence."""
    look_from: float = 0.0
    """No look before this time."""
    waits: bool = False
    """Whether nothing can be planned before further answers are filed."""

    def wants_look(self, now: float) -> bool:
        """Whether there is something new to see."""
        return self.session.final is None and self.sealed > self.looked and now >= self.look_from


class Planner:
    """Tends studies, one after the other; `round` is called again and again."""

    def __init__(
        self,
        database: Database,
        *,
        name: str | None = None,
        linger: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name or secrets.token_urlsafe(9)
        self._linger = linger  # messages wait so many seconds to be filed together
        self._database = database
        self._clock = clock
        self._hands: dict[str, _Hand] = {}
        self._rest: dict[str, float] = {}

    def round(self) -> bool:
        """Tend every study that needs it, once; whether there was anything to do."""
        now = self._clock()
        with self._database.reading() as connection:
            filing_due, questions_due = need.due(connection, self.name, now, self._linger)
        idle = {study for study, hand in self._hands.items() if hand.waits}
        looks_due = {study for study, hand in self._hands.items() if hand.wants_look(now)}
        wanted = (filing_due | (questions_due - idle) | looks_due) - {
            study for study, until in self._rest.items() if until > now
        }
        for study in sorted(wanted):
            try:
                self._tend(study)
            except Overtaken:
                self._hands.pop(study, None)
            except sa.exc.DBAPIError:  # a deadlock or a lost connection: nothing was written
                logger.exception("Study %s is tried again in a second.", study)
                self._rest[study] = now + 1.0
            except Exception:  # one study's trouble must not stop the others
                logger.exception("Study %s cannot be planned; it is tried again in a minute.", study)
                self._hands.pop(study, None)
                self._rest[study] = now + 60.0
        for study, hand in list(self._hands.items()):
            # One that waits for answers, and would be claimed and replayed at once, is kept.
            if hand.touched < now - IDLE_SECONDS and study not in questions_due:
                del self._hands[study]
                release(self._database, self.name, study)
        return bool(wanted)

    def renew(self) -> None:
        """Keep the leases of all studies in hand; may be called from another thread while `round` is thinking."""
        held = list(self._hands)
        if held:
            with self._database.writing(durable=False) as connection:
                connection.execute(
                    sa.update(studies)
                    .where(studies.c.planner == self.name, studies.c.id.in_(held))
                    .values(planner_until=self._clock() + LEASE_SECONDS)
                )

    def _tend(self, study: str) -> None:
        hand = self._claim(study)
        if hand is None:
            return
        hand.touched = self._clock()
        try:
            self._file(study, hand)
            self._top_up(study, hand)
            if hand.wants_look(self._clock()):
                self._look(study, hand)
        except BaseException:
            self._hands.pop(study, None)  # the session may be ahead of the database; the next claim replays
            raise

    def _claim(self, study: str) -> _Hand | None:
        """The study, if it is ours or free; replayed from the log unless we held it all the time."""
        now = self._clock()
        hand = self._hands.get(study)
        if hand is not None and now < hand.ours_until:
            return hand
        with self._database.writing(durable=False) as connection:
            row = connection.execute(_locked, {"the_study": study}).mappings().one()
            ours = row["planner"] == self.name
            if not ours and row["planner"] is not None and row["planner_until"] >= now:
                return None
            term = row["term"] if ours else row["term"] + 1
            connection.execute(
                sa.update(studies)
                .where(studies.c.id == study)
                .values(planner=self.name, planner_until=now + LEASE_SECONDS, term=term)
            )
        if hand is None or hand.term != term:
            with self._database.reading() as connection:
                session = log.fold(connection, study, row["phase"])
            hand = _Hand(term, row["phase"], session, row["head"], len(session.log), row["sealed"], now)
            self._hands[study] = hand
        hand.ours_until = now + LEASE_SECONDS / 2
        return hand

    def _lock(self, connection: sa.Connection, study: str, hand: _Hand) -> None:
        """Lock the study's row until the transaction ends; raises Overtaken where the study is another's by now."""
        row = connection.execute(_locked, {"the_study": study}).one()
        if row.planner != self.name or row.term != hand.term:
            raise Overtaken

    def _file(self, study: str, hand: _Hand) -> None:
        """Judges' messages and expired questions into the log, and the stages that are complete by that sealed."""
        now, session = self._clock(), hand.session
        with self._database.writing(durable=False) as connection:
            self._lock(connection, study, hand)
            seq = filing.file_messages(connection, study, hand.phase, session, hand.head, now)
            if seq == hand.head:
                return
            sealed = max(hand.sealed, session.answered_stages)
            self._update(connection, study, head=seq, sealed=sealed, answered=session.answered)
        hand.head, hand.written, hand.sealed, hand.waits = seq, len(session.log), sealed, False

    def _top_up(self, study: str, hand: _Hand) -> None:
        """Plan as many questions as are wanted."""
        if hand.session.final is not None or hand.waits:
            return
        with self._database.reading() as connection:
            wanted = need.questions_wanted(connection, study, hand.phase, self._clock())
        if wanted < 1:
            return
        notice, asked = "", []
        try:
            asked = hand.session.ask(wanted)
        except CannotClose as error:
            notice = str(error)
        hand.waits = len(asked) < wanted
        self._publish(study, hand, asked, hand.session.final, notice=notice, demand=0)

    def _look(self, study: str, hand: _Hand) -> None:
        """Evaluate what is complete, and show it."""
        begun = self._clock()
        try:
            verdict = hand.session.verdict()
        except CannotClose:
            verdict = None
        hand.looked = hand.sealed
        hand.look_from = self._clock() + (self._clock() - begun) / LOOK_SHARE
        if verdict is not None:
            self._publish(study, hand, [], verdict)

    def _publish(self, study: str, hand: _Hand, asked: list[Question], verdict: Verdict | None, **changes: Any) -> None:
        """Write what the session came to."""
        now, entries = self._clock(), hand.session.log[hand.written :]
        head = hand.head + len(entries)
        if verdict is not None:
            changes |= {"verdict": json.dumps(verdict.to_json())}
            if verdict.status.final:
                changes |= {"decided": now, "certificate": _certificate(hand.session, verdict)}
        with self._database.writing(durable=verdict is not None and verdict.status.final) as connection:
            self._lock(connection, study, hand)
            log.append(connection, study, hand.phase, hand.head, entries, now)
            if asked:
                connection.execute(
                    sa.insert(questions), [_question_row(study, hand.phase, question) for question in asked]
                )
            if verdict is not None:
                _keep_look(connection, study, hand.phase, head, hand.session.answered, verdict, now)
            self._update(connection, study, head=head, **changes)
        hand.head, hand.written = head, len(hand.session.log)

    def _update(self, connection: sa.Connection, study: str, **changes: Any) -> None:
        connection.execute(
            sa.update(studies)
            .where(studies.c.id == study)
            .values(planner_until=self._clock() + LEASE_SECONDS, **changes)
        )


def release(database: Database, planner: str, study: str | None = None) -> None:
    """Give back a study, or all that this planner holds, so that another need not wait for the lease to run out."""
    held = studies.c.planner == planner
    with database.writing() as connection:
        connection.execute(
            sa.update(studies)
            .where(held if study is None else sa.and_(held, studies.c.id == study))
            .values(planner=None, planner_until=0.0)
        )


def _certificate(session: Session, verdict: Verdict) -> str | None:
    if not verdict.status.decided:
        return None
    try:
        return json.dumps(session.certificate())
    except InvalidInput:  # the policy writes none, or its verdict is not a proved one
        return None


def _question_row(study: str, phase: int, question: Question) -> dict[str, Any]:
    return {
        "id": secrets.token_urlsafe(12),
        "study": study,
        "phase": phase,
        "number": question.id,
        "stage": question.stage,
        "first": question.first,
        "second": question.second,
        "closed": False,
    }


def _keep_look(
    connection: sa.Connection, study: str, phase: int, seq: int, answered: int, verdict: Verdict, now: float
) -> None:
    body = {
        "status": str(verdict.status),
        "best": verdict.best,
        "surviving": len(verdict.surviving),
        "evidence": {rival.name: rival.evidence for rival in verdict.rivals[:SHOWN_RIVALS]},
    }
    row = {"study": study, "seq": seq, "phase": phase, "at": now, "answered": answered, "body": json.dumps(body)}
    connection.execute(sa.delete(looks).where(looks.c.study == study, looks.c.seq == seq))
    connection.execute(sa.insert(looks).values(**row))


_locked = (
    sa.select(
        studies.c.planner, studies.c.planner_until, studies.c.term, studies.c.phase, studies.c.head, studies.c.sealed
    )
    .where(studies.c.id == sa.bindparam("the_study"))
    .with_for_update()
)
