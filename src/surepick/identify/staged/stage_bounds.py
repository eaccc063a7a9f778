"""What an answered stage proves: the corrected theorem applied to one fixed design, with a floor under every variance.

A *floor* is a lower bound of s(xᵀθ*), the variance of one answer to x, that holds on the events of earlier stages.
Floors take the place of "H(θ*) ≥ e^{−D}·H(θ̂)": they are sharper, need no common D, and stages that leave some vectors
unasked keep what earlier ones said of them. The second half has the other direction: how large a stage must be for the
theorem to prove enough. Statements and proofs: docs/identify.md, "Rounds with floors"; the theorem: docs/theory.md, 3.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats, Integers
from surepick.confidence.theorem import Budget, Radii, Version, largest_xi, radii
from surepick.glm import Fit, Tally, fit, variance
from surepick.linalg import Factor, Span, distinct_lines, factor, gram_matrix, span_of

FIRST_SHARE = 0.1
"""Share of delta that the first stage may spend: its size depends on it only through a logarithm."""

SHARES = (0.03, 0.1, 0.25, 0.5)
"""Shares of a stage's failure probability that may go to the norm of the score; the best is picked when planning."""

COMFORT = 0.9
"""ξ of a stage, at most, as a fraction of the largest that the theorem admits: at 1 it would prove next to nothing."""


@dataclass(frozen=True, eq=False)
class StageEstimate:
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
class StageBounds:
    """What is true after a stage unless its failure event happened, whose probability is in the stage's budget."""

    estimate: StageEstimate
    floors: Floats
    """Lower bounds of s(xᵀθ*) for all measurement vectors, at least those before the stage."""


def stage_bounds(
    rows: Floats,
    asked: Integers,
    pulls: Integers,
    wins: Integers,
    floors: Floats,
    budget: Budget,
    *,
    sharpen: bool = True,
) -> StageBounds | None:
    """Apply the corrected theorem to one stage (step 3 of docs/identify.md); None where it does not apply.

    `asked` are rows with their `pulls` and `wins`; `floors` has one number for every row, `budget` says how the stage's
    delta is spent. It does not apply where ξ is too large or no maximum-likelihood estimate exists. Without `sharpen`
    the floors are not raised by the stage's own answers. Cost: one fit, a few passes of O(p d²) for p asked vectors,
    one over all rows.
    """
    tally = Tally(rows[asked], pulls, wins)
    answered = tally.asked()
    if len(answered) == 0:
        return None
    found = fit(answered)
    if not found.converged:  # separated answers: the likelihood has no maximum
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
    # Vectors that were not asked are no lines of the union bound; for them only the ellipsoid holds, which is wider.
    raised = np.maximum(floors, _floors_elsewhere(rows, found, reached.shape, reached.radii.ellipsoid))
    raised[keep] = np.maximum(raised[keep], reached.floors)
    return StageBounds(StageEstimate(found.theta, found.span, reached.shape, reached.radii.query), raised)


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
    None where the theorem does not apply at the first ξ.
    """
    result: Refined | None = None
    # Every pass is on one and the same event, which mentions neither ξ nor the floors (docs/theory.md, 4), so passes
    # cost no delta. Floors only rise, so ξ only falls, and each pass is valid by itself: stopping early is safe.
    for _ in range(rounds):
        shape = factor(gram_matrix(inside, pulls * floors))
        if shape is None:
            break
        lengths = shape.inverse_norms(inside)
        reached = radii_at(float(lengths.max()))
        if reached is None:
            break
        # With the union bound the asked lines are among those counted; by the norm only the ellipsoid covers them.
        radius = reached.query if budget.version == "union" else reached.ellipsoid
        better = np.maximum(floors, least_variance(logits, np.minimum(reached.shift, radius * lengths)))
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
    """The theorem at ξ rounded up to a grid of 1%: good enough to plan with."""
    if not math.isfinite(xi) or xi <= 0:
        return None
    # A few grid points serve all plans, so the theorem's optimiser, 3 ms a call, finds them in its cache.
    return radii(1.01 ** math.ceil(math.log(xi) / math.log(1.01) - 1e-9), rank, budget)


def best_budget(*, delta: float, rank: int, xi: float, asked_lines: int, query_lines: int) -> Budget:
    """How to spend delta so that the radius at about this ξ is least.

    Call it before the stage is asked: a split chosen after its answers would be a choice among several events.
    """
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
    # Solve n = wanted(n). The radius falls with n, so wanted(least) is enough; from there both ends move inwards, by
    # a fixed-point step (fast, since wanted is almost constant) and a bisection step (never slow).
    low, high = least, max(least, wanted(least))
    for _ in range(20):
        if high <= 1.005 * low:
            break
        guess = max(low, wanted(high))
        low, high = (guess, high) if wanted(guess) > guess else (low, guess)
        middle = math.sqrt(low * high)
        low, high = (middle, high) if wanted(middle) > middle else (low, middle)
    return high


def longest_asked(vectors: Floats, weights: Floats, floors: Floats) -> float:
    """The largest ‖x‖² of a vector with weight in the inverse of Σ weight·floor·xxᵀ; infinite if that is singular."""
    asked = weights > 0
    inside = span_of(vectors[asked]).coordinates(vectors[asked])
    shape = factor(gram_matrix(inside, (weights * floors)[asked]))
    return math.inf if shape is None else float(shape.inverse_norms(inside).max()) ** 2


def count_lines(vectors: Floats) -> int:
    """Number of distinct lines through the origin among the vectors: each is one event of the union."""
    return len(distinct_lines(vectors))


def level(delta: float, number: int) -> float:
    """δ_k, what round k (or look k) may spend: δ_0 = δ/10 and δ_k = (9/10)·δ/(k(k+1)), which sum to delta.

    The paper's δ_k = δ/(2k²…) sum to more (4.29·δ with its burn-in: docs/errata.md).
    """
    return delta * FIRST_SHARE if number == 0 else delta * (1 - FIRST_SHARE) / (number * (number + 1))


def rounded_up(weights: Floats, questions: float) -> Integers:
    """⌈n·w⌉: at most one question a vector more than n, and at least the information of n questions by weight.

    So it loses nothing of H ⪰ n·H(λ), where the paper's rounding loses a factor 1 + ε and asks for d²/ε questions.
    """
    # Beyond 2⁵³, which no budget allows, counts would not be exact; a weight of zero by rounding is asked once.
    return np.clip(np.ceil(questions * weights - 1e-9), 1, 2.0**53).astype(np.int64)
