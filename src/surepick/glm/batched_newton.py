"""Many logistic losses on the same vectors at once: one Newton's method and one certificate, batched over rivals.

A loss is Σ_x n_x·m(xᵀθ) − k_x·xᵀθ with its own counts n, k; arrays have one row a loss. Steps follow the rule under
which every step descends (docs/theory.md, section 6), certificates its Proposition 5.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surepick._arrays import Booleans, Floats
from surepick.glm import probability_of_yes, softplus, variance
from surepick.glm.loss import bennett

STACKED = 4_000_000
"""Most numbers kept for the outer products of all vectors; beyond, Hessians are summed one loss at a time."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of the losses, one a row."""

    rows: Floats

    @cached_property
    def outer(self) -> Floats | None:
        """xxᵀ of every vector as one long row, where they fit into memory."""
        count, dimension = self.rows.shape
        if count * dimension**2 > STACKED:
            return None
        return np.asarray(np.einsum("xi,xj->xij", self.rows, self.rows).reshape(count, dimension**2))

    def information(self, weights: Floats) -> Floats:
        """Σ_x weight_x·xxᵀ for every row of weights; O(losses · vectors · d²)."""
        dimension = self.rows.shape[1]
        if self.outer is not None:
            return np.asarray(weights @ self.outer).reshape(len(weights), dimension, dimension)
        return np.array([(self.rows.T * each) @ self.rows for each in weights])

    def squared_norms(self, inverses: Floats) -> Floats:
        """xᵀ·inverse·x for every inverse matrix and every vector."""
        if self.outer is not None:
            return np.asarray(inverses.reshape(len(inverses), -1) @ self.outer.T)
        return np.array([np.einsum("xi,xi->x", self.rows @ each, self.rows) for each in inverses])


def log_sum(terms: Floats) -> Floats:
    """log Σ exp along the last axis; SciPy's costs more in checks than in sums at this size."""
    most = np.max(terms, axis=-1, keepdims=True)
    return np.asarray(np.log(np.sum(np.exp(terms - most), axis=-1)) + most[..., 0])


def losses(vectors: Vectors, pulls: Floats, wins: Floats, theta: Floats) -> Floats:
    """The value of every loss at its own θ."""
    logits = theta @ vectors.rows.T
    return np.asarray(np.sum(wins * softplus(-logits) + (pulls - wins) * softplus(logits), axis=1))


def inverses(matrices: Floats) -> Floats:
    """Inverses of positive semidefinite matrices, good for steps; a hair is added where singular."""
    return _inverted(matrices)[0]


def inverses_from_above(matrices: Floats) -> tuple[Floats, Booleans]:
    """Upper bounds of the inverses, good for proofs, and whether each matrix is far enough from singular for one.

    The hair h added to a matrix of least eigenvalue l shrinks its inverse by at most h/l, and 1/l is at most the trace
    of the inverse: up to 1e7 the loss is below 2e-6, which is put back. Beyond, nothing is claimed.
    """
    inverse, trace = _inverted(matrices)
    sound = trace <= 1e7
    # Of a singular matrix it would be astronomical, and overflow in whatever is done with it before it is thrown away.
    return np.where(sound[:, None, None], inverse * (1 + 2e-6), np.eye(inverse.shape[-1])), sound


def _inverted(matrices: Floats) -> tuple[Floats, Floats]:
    """Inverses by way of matrices of unit diagonal with a hair added, and the traces of the inverses of those."""
    dimension = matrices.shape[-1]
    largest = np.max(np.diagonal(matrices, axis1=1, axis2=2), axis=1)[:, None]
    diagonal = np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), np.maximum(1e-13 * largest, 1e-290)))
    scaled = matrices / diagonal[:, :, None] / diagonal[:, None, :] + 1e-13 * np.eye(dimension)
    inverse = np.linalg.inv(scaled)
    trace = np.trace(inverse, axis1=1, axis2=2)
    return np.asarray(inverse / diagonal[:, :, None] / diagonal[:, None, :]), np.asarray(trace)


