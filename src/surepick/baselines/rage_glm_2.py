"""RAGE-GLM-2 (Jun et al. 2021, supplement): rounds without a burn-in of their own, by Faury's bound of 2020."""

import math
from dataclasses import dataclass, replace

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.baselines.intervals import faury_gamma, faury_ridge, project
from surepick.confidence.theorem import Budget
from surepick.design import Rows, pairs_optimal
from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.guarantee import Guarantee
from surepick.identify.policy import StageRecord
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Elimination, StageMemo, Stages, WithPriorBounds
from surepick.identify.staged.elimination import exclude, with_gaps
from surepick.identify.staged.rage_glm import burn_in
from surepick.identify.staged.stage_bounds import StageEstimate, level, rounded_up, stage_bounds
from surepick.linalg import Span, factor, gram_matrix, norms


@dataclass(frozen=True, eq=False, kw_only=True)
class Round2Memo(StageMemo):
    """What a round must remember: the floors are those of the burn-in, which alone has a budget."""

    round: int
    """t; the burn-in is round 0."""
    alive: Integers
    floors: Floats
    budget: Budget | None = None


@dataclass(frozen=True, kw_only=True)
class RageGlm2(WithPriorBounds):
    """Rounds of design and elimination with Faury's radius (2 + 4S)·γ, which needs no burn-in in a round but S.

    n_t is the least n with (2 + 4S)·γ_n(δ_t)·max‖z − z'‖ ≤ 2^{−t}, norms in the inverse of n times the information that
    the burn-in guarantees; the printed n_t is too small for d > 2. Needs norm_bound. The confidence bound is cited.
    """

    NAME = "rage-glm-2"
    GUARANTEE = Guarantee.CITED
    STATEMENT = (
        "Jun et al. 2021, supplement: RAGE-GLM-2, on Faury et al. 2020, Lemma 11. The sizes of its rounds are our "
        "derivation: the printed ones are too small for d > 2."
    )
    NEEDS_PRIOR_BOUNDS = True

    def check(self, problem: Problem) -> None:
        """Kappa alone does not do."""
        if self.norm_bound is None:
            raise InvalidInput(
                "rage-glm-2 needs norm_bound, an upper bound of theta's norm, got None; kappa is not enough."
            )
        super().check(problem)

    def draft(self, state: Stages) -> Draft:
        """The corrected burn-in, then rounds of halving widths."""
        problem, before = state.problem, state.elimination
        if before is None:
            floors = self.floors(problem)
            assert floors is not None  # checked at the start
            asked, pulls, budget = burn_in(problem, floors, level(self.delta, 0))
            everything = np.arange(len(problem.items))
            return Draft(asked, pulls, Round2Memo(round=0, alive=everything, floors=floors, budget=budget))
        assert before.floors is not None  # `eliminate` sees to it
        t = Round2Memo.from_json(state.last.plan.memo).round + 1
        design = pairs_optimal(Rows(problem.rows, factors=np.sqrt(before.floors)), problem.points[before.alive])
        questions = self._smallest(problem, design.value, 2.0**-t, level(self.delta, t))
        memo = Round2Memo(round=t, alive=before.alive, floors=before.floors)
        return Draft(design.support, rounded_up(design.weights, questions), memo)

    def eliminate(self, state: Stages) -> Elimination:
        """Exclude what the round's projected estimate excludes; the burn-in only raises the floors."""
        memo, problem, last = Round2Memo.from_json(state.last.plan.memo), state.problem, state.last
        floors = memo.floors
        if memo.budget is not None:
            asked = last.plan.measurements
            bounds = stage_bounds(problem.rows, asked, last.pulls, last.wins, floors, memo.budget)
            floors = floors if bounds is None else bounds.floors
        said = exclude(state, memo.alive, self._estimate(problem, last, memo))
        return replace(with_gaps(state, said, state.eliminations), floors=floors)

    def _radius_of_ball(self, problem: Problem) -> float:
        """S after scaling the longest vector to one."""
        assert self.norm_bound is not None  # checked at the start
        return self.norm_bound * float(norms(problem.measurements).max())

    def _smallest(self, problem: Problem, value: float, target: float, delta: float) -> float:
        """The least n with (2 + 4S)·γ_n(δ)·√(value/n) ≤ target, to a per mille."""
        size, d = self._radius_of_ball(problem), problem.span.rank

        # 2·(1 + 2S)·γ: the estimate is off by (1 + 2S)·γ, and the projection attains at most as much again.
        def enough(n: float) -> bool:
            return (2 + 4 * size) * faury_gamma(d, size, n, delta) * math.sqrt(value / n) <= target

        high = 1.0
        while not enough(high):
            high *= 2
        low = high / 2
        while high / low > 1.001:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def _estimate(self, problem: Problem, record: StageRecord, memo: Round2Memo) -> StageEstimate | None:
        """The projected estimate of a round, with norms in the inverse of what H(θ*) is certain to be."""
        if memo.round == 0 or not record.pulls.any():
            return None
        size, d = self._radius_of_ball(problem), problem.span.rank
        delta = level(self.delta, memo.round)
        longest, asked = float(norms(problem.measurements).max()), record.plan.measurements
        # Faury's lemma is for vectors of length at most one; θ grows by what they shrink, so S does too.
        tally = Tally(problem.rows[asked] / longest, record.pulls, record.wins).asked()
        eta = faury_ridge(d, size, delta)
        theta, attained = project(tally, eta, size)
        information = gram_matrix(problem.rows[asked], record.pulls * memo.floors[asked])
        shape = factor(information + longest**2 * eta * np.eye(d))
        if shape is None:
            return None
        radius = (1 + 2 * size) * (faury_gamma(d, size, tally.total, delta) + attained)
        return StageEstimate(theta / longest, Span(d, d, None), shape, radius)
