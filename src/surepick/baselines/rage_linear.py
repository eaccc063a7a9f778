"""RAGE for linear bandits (Fiez, Jain, Jamieson and Ratliff 2019), on answers that are not linear: a baseline.

It fits P(yes) − 1/2 as a linear function of x by least squares. Where that is far from true, the item it finds may not
be the best, and its widths say nothing about it.
"""

import math
from dataclasses import dataclass

import numpy as np

from surepick._arrays import Integers
from surepick.design import pairs_optimal
from surepick.guarantee import Guarantee
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Elimination, StageMemo, Stages, Stagewise
from surepick.identify.staged.elimination import exclude
from surepick.identify.staged.stage_bounds import StageEstimate, rounded_up
from surepick.identify.stages import StageRecord
from surepick.linalg import factor, gram_matrix, span_of


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearMemo(StageMemo):
    """What a round must remember."""

    round: int
    """t, counted from 1."""
    alive: Integers


@dataclass(frozen=True, kw_only=True)
class RageLinear(Stagewise):
    """Rounds of design and elimination as if answers were linear in x; needs nothing but delta, and proves nothing.

    Answers in {0, 1} are 1/2-sub-Gaussian, so the width of a round is √(log(2|Z|/δ_t)/2)·‖z − z'‖ in the inverse of
    Σxxᵀ, and its size is such that all widths are below 2^{−t}.
    """

    NAME = "rage-linear"
    GUARANTEE = Guarantee.HEURISTIC
    STATEMENT = "Fiez et al. 2019: RAGE; valid only if the probability of a yes were linear in x, which it is not."

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Its own, in place of the logistic model."""
        return ("Answers are independent given the questions, and an answer to x is 1 with probability 1/2 + x'theta.",)

    def draft(self, state: Stages) -> Draft:
        """The best design for the items alive, for half the width of the round before."""
        problem, before = state.problem, state.elimination
        t = 1 if before is None else LinearMemo.from_json(state.last.plan.memo).round + 1
        alive = np.arange(len(problem.items)) if before is None else before.alive
        design = pairs_optimal(problem.rows, problem.points[alive])
        questions = self._radius(problem, t) ** 2 * design.value * 4.0**t
        return Draft(design.support, rounded_up(design.weights, questions), LinearMemo(round=t, alive=alive))

    def eliminate(self, state: Stages) -> Elimination:
        """Exclude what the round's least-squares estimate excludes. Bounds are in probability, not in log-odds."""
        memo = LinearMemo.from_json(state.last.plan.memo)
        estimate = _least_squares(state.problem, state.last, self._radius(state.problem, memo.round))
        # No gaps: those of a verdict are in log-odds, of which this model says nothing.
        return exclude(state, memo.alive, estimate)

    def _radius(self, problem: Problem, t: int) -> float:
        """√(log(2|Z|/δ_t)/2) with δ_t = δ/(t(t+1))."""
        return math.sqrt(math.log(2 * len(problem.items) * t * (t + 1) / self.delta) / 2)


def _least_squares(problem: Problem, record: StageRecord, radius: float) -> StageEstimate | None:
    """θ̂ = A⁻¹·Σ x(y − 1/2) on the span of the asked vectors, and A = Σxxᵀ."""
    if not record.pulls.any():
        return None
    rows = problem.rows[record.plan.measurements]
    span = span_of(rows[record.pulls > 0])
    inside = span.coordinates(rows)
    shape = factor(gram_matrix(inside, record.pulls.astype(float)))
    if shape is None:
        return None
    moment = inside.T @ (record.wins - record.pulls / 2)
    return StageEstimate(span.embed(shape.solve(moment)), span, shape, radius)
