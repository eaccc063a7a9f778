"""The formulas of the logistic model: link, loss and Fisher information, stable at any logit.

Notation of docs/theory.md, section 1: x is a vector asked n times with k ones, v = xᵀθ its logit, μ(v) = 1/(1+e⁻ᵛ) the
probability of a one, s(v) = μ'(v) = μ(1−μ), m(v) = log(1+eᵛ). The loss is Σ n·m(v) − k·v.

`derivatives` serves one θ on long data, `Vectors` and `losses` many θ on the same vectors at once.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from surepick._arrays import Floats
from surepick._cached import cached_property
from surepick.linalg import blocks

STACKED = 4_000_000
"""Most numbers kept for the outer products of all vectors; beyond, Hessians are summed one loss at a time."""


def probability_of_yes(logits: Floats) -> Floats:
    """μ(v) = 1/(1+e⁻ᵛ)."""
    # e^{−|v|} never overflows, and μ(v) and μ(−v) = 1 − μ(v) both keep their relative accuracy.
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1.0, small) / (1.0 + small)


def variance(logits: Floats) -> Floats:
    """s(v) = μ(v)(1−μ(v)), the variance of one answer; positive up to |v| of about 745."""
    small = np.exp(-np.abs(logits))
    return np.asarray(small / (1.0 + small) ** 2)


def softplus(logits: Floats) -> Floats:
    """m(v) = log(1+eᵛ), the loss of a zero; m(−v) is that of a one."""
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


@dataclass(frozen=True, eq=False)
class Vectors:
    """Measurement vectors x shared by many losses, with what makes many Hessians one matrix product."""

    rows: Floats
    """Vectors × dimension."""

    @cached_property
    def outer(self) -> Floats | None:
        """Every xxᵀ as a flat row of d² numbers; None where they would not fit into memory."""
        count, dimension = self.rows.shape
        if count * dimension**2 > STACKED:
            return None
        return np.asarray(np.einsum("xi,xj->xij", self.rows, self.rows).reshape(count, dimension**2))

    def information(self, weights: Floats) -> Floats:
        """Σ_x weight_x·xxᵀ for every row of `weights` (losses × vectors); O(losses · vectors · d²)."""
        dimension = self.rows.shape[1]
        if self.outer is not None:
            return np.asarray(weights @ self.outer).reshape(len(weights), dimension, dimension)
        return np.array([(self.rows.T * row) @ self.rows for row in weights])

    def squared_norms(self, inverses: Floats) -> Floats:
        """xᵀ·inverse·x for every inverse matrix (rows of the result) and every vector (columns)."""
        if self.outer is not None:
            return np.asarray(inverses.reshape(len(inverses), -1) @ self.outer.T)
        return np.array([np.einsum("xi,xi->x", self.rows @ inverse, self.rows) for inverse in inverses])


def losses(vectors: Vectors, pulls: Floats, wins: Floats, theta: Floats) -> Floats:
    """The value of every loss at its own θ: row z of `pulls`, `wins` and `theta` belongs to loss z."""
    logits = theta @ vectors.rows.T
    # k·m(−v) + (n−k)·m(v): both terms are positive, so nothing cancels at extreme logits.
    return np.asarray(np.sum(wins * softplus(-logits) + (pulls - wins) * softplus(logits), axis=1))
