"""The passive baseline as Jun et al. 2021 describe it (section 4.2): all answers pooled, burn-in included; no proof.

Round k draws 2^k more answers from the design that is best for all pairs at the burn-in's estimate, until every item
but one is excluded by the fixed-design width. "See Appendix for details" refers to nothing; the width is that of the
supplement's elimination rule, with the norms of all answers at the burn-in's estimate.
"""

import math

import numpy as np

from surepick._arrays import Floats
from surepick.baselines.printed_forms import TwoForms, fitted, printed_burn_in, with_printed_width
from surepick.design import Rows, pairs_optimal
from surepick.glm import variance
from surepick.identify.staged.base import Draft, Stages, Standing
from surepick.identify.staged.elimination import exclude, gap_intervals
from surepick.identify.staged.stage_bounds import Estimate


def standing(policy: TwoForms, state: Stages) -> Standing:
    """Exclude what the pooled estimate excludes."""
    return exclude(state, _estimate(policy.delta, state))


def draft(policy: TwoForms, state: Stages, standing: Standing | None) -> Draft:
    """BurnIn, then 2^k more questions a round, beginning where 2^k covers the design's vectors."""
    problem = state.problem
    if standing is None:
        first = printed_burn_in(problem, policy.least_kappa(problem), policy.delta, policy.rounding)
        return Draft(first.measurements, first.pulls, {"round": 0, "alive": list(range(len(problem.items)))})
    memo = state.last.plan.memo
    if memo["round"] == 0:
        theta = fitted(problem, state.filed[:1])
        theta = np.zeros(problem.rows.shape[1]) if theta is None else theta
        design = pairs_optimal(Rows(problem.rows, factors=np.sqrt(variance(problem.rows @ theta))), problem.points)
        # At least 1: 0 is the burn-in, and a design of one vector would be asked one question a round for ever.
        number = max(1, math.ceil(math.log2(len(design.support))))
        asked, weights = design.support, design.weights
    else:
        asked, weights, number = np.array(memo["asked"]), np.array(memo["weights"]), int(memo["round"]) + 1
    pulls = np.rint(np.diff(np.concatenate([[0.0], np.rint(np.cumsum(weights) * 2.0**number)]))).astype(np.int64)
    here = pulls > 0
    return Draft(
        asked[here],
        pulls[here],
        {
            "round": number,
            "alive": standing.alive.tolist(),
            "asked": asked.tolist(),
            "weights": weights.tolist(),
        },
    )


def gaps(policy: TwoForms, state: Stages, best: int) -> tuple[Floats, Floats]:
    """Intervals by the widths of the last look."""
    points = state.problem.points
    return gap_intervals(points[best] - points, _estimate(policy.delta, state))


def _estimate(delta: float, state: Stages) -> Estimate | None:
    """From all answers, with norms at the burn-in's estimate."""
    at = fitted(state.problem, state.filed[:1])
    return None if at is None else with_printed_width(state, delta, at)
