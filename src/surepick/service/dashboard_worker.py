"""What helps people to follow a study, computed beside it: forecast, scores, checks of assumptions, who said what.

None of it decides anything. It may take long, so it has a process of its own, and takes turns with others by the
database: who moves a study's `insight_from` on, computes. A forecast takes longest, so it has a process and a column of
its own (`forecast_from`), and the rest does not wait for it.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sqlalchemy as sa
from scipy.special import expit

from surepick.answer import SKIP, TIE
from surepick.checks import Answers, check_all
from surepick.glm import Tally, fit
from surepick.identify.forecast import outdated
from surepick.report.history import appearances, standing
from surepick.session import Session
from surepick.session.table import answers_of
from surepick.store import Database, log
from surepick.store.schema import studies

PAUSE_SECONDS = 1.0
"""Least time between two insights into a study; twice what the last one took if that is more."""

CLAIM_SECONDS = 600.0
"""Whoever computes has so long before another tries."""

MOST_ITEMS = 30
"""Items whose scores get intervals."""

MOST_PAIRS = 12
"""Questions asked most often that are listed."""

RIDGE = 0.1
"""Penalty of the estimate that judges are compared with; it keeps separated answers finite."""

FORECAST_ITEMS = 200
"""No forecast for more items: simulating such a search takes too long."""

FORECAST_FROM = 5
"""Answers before the first forecast; what was known before is nothing."""


def observe(database: Database, clock: Callable[[], float] = time.time) -> bool:
    """Look into every study that has news; whether there was one."""
    with database.reading() as connection:
        due = connection.execute(_due, {"now": clock()}).all()
    found = False
    for row in due:
        begun = clock()
        if not _claim(database, row.id, studies.c.insight_from, row.insight_from, begun):
            continue
        found = True
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
                    insight_from=clock() + max(PAUSE_SECONDS, 2 * took),
                )
            )
    return found


def insight(session: Session) -> dict[str, Any]:
    """What is shown besides the verdict and the forecast, as JSON values."""
    known = standing(session, delta=session.policy.delta, most=MOST_ITEMS)
    table = answers_of(session.problem, session.log)
    return {
        "answers": session.answered,
        "checks": [check.to_json() for check in check_all(table)],
        "scores": [] if known is None else known.to_json(session.problem.names),
        "refuted": known is not None and known.refuted,
        "asked": dict(zip(session.problem.names, appearances(session).tolist(), strict=True)),
        "pairs": _pairs(table),
        "judges": _judges(table),
    }


def _pairs(table: Answers) -> list[dict[str, Any]]:
    """The questions asked most often, and how often the first item won or the answer was yes."""
    if not table.decisive.any():
        return []
    pulls, wins = table.counted.of()
    most = np.argsort(-pulls, kind="stable")[:MOST_PAIRS]
    names = table.names
    return [
        {"a": names[a], "b": None if b < 0 else names[b], "asked": int(pulls[row]), "a_wins": int(wins[row])}
        for row, (a, b) in zip(most, table.counted.items[most].tolist(), strict=True)
    ]


def foresee(database: Database, clock: Callable[[], float] = time.time) -> bool:
    """Simulate the rest of the studies whose forecast is out of date; whether there was one."""
    with database.reading() as connection:
        rows = connection.execute(_foreseeable, {"now": clock(), "least": FORECAST_FROM}).all()
    due = [row for row in rows if row.forecast is None or outdated(json.loads(row.forecast)["at"], row.answered)]
    for row in due:
        begun = clock()
        if not _claim(database, row.id, studies.c.forecast_from, row.forecast_from, begun):
            continue
        with database.reading() as connection:
            session = log.fold(connection, row.id, row.phase)
        small = session.final is None and len(session.problem.items) <= FORECAST_ITEMS
        found = {"at": session.answered} | (session.forecast().to_json() if small else {})
        with database.writing(durable=False) as connection:
            connection.execute(
                sa.update(studies)
                .where(studies.c.id == row.id, studies.c.phase == row.phase)
                .values(forecast=json.dumps(found), forecast_from=clock() + 2 * (clock() - begun))
            )
    return bool(due)


def _claim(database: Database, study: str, column: Any, before: float, now: float) -> bool:
    """Whether this observer is the one to compute."""
    with database.writing(durable=False) as connection:
        claimed = connection.execute(
            sa.update(studies).where(studies.c.id == study, column == before).values({column.name: now + CLAIM_SECONDS})
        )
    return claimed.rowcount == 1


def _judges(table: Answers) -> dict[str, dict[str, Any]]:
    """By judge: answers, ties, skips, and how many answers are the likelier ones by an estimate, and should be."""
    logits = np.zeros(len(table.said))
    if table.decisive.any():
        logits = table.vectors @ fit(Tally(table.counted.rows, *table.counted.of()), ridge=RIDGE).theta
    likelier = (logits > 0) == (table.said == 1)
    expected = np.maximum(expit(logits), expit(-logits))
    who = np.array([judge or "" for judge in table.judges], dtype=object)
    result: dict[str, dict[str, Any]] = {}
    for judge in sorted(set(who) - {""}):
        mine = who == judge
        clear = mine & table.decisive & (logits != 0)
        result[judge] = {
            "answers": int((mine & table.decisive).sum()),
            "ties": int((table.said[mine] == TIE).sum()),
            "skips": int((table.said[mine] == SKIP).sum()),
            "agreement": float(likelier[clear].mean()) if clear.any() else None,
            "expected": float(expected[clear].mean()) if clear.any() else None,
        }
    return result


_due = (
    sa.select(studies.c.id, studies.c.phase, studies.c.head, studies.c.insight_from)
    .where(
        studies.c.head != studies.c.insight_head,
        studies.c.insight_from < sa.bindparam("now"),
        studies.c.state != "archived",
    )
    .order_by(studies.c.insight_from)
)

_foreseeable = (
    sa.select(studies.c.id, studies.c.phase, studies.c.answered, studies.c.forecast, studies.c.forecast_from)
    .where(
        studies.c.state.in_(["running", "paused"]),
        studies.c.decided.is_(None),
        studies.c.answered >= sa.bindparam("least"),
        studies.c.forecast_from < sa.bindparam("now"),
    )
    .order_by(studies.c.forecast_from)
)
