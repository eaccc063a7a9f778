"""Intervals of others, for comparison: Jun et al. 2021 as printed, Wald, Li et al. 2017, Faury et al. 2020.

As printed (ξ² ≤ 1/γ), Theorem 1 of Jun, Jain, Mason and Nassif (ICML 2021) is false: `surepick study coverage` shows an
exact counterexample, docs/theory.md, section 2, explains it. The formulas of the others are in section 7.
"""

import math
from typing import Literal

import numpy as np
import scipy  # its parts load when first used: scipy.optimize takes longer than importing all of surepick
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats
from surepick.confidence.fixed_design import AtEstimate, fixed_design
from surepick.confidence.prior_bounds import Knowledge
from surepick.confidence.result import Condition, Data, Intervals, Tallies, around, pooled, unbounded
from surepick.confidence.theorem import printed_gamma
from surepick.errors import InvalidInput
from surepick.glm import Fit, Tally, fit, variance
from surepick.glm.loss import derivatives
from surepick.guarantee import Guarantee
from surepick.linalg import factor, gram_matrix, norms

Form = Literal["known", "empirical"]

LI = "Li, Lu and Zhou 2017, Theorem 1."
FAURY = (
    "Faury et al. 2020, Lemma 11: all x and all times at once, for a known bound of the norm. The radius "
    "(1 + 2S)(gamma + v) in place of the published (2 + 4S) gamma is our derivation (docs/theory.md, section 7), v the "
    "computed cost of moving into the ball; the ridge is that of Jun et al. 2021."
)
NEEDS_NORM_BOUND = Condition("norm bound known", False, "This bound needs norm_bound, a bound of the length of theta*.")


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
        # t_eff as printed: the distinct vectors asked. x and −x are one line, and one event would do for both.
        events = 1 + len(at.tally.merged()) + len(at.points)
        gamma = printed_gamma(at.rank, events, at.delta)
        shape = knowledge.information_floor(at.tally, rows) if knowledge else at.estimate.factor
        xi = math.inf if shape is None else float(shape.inverse_norms(rows).max())
        details |= {"xi": xi, "gamma": gamma}
        conditions.append(_printed_burn_in(xi, gamma))
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


def _printed_burn_in(xi: float, gamma: float) -> Condition:
    holds = xi * xi * gamma <= 1
    return Condition(
        "burn-in as printed",
        holds,
        f"xi² is {xi * xi:.3g}, the printed condition allows {1 / gamma:.3g}"
        + ("." if holds else f": ask every vector about {xi * xi * gamma:.3g} times as often."),
    )


def interval_wald(answers: Tallies, queries: ArrayLike, *, delta: float = 0.05, fitted: Fit | None = None) -> Intervals:
    """Estimate ± normal quantile × standard error, for each query by itself; right only for ever more answers."""
    at = AtEstimate.of(answers, queries, delta, fitted)
    radius = float(-scipy.special.ndtri(at.delta / 2))
    return at.intervals(
        "wald",
        Guarantee.HEURISTIC,
        "Each query by itself, as the number of answers tends to infinity.",
        radius * at.estimate.inverse_norms(at.points),
        at.conditions(),
        {"radius": radius},
    )


def interval_li(
    answers: Tallies,
    queries: ArrayLike,
    *,
    norm_bound: float | None = None,
    delta: float = 0.05,
    data: Data = "adaptive",
    fitted: Fit | None = None,
) -> Intervals:
    """Li, Lu and Zhou 2017, Theorem 1: (3σ/κ)·√log(1/δ')·‖x‖ in V⁻¹, σ = 1/2, if λ_min(V) ≥ 8κ⁻⁴(d² + log(1/δ')).

    κ is the least slope within distance one of θ* for ‖x‖ ≤ 1, here s(norm_bound + 1) after scaling the longest
    vector to one; δ' = delta/(3·queries).
    """
    at = AtEstimate.of(answers, queries, delta, fitted)
    conditions = [fixed_design(data), *at.conditions()]
    guarantee = Guarantee.CITED if data == "fixed" else Guarantee.HEURISTIC
    if norm_bound is None:
        return unbounded("li", guarantee, LI, at.delta, len(at.points), NEEDS_NORM_BOUND)
    bound = validate.positive("norm_bound", norm_bound)
    longest = float(norms(at.tally.vectors).max())
    span = at.estimate.span
    gram = gram_matrix(span.coordinates(at.tally.vectors) / longest, at.tally.pulls.astype(float))
    kappa = float(variance(np.array(bound * longest + 1.0)))
    nats = math.log(3 * len(at.points) / at.delta)
    smallest = float(np.linalg.eigvalsh(gram)[0])
    # Beyond this, kappa⁻⁴ overflows and no number of answers is enough.
    needed = 8 * (at.rank**2 + nats) / kappa**4 if kappa > 1e-70 else math.inf
    shape = factor(gram)
    burn_in = Condition(
        "burn-in of Li et al.",
        shape is not None and smallest >= needed,
        f"The smallest eigenvalue of the design is {smallest:.3g}, the theorem needs {needed:.3g}"
        + ("." if smallest >= needed else f": {needed / max(smallest, 1e-300):.3g} times as many answers."),
    )
    width = at.nowhere
    radius = 1.5 / kappa * math.sqrt(nats) if kappa > 0 else math.inf
    if burn_in.holds and shape is not None:
        scaled = shape.inverse_norms(span.coordinates(at.points) / longest)
        width = np.where(span.contains(at.points), radius * scaled, np.inf)
    return at.intervals("li", guarantee, LI, width, [*conditions, burn_in], {"radius": radius, "kappa": kappa})


