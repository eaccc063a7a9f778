"""The record of a search, stage by stage: what was planned and what was answered. Both kinds of policies keep it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from surepick._arrays import Integers
from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.identify.policy import Plan
from surepick.identify.problem import Problem

Missing = Literal["ignorable", "refuse"]
"""What a question without an answer means to a staged policy."""

ENOUGH = 10**12
"""Questions after which a search ends in any case: what they cannot tell apart is a tie for every purpose."""

LOGISTIC = (
    "Answers are independent given the questions of their stage, and an answer to x is 1 with probability "
    "1/(1+exp(-x'theta)) for one theta throughout."
)


@dataclass(frozen=True, eq=False)
class StageRecord:
    """A planned stage and the answers to it so far."""

    plan: Plan
    pulls: Integers
    """Answers to each measurement of the plan, in its order."""
    wins: Integers
    """How many of them are 1."""
    closed: bool = False
    """Whether no more answers are expected."""

    @classmethod
    def unanswered(cls, plan: Plan) -> "StageRecord":
        """The record of a stage that was planned just now."""
        nothing = np.zeros(len(plan.pulls), dtype=np.int64)
        return cls(plan, nothing, nothing)

    @property
    def answered(self) -> bool:
        """Whether all answers are in: every question has one, or the stage is closed."""
        # By vector, not in all: answers to another question of the stage are no substitute.
        return self.closed or bool(np.array_equal(self.pulls, self.plan.pulls))

    @property
    def missing(self) -> int:
        """Questions of the stage without an answer."""
        return self.plan.total - int(self.pulls.sum())


def numbered(records: Sequence[StageRecord], stage: int) -> StageRecord:
    """The record of this stage, or a sentence that there is none."""
    if not 0 <= stage < len(records):
        raise InvalidInput(f"There is no stage {stage}; {len(records)} were planned, counted from 0.")
    return records[stage]


class AnsweredStage(Protocol):
    """A plan with answers, as a policy's record or a session's."""

    @property
    def plan(self) -> Plan:
        """What was asked."""

    @property
    def pulls(self) -> Integers:
        """Answers to each measurement of the plan."""

    @property
    def wins(self) -> Integers:
        """How many of them are 1."""


def pooled_counts(problem: Problem, stages: Iterable[AnsweredStage]) -> tuple[Integers, Integers]:
    """Pulls and wins of every measurement vector of the problem over these stages."""
    pulls = np.zeros(len(problem.measurements), dtype=np.int64)
    wins = np.zeros_like(pulls)
    # A plan names each measurement at most once, so `+=` with an index array loses nothing.
    for stage in stages:
        pulls[stage.plan.measurements] += stage.pulls
        wins[stage.plan.measurements] += stage.wins
    return pulls, wins


def pooled_tally(problem: Problem, stages: Iterable[AnsweredStage]) -> Tally:
    """The answers of these stages in coordinates of the measurements' span, without vectors that have none."""
    pulls, wins = pooled_counts(problem, stages)
    asked = np.flatnonzero(pulls)
    return Tally(problem.rows[asked], pulls[asked], wins[asked])
