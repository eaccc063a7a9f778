"""A problem with its truth θ*, and how well one answer tells another θ from it.

An `Instance` holds what can be measured, the items among which the best is sought, and θ*. The second half are the KL
divergence of answers and its two mean curvatures. Notation there: a = xᵀθ*, b = xᵀθ are logits, μ(v) = 1/(1+e⁻ᵛ),
s = μ', m(v) = log(1+eᵛ), D = b − a. These functions work entry by entry, cost a dozen elementary functions an entry,
and keep a relative accuracy of 1e-12 for b → a as well as for logits of ±700.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surepick import validate
from surepick._arrays import Floats, Integers
from surepick._cached import cached_property
from surepick.design import Rows
from surepick.design.cutting_planes import WhitenedBasis, whitened_basis
from surepick.design.vector_families import FamilyUnion, refuse_unmeasurable
from surepick.errors import InvalidInput
from surepick.glm import variance
from surepick.glm.loss import probability_of_yes, softplus

LARGEST_LOGIT = 700.0
"""Beyond this the variance of an answer underflows in double precision."""

SERIES_BELOW = 0.3
"""Below this the closed forms cancel, so their Taylor series are summed instead."""

EXPONENTIAL = [1.0 / math.factorial(k + 2) for k in range(14)]
LOGARITHM = [(-1.0) ** k / (k + 2) for k in range(30)]
"""Taylor coefficients of (eᵛ − 1 − v)/v² and (v − log(1+v))/v²; the remainder is below double precision."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Measurement vectors X, items Z and θ*, with a best item that answers can tell from every other.

    An answer to x is a yes with probability 1/(1+exp(−xᵀθ*)). What no number of questions can decide (a tie for the
    best, a difference that no measurement sees) is refused when the instance is made.

    >>> Instance([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.2]).gaps.round(3).tolist()
    [0.0, 0.3]
    """

    measurements: Floats
    items: Floats
    theta: Floats
    best: int
    gaps: Floats
    """By how much every item is worse than the best, in log-odds; zero for the best itself."""
    basis: WhitenedBasis
    """Coordinates in which the mean of xxᵀ is the identity."""

    def __init__(
        self, measurements: ArrayLike, items: ArrayLike, theta: ArrayLike, *, names: Sequence[str] | None = None
    ) -> None:
        """`names` are what messages call the items; their numbers by default."""
        vectors = validate.matrix("items", items)
        rows = validate.matrix("measurements", measurements, columns=vectors.shape[1])
        truth = validate.vector("theta", theta, length=vectors.shape[1])
        if len(vectors) < 2:
            raise InvalidInput("items holds 1 item, which is the best already; pass at least two.")
        best = int(np.argmax(vectors @ truth))
        gaps = (vectors[best] - vectors) @ truth
        _refuse_ties(vectors, truth, best, gaps, names)
        largest = float(np.max(np.abs(rows @ truth)))
        if largest > LARGEST_LOGIT:
            raise InvalidInput(
                f"theta makes an answer certain to double precision, with log-odds of {largest:.4g}; they must "
                f"not exceed {LARGEST_LOGIT:g}, so check the units of theta and of the features."
            )
        basis = whitened_basis(Rows(rows, name="measurements"))
        refuse_unmeasurable(FamilyUnion([Rows(vectors, reference=vectors[best], name="items")]), basis.span)
        # Frozen, so that cached properties cannot go stale; set once here.
        for name, value in (
            ("measurements", rows),
            ("items", vectors),
            ("theta", truth),
            ("best", best),
            ("gaps", gaps),
            ("basis", basis),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def logits(self) -> Floats:
        """xᵀθ* of every measurement vector."""
        return np.asarray(self.measurements @ self.theta)

    @cached_property
    def variances(self) -> Floats:
        """s(xᵀθ*), the variance of one answer to every measurement vector."""
        return variance(self.logits)

    @property
    def kappa(self) -> float:
        """κ₀ = min over x of s(xᵀθ*), over the measurement vectors."""
        return float(self.variances.min())

    @property
    def smallest_gap(self) -> float:
        """Δ, by how much the second best is worse."""
        return float(np.delete(self.gaps, self.best).min())

    @property
    def rivals(self) -> Integers:
        """All items but the best."""
        return np.delete(np.arange(len(self.items)), self.best)

    @property
    def informative(self) -> Rows:
        """The measurement vectors stretched by √s(xᵀθ*): a linear design on them is a logistic one at θ*."""
        return Rows(self.measurements, factors=np.sqrt(self.variances), name="measurements")


def _refuse_ties(items: Floats, theta: Floats, best: int, gaps: Floats, names: Sequence[str] | None) -> None:
    """Gaps must exceed the rounding of the scores they are differences of."""
    noise = 1e-14 * (np.abs(items) + np.abs(items[best])) @ np.abs(theta)
    tied = np.flatnonzero((gaps <= noise) & (np.arange(len(items)) != best))
    if tied.size:
        first, second = (str(place) if names is None else names[place] for place in (best, tied[0]))
        raise InvalidInput(
            f"Items {first} and {second} tie for the best under theta with a score of {items[best] @ theta:.6g}, so no "
            "number of questions tells which is best; leave one of them out, or pass another theta."
        )


def kl_divergence(a: ArrayLike, b: ArrayLike) -> Floats:
    """KL(Bernoulli(μ(a)) ‖ Bernoulli(μ(b))) = m(b) − m(a) − μ(a)·(b − a) = (b − a)²·β(a, b)."""
    return _divergence_and_beta(a, b)[0]


def beta(a: ArrayLike, b: ArrayLike) -> Floats:
    """β(a, b) = ∫₀¹ (1−u)·s(a + u(b−a)) du, with limit s(a)/2 as b → a.

    The closed form printed in Jun et al. 2021 is that of β(b, a); see docs/limits.md.
    """
    return _divergence_and_beta(a, b)[1]


def alpha(a: ArrayLike, b: ArrayLike) -> Floats:
    """α(a, b) = (μ(b) − μ(a))/(b − a) = ∫₀¹ s(a + u(b−a)) du, symmetric, with limit s(a) as b → a."""
    first, second = _logits(a, b)
    low, high = np.minimum(first, second), np.maximum(first, second)
    width = high - low
    ratio = np.divide(-np.expm1(-width), width, out=np.ones_like(width), where=width > 0)
    # μ(h) − μ(l) = μ(h)·(1 − μ(l))·(1 − e^{−(h−l)}): nothing cancels and nothing overflows.
    return np.asarray(probability_of_yes(high) * probability_of_yes(-low) * ratio)


def _divergence_and_beta(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    first, second = _logits(a, b)
    # Yes and no change places under (a, b) → (−a, −b), so p = μ(a) ≤ 1/2 without loss.
    flipped = first > 0
    low, other = np.where(flipped, -first, first), np.where(flipped, -second, second)
    shift, p = other - low, probability_of_yes(low)
    # m(b) − m(a) = log(1+y) with y = p(e^D − 1), so KL = p(e^D − 1 − D) − (y − log(1+y)). For |D| ≤ 1 the second term
    # is at most about half of the first; both are divided by D² before they can underflow.
    near = np.abs(shift) <= 1.0
    small = np.where(near, shift, 0.0)
    growth = np.expm1(small)
    slope = p * np.divide(growth, small, out=np.ones_like(small), where=small != 0)
    mean_curvature = p * _exponential_excess(small) - slope**2 * _logarithm_excess(p * growth)
    large = np.where(near, 1.0, shift)
    far = _far_divergence(p, low, np.where(near, 0.0, other), large)
    return np.where(near, mean_curvature * shift**2, far), np.where(near, mean_curvature, far / large**2)


def _far_divergence(p: Floats, low: Floats, other: Floats, shift: Floats) -> Floats:
    """KL where |D| > 1."""
    # e^D is needed only up to D = 30; beyond, the softplus form loses nothing and cannot overflow.
    capped = np.minimum(shift, 30.0)
    y = p * np.expm1(capped)
    # Rare answers: log(1+y) would cancel against its own first term.
    rare = np.abs(y) < 0.5
    split = p * (np.expm1(capped) - capped) - y * y * _logarithm_excess(np.where(rare, y, 0.0))
    plain = np.where(shift > 30.0, softplus(other) - softplus(low), np.log1p(y)) - p * shift
    return np.where(rare & (shift <= 30.0), split, plain)


def _exponential_excess(v: Floats) -> Floats:
    """(eᵛ − 1 − v)/v², 1/2 at zero."""
    big = np.where(np.abs(v) < SERIES_BELOW, 1.0, v)
    return np.where(np.abs(v) < SERIES_BELOW, _polynomial(EXPONENTIAL, v), (np.expm1(big) - big) / big**2)


def _logarithm_excess(v: Floats) -> Floats:
    """(v − log(1+v))/v², 1/2 at zero."""
    big = np.where(np.abs(v) < SERIES_BELOW, 1.0, v)
    return np.where(np.abs(v) < SERIES_BELOW, _polynomial(LOGARITHM, v), (big - np.log1p(big)) / big**2)


def _polynomial(coefficients: list[float], v: Floats) -> Floats:
    capped = np.clip(v, -SERIES_BELOW, SERIES_BELOW)
    total = np.zeros_like(capped)
    for coefficient in reversed(coefficients):
        total = total * capped + coefficient
    return total


def _logits(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    first, second = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    return first, second
