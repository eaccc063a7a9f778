"""RAGE for linear bandits (Fiez, Jain, Jamieson and Ratliff 2019), on answers that are not linear: a baseline.

It fits P(yes) − 1/2 as a linear function of x by least squares. Where that is far from true, the item it finds may not
be the best, and its widths say nothing about it.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from surepick.design import pairs_optimal
from surepick.guarantee import Guarantee
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Filed, Stages, Stagewise, Standing
from surepick.identify.staged.burn_in import rounded_up
from surepick.identify.staged.elimination import exclude
from surepick.identify.staged.stage_bounds import Estimate
from surepick.linalg import factor, gram_matrix, span_of


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

    def standing(self, state: Stages) -> Standing:
        """Exclude what the round's least-squares estimate excludes. Bounds are in probability, not in log-odds."""
        return exclude(state, self._estimate(state.problem, state.last))

    def draft(self, state: Stages, standing: Standing | None) -> Draft:
        """The best design for the items alive, for half the width of the round before."""
        problem = state.problem
        number = 1 if standing is None else int(state.last.plan.memo["round"]) + 1
        alive = np.arange(len(problem.items)) if standing is None else standing.alive
        design = pairs_optimal(problem.rows, problem.points[alive])
        questions = self._radius(problem, number) ** 2 * design.value * 4.0**number
        memo = {"round": number, "alive": alive.tolist()}
        return Draft(design.support, rounded_up(design.weights, questions), memo)

    def _radius(self, problem: Problem, number: int) -> float:
        return math.sqrt(math.log(2 * len(problem.items) * number * (number + 1) / self.delta) / 2)

    def _estimate(self, problem: Problem, filed: Filed) -> Estimate | None:
        found = _least_squares(problem, filed)
        radius = self._radius(problem, int(filed.plan.memo["round"]))
        return None if found is None else Estimate(found.theta, found.span, found.shape, radius)


@lru_cache(maxsize=16)  # a stage is looked at two or three times: verdict, plan, gaps
def _least_squares(problem: Problem, filed: Filed) -> Estimate | None:
    """θ̂ = A⁻¹·Σ x(y − 1/2) on the span of the asked vectors, and A = Σxxᵀ."""
    if not filed.pulls.any():
        return None
    rows = problem.rows[filed.plan.measurements]
    span = span_of(rows[filed.pulls > 0])
    inside = span.coordinates(rows)
    shape = factor(gram_matrix(inside, filed.pulls.astype(float)))
    if shape is None:
        return None
    moment = inside.T @ (filed.wins - filed.pulls / 2)
    return Estimate(span.embed(shape.solve(moment)), span, shape, 1.0)
