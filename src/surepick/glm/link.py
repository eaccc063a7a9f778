"""The logistic model on counts: loss, gradient and Fisher information, stable at any logit.

Notation of the formulas: v = xᵀθ, μ(v) = 1/(1+e⁻ᵛ), s(v) = μ'(v) = μ(1−μ), m(v) = log(1+eᵛ).
"""

from typing import NamedTuple

import numpy as np

from surepick._arrays import Floats
from surepick.linalg import blocks


def probability_of_yes(logits: Floats) -> Floats:
    """μ(v) = 1/(1+e⁻ᵛ)."""
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1.0, small) / (1.0 + small)


def variance(logits: Floats) -> Floats:
    """s(v) = μ(v)(1−μ(v)), the variance of one answer; positive up to |v| of about 745."""
    small = np.exp(-np.abs(logits))
    return np.asarray(small / (1.0 + small) ** 2)


def softplus(logits: Floats) -> Floats:
    """m(v) = log(1+eᵛ)."""
    return np.asarray(np.maximum(logits, 0.0) + np.log1p(np.exp(-np.abs(logits))))


class Derivatives(NamedTuple):
    """Value, gradient and Hessian of a convex function at one point."""

    value: float
    gradient: Floats
    hessian: Floats


def derivatives(rows: Floats, pulls: Floats, wins: Floats, theta: Floats) -> Derivatives:
    """Negative log-likelihood Σ n·m(v) − k·v, its gradient and the information Σ n·s(v)·xxᵀ, in one pass.

    O(p d²) time for p rows; memory beyond the data is one block of rows, so long data stay in the cache.
    Written with e^{−|v|}, every term keeps its relative accuracy where probabilities round to 0 or 1.
    """
    value = 0.0
    dimension = rows.shape[1]
    gradient = np.zeros(dimension)
    hessian = np.zeros((dimension, dimension))
    for part in blocks(rows):
        block, n, k = rows[part], pulls[part], wins[part]
        v = block @ theta
        small = np.exp(-np.abs(v))
        larger = 1.0 / (1.0 + small)  # probability of the likelier answer
        unlikely = n * (small * larger)  # expected number of the other one
        positive = v >= 0
        limit = np.where(positive, n - k, -k)  # n·μ(v) − k as |v| grows
        value += float(n @ np.log1p(small) + limit @ v)
        gradient += (limit - np.where(positive, unlikely, -unlikely)) @ block
        weighted = block * np.sqrt(unlikely * larger)[:, None]
        hessian += weighted.T @ weighted  # of one array with itself: half the work, and symmetric
    return Derivatives(value, gradient, hessian)
