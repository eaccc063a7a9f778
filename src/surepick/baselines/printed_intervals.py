"""Theorem 1 of Jun, Jain, Mason and Nassif (ICML 2021) with the constants as printed, for comparison.

As printed (ξ² ≤ 1/γ) it is false: `surepick study coverage` shows an exact counterexample, docs/theory.md explains it.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick.confidence.fixed_design import AtEstimate, fixed_design
from surepick.confidence.prior_bounds import Knowledge
from surepick.confidence.result import Condition, Data, Intervals, Tallies
from surepick.glm import Fit
from surepick.guarantee import Guarantee
from surepick.linalg import distinct_lines

Form = Literal["known", "empirical"]


def interval_printed(
    answers: Tallies,
    queries: ArrayLike,
    *,
    delta: float = 0.05,
    data: Data = "adaptive",
    norm_bound: float | None = None,
    kappa: float | None = None,
    logit_bounds: ArrayLike | None = None,
    form: Form = "empirical",
    fitted: Fit | None = None,
) -> Intervals:
    """3.5·‖x‖ in H(θ*)⁻¹ ("known") or 5.2·‖x‖ in H(estimate)⁻¹ ("empirical"), times √log(2(1 + t_eff + queries)/delta).

    H(θ*) is bounded below by prior knowledge; without any, ξ is taken at the estimate, which nothing justifies.
    """
    validate.one_of("form", form, ("known", "empirical"))
    at = AtEstimate.of(answers, queries, delta, fitted)
    conditions = [fixed_design(data), *at.conditions()]
    knowledge = Knowledge.for_asked(answers, norm_bound, kappa, logit_bounds)
    width, details = at.nowhere, dict[str, float]()
    if at.estimate.converged:
        span = at.estimate.span
        rows, inside = span.coordinates(at.tally.vectors), span.coordinates(at.points)
        events = 1 + len(distinct_lines(at.tally.vectors)) + len(at.points)
        gamma = printed_gamma(at.rank, events, at.delta)
        shape = knowledge.information_floor(at.tally, rows) if knowledge else at.estimate.factor
        xi = math.inf if shape is None else float(shape.inverse_norms(rows).max())
        details |= {"xi": xi, "gamma": gamma}
        conditions.append(_burn_in(xi, gamma))
        if conditions[-1].holds and shape is not None:
            root = math.sqrt(math.log(2 * events / at.delta))
            radius, used = (3.5 * root, shape) if form == "known" else (5.2 * root, at.estimate.factor or shape)
            details["radius"] = radius
            width = np.where(span.contains(at.points), radius * used.inverse_norms(inside), np.inf)
    return at.intervals(
        "printed" if form == "known" else "printed-empirical",
        Guarantee.AS_PRINTED if data == "fixed" and knowledge else Guarantee.HEURISTIC,
        "Jun et al. 2021, Theorem 1, constants as printed; not valid in general (docs/theory.md).",
        width,
        conditions,
        details,
    )


def printed_gamma(dimension: int, events: int, delta: float) -> float:
    """γ = d + log(6·events/δ): 1/ξ² is to be at least this, with one event a line asked, one a query and one more."""
    return dimension + math.log(6 * events / delta)


def _burn_in(xi: float, gamma: float) -> Condition:
    holds = xi * xi * gamma <= 1
    return Condition(
        "burn-in as printed",
        holds,
        f"xi² is {xi * xi:.3g}, the printed condition allows {1 / gamma:.3g}"
        + ("." if holds else f": ask every vector about {xi * xi * gamma:.3g} times as often."),
    )
