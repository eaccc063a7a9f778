"""Theorem 1 of Jun, Jain, Mason and Nassif (ICML 2021) with the constants as printed, for comparison.

As printed (ξ² ≤ 1/γ) it is false: `surepick study coverage` shows an exact counterexample, docs/theory.md explains it.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick.confidence.knowledge import Knowledge
from surepick.confidence.result import (
    Answers,
    Condition,
    Data,
    Intervals,
    around,
    estimate_exists,
    fixed_design,
    plain_fit,
    pooled,
    queries_in_span,
)
from surepick.guarantee import Guarantee
from surepick.linalg import distinct_lines
from surepick.logistic import Fit

Form = Literal["known", "empirical"]


def interval_printed(
    answers: Answers,
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
    delta = validate.probability("delta", delta)
    validate.one_of("data", data, ("adaptive", "fixed"))
    validate.one_of("form", form, ("known", "empirical"))
    tally = pooled(answers).asked()
    points = validate.matrix("queries", queries, columns=tally.dimension)
    knowledge = Knowledge.for_asked(answers, norm_bound, kappa, logit_bounds)
    estimate = plain_fit(tally, fitted)
    conditions = [fixed_design(data), estimate_exists(estimate), queries_in_span(estimate, points)]
    width = np.full(len(points), np.inf)
    details: dict[str, float] = {"d": float(estimate.span.rank)}
    if estimate.converged:
        rows, inside = estimate.span.coordinates(tally.vectors), estimate.span.coordinates(points)
        events = 1 + len(distinct_lines(tally.vectors)) + len(points)
        gamma = estimate.span.rank + math.log(6 * events / delta)
        shape = knowledge.information_floor(tally, rows) if knowledge else estimate.factor
        xi = math.inf if shape is None else float(shape.inverse_norms(rows).max())
        details |= {"xi": xi, "gamma": gamma}
        conditions.append(_burn_in(xi, gamma))
        if conditions[-1].holds and shape is not None:
            root = math.sqrt(math.log(2 * events / delta))
            radius, used = (3.5 * root, shape) if form == "known" else (5.2 * root, estimate.factor or shape)
            details["radius"] = radius
            width = np.where(estimate.span.contains(points), radius * used.inverse_norms(inside), np.inf)
    low, high = around(points @ estimate.theta, width)
    return Intervals(
        method="printed" if form == "known" else "printed-empirical",
        guarantee=Guarantee.AS_PRINTED if data == "fixed" and knowledge else Guarantee.HEURISTIC,
        statement="Jun et al. 2021, Theorem 1, constants as printed; not valid in general (docs/theory.md).",
        delta=delta,
        centre=points @ estimate.theta,
        low=low,
        high=high,
        conditions=tuple(conditions),
        details=details,
    )


def _burn_in(xi: float, gamma: float) -> Condition:
    holds = xi * xi * gamma <= 1
    return Condition(
        "burn-in as printed",
        holds,
        f"xi² is {xi * xi:.3g}, the printed condition allows {1 / gamma:.3g}"
        + ("." if holds else f": ask every vector about {xi * xi * gamma:.3g} times as often."),
    )
