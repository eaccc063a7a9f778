"""RAGE-GLM-R (Jun et al. 2021, section 4.2): RAGE-GLM that recycles all answers and has no burn-in in its rounds.

The design of a round depends on answers that its estimate then uses again, which the fixed-design theorem does not
allow: a heuristic, tagged as one.
"""

import math
from dataclasses import dataclass

import numpy as np

from surepick import validate
from surepick._arrays import Floats
from surepick.baselines.printed_forms import fitted, printed_burn_in, round_nats, with_printed_width
from surepick.design import Rows, apportion, pairs_optimal
from surepick.glm import variance
from surepick.guarantee import Guarantee
from surepick.identify.staged.base import Draft, Stages, Standing
from surepick.identify.staged.elimination import exclude, gap_intervals
from surepick.identify.staged.prior_knowledge import Informed
from surepick.identify.staged.stage_bounds import Estimate


@dataclass(frozen=True, kw_only=True)
class RageGlmR(Informed):
    """Rounds of design and elimination on all answers so far, with the paper's constants. Needs kappa or norm_bound."""

    rounding: float = 0.1

    NAME = "rage-glm-r"
    GUARANTEE = Guarantee.HEURISTIC
    STATEMENT = "Jun et al. 2021, section 4.2: RAGE-GLM-R; no proof, since answers are used twice."
    NEEDS_KNOWLEDGE = True

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.positive("rounding", self.rounding)

    def standing(self, state: Stages) -> Standing:
        """Exclude what the estimate from all answers excludes."""
        return exclude(state, self._estimate(state))

    def draft(self, state: Stages, standing: Standing | None) -> Draft:
        """BurnIn, then the best design for the items alive at the last estimate."""
        problem = state.problem
        if standing is None:
            first = printed_burn_in(problem, self.least_kappa(problem), self.delta, self.rounding)
            memo = {"round": 0, "alive": list(range(len(problem.items))), "theta": None}
            return Draft(first.measurements, first.pulls, memo)
        number, rows = int(state.last.plan.memo["round"]) + 1, problem.rows
        theta = fitted(problem, state.filed)
        theta = np.zeros(rows.shape[1]) if theta is None else theta
        design = pairs_optimal(Rows(rows, factors=np.sqrt(variance(rows @ theta))), problem.points[standing.alive])
        nats = round_nats(problem, self.delta, number)
        questions = 3 * (1 + self.rounding) * 4.0**number * 3.5**2 * design.value * nats
        total = max(math.ceil(questions), len(design.support))
        memo = {"round": number, "alive": standing.alive.tolist(), "theta": theta.tolist()}
        return Draft(design.support, apportion(design.weights, total).counts, memo)

    def gaps(self, state: Stages, best: int) -> tuple[Floats, Floats]:
        """Intervals by the printed width on all answers."""
        points = state.problem.points
        return gap_intervals(points[best] - points, self._estimate(state))

    def _estimate(self, state: Stages) -> Estimate | None:
        """From all answers, with norms at the estimate that chose the round's design."""
        before = state.last.plan.memo["theta"]
        return with_printed_width(state, self.delta, None if before is None else np.array(before))
