"""The planner: ingests judges' messages, evaluates the evidence, and keeps questions ready so that nobody waits.

Any number of planners, in any processes and on any machines, can share a database. The one that holds a study's lease
plans it (`StudyLease`); each of its transactions begins by locking the study and checking the lease's term, so one that
was overtaken writes nothing. A round does for each study with work:

    1. ingest    all messages and expired questions become events; stages answered now can no longer be undone
    2. plan      the session plans or evaluates, however long that takes
    3. publish   new stages, questions and the verdict are written

Steps 1 and 3 are short transactions; during step 2 none is open, so judges are not held up by it. Only a final
verdict waits for the disk: everything else would be derived again from the messages, which are durable before they are
acknowledged.
"""

import json
import logging
import math
import secrets
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from surepick.errors import InvalidInput
from surepick.identify import CannotClose, Verdict
from surepick.session import Question, Session
from surepick.store import log
from surepick.store.answers import question_columns
from surepick.store.database import UNAVAILABLE, Database, lock_studies
from surepick.store.schema import (
    FORECAST_LEASE,
    INSIGHT_LEASE,
    PLANNER_LEASE,
    QUESTION_LEASE,
    evaluations,
    judges,
    questions,
    studies,
)
from surepick.store.supply import READY, judges_present, questions_wanted, studies_due

LEASE_SECONDS = 5.0
"""A planner that is silent for this long has lost its studies; `Planner.renew` is called several times within it."""

IDLE_SECONDS = 60.0
"""A study without any work for this long is released and its session dropped from memory."""

EXHAUSTED_SECONDS = 10.0
"""A judge who has had all that helps is asked again after this long at the earliest."""

EVALUATION_SHARE = 0.2
"""Evaluating the evidence between plans takes at most this share of the time ..."""

EVALUATION_SECONDS = 0.5
"""... and comes at most this often: it is for the dashboard, and a plan that finds the verdict publishes it anyway."""

SHOWN_RIVALS = 20
"""Closest rivals whose evidence is kept for the chart of its growth."""

MOST_AHEAD = 86_400.0
"""No insight or forecast is put off for longer: later deadlines are of a clock that was set back."""

CLOCK_SECONDS = 60.0
"""By which clocks may differ without anything being wrong."""

logger = logging.getLogger("surepick.planner")


class Overtaken(Exception):
    """The study is not as this planner left it; its log has to be replayed."""


