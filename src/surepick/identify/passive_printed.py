"""The passive baseline as Jun et al. 2021 describe it (section 4.2): all answers pooled, burn-in included; no proof.

Round k draws 2^k more answers from the design that is best for all pairs at the burn-in's estimate, until every item
but one is excluded by the fixed-design width. "See Appendix for details" refers to nothing; the width is that of the
supplement's elimination rule, with the norms of all answers at the burn-in's estimate.
"""

import math
from functools import lru_cache

import numpy as np

from surepick.arrays import Floats
from surepick.design import Rows, pairs_optimal
from surepick.identify.burn_in import printed_burn_in
from surepick.identify.certified import Estimate
from surepick.identify.elimination import exclude, gap_intervals
from surepick.identify.problem import Problem
from surepick.identify.rage_glm_printed import Options, printed_width
from surepick.identify.stagewise import Draft, Filed, Stages, Standing
from surepick.logistic import Tally, fit, variance


def standing(options: Options, state: Stages) -> Standing:
    """Exclude what the pooled estimate excludes."""
    return exclude(state, _estimate(options.delta, state))


def draft(options: Options, state: Stages, standing: Standing | None) -> Draft:
    """BurnIn, then 2^k more questions a round, beginning where 2^k covers the design's vectors."""
    problem = state.problem
    if standing is None:
        first = printed_burn_in(problem, options.least_kappa(problem), options.delta, options.rounding)
        return Draft(first.measurements, first.pulls, {"round": 0, "alive": list(range(len(problem.items)))})
    memo = state.last.plan.memo
    if memo["round"] == 0:
        theta = pooled_estimate(problem, state.filed[:1])
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


def gaps(options: Options, state: Stages, best: int) -> tuple[Floats, Floats]:
    """Intervals by the widths of the last look."""
    everybody = np.arange(len(state.problem.items))
    return gap_intervals(state.problem.points, best, everybody, _estimate(options.delta, state))


def _estimate(delta: float, state: Stages) -> Estimate | None:
    problem = state.problem
    theta, at = pooled_estimate(problem, state.filed), pooled_estimate(problem, state.filed[:1])
    if theta is None or at is None:
        return None
    pulls, _ = state.counts()
    asked = np.flatnonzero(pulls)
    return printed_width(problem, delta, int(state.last.plan.memo["round"]), theta, asked, pulls[asked], at)


@lru_cache(maxsize=64)  # a stage is looked at two or three times: verdict, plan, gaps
def pooled_estimate(problem: Problem, filed: tuple[Filed, ...]) -> Floats | None:
    """Maximum likelihood on all answers of these stages; None where it does not exist in all of the space."""
    pulls, wins = Stages(problem, filed).counts()
    asked = np.flatnonzero(pulls)
    found = fit(Tally(problem.rows[asked], pulls[asked], wins[asked]))
    return found.theta if found.converged and found.span.is_full else None