def interval_faury(
    answers: Tallies, queries: ArrayLike, *, norm_bound: float | None = None, delta: float = 0.05
) -> Intervals:
    """Faury et al. 2020, Lemma 11, for any way of choosing questions: (1+2S)(γ + v)·‖x‖ in (H(θ_T) + ηI)⁻¹.

    θ_T is the projection of the ridge estimate on ‖θ‖ ≤ S and v the value it attains. Their proof bounds v by γ, hence
    their 2+4S; v is 0 where the ridge estimate is short enough. Vectors are scaled to length at most one, S with
    them. The ridge is that of Jun et al. 2021, η = (d + log(1/delta))/(S + 1/2).
    """
    delta = validate.probability("delta", delta)
    tally = pooled(answers).asked()
    points = validate.matrix("queries", queries, columns=tally.dimension)
    if norm_bound is None:
        return unbounded("faury", Guarantee.CITED, FAURY, delta, len(points), NEEDS_NORM_BOUND)
    bound = validate.positive("norm_bound", norm_bound)
    if len(tally) == 0:
        raise InvalidInput("There are no answers; at least one is needed.")
    longest = float(norms(tally.vectors).max())
    if longest == 0:
        raise InvalidInput(
            "All asked vectors are zero, so the answers carry no information; check the feature columns."
        )
    scaled = Tally(tally.vectors / longest, tally.pulls, tally.wins)
    radius_of_ball = bound * longest
    d, answered = tally.dimension, tally.total
    eta = faury_ridge(d, radius_of_ball, delta)
    gamma = faury_gamma(d, radius_of_ball, answered, delta)
    theta, attained = project(scaled, eta, radius_of_ball)
    radius = (1 + 2 * radius_of_ball) * (gamma + attained)
    ridge = eta * np.eye(d)
    at_estimate = factor(scaled.information(theta) + ridge)
    floor = variance(radius_of_ball * norms(scaled.vectors))
    at_worst = factor(gram_matrix(scaled.vectors, floor * scaled.pulls) + ridge)
    shapes = [shape for shape in (at_estimate, at_worst) if shape is not None]
    lengths = np.min([shape.inverse_norms(points / longest) for shape in shapes], axis=0)
    width = np.multiply(radius, lengths, out=np.zeros(len(points)), where=lengths > 0)
    low, high = around(points @ theta / longest, width)
    return Intervals(
        method="faury",
        guarantee=Guarantee.CITED,
        statement=FAURY,
        delta=delta,
        centre=points @ theta / longest,
        low=low,
        high=high,
        details={"d": float(d), "radius": radius, "gamma": gamma, "attained": attained},
    )


def faury_ridge(dimension: int, norm_bound: float, delta: float) -> float:
    """η = (d + log(1/delta))/(S + 1/2), the ridge that Jun et al. 2021 choose, for vectors of length at most one."""
    return (dimension + math.log(1 / delta)) / (norm_bound + 0.5)


def faury_gamma(dimension: int, norm_bound: float, answers: float, delta: float) -> float:
    """γ_T(delta) of Faury et al. 2020, Lemma 11, at that ridge; the same for every θ* and every estimate.

    Their martingale bound has log det H(θ*), which nobody knows; d·log(η + T/d) is at least as large for vectors of
    length at most one.
    """
    eta = faury_ridge(dimension, norm_bound, delta)
    root = math.sqrt(eta)
    return (
        root * (norm_bound + 0.5)
        + 2 / root * math.log(1 / delta)
        + 2 * dimension / root * math.log(2 * math.sqrt(1 + answers / (dimension * eta)))
    )


def project(tally: Tally, eta: float, radius: float) -> tuple[Floats, float]:
    """A point of the ball with small ‖g(θ) − g(ridge estimate)‖ in H(θ)⁻¹, and that value: all the proof needs.

    The problem is not convex; a local search goes on from the penalised fit on the ball. Any point of it is valid.
    """
    free = fit(tally, ridge=eta)
    pulls, wins = tally.pulls.astype(float), tally.wins.astype(float)

    def into_the_ball(theta: Floats) -> Floats:
        return theta * min(1.0, radius / max(float(np.linalg.norm(theta)), 1e-300))

    def value(theta: Floats) -> float:
        inside = into_the_ball(theta)
        at = derivatives(tally.vectors, pulls, wins, inside)
        shape = factor(at.hessian + eta * np.eye(len(theta)))
        return math.inf if shape is None else shape.inverse_norm(at.gradient + eta * inside)

    if float(np.linalg.norm(free.theta)) <= radius:
        return free.theta, value(free.theta)
    start = fit(tally, ridge=eta, norm_bound=radius).theta
    found = scipy.optimize.minimize(value, start, method="Nelder-Mead", options={"maxiter": 200})
    best = start if value(start) <= found.fun else np.asarray(found.x)
    return into_the_ball(best), value(best)