@dataclass
class StudyLease:
    """A study that this planner holds: its session, and how much of the session is in the database."""

    term: int
    """Of the lease; a larger one in the database means that another planner has taken over."""
    phase: int
    session: Session
    head: int
    """Events in the database, of all phases."""
    written: int
    """Events of the session's log in the database."""
    evaluated_stages: int
    """Stages whose answers are all in and may have been evaluated: they can no longer be undone."""
    touched: float
    trusted_until: float = 0.0
    """Nobody else can have claimed the study before this time: half a lease after it was last confirmed."""
    stages_at_evaluation: int = 0
    """`evaluated_stages` at the last evaluation."""
    evaluate_from: float = 0.0
    """No evaluation before this time."""
    plan_seconds: float = 0.0
    """How long it took to plan the last questions."""
    running: bool = True
    """Whether judges may be given questions, as of the last transaction."""
    waits: bool = False
    """Whether nothing can be planned before further answers are ingested."""
    exhausted: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Judges who have had all that helps: when this was found, and how many answers there were."""

    def evaluation_due(self, now: float) -> bool:
        """Whether there is something new to evaluate, and time for it."""
        news = self.evaluated_stages > self.stages_at_evaluation
        return self.session.final is None and news and now >= self.evaluate_from


class Planner:
    """Plans studies, one after the other; `round` is called again and again.

    Every `survey` seconds all studies are looked at; in between only those with messages, expired questions or waiting
    judges. With hundreds of open studies the others would cost most of the time. They also come last, and after
    `share` seconds of them the next round looks first whether somebody waits by now: after a restart all studies are to
    be replayed and planned at once.
    """

    def __init__(
        self,
        database: Database,
        *,
        name: str | None = None,
        linger: float = 0.0,
        survey: float = 0.0,
        share: float = math.inf,
    ) -> None:
        self.name = name or secrets.token_urlsafe(9)
        self._survey = survey
        self._share = share
        self._unhurried: dict[str, None] = {}  # studies to look at when nobody waits, in this order
        self._linger = linger  # seconds that messages wait, so that several enter the log in one transaction
        self._database = database
        self._round_began: tuple[float, float] | None = None  # by the database's clock, and by `_tick`
        self._surveyed = -math.inf
        self._held: dict[str, StudyLease] = {}
        self._retry_from: dict[str, float] = {}
        self._last_round = math.inf  # so that the first round looks for times that are still to come

    def round(self) -> bool:
        """Plan every study that has work, once; whether there was any."""
        with self._database.reading() as connection:
            now = self._database.now(connection)
            if now < self._last_round:
                self._set_back(now)
            self._last_round = now
            self._round_began = now, self._tick()
            everywhere = not 0 <= now - self._surveyed < self._survey
            if everywhere:
                self._surveyed = now
            due = studies_due(connection, self.name, now, self._linger, everywhere)
        failed = {study for study, until in self._retry_from.items() if until > now}
        waiting = failed | {study for study, lease in self._held.items() if lease.waits}
        urgent = (due.messages - failed) | (due.waited_for - waiting)
        if everywhere:
            # Each planner in an order of its own: then they seldom try to claim the same study.
            low = sorted(due.low - waiting, key=lambda study: zlib.crc32(f"{self.name} {study}".encode()))
            left = [study for study in self._unhurried if study in due.low]
            self._unhurried = dict.fromkeys([*left, *low])
        evaluated = {study: None for study, lease in self._held.items() if lease.evaluation_due(now)}
        unhurried = [study for study in evaluated | self._unhurried if study not in urgent and study not in failed]
        trouble: Exception | None = None
        begun = self._tick()
        for place, study in enumerate([*sorted(urgent), *unhurried]):
            if place > len(urgent) and self._tick() - begun > self._share:  # at least one of them in every round
                break
            self._unhurried.pop(study, None)
            try:
                self._plan_study(study)
            except Overtaken:
                self._held.pop(study, None)
            except UNAVAILABLE as error:  # nothing was written
                trouble = error
                self._retry_from[study] = now + 1.0
            except Exception:  # one study's trouble must not stop the others
                logger.exception("Study %s cannot be planned; it is tried again in a minute.", study)
                self._held.pop(study, None)
                self._retry_from[study] = now + 60.0
        for study, lease in list(self._held.items()):
            # One that waits for answers would be claimed and replayed again at once, so it is kept.
            if everywhere and lease.touched < now - IDLE_SECONDS and study not in due.low:
                del self._held[study]
                release(self._database, self.name, study)
        if trouble is not None:
            raise trouble  # after all studies had their turn
        return bool(urgent or unhurried)

    def _now(self) -> float:
        """About the database's time; asking the database during a round would take a transaction each time."""
        if self._round_began is None:
            return self._database.now()
        began, tick = self._round_began
        return began + self._tick() - tick

    def _tick(self) -> float:
        """A clock for durations that takes no transaction."""
        return (self._database.clock or time.monotonic)()

    def _set_back(self, now: float) -> None:
        """The clock was set back: deadlines set before would pass much too late, so they are moved back with it."""
        for lease in self._held.values():
            lease.touched, lease.trusted_until, lease.evaluate_from = now, 0.0, 0.0
        self._retry_from.clear()
        pull_back_deadlines(self._database, now)

    def renew(self) -> None:
        """Keep the leases of all studies held; may be called from another thread while `round` is planning."""
        held = list(self._held)
        if held:
            with self._database.writing(durable=False) as connection:
                ours = (studies.c.planner == self.name, studies.c.id.in_(held))
                PLANNER_LEASE.lock(connection, *ours)
                PLANNER_LEASE.extend(connection, *ours, until=self._database.now(connection) + LEASE_SECONDS)

    def _plan_study(self, study: str) -> None:
        lease = self._claim(study)
        if lease is None:
            return
        lease.touched = self._now()
        try:
            self._ingest(study, lease)
            self._top_up(study, lease)
            if lease.evaluation_due(self._now()):
                self._evaluate(study, lease)
        except log.SessionBroken as broken:
            self._held.pop(study, None)
            with self._database.writing() as connection:
                self._lock(connection, study, lease)
                log.quarantine(connection, broken.message, str(broken))
        except BaseException:
            self._held.pop(study, None)  # the session may be ahead of the database; the next claim replays the log
            raise

    def _claim(self, study: str) -> StudyLease | None:
        """The study, if it is available; its log is replayed unless this planner held it all the time."""
        now = self._now()
        lease = self._held.get(study)
        if lease is not None and now < lease.trusted_until:
            return lease  # saves a transaction; `_lock` checks the term anyway before anything is written
        with self._database.writing(durable=False) as connection:
            ours = studies.c.planner == self.name
            term = sa.case((ours, studies.c.term), else_=studies.c.term + 1)
            if not PLANNER_LEASE.claim(connection, study, now=now, seconds=LEASE_SECONDS, holder=self.name, term=term):
                return None
            row = connection.execute(_position, {"the_study": study}).one()
        if lease is None or lease.term != row.term:
            with self._database.reading() as connection:
                session = log.replay(connection, study, row.phase)
                known = connection.scalars(_exhausted_judges, {"the_study": study}).all()
            lease = StudyLease(
                row.term, row.phase, session, row.head, len(session.log), row.evaluated_stages, touched=now
            )
            lease.exhausted = dict.fromkeys(known, (now, -1))  # found by whoever held the study before
            self._held[study] = lease
        lease.trusted_until = now + LEASE_SECONDS / 2
        return lease

    def _lock(self, connection: sa.Connection, study: str, lease: StudyLease) -> None:
        """Lock the study until the transaction ends; raises Overtaken where the study is another's by now, or where
        the database has lost this planner's last commits: they do not wait for the disk, and it may have crashed."""
        lock_studies(connection, [study], shared=False)
        row = connection.execute(_position.with_for_update(key_share=True), {"the_study": study}).one()
        known = (self.name, lease.term, lease.head, lease.evaluated_stages)
        if (row.planner, row.term, row.head, row.evaluated_stages) != known:
            raise Overtaken
        lease.running = row.state == "running"

    def _ingest(self, study: str, lease: StudyLease) -> None:
        """Append judges' messages and expired questions to the log; count the stages that are answered by that."""
        while not self._ingest_some(study, lease):
            pass

    def _ingest_some(self, study: str, lease: StudyLease) -> bool:
        """One transaction of `_ingest`; whether all messages are in the log."""
        session = lease.session
        with self._database.writing(durable=False) as connection:
            self._lock(connection, study, lease)
            now = self._database.now(connection)
            head, everything = log.ingest_messages(connection, study, lease.phase, session, lease.head, now)
            # New answers may make new questions worth asking. Not after every answer: it costs a plan for each judge.
            again = [
                judge
                for judge, (since, answers) in lease.exhausted.items()
                if now - since > EXHAUSTED_SECONDS and session.answered > answers
            ]
            if again:
                connection.execute(_set_exhausted, [{"the_judge": judge, "value": False} for judge in sorted(again)])
                for judge in again:
                    del lease.exhausted[judge]
            # Committed before the session evaluates these stages: from here on `undo_answers` refuses to change them,
            # so no judge can take back an answer after its stage was evaluated. Not before all messages are in, since
            # the next one may be the undo of an answer that was just ingested.
            stages = max(lease.evaluated_stages, session.answered_stages) if everything else lease.evaluated_stages
            if (head, stages) == (lease.head, lease.evaluated_stages):
                return everything
            self._update(connection, study, head=head, evaluated_stages=stages, answers=session.answered)
        lease.head, lease.written, lease.evaluated_stages, lease.waits = head, len(session.log), stages, False
        return everything

    def _top_up(self, study: str, lease: StudyLease) -> None:
        """Plan as many questions as are wanted."""
        if lease.session.final is not None or lease.waits or not lease.running:
            return
        if lease.session.repeats == "once":
            self._ask_judges(study, lease)
            return
        with self._database.reading() as connection:
            wanted = questions_wanted(connection, study, lease.phase, self._now(), lease.plan_seconds)
        if wanted < 1:
            return
        notice, asked, begun = "", [], self._tick()
        try:
            asked = lease.session.ask(wanted)
        except CannotClose as error:
            notice = str(error)
        lease.plan_seconds = max(0.0, self._tick() - begun)
        lease.waits = len(asked) < wanted
        self._publish(study, lease, asked, lease.session.final, notice=notice)

    def _ask_judges(self, study: str, lease: StudyLease) -> None:
        """The same where no judge is asked the same twice: for each judge who is there, what that judge has not had.

        While nobody is there, a few questions are ready for whoever comes.
        """
        session = lease.session
        with self._database.reading() as connection:
            needs = judges_present(connection, study, lease.phase, self._now(), session)
        wanted = 0 if needs.had else READY - needs.ready
        if wanted < 1 and not needs.wishes and not needs.unclaimable:
            return
        if needs.unclaimable:
            self._withdraw(study, lease, needs.unclaimable)
        asked: list[Question] = []
        exhausted: dict[str, bool] = {}
        for judge, wishes in needs.wishes.items():
            had = set(needs.had[judge])
            for _ in range(wishes):
                new = session.ask(1, without=had)
                if not session.problem.inputs:  # the same pair on another input is another question
                    had |= {question.measurement for question in new}
                asked += new
            exhausted[judge] = session.exhausted
        if wanted > 0:
            asked = session.ask(wanted)
        # It waits for answers only if questions are out with judges. Ready ones that nobody can take are withdrawn
        # soon, and a judge for whom nothing is left does not keep a new one waiting.
        lease.waits = bool(needs.wishes) and not (asked or needs.ready or any(exhausted.values()))
        lease.exhausted |= {judge: (self._now(), session.answered) for judge, done in exhausted.items() if done}
        self._publish(study, lease, asked, session.final, exhausted=exhausted)

    def _withdraw(self, study: str, lease: StudyLease, numbers: Iterable[int]) -> None:
        """Skip questions that nobody who is there can take, unless somebody has come meanwhile and taken one."""
        session, known = lease.session, {"the_study": study, "the_phase": lease.phase, "numbers": list(numbers)}
        with self._database.writing(durable=False) as connection:
            self._lock(connection, study, lease)
            for number in connection.scalars(_not_taken, known).all():
                session.skip(number)
            connection.execute(_close_not_taken, known)
            entries = session.log[lease.written :]
            head = lease.head + len(entries)
            log.append(connection, study, lease.phase, lease.head, entries, self._database.now(connection))
            self._update(connection, study, head=head)
        lease.head, lease.written = head, len(session.log)
        # Stages that are answered by that are evaluated only when this is committed, like all others.
        self._ingest(study, lease)

    def _evaluate(self, study: str, lease: StudyLease) -> None:
        """Evaluate the evidence of the answered stages, and publish the verdict so far."""
        begun = self._tick()
        try:
            verdict = lease.session.verdict()
        except CannotClose:
            verdict = None
        lease.stages_at_evaluation = lease.evaluated_stages
        if verdict is not None:
            self._publish(study, lease, [], verdict)
        rest = max((self._tick() - begun) / EVALUATION_SHARE, EVALUATION_SECONDS)
        lease.evaluate_from = self._now() + rest

    def _publish(
        self,
        study: str,
        lease: StudyLease,
        asked: list[Question],
        verdict: Verdict | None,
        *,
        exhausted: Mapping[str, bool] | None = None,
        **changes: Any,
    ) -> None:
        """Write the session's new events, the questions asked and the verdict, in one transaction.

        `exhausted` says of judges whether they have had all that would help.
        """
        entries = lease.session.log[lease.written :]
        head = lease.head + len(entries)
        if verdict is not None:
            # The claims of an open verdict are computed for the dashboard, where nobody waits for them.
            shown = verdict if verdict.status.final else replace(verdict, claimant=None)
            changes |= {"verdict": json.dumps(shown.to_json())}
            if verdict.status.final:
                changes |= {"certificate": _certificate(lease.session, verdict)}
        # A final verdict must not be shown and then lost: judges were told that the study is over.
        with self._database.writing(durable=verdict is not None and verdict.status.final) as connection:
            self._lock(connection, study, lease)
            now = self._database.now(connection)
            log.append(connection, study, lease.phase, lease.head, entries, now)
            if asked:
                connection.execute(
                    sa.insert(questions), [_question_row(study, lease.phase, question, now) for question in asked]
                )
            if exhausted:
                connection.execute(
                    _set_exhausted, [{"the_judge": judge, "value": value} for judge, value in sorted(exhausted.items())]
                )
            if verdict is not None:
                _record_evaluation(connection, study, lease.phase, head, lease.session.answered, verdict, now)
                if verdict.status.final:
                    changes |= {"decided": now}
            self._update(connection, study, head=head, **changes)
        lease.head, lease.written = head, len(lease.session.log)

    def _update(self, connection: sa.Connection, study: str, **changes: Any) -> None:
        until = self._database.now(connection) + LEASE_SECONDS
        PLANNER_LEASE.extend(connection, studies.c.id == study, until=until, **changes)


