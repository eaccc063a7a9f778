"""What a completed stage proves: the corrected theorem applied to one fixed design, with a floor under every variance.

A *floor* is a lower bound of s(xᵀθ*), the variance of one answer to x, that holds on the events of earlier stages.
Floors take the place of "H(θ*) ≥ e^{−D}·H(θ̂)": they are sharper, need no common D, and stages that leave some vectors
unasked keep what earlier ones said of them. Statements and proofs: docs/identify.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.confidence.theorem import Budget, Radii, Version, largest_xi, radii
from surepick.glm import Fit, Tally, fit, variance
from surepick.linalg import Factor, Span, distinct_lines, factor, gram_matrix

SHARES = (0.03, 0.1, 0.25, 0.5)
"""Shares of a stage's failure probability that may go to the norm of the score; the best is picked when planning."""

COMFORT = 0.9
"""ξ of a stage, at most, as a fraction of the largest that the theorem admits: at 1 it would prove next to nothing."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate with a radius: |yᵀ(θ̂ − θ*)| ≤ radius·‖y‖ in shape⁻¹ for the directions the radius was counted for."""

    theta: Floats
    """In coordinates of the problem's rows; zero across what was not asked."""
    span: Span
    """The span of the asked vectors."""
    shape: Factor
    """An information matrix, in coordinates of that span."""
    radius: float

    def white(self, points: Floats) -> Floats:
        """Points whose Euclidean distances are the widths of their differences."""
        return self.radius * self.shape.whitened(self.span.coordinates(points))


@dataclass(frozen=True, eq=False)
class Certified:
    """What is true after a stage unless its failure event, of the probability in its budget, happened."""

    estimate: Estimate
    floors: Floats
    """Lower bounds of s(xᵀθ*) for all measurement vectors, at least those before the stage."""


def certify(
    rows: Floats,
    asked: Integers,
    pulls: Integers,
    wins: Integers,
    floors: Floats,
    budget: Budget,
    *,
    sharpen: bool = True,
) -> Certified | None:
    """Apply the corrected theorem to one stage; None where its burn-in fails or no estimate exists.

    The floors of the asked vectors bound ξ = max ‖x‖ in H(θ*)⁻¹ from above. On its event the theorem then
    bounds every |xᵀ(θ̂ − θ*)|, hence raises the floors, hence shrinks ξ, and so on: all on one event, at no further
    cost (without `sharpen`, not even once). One fit, a few passes of O(p d²) for p asked vectors, one over all rows.
    """
    tally = Tally(rows[asked], pulls, wins)
    answered = tally.asked()
    if len(answered) == 0:
        return None
    found = fit(answered)
    if not found.converged:
        return None
    keep = asked[tally.pulls > 0]
    inside = found.span.coordinates(answered.vectors)
    logits, xi_estimated = answered.vectors @ found.theta, float(found.inverse_norms(answered.vectors).max())

    def radii_at(xi: float) -> Radii | None:
        return _radii(xi, found, xi_estimated, budget)

    reached = refine(
        inside, answered.pulls.astype(float), floors[keep], logits, budget, radii_at, rounds=30 if sharpen else 1
    )
    if reached is None:
        return None
    raised = np.maximum(floors, _floors_elsewhere(rows, found, reached.shape, reached.radii.ellipsoid))
    raised[keep] = np.maximum(raised[keep], reached.floors)
    return Certified(Estimate(found.theta, found.span, reached.shape, reached.radii.query), raised)


@dataclass(frozen=True, eq=False)
class Refined:
    """Where the refinement of ξ ends."""

    radii: Radii
    shape: Factor
    """Of an information matrix that H(θ*) dominates."""
    floors: Floats
    """Of the asked vectors."""


