"""How well one answer tells two parameters apart: KL divergence of answers, and its two mean curvatures.

Notation: a = xᵀθ*, b = xᵀθ are logits, μ(v) = 1/(1+e⁻ᵛ), s = μ', m(v) = log(1+eᵛ), D = b − a. All functions work entry
by entry, cost a dozen elementary functions an entry, and keep a relative accuracy of 1e-12 for b → a and for logits of
±700 alike.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick._arrays import Floats
from surepick.glm.loss import probability_of_yes, softplus

SERIES_BELOW = 0.3
"""Below this the closed forms cancel, and their Taylor series are summed instead."""

EXPONENTIAL = [1.0 / math.factorial(k + 2) for k in range(14)]
LOGARITHM = [(-1.0) ** k / (k + 2) for k in range(30)]
"""Coefficients; what is left out is below the precision of numbers."""


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
