"""What the dashboard shows besides the verdict: scores, checks of assumptions, judges' agreement, and the forecast.

None of it decides anything. It may take long, so it has processes of its own, on any number of machines; a lease on the
study ensures that one of them computes. A forecast takes longest, so it has a process and a lease of its own. Results
are derived from the log, so their commits need not wait for the disk.

A study that somebody looks at has its insight computed again within seconds. Of the others it is computed when their
log has doubled since, when their judges have answered all that could decide, and once more at the end. Whoever opens a
large one, which takes long, sees how it was lately; of a small one it is there in a moment.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import sqlalchemy as sa
from scipy.special import expit

from surepick.answer import SKIP, TIE
from surepick.checks import Answers, check_all
from surepick.glm import Tally, fit
from surepick.identify.forecast import outdated
from surepick.identify.ladder import questioned_claims
from surepick.report.history import appearances, score_table
from surepick.session import Session
from surepick.session.journal import answers_of
from surepick.session.judges_needed import judges_needed
from surepick.store import Database, log
from surepick.store.database import UNAVAILABLE, Lease
from surepick.store.schema import FORECAST_LEASE, INSIGHT_LEASE, judges, messages, questions, studies

PAUSE_SECONDS = 1.0
"""Least time between two insights of a study; twice what the last one took if that is more."""

UNWATCHED_ANSWERS, UNWATCHED_GROWTH = 50, 2.0
"""A study that nobody looks at has an insight from this many answers on, and another when its log has grown as much."""

LEASE_SECONDS = 30.0
"""A worker that is silent for this long is taken for dead, and another one computes; until then it renews its lease."""

MOST_ITEMS = 30
"""Items whose scores have intervals."""

MOST_PAIRS = 12
"""Pairs listed, those asked most often."""

BREAK_SECONDS = 300.0
"""A longer time between two answers of a judge is a break, not a judge who thinks."""

RIDGE = 0.1
"""Penalty of the estimate that judges are compared with; it keeps the estimate finite for separated answers."""

FORECAST_ITEMS = 200
"""No forecast for more items: simulating the rest of such a study takes too long."""

FORECAST_FROM = 5
"""Answers before the first forecast; fewer say next to nothing."""


def update_insights(database: Database) -> bool:
    """Compute the insight of the study that needs it most; whether there was one."""
    clock = database.now
    with database.reading() as connection:
        now = database.now(connection)
        due = connection.execute(
            _insights_due, {"now": now, "growth": UNWATCHED_GROWTH, "least": UNWATCHED_ANSWERS}
        ).all()
    row = next((row for row in due if _claim(database, INSIGHT_LEASE, row.id, now)), None)
    if row is None:
        return False
    begun = clock()
    with _renewed(database, INSIGHT_LEASE, row.id):
        with database.reading() as connection:
            session = log.replay(connection, row.id, row.phase)
            pace = pace_of_judges(connection, row.id)
        seen = json.dumps(insight(session) | {"at": begun, "pace": pace})
    pause = max(PAUSE_SECONDS, 2 * (clock() - begun))
    with database.writing(durable=False) as connection:
        # Not if a new phase has begun: its insight must not be about the items of the old one.
        same = (studies.c.id == row.id, studies.c.phase == row.phase)
        INSIGHT_LEASE.release(connection, *same, until=clock() + pause, insight=seen, insight_head=row.head)
    return True


def insight(session: Session) -> dict[str, Any]:
    """What the dashboard shows of a session besides verdict and forecast, as JSON values."""
    known = score_table(session, delta=session.policy.delta, most=MOST_ITEMS)
    table = answers_of(session.problem, session.log)
    checks = check_all(table)
    return {
        "answers": session.answered,
        # Somebody may rely on a claim that is reached before the study ends, so it is questioned as at the end.
        "claims": [claim.to_json() for claim in questioned_claims(session.verdict().claims, checks)],
        "uncounted": len(session.uncounted),
        "checks": [check.to_json() for check in checks],
        "scores": [] if known is None else known.to_json(session.problem.names),
        "refuted": known is not None and known.refuted,
        "scores_note": "" if known is None else known.note,
        "asked": dict(zip(session.problem.names, appearances(session).tolist(), strict=True)),
        "ties": int((table.said == TIE).sum()),
        "won": _won(table),
        "pairs": _pairs(table),
        "judges": _judges(table),
    }


def pace_of_judges(connection: sa.Connection, study: str) -> dict[str, float]:
    """By judge, the median seconds from one answer to the next, without breaks; judges with one answer are left out."""
    gaps: dict[str, list[float]] = {}
    last: dict[str, float] = {}
    for judge, at in connection.execute(_said, {"the_study": study}):
        if judge in last and 0.0 <= at - last[judge] <= BREAK_SECONDS:
            gaps.setdefault(judge, []).append(at - last[judge])
        last[judge] = at
    return {judge: round(float(np.median(found)), 1) for judge, found in gaps.items()}


def _won(table: Answers) -> dict[str, list[int]]:
    """By item, in how many comparisons it was chosen, and in how many one of the two was; ties are in neither."""
    if not table.decisive.any():
        return {}
    pulls, wins = table.counted.of()
    result = {name: [0, 0] for name in table.names}
    for row, (a, b) in enumerate(table.counted.items.tolist()):
        if b < 0:
            continue
        for item, chosen in ((a, wins[row]), (b, pulls[row] - wins[row])):
            result[table.names[item]][0] += int(chosen)
            result[table.names[item]][1] += int(pulls[row])
    return {name: counts for name, counts in result.items() if counts[1]}


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


def update_forecasts(database: Database) -> bool:
    """Simulate the rest of every study whose forecast is out of date; whether there was one.

    How many judges it takes is known before the first answer; how many answers, a few answers later.
    """
    clock = database.now
    with database.reading() as connection:
        rows = connection.execute(_forecasts_due, {"now": clock(), "least": FORECAST_FROM}).all()
    due = [row for row in rows if row.forecast is None or outdated(json.loads(row.forecast)["at"], row.answers)]
    for row in due:
        begun = clock()
        if not _claim(database, FORECAST_LEASE, row.id, begun):
            continue
        with _renewed(database, FORECAST_LEASE, row.id):
            with database.reading() as connection:
                session = log.replay(connection, row.id, row.phase)
            small = session.final is None and len(session.problem.items) <= FORECAST_ITEMS
            needed = judges_needed(session)
            found = (
                {"at": session.answered}
                | (session.forecast().to_json() if small and session.answered >= FORECAST_FROM else {})
                | ({} if needed is None else {"judges": needed.to_json()})
            )
        pause = 2 * (clock() - begun)
        with database.writing(durable=False) as connection:
            same = (studies.c.id == row.id, studies.c.phase == row.phase)
            FORECAST_LEASE.release(connection, *same, until=clock() + pause, forecast=json.dumps(found))
    return bool(due)


def _claim(database: Database, lease: Lease, study: str, now: float) -> bool:
    """Whether this process is the one to compute."""
    with database.writing(durable=False) as connection:
        return lease.claim(connection, study, now=now, seconds=LEASE_SECONDS)


@contextmanager
def _renewed(database: Database, lease: Lease, study: str) -> Iterator[None]:
    """Keep a lease that was claimed for as long as the block takes."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(LEASE_SECONDS / 3):
            with suppress(*UNAVAILABLE), database.writing(durable=False) as connection:
                until = database.now(connection) + LEASE_SECONDS
                lease.extend(connection, studies.c.id == study, until=until)

    renewing = threading.Thread(target=renew, daemon=True)
    renewing.start()
    try:
        yield
    finally:
        done.set()
        renewing.join()


