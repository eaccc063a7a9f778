"""RAGE-GLM-R (Jun et al. 2021, section 4.2): RAGE-GLM that recycles all answers and has no burn-in in its rounds.

The design of a round depends on answers that its estimate then uses again, which the fixed-design theorem does not
allow: a heuristic, tagged as one.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from surepick.baselines.printed_forms import Printed, PrintedMemo
from surepick.design import Rows, apportion, pairs_optimal
from surepick.glm import variance
from surepick.guarantee import Guarantee
from surepick.identify.staged.base import Draft, Elimination, Stages
from surepick.identify.staged.elimination import exclude, with_gaps


@dataclass(frozen=True, kw_only=True)
class RageGlmR(Printed):
    """Rounds of design and elimination on all answers so far, with the paper's constants. Needs kappa or norm_bound."""

    NAME = "rage-glm-r"
    GUARANTEE = Guarantee.HEURISTIC
    STATEMENT = "Jun et al. 2021, section 4.2: RAGE-GLM-R; no proof, since answers are used twice."

    def draft(self, state: Stages) -> Draft:
        """BurnIn, then the best design for the items alive at the last estimate."""
        problem, rows, before = state.problem, state.problem.rows, state.elimination
        if before is None:
            memo = PrintedMemo(round=0, alive=np.arange(len(problem.items)), theta=None)
            return Draft(*self.burn_in(problem), memo)
        k = PrintedMemo.from_json(state.last.plan.memo).round + 1
        theta = np.zeros(rows.shape[1]) if before.estimate is None else before.estimate.theta
        # Line 5 without its first term, γ(d)·max ‖x‖²: ξ is left to the burn-in's answers, which are kept.
        design = pairs_optimal(Rows(rows, factors=np.sqrt(variance(rows @ theta))), problem.points[before.alive])
        questions = 3 * (1 + self.rounding) * 4.0**k * 3.5**2 * design.value * self.round_nats(problem, k)
        total = max(math.ceil(questions), len(design.support))
        memo = PrintedMemo(round=k, alive=before.alive, theta=theta)
        return Draft(design.support, apportion(design.weights, total).counts, memo)

    def eliminate(self, state: Stages) -> Elimination:
        """Exclude what the estimate from all answers excludes, with norms at the one that chose the round's design."""
        memo = PrintedMemo.from_json(state.last.plan.memo)
        estimate = self.with_printed_width(state.problem, state.records, memo.round, memo.theta)
        return with_gaps(state, replace(exclude(state, memo.alive, estimate), among=None))
