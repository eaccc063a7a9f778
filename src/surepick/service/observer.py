"""What helps people to follow a study, computed beside it: forecast, scores, checks of assumptions, who said what.

None of it decides anything. It may take long, so it has a process of its own, and takes turns with others by the
database: who moves a study's `insight_from` on, computes.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sqlalchemy as sa

from surepick.report.history import appearances, standing
from surepick.session import Session
from surepick.session.table import answers_of
from surepick.store import Database, log
from surepick.store.schema import studies

PAUSE_SECONDS = 2.0
"""Least time between two insights into a study; ten times what the last one took if that is more."""

CLAIM_SECONDS = 300.0
"""Whoever computes has so long before another tries."""

MOST_ITEMS = 30
"""Items whose scores get intervals."""

FORECAST_ITEMS = 200
"""No forecast for more items: simulating such a search takes too long."""


def observe(database: Database, clock: Callable[[], float] = time.time) -> bool:
    """Look into every study that has news; whether there was one."""
    with database.reading() as connection:
        due = connection.execute(_due, {"now": clock()}).all()
    found = False
    for row in due:
        with database.writing(durable=False) as connection:
            claimed = connection.execute(
                sa.update(studies)
                .where(studies.c.id == row.id, studies.c.insight_from == row.insight_from)
                .values(insight_from=clock() + CLAIM_SECONDS)
            )
        if claimed.rowcount != 1:
            continue
        found, begun = True, clock()
        with database.reading() as connection:
            session = log.fold(connection, row.id, row.phase)
        seen = insight(session)
        took = clock() - begun
        with database.writing(durable=False) as connection:
            connection.execute(
                sa.update(studies)
                .where(studies.c.id == row.id, studies.c.phase == row.phase)
                .values(
                    insight=json.dumps(seen),
                    insight_head=row.head,
                    insight_from=clock() + max(PAUSE_SECONDS, 10 * took),
                )
            )
    return found


def insight(session: Session) -> dict[str, Any]:
    """All that is shown besides the verdict, as JSON values; `remaining` is null where nobody knows."""
    known = standing(session, delta=session.policy.delta, most=MOST_ITEMS)
    return {
        "answers": session.answered,
        "checks": [check.to_json() for check in session.checks()],
        "scores": [] if known is None else known.to_json(session.problem.names),
        "refuted": known is not None and known.refuted,
        "asked": dict(zip(session.problem.names, appearances(session).tolist(), strict=True)),
        "judges": _judges(session),
    } | _forecast(session)


def _forecast(session: Session) -> dict[str, Any]:
    if session.final is not None or not session.answered or len(session.problem.items) > FORECAST_ITEMS:
        return {"remaining": 0 if session.final is not None else None, "remaining_interval": None}
    ahead = session.forecast()
    low, high = ahead.interval()
    finite = [float(end) if np.isfinite(end) else None for end in (low, high)]
    expected = float(ahead.expected)
    return {"remaining": round(expected) if np.isfinite(expected) else None, "remaining_interval": finite}


def _judges(session: Session) -> dict[str, dict[str, Any]]:
    """For every judge how many answers, ties and skips, and how often he says what all answers make likely."""
    table = answers_of(session.problem, session.log)
    known = standing(session, delta=session.policy.delta, most=len(session.problem.items))
    score = np.zeros(len(session.problem.items))
    if known is not None:
        score[known.items] = known.score
    pair = table.items[:, 1] >= 0
    likely = np.where(pair, score[table.items[:, 0]] - score[table.items[:, 1]], 0.0)
    result: dict[str, dict[str, Any]] = {}
    for judge in sorted({each for each in table.judges if each is not None}):
        mine = np.array([each == judge for each in table.judges])
        clear = mine & table.decisive & pair & (likely != 0)
        agree = (table.said == 1) == (likely > 0)
        result[judge] = {
            "answers": int((mine & table.decisive).sum()),
            "without": int((mine & ~table.decisive).sum()),
            "agreement": float(agree[clear].mean()) if clear.any() else None,
        }
    return result


_due = (
    sa.select(studies.c.id, studies.c.phase, studies.c.head, studies.c.insight_from)
    .where(
        studies.c.head != studies.c.insight_head,
        studies.c.insight_from < sa.bindparam("now"),
        studies.c.state.in_(["running", "paused"]),
    )
    .order_by(studies.c.insight_from)
)