def _judges(table: Answers) -> dict[str, dict[str, Any]]:
    """By judge: answers, ties, skips, the share of answers that an estimate finds likelier, and its expectation."""
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


_said = (
    sa.select(messages.c.judge, messages.c.at)
    .where(messages.c.study == sa.bindparam("the_study"), messages.c.said != "undo")
    .order_by(messages.c.id)
)

_watched = studies.c.watched_until > sa.bindparam("now")
_has_grown = sa.and_(
    studies.c.answers >= sa.bindparam("least"), studies.c.head >= sa.bindparam("growth") * studies.c.insight_head
)

_has_paused = sa.and_(  # all that could decide has been answered, for now
    sa.exists().where(judges.c.study == studies.c.id, judges.c.exhausted.is_(True)),
    ~sa.exists().where(
        questions.c.study == studies.c.id,
        questions.c.phase == studies.c.phase,
        questions.c.answered.is_(False),
        questions.c.judge.is_not(None),
    ),
)

_insights_due = (
    sa.select(studies.c.id, studies.c.phase, studies.c.head)
    .where(
        studies.c.head != studies.c.insight_head,
        INSIGHT_LEASE.available,
        studies.c.state != "archived",
        sa.or_(_watched, _has_grown, _has_paused, studies.c.decided.is_not(None), studies.c.state == "closed"),
    )
    .order_by(sa.case((_watched, 0), else_=1), studies.c.insight_until)
)

_forecasts_due = (
    sa.select(studies.c.id, studies.c.phase, studies.c.answers, studies.c.forecast)
    .where(
        studies.c.state.in_(["running", "paused"]),
        studies.c.decided.is_(None),
        sa.or_(studies.c.answers >= sa.bindparam("least"), studies.c.forecast.is_(None)),
        FORECAST_LEASE.available,
    )
    .order_by(studies.c.forecast_until)
)
