"""Leases: at most one holder works on a row at a time, and one that has died keeps it only until a deadline.

| lease | row | holder | when it runs out |
|---|---|---|---|
| QUESTION | a question | the judge it was handed out to | the planner skips it, so that nobody waits for the judge |
| PLANNER | a study | the planner with the study's session in memory | any planner takes over and replays the log |
| INSIGHT | a study | whichever dashboard worker computes its insight | any worker computes it |
| FORECAST | a study | the same for its forecast | the same |

All follow one scheme. A row is available when nobody holds it or the deadline has passed. To claim is an UPDATE with
that condition: whoever changes the row has it. To renew is to move the deadline, to release is to clear it. Deadlines
are compared with the clock of the process that asks; machines that share a database must agree to well within a lease.

A deadline alone does not stop a slow holder that believes in an expired lease. A planner's lease therefore has a term,
which grows with every change of the holder: each of its transactions locks the study and compares the term
(`Planner._lock`). The others need none: what an overtaken dashboard worker writes is true as well, and a late answer to
an expired question counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from surepick.store.schema import questions, studies


@dataclass(frozen=True)
class Lease:
    """The columns of a lease. Conditions have the parameters `now` and, where they name one, `holder`."""

    key: sa.Column[Any]
    until: sa.Column[Any]
    holder: sa.Column[Any] | None = None
    """Null while nobody holds the row. Without this column only the deadline tells."""

    @property
    def never_claimed(self) -> sa.ColumnElement[bool]:
        """Rows that nobody holds or held since the last release."""
        return sa.false() if self.holder is None else self.holder.is_(None)

    @property
    def expired(self) -> sa.ColumnElement[bool]:
        """Rows whose holder let the deadline pass."""
        late = self.until < sa.bindparam("now")
        return late if self.holder is None else sa.and_(self.holder.is_not(None), late)

    @property
    def available(self) -> sa.ColumnElement[bool]:
        """Rows that `holder` may claim: held by nobody, by itself, or by one whose deadline has passed."""
        if self.holder is None:
            return self.expired
        return sa.or_(self.never_claimed, self.holder == sa.bindparam("holder"), self.until < sa.bindparam("now"))

    def claim(
        self, connection: sa.Connection, row: str, *, now: float, seconds: float, holder: str | None = None, **more: Any
    ) -> bool:
        """Take or keep the row, and set the columns `more` with it; whether it was available."""
        claimed = connection.execute(
            sa.update(self.key.table)
            .where(self.key == row, self.available)
            .values({self.until.name: now + seconds, **self._held_by(holder), **more}),
            {"now": now, "holder": holder},
        )
        return claimed.rowcount == 1

    def claim_locked(self, connection: sa.Connection, deadlines: Mapping[str, float], holder: str, **more: Any) -> None:
        """Take rows that this transaction has locked, or keep rows held already, each with a deadline of its own."""
        if deadlines:
            connection.execute(
                sa.update(self.key.table)
                .where(self.key == sa.bindparam("row"))
                .values({self.until.name: sa.bindparam("deadline"), **self._held_by(holder), **more}),
                [{"row": row, "deadline": deadline} for row, deadline in deadlines.items()],
            )

    def extend(self, connection: sa.Connection, *rows: sa.ColumnElement[bool], until: float, **more: Any) -> None:
        """Move the deadline of rows that are held, and set the columns `more` with it; 0 lets it pass now."""
        connection.execute(sa.update(self.key.table).where(*rows).values({self.until.name: until, **more}))

    def release(
        self, connection: sa.Connection, *rows: sa.ColumnElement[bool], until: float = 0.0, **more: Any
    ) -> None:
        """Make rows available at once, or without a holder's column from `until` on, and set the columns `more`."""
        self.extend(connection, *rows, until=until, **self._held_by(None), **more)

    def _held_by(self, holder: str | None) -> dict[str, str | None]:
        return {} if self.holder is None else {self.holder.name: holder}


QUESTION = Lease(questions.c.id, questions.c.leased_until, questions.c.judge)
PLANNER = Lease(studies.c.id, studies.c.planner_until, studies.c.planner)
INSIGHT = Lease(studies.c.id, studies.c.insight_until)
FORECAST = Lease(studies.c.id, studies.c.forecast_until)