def minimise_many(
    vectors: Vectors,
    pulls: Floats,
    wins: Floats,
    start: Floats,
    *,
    ridge: Floats | None = None,
    normals: Floats | None = None,
    tolerance: float = 1e-6,
    iterations: int = 30,
) -> Floats:
    """Minimise every loss (+ ridge/2·‖θ‖²) from its own start, along normalᵀ·step = 0 where normals are given.

    What comes out is a point, not a proof: `certified_infima` proves what is claimed about it.
    """
    theta = start.copy()
    active = np.arange(len(theta))
    identity = np.eye(theta.shape[1])
    for _ in range(iterations):
        here = theta[active]
        logits = here @ vectors.rows.T
        gradient = (pulls[active] * probability_of_yes(logits) - wins[active]) @ vectors.rows
        hessian = vectors.information(pulls[active] * variance(logits))
        if ridge is not None:
            gradient = gradient + ridge[active, None] * here
            hessian = hessian + ridge[active, None, None] * identity
        inverse = inverses(hessian)
        step = -np.einsum("zij,zj->zi", inverse, gradient)
        if normals is not None:
            normal = normals[active]
            across = np.einsum("zij,zj->zi", inverse, normal)
            slip = np.einsum("zi,zi->z", normal, step) / np.einsum("zi,zi->z", normal, across)
            step = step - slip[:, None] * across
            step -= normal * (np.einsum("zi,zi->z", normal, step) / np.einsum("zi,zi->z", normal, normal))[:, None]
        length = np.max(np.abs(step @ vectors.rows.T), axis=1)
        squared = -np.einsum("zi,zi->z", step, gradient)
        fraction = np.where(length > 1.0, np.log1p(length) / np.maximum(length, 1.0), 1.0)
        theta[active] = here + fraction[:, None] * step
        active = active[(squared > tolerance**2) & np.isfinite(squared)]
        if not len(active):
            break
    return theta


def certified_infima(
    vectors: Vectors, pulls: Floats, wins: Floats, theta: Floats, normals: Floats
) -> tuple[Floats, Floats]:
    """How many nats each loss at θ is at most above its infimum over normalᵀθ' ≤ normalᵀθ, and the multiplier ν ≥ 0.

    Proposition 5 of docs/theory.md with q = μ − s·xᵀu, u = H⁻¹(gradient + ν·normal): infinite where some q leaves
    (0, 1). The linear system is solved to rounding; a q* that balances exactly is then within s·‖x‖·‖what is left‖ (in
    H⁻¹), and what its entropy may lack is added. A singular H gives an infinite gap.
    """
    logits = theta @ vectors.rows.T
    yes, no = probability_of_yes(logits), probability_of_yes(-logits)
    misses = (pulls - wins) * yes
    gradient = (misses - wins * no) @ vectors.rows
    hessian = vectors.information(pulls * yes * no)
    inverse, trace = _inverted(hessian)
    sound = trace <= 1e10  # within a factor of 1.01: only sizes of errors depend on it
    across = np.einsum("zij,zj->zi", inverse, normals)
    towards = np.einsum("zij,zj->zi", inverse, gradient)
    multiplier = np.maximum(-np.einsum("zi,zi->z", normals, towards) / np.einsum("zi,zi->z", normals, across), 0.0)
    step = towards + multiplier[:, None] * across
    wanted = gradient + multiplier[:, None] * normals
    for _ in range(2):  # iterative refinement: q must balance to rounding
        step += np.einsum("zij,zj->zi", inverse, wanted - np.einsum("zij,zj->zi", hessian, step))
    # What is left along the normal only changes ν; across it, add what rounding may have hidden.
    unit = normals / np.sqrt(np.einsum("zi,zi->z", normals, normals))[:, None]
    left = wanted - np.einsum("zij,zj->zi", hessian, step)
    left = np.abs(left - unit * np.einsum("zi,zi->z", unit, left)[:, None])
    aside = np.sqrt(np.maximum(np.einsum("xi,xi->x", vectors.rows, vectors.rows) - (unit @ vectors.rows.T) ** 2, 0.0))
    left += 1e-15 * np.sum((misses + wins * no) * (aside + 1e-15), axis=1)[:, None]
    apart = (
        yes
        * no
        * np.sqrt(
            np.maximum(vectors.squared_norms(inverse), 0.0)
            * (np.trace(inverse, axis1=1, axis2=2) * np.einsum("zi,zi->z", left, left))[:, None]
        )
    )
    change = step @ vectors.rows.T
    lower, upper = -no * change, yes * change
    gap = np.sum(pulls * (yes * bennett(lower) + no * bennett(upper)), axis=1)
    # q = yes·(1 + lower) and 1 − q = no·(1 + upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        ones, zeros = yes * (1 + lower), no * (1 + upper)
        # At the border of (0, 1) rounding decides; what belongs there is left out instead (`certify`).
        border = np.minimum(1 + lower, 1 + upper) < 1e-2
        outside = np.any((~(2 * apart < np.minimum(ones, zeros)) | border) & (pulls > 0), axis=1)
        lost = np.sum(np.where(pulls > 0, pulls * apart * (np.abs(np.log(ones) - np.log(zeros)) + 1), 0.0), axis=1)
    return np.where(outside | ~sound | ~np.isfinite(gap + lost), np.inf, gap + lost), multiplier
