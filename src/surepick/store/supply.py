"""What is wanted: which studies have work for a planner, how many questions should be ready, and for which judges."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from surepick.session import Session
from surepick.store import log
from surepick.store.question_queue import WISH_SECONDS, had_before
from surepick.store.schema import PLANNER_LEASE, QUESTION_LEASE, judges, messages, questions, studies

UNCLAIMED_SECONDS = 2.0
"""A question that has been ready for this long, and that no judge who is there may take, is skipped."""

READY = 3
"""Questions kept ready for a study that nobody asks about at the moment."""

AHEAD_SECONDS = 2.0
AHEAD_SHARE = 1.5
"""At least this many times the questions handed out in the last AHEAD_SECONDS are kept ready, and as many more as are
going to be handed out while the next ones are planned."""

MOST_READY = 5_000


class StudiesDue(NamedTuple):
    """Studies with work for a planner, of those that it may claim."""

    messages: set[str]
    """With messages or expired questions to ingest."""
    waited_for: set[str]
    """Whose judges wait for a question."""
    low: set[str]
    """That run low on questions, those before included."""


def studies_due(
    connection: sa.Connection, planner: str, now: float, linger: float, everywhere: bool = True
) -> StudiesDue:
    """Messages are due when they are `linger` seconds old. Unless `everywhere`, low are only those waited for."""
    known = {"holder": planner, "now": now, "before": now - linger} | _recently(now)
    ingest = set(connection.scalars(_with_messages, known)) | set(connection.scalars(_with_expired, known))
    if not everywhere:
        waited_for = set(connection.scalars(_with_waiting, known))
        return StudiesDue(ingest, waited_for, waited_for)
    # A judge who waits although questions are ready has had all of these, or will take one in a moment.
    rows = connection.execute(_supply, known).all()
    waited_for = {row.id for row in rows if row.demand}
    low = {row.id for row in rows if row.ready < _wanted(row.recent, row.demand)}
    return StudiesDue(ingest, waited_for, low | waited_for)


def questions_wanted(connection: sa.Connection, study: str, phase: int, now: float, plan_seconds: float = 0.0) -> int:
    """How many more questions should be ready, if it takes `plan_seconds` to plan them."""
    # Judges who found nothing while the last ones were planned have taken all of them since: without these two times
    # of planning, the slower the planning, the fewer questions would be planned.
    row = connection.execute(_supply_of_one, {"the_study": study} | _recently(now, 2 * plan_seconds)).first()
    if row is None or row.phase != phase:
        return 0
    return _wanted(row.recent, row.demand) - int(row.ready)


def _recently(now: float, longer: float = 0.0) -> dict[str, float]:
    return {"since": now - AHEAD_SECONDS - longer, "wished_since": now - WISH_SECONDS}


def _wanted(recent: int, demand: int) -> int:
    """Questions that should be ready, by how many were handed out lately and how many judges wait for."""
    return min(max(READY + math.ceil(AHEAD_SHARE * recent), demand), MOST_READY)


@dataclass(frozen=True)
class JudgeNeeds:
    """The judges who answered lately or wait for a question, in a study that asks nobody the same twice."""

    had: dict[str, frozenset[int]]
    """By judge, the measurements not to be asked: answered before, or held now."""
    wishes: dict[str, int]
    """Questions to plan for each judge, so that all are ready that the judge waits for or takes within a second, at
    least one; none for judges who have had all that helps."""
    ready: int
    """Questions that nobody has taken yet."""
    unclaimable: tuple[int, ...]
    """Old ready questions that none of these judges may take: they would keep all later ones from being evaluated."""


def judges_present(connection: sa.Connection, study: str, phase: int, now: float, session: Session) -> JudgeNeeds:
    """Who is there, what they have had, and what they wait for; `session` knows what they answered."""
    known = {"the_study": study, "the_phase": phase}
    present = connection.execute(_present_judges, known | _recently(now)).all()
    not_answered = connection.execute(_not_answered, known).mappings().all()
    ready = [row for row in not_answered if row["judge"] is None]
    taken: dict[str | None, set[int]] = {}
    if not session.problem.inputs:  # the same pair on another input is another question
        for question in not_answered:
            taken.setdefault(question["judge"], set()).add(question["measurement"])
    had = {row.id: session.had_by(row.id) | taken.get(row.id, set()) for row in present}
    if not session.problem.inputs:
        # What somebody who waits is not given is not counted on either: else they might wait for ever.
        waiting = [row.id for row in present if row.wishes]
        for judge, refused in had_before(connection, waiting, ready).items():
            had[judge] |= {measurement for measurement, _ in refused}
    if session.problem.show > 2:  # two items that a judge was shown together are not to be shown together again
        for judge, mine in had.items():
            met = session.problem.shown_together(mine)
            shown = {row["measurement"]: session.problem.shown(row["measurement"]) for row in ready}
            had[judge] = mine.union(number for number, items in shown.items() if met[np.ix_(items, items)].any())
    # Each judge is counted on to take the first ready questions that are new to that judge.
    free, wishes = list(ready), dict[str, int]()
    for row in present:
        wanted = max(row.wishes, math.ceil(row.taken / AHEAD_SECONDS), 1)
        new = [question for question in free if question["measurement"] not in had[row.id]][:wanted]
        for question in new:
            free.remove(question)
        if len(new) < wanted and not row.exhausted:
            wishes[row.id] = wanted - len(new)
    old = [row for row in ready if row["planned"] < now - UNCLAIMED_SECONDS]
    stuck = [row["number"] for row in old if had and all(row["measurement"] in mine for mine in had.values())]
    return JudgeNeeds(had, wishes, len(ready), tuple(stuck))


_askable = sa.and_(studies.c.state == "running", studies.c.decided.is_(None))

_with_messages = (
    sa.select(messages.c.study)
    .distinct()
    .join(studies, studies.c.id == messages.c.study)
    # One from the future is due too: the clock was set back, and would keep it waiting for as long.
    .where(
        messages.c.seq.is_(None),
        sa.or_(messages.c.at <= sa.bindparam("before"), messages.c.at > sa.bindparam("now")),
        PLANNER_LEASE.available,
    )
)

_with_expired = (
    sa.select(questions.c.study)
    .distinct()
    .join(studies, sa.and_(studies.c.id == questions.c.study, studies.c.phase == questions.c.phase))
    .where(log.expired_questions(), studies.c.state.in_(["running", "paused"]), PLANNER_LEASE.available)
)

_waits = sa.and_(
    judges.c.wanted > sa.literal_column("0"),  # not a parameter: only so is it seen to be the condition of an index
    judges.c.wanted_at > sa.bindparam("wished_since"),
    judges.c.revoked.is_(False),
    judges.c.exhausted.is_(False),
)

_with_waiting = (
    sa.select(judges.c.study)  # SQLite would read all judges in the order of their studies for a DISTINCT
    .join(studies, studies.c.id == judges.c.study)
    .where(_waits, _askable, PLANNER_LEASE.available)
)

_ready = (
    sa.select(sa.func.count())
    .where(
        questions.c.study == studies.c.id,
        QUESTION_LEASE.never_claimed,
        questions.c.answered.is_(False),
        questions.c.phase == studies.c.phase,
    )
    .scalar_subquery()
    .label("ready")
)
_recent = (
    sa.select(sa.func.count())
    .where(questions.c.study == studies.c.id, questions.c.leased_at > sa.bindparam("since"))
    .scalar_subquery()
    .label("recent")
)
_demand = (
    sa.select(sa.func.coalesce(sa.func.sum(judges.c.wanted), 0))
    .where(judges.c.study == studies.c.id, _waits)
    .scalar_subquery()
    .label("demand")
)
_wishes = sa.case((judges.c.wanted_at > sa.bindparam("wished_since"), judges.c.wanted), else_=0).label("wishes")
_takers = (
    sa.select(questions.c.judge, sa.func.count().label("taken"))
    .where(questions.c.study == sa.bindparam("the_study"), questions.c.leased_at > sa.bindparam("since"))
    .group_by(questions.c.judge)
    .subquery()
)
_present_judges = (
    sa.select(judges.c.id, judges.c.exhausted, _wishes, sa.func.coalesce(_takers.c.taken, 0).label("taken"))
    .outerjoin(_takers, _takers.c.judge == judges.c.id)
    .where(
        judges.c.study == sa.bindparam("the_study"),
        judges.c.revoked.is_(False),
        sa.or_(judges.c.wanted_at > sa.bindparam("wished_since"), _takers.c.taken > 0),
    )
    .order_by(judges.c.id)
)
# Those with a judge and those without are told apart afterwards: for a condition on the judge SQLite would read all
# questions that the study ever had.
_not_answered = (
    sa.select(
        questions.c.study,
        questions.c.phase,
        questions.c.number,
        questions.c.measurement,
        questions.c.planned,
        questions.c.judge,
    )
    .where(
        questions.c.study == sa.bindparam("the_study"),
        questions.c.phase == sa.bindparam("the_phase"),
        questions.c.answered.is_(False),
    )
    .order_by(questions.c.number)
)
_supply_of_all = sa.select(studies.c.id, studies.c.phase, _demand, _ready, _recent).where(_askable)
_supply = _supply_of_all.where(PLANNER_LEASE.available)
_supply_of_one = _supply_of_all.where(studies.c.id == sa.bindparam("the_study"))
