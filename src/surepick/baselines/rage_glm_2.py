"""RAGE-GLM-2 (Jun et al. 2021, supplement): rounds without a burn-in of their own, by Faury's bound of 2020."""

import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

import numpy as np

from surepick._arrays import Floats
from surepick.baselines.intervals import faury_gamma, faury_ridge, project
from surepick.design import Rows, pairs_optimal
from surepick.errors import InvalidInput
from surepick.glm import Tally
from surepick.guarantee import Guarantee
from surepick.identify.problem import Problem
from surepick.identify.staged.base import Draft, Filed, Stages, Standing
from surepick.identify.staged.burn_in import burn_in, level, proved_by, rounded_up
from surepick.identify.staged.elimination import exclude, gaps_stage_by_stage
from surepick.identify.staged.prior_knowledge import Informed
from surepick.identify.staged.stage_bounds import Estimate
from surepick.linalg import Span, factor, gram_matrix, norms


@dataclass(frozen=True, kw_only=True)
class RageGlm2(Informed):
    """Rounds of design and elimination with Faury's radius (2 + 4S)·γ, which needs no burn-in in a round but S.

    n_t is the least n with (2 + 4S)·γ_n(δ_t)·max‖z − z'‖ ≤ 2^{−t}, norms in the inverse of n times the information that
    the burn-in guarantees; the printed n_t is too small for d > 2. Needs norm_bound. The confidence bound is cited.
    """

    NAME = "rage-glm-2"
    GUARANTEE = Guarantee.CITED
    STATEMENT = "Jun et al. 2021, supplement: RAGE-GLM-2 with corrected sizes, on Faury et al. 2020, Lemma 11."
    NEEDS_KNOWLEDGE = True

    def check(self, problem: Problem) -> None:
        """Kappa alone does not do."""
        if self.norm_bound is None:
            raise InvalidInput(
                "rage-glm-2 needs norm_bound, an upper bound of theta's norm, got None; kappa is not enough."
            )
        super().check(problem)

    def standing(self, state: Stages) -> Standing:
        """Exclude what the round's projected estimate excludes."""
        return exclude(state, self._estimate(state.problem, state.last))

    def draft(self, state: Stages, standing: Standing | None) -> Draft:
        """The corrected burn-in, then rounds of halving widths."""
        problem = state.problem
        if standing is None:
            floors = self.floors(problem)
            assert floors is not None  # checked at the start
            first, budget = burn_in(problem, floors, level(self.delta, 0))
            memo = {"round": 0, "alive": list(range(len(problem.items))), "floors": floors.tolist()}
            return replace(first, memo={**memo, "budget": asdict(budget)})
        before = state.last.plan.memo
        number = int(before["round"]) + 1
        floors = np.array(before["floors"])
        if number == 1:
            proved = proved_by(problem, state.last)
            floors = floors if proved is None else proved.floors
        design = pairs_optimal(Rows(problem.rows, factors=np.sqrt(floors)), problem.points[standing.alive])
        questions = self._smallest(problem, design.value, 2.0**-number, level(self.delta, number))
        memo = {"round": number, "alive": standing.alive.tolist(), "floors": floors.tolist()}
        return Draft(design.support, rounded_up(design.weights, questions), memo)

    def gaps(self, state: Stages, best: int) -> tuple[Floats, Floats]:
        """Intervals by the last round in which the item was alive."""
        estimates = ((filed, self._estimate(state.problem, filed)) for filed in state.filed)
        return gaps_stage_by_stage(state, best, estimates)

    def _radius_of_ball(self, problem: Problem) -> float:
        """S after scaling the longest vector to one."""
        assert self.norm_bound is not None  # checked at the start
        return self.norm_bound * float(norms(problem.measurements).max())

    def _smallest(self, problem: Problem, value: float, target: float, delta: float) -> float:
        """The least n with (2 + 4S)·γ_n(δ)·√(value/n) ≤ target, to a per mille."""
        size, d = self._radius_of_ball(problem), problem.span.rank

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

    def _estimate(self, problem: Problem, filed: Filed) -> Estimate | None:
        """The projected estimate of a round, with norms in the inverse of what H(θ*) is certain to be."""
        number = int(filed.plan.memo["round"])
        if number == 0 or filed.pulls.sum() == 0:
            return None
        return _projected(problem, filed, self._radius_of_ball(problem), level(self.delta, number))


@lru_cache(maxsize=64)  # a stage is looked at two or three times: verdict, plan, gaps
def _projected(problem: Problem, filed: Filed, size: float, delta: float) -> Estimate | None:
    longest = float(norms(problem.measurements).max())
    asked, d = problem.rows[filed.plan.measurements], problem.span.rank
    tally = Tally(asked / longest, filed.pulls, filed.wins).asked()
    eta = faury_ridge(d, size, delta)
    theta, attained = project(tally, eta, size)
    floors = np.array(filed.plan.memo["floors"])[filed.plan.measurements]
    shape = factor(gram_matrix(asked, filed.pulls * floors) + longest**2 * eta * np.eye(d))
    if shape is None:
        return None
    radius = (1 + 2 * size) * (faury_gamma(d, size, tally.total, delta) + attained)
    return Estimate(theta / longest, Span(d, d, None), shape, radius)