def refine(
    inside: Floats,
    pulls: Floats,
    floors: Floats,
    logits: Floats,
    budget: Budget,
    radii_at: Callable[[float], Radii | None],
    *,
    rounds: int = 30,
) -> Refined | None:
    """Bound ξ by the floors, apply the theorem, raise the floors by its shifts around the logits, and so on.

    With the logits of an estimate this is what its answers prove; with those of a guess, what they may be expected to.
    """
    result: Refined | None = None
    for _ in range(rounds):
        shape = factor(gram_matrix(inside, pulls * floors))
        if shape is None:
            break
        lengths = shape.inverse_norms(inside)
        reached = radii_at(float(lengths.max()))
        if reached is None:
            break
        each = reached.query if budget.version == "union" else reached.ellipsoid  # the asked lines are counted, or not
        better = np.maximum(floors, least_variance(logits, np.minimum(reached.shift, each * lengths)))
        result = Refined(reached, shape, better)
        if np.all(better <= floors * (1 + 1e-3)):
            break
        floors = better
    return result


def least_variance(logits: Floats, error: Floats | float) -> Floats:
    """The least s(v) for v within `error` of each logit: s falls with |v|."""
    return variance(np.abs(logits) + error)


def _floors_elsewhere(rows: Floats, found: Fit, shape: Factor, ellipsoid: float) -> Floats:
    """Floors of any vector in the span of the asked ones, by the ellipsoid, which holds for all x at once."""
    error = ellipsoid * shape.inverse_norms(found.span.coordinates(rows))
    return np.where(found.span.contains(rows), least_variance(rows @ found.theta, error), 0.0)


def _radii(xi: float, found: Fit, xi_estimated: float, budget: Budget) -> Radii | None:
    """The theorem at ξ, with what the fit lacks to the optimum added (docs/theory.md, 3.7)."""
    first, near = radii(xi, found.span.rank, budget), 1 - xi_estimated * found.gap
    if first is None or near <= 0:
        return None
    slack = found.gap * math.exp(first.shift / 2) / math.sqrt(near)
    return radii(xi, found.span.rank, budget, slack=slack)


def planned_radii(xi: float, rank: int, budget: Budget) -> Radii | None:
    """The theorem at ξ rounded up to a grid of 1%: good enough to plan with, and remembered from plan to plan."""
    if not math.isfinite(xi) or xi <= 0:
        return None
    return radii(1.01 ** math.ceil(math.log(xi) / math.log(1.01) - 1e-9), rank, budget)


def best_budget(*, delta: float, rank: int, xi: float, asked_lines: int, query_lines: int) -> Budget:
    """How to spend delta so that the radius at about this ξ is least; to be called before the stage is asked."""
    options: list[tuple[Version, float]] = [("norm", share) for share in SHARES]
    options += [("union", share) for share in SHARES]
    budgets = [Budget.split(version, delta, share, asked_lines, query_lines) for version, share in options]

    return min(budgets, key=lambda budget: _planned_radius(xi, rank, budget))


def _planned_radius(xi: float, rank: int, budget: Budget) -> float:
    """Of a counted direction; infinite where the theorem does not apply."""
    reached = planned_radii(xi, rank, budget)
    return math.inf if reached is None else reached.query


def smallest_stage(rank: int, budget: Budget, *, longest: float, value: float = 0.0, target: float = math.inf) -> float:
    """The least n, to a half per cent, with ξ_n ≤ COMFORT·(largest ξ of the theorem) and radius·√(value/n) ≤ target.

    `longest` is the largest ‖x‖² of an asked vector in the inverse of the information of one question, `value` that of
    a direction to be known. The radius hardly depends on n, so a few evaluations of the theorem (3 ms each) suffice.
    """

    def wanted(n: float) -> float:
        return (_planned_radius(math.sqrt(longest / n), rank, budget) / target) ** 2 * value

    least = longest / (COMFORT * largest_xi(rank, budget)) ** 2
    if not math.isfinite(least + value):
        return math.inf
    low, high = least, max(least, wanted(least))  # the radius falls with n, so `high` is enough
    for _ in range(20):
        if high <= 1.005 * low:
            break
        guess = max(low, wanted(high))
        low, high = (guess, high) if wanted(guess) > guess else (low, guess)
        middle = math.sqrt(low * high)
        low, high = (middle, high) if wanted(middle) > middle else (low, middle)
    return high


def lines(vectors: Floats) -> int:
    """Number of distinct lines through the origin among the vectors: each is one event of the union."""
    return len(distinct_lines(vectors))
