"""What votes of an advisor were worth to a search: how far they agree with its answers, and what they saved.

An advisor's votes (`Winner.warm`), for instance those of a language model, predict the answers and count for nothing.
The claim is about whoever answers: bets were fixed before each answer, whatever they were based on.
"""

from dataclasses import dataclass, replace
from typing import Any

from surepick.identify import Winner
from surepick.identify.ladder import Follower
from surepick.identify.set_stages import pairs_after
from surepick.session.session import Session


@dataclass(frozen=True)
class Advice:
    """The advisor's part in a search."""

    compared: int
    """Decisive answers to comparisons on which the advisor's votes have a majority; of a pick or a ranking all pairs of
    which it prefers one ..."""
    agreed: int
    """... and how many of them agree with it."""
    left_without: tuple[str, ...]
    """Items that the same answers would leave if the bets had been made without the advisor."""
    unit: str = "answers"
    """What is compared."""

    @property
    def sentence(self) -> str:
        """For people."""
        share = f"{self.agreed / self.compared:.0%}" if self.compared else "none"
        left = len(self.left_without)
        rest = "the search would be decided as well" if left == 1 else f"{left} items would be left"
        return (
            f"The earlier votes agree with {self.agreed:,} of {self.compared:,} {self.unit} ({share}). Without them, "
            f"by these answers alone, {rest}."
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"compared": self.compared, "agreed": self.agreed, "left_without": list(self.left_without)}


def advice_of(session: Session) -> Advice | None:
    """What the advisor's votes were worth in a search by Winner; None if it had none. Milliseconds per stage."""
    policy, problem, stages = session.policy, session.problem, session.evaluated_stages
    if not isinstance(policy, Winner) or not policy.warm:
        return None
    record: dict[int, tuple[float, float]] = {}
    for stage in stages:
        for place, row in enumerate(stage.plan.measurements.tolist()):
            if problem.show > 2:
                record = pairs_after(record, problem, problem.shown(row), stage.orders[place] if stage.orders else ())
            else:
                asked, ones = record.get(row, (0, 0))
                record[row] = asked + int(stage.pulls[place]), ones + int(stage.wins[place])
    compared = agreed = 0
    for row, votes, preferred in policy.warm:
        asked, ones = record.get(row, (0, 0))
        if majority := 2 * preferred - votes:
            compared += int(asked)
            agreed += int(ones if majority > 0 else asked - ones)
    alone = replace(policy, warm=())
    without = Follower("winner", alone, alone.start(problem)).after(problem, stages)
    unit = "pairs in the answers" if problem.show > 2 else "answers"
    return Advice(compared, agreed, alone.verdict(without.state).surviving, unit)
