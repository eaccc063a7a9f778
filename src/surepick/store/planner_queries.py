"""What the planner should do next, as queries."""

import math

import sqlalchemy as sa

from surepick.store.schema import messages, questions, studies

READY = 3
"""Questions kept ready for a study that nobody asks about at the moment."""

AHEAD_SECONDS = 2.0
AHEAD_SHARE = 1.5
"""Ready are at least this many times the questions handed out in the last AHEAD_SECONDS."""

MOST_READY = 5_000

MOST_FILED = 1_000
"""Messages filed in one transaction, while which no other can write."""


def due(connection: sa.Connection, planner: str, now: float, linger: float) -> tuple[set[str], set[str]]:
    """Studies with something to file, and those that run low on questions; only such as this planner may tend.

    Messages are due when they are `linger` seconds old.
    """
    known = {"planner": planner, "now": now, "before": now - linger}
    filing = set(connection.scalars(_with_messages, known)) | set(connection.scalars(_with_expired, known))
    low = {
        row.id
        for row in connection.execute(_supply, known | {"since": now - AHEAD_SECONDS})
        if row.ready < _depth(row.recent, row.demand)
    }
    return filing, low


def questions_wanted(connection: sa.Connection, study: str, phase: int, now: float) -> int:
    """How many more questions should be ready."""
    row = connection.execute(_supply_of_one, {"the_study": study, "since": now - AHEAD_SECONDS}).first()
    return 0 if row is None or row.phase != phase else _depth(row.recent, row.demand) - row.ready


def _depth(recent: int, demand: int) -> int:
    return min(max(READY + math.ceil(AHEAD_SHARE * recent), demand), MOST_READY)


_mine = sa.or_(
    studies.c.planner.is_(None),
    studies.c.planner == sa.bindparam("planner"),
    studies.c.planner_until < sa.bindparam("now"),
)
_askable = sa.and_(studies.c.state == "running", studies.c.decided.is_(None))

_with_messages = (
    sa.select(messages.c.study)
    .distinct()
    .join(studies, studies.c.id == messages.c.study)
    .where(messages.c.seq.is_(None), messages.c.at <= sa.bindparam("before"), _mine)
)

_is_expired = sa.and_(
    questions.c.judge.is_not(None), questions.c.closed.is_(False), questions.c.leased_until < sa.bindparam("now")
)

_with_expired = (
    sa.select(questions.c.study)
    .distinct()
    .join(studies, sa.and_(studies.c.id == questions.c.study, studies.c.phase == questions.c.phase))
    .where(_is_expired, studies.c.state.in_(["running", "paused"]), _mine)
)

_ready = (
    sa.select(sa.func.count())
    .where(questions.c.study == studies.c.id, questions.c.judge.is_(None), questions.c.phase == studies.c.phase)
    .scalar_subquery()
    .label("ready")
)
_recent = (
    sa.select(sa.func.count())
    .where(questions.c.study == studies.c.id, questions.c.leased_at > sa.bindparam("since"))
    .scalar_subquery()
    .label("recent")
)
_supply_of_all = sa.select(studies.c.id, studies.c.phase, studies.c.demand, _ready, _recent).where(_askable)
_supply = _supply_of_all.where(_mine)
_supply_of_one = _supply_of_all.where(studies.c.id == sa.bindparam("the_study"))

unfiled = (
    sa.select(messages, questions.c.number, questions.c.phase)
    .join(questions, questions.c.id == messages.c.question)
    .where(messages.c.study == sa.bindparam("the_study"), messages.c.seq.is_(None))
    .order_by(messages.c.at, messages.c.question, messages.c.turn)
    .limit(MOST_FILED)
)
"""Messages of a study that are not in the log yet, in the order they came."""

expired = (
    sa.select(questions.c.id, questions.c.number)
    .where(questions.c.study == sa.bindparam("the_study"), questions.c.phase == sa.bindparam("the_phase"), _is_expired)
    .order_by(questions.c.number)
)
"""Questions whose judge had his time, and that nothing is known of."""
