"""What votes of an advisor were worth to a search: how far they agree with its answers, and what they saved.

An advisor's votes (`Winner.warm`), for instance those of a language model, predict the answers and count for nothing.
The claim is about whoever answers: bets were fixed before each answer, whatever they were based on.
"""

from dataclasses import dataclass, replace
from typing import Any

from surepick.identify import Winner
from surepick.identify.ladder import Follower
from surepick.session.session import Session


@dataclass(frozen=True)
class Advice:
    """The advisor's part in a search."""

    compared: int
    """Decisive answers to comparisons on which the advisor's votes have a majority ..."""
    agreed: int
    """... and how many of them agree with it."""
    left_without: tuple[str, ...]
    """Items that the same answers would leave if the bets had been made without the advisor."""

    @property
    def sentence(self) -> str:
        """For people."""
        share = f"{self.agreed / self.compared:.0%}" if self.compared else "none"
        left = len(self.left_without)
        rest = "the search would be decided as well" if left == 1 else f"{left} items would be left"
        return (
            f"The earlier votes agree with {self.agreed:,} of {self.compared:,} answers ({share}). Without them, by "
            f"these answers alone, {rest}."
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"compared": self.compared, "agreed": self.agreed, "left_without": list(self.left_without)}


def advice_of(session: Session) -> Advice | None:
    """What the advisor's votes were worth in a search by Winner; None if it had none. Milliseconds per stage.

    Comparisons only: votes on pairs say nothing of which answers to larger sets agree with them.
    """
    policy, stages = session.policy, session.evaluated_stages
    if not isinstance(policy, Winner) or not policy.warm or session.problem.show > 2:
        return None
    majority = {row: 2 * ones - asked for row, asked, ones in policy.warm}
    compared = agreed = 0
    for stage in stages:
        for row, asked, ones in zip(
            stage.plan.measurements.tolist(), stage.pulls.tolist(), stage.wins.tolist(), strict=True
        ):
            if majority.get(row):
                compared += asked
                agreed += ones if majority[row] > 0 else asked - ones
    alone = replace(policy, warm=())
    without = Follower("winner", alone, alone.start(session.problem)).after(session.problem, stages)
    return Advice(compared, agreed, alone.verdict(without.state).surviving)