def release(database: Database, planner: str, study: str | None = None) -> None:
    """Give back a study, or all that this planner holds, so that another need not wait for the lease to expire."""
    held = [studies.c.planner == planner] if study is None else [studies.c.planner == planner, studies.c.id == study]
    with database.writing() as connection:
        PLANNER_LEASE.lock(connection, *held)
        PLANNER_LEASE.release(connection, *held)


def pull_back_deadlines(database: Database, now: float) -> None:
    """Where a lease was claimed in the future, the clock has been set back since: let it begin now.

    A question keeps what was left of its lease. Other leases are pulled back if they are further ahead than any can
    be; then they are available, and whoever still works under one is guarded as always (`Lease`).
    """
    latest = {PLANNER_LEASE: 10 * LEASE_SECONDS, INSIGHT_LEASE: MOST_AHEAD, FORECAST_LEASE: MOST_AHEAD}
    for lease, most in latest.items():
        with database.writing(durable=False) as connection:
            lease.lock(connection, lease.until > now + most)
            lease.extend(connection, lease.until > now + most, until=0.0)
    future = questions.c.leased_at > now + CLOCK_SECONDS
    with database.reading() as connection:
        wrong = sorted(connection.scalars(sa.select(questions.c.study).distinct().where(future)))
    for study in wrong:
        with database.writing(durable=False) as connection:
            lock_studies(connection, [study], shared=False)
            shifted = questions.c.leased_until - questions.c.leased_at + now
            connection.execute(
                sa.update(questions)
                .where(questions.c.study == study, future)
                .values(leased_until=shifted, leased_at=now)
            )
            connection.execute(sa.update(judges).where(judges.c.study == study).values(wanted=0, wanted_at=0.0))


def _certificate(session: Session, verdict: Verdict) -> str | None:
    if not verdict.status.decided:
        return None
    try:
        return json.dumps(session.certificate())
    except InvalidInput:  # the policy writes none, or its verdict is not a proved one
        return None


def _question_row(study: str, phase: int, question: Question, now: float) -> dict[str, Any]:
    return {
        "id": secrets.token_urlsafe(12),
        "study": study,
        "phase": phase,
        "number": question.id,
        "stage": question.stage,
        **question_columns(question),
        "measurement": question.measurement,
        "planned": now,
        "answered": False,
    }


def _record_evaluation(
    connection: sa.Connection, study: str, phase: int, seq: int, answers: int, verdict: Verdict, now: float
) -> None:
    body = {
        "status": str(verdict.status),
        "best": verdict.best,
        "surviving": len(verdict.surviving),
        "evidence": {rival.name: rival.evidence for rival in verdict.rivals[:SHOWN_RIVALS]},
    }
    row = {"study": study, "seq": seq, "phase": phase, "at": now, "answers": answers, "body": json.dumps(body)}
    connection.execute(sa.delete(evaluations).where(evaluations.c.study == study, evaluations.c.seq == seq))
    connection.execute(sa.insert(evaluations).values(**row))


_position = sa.select(
    studies.c.planner, studies.c.term, studies.c.state, studies.c.phase, studies.c.head, studies.c.evaluated_stages
).where(studies.c.id == sa.bindparam("the_study"))

_among_not_taken = (
    questions.c.study == sa.bindparam("the_study"),
    questions.c.phase == sa.bindparam("the_phase"),
    questions.c.number.in_(sa.bindparam("numbers", expanding=True)),
    QUESTION_LEASE.never_claimed,
    questions.c.answered.is_(False),
)
_not_taken = sa.select(questions.c.number).where(*_among_not_taken).order_by(questions.c.number)
_close_not_taken = sa.update(questions).where(*_among_not_taken).values(answered=True)
_exhausted_judges = sa.select(judges.c.id).where(
    judges.c.study == sa.bindparam("the_study"), judges.c.exhausted.is_(True)
)
_set_exhausted = (
    sa.update(judges).where(judges.c.id == sa.bindparam("the_judge")).values(exhausted=sa.bindparam("value"))
)
