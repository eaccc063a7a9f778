"""Newton's method for many small problems side by side: one loop for the losses of all rivals, experts or alternatives.

Arrays have the problems along their first axis, written z in the einsums. Points found here prove nothing; `duality`
proves what is claimed about them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Booleans, Floats
from surepick.glm.loss import Vectors, probability_of_yes, variance

Places = NDArray[np.intp]

Objective = Callable[[Floats, Places], tuple[Floats, Floats]]
"""Takes the points of some problems and the places of these in the batch; returns their gradients and Hessians."""


@dataclass(frozen=True, eq=False)
class BatchStep:
    """What a stopping rule may look at: one iteration of the problems that are still active."""

    active: Places
    theta: Floats
    """Points before the step."""
    gradient: Floats
    length: Floats
    """R = max |xᵀstep| over the rows, for the full step."""
    squared: Floats
    """λ², the squared Newton decrement, along the hyperplane if there is one."""


def inverses(matrices: Floats) -> Floats:
    """Inverses of positive semidefinite matrices, good for steps but not for proofs (see `scaled_inverses`)."""
    return scaled_inverses(matrices)[0]


def scaled_inverses(matrices: Floats) -> tuple[Floats, Floats]:
    """Inverses of A + 1e-13·diag(A), and the traces of the inverses of these matrices scaled to unit diagonal.

    Scaling makes the result independent of the units of the columns; 1e-13 is what rounding may leave of a singular
    matrix, so that the inverse always exists. The trace bounds how much it changed the inverse: by a relative
    1e-13·trace at most. O(d³) each.
    """
    dimension = matrices.shape[-1]
    # A column without information keeps a tiny unit of its own instead of a division by zero.
    largest = np.max(np.diagonal(matrices, axis1=1, axis2=2), axis=1)[:, None]
    diagonal = np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), np.maximum(1e-13 * largest, 1e-290)))
    scaled = matrices / diagonal[:, :, None] / diagonal[:, None, :] + 1e-13 * np.eye(dimension)
    inverse = np.linalg.inv(scaled)
    trace = np.trace(inverse, axis1=1, axis2=2)
    return np.asarray(inverse / diagonal[:, :, None] / diagonal[:, None, :]), np.asarray(trace)


def solve_by_inverse(hessian: Floats, gradient: Floats, normals: Floats | None) -> tuple[Floats, Floats | None]:
    """H⁻¹·gradient and H⁻¹·normal of every problem."""
    inverse = inverses(hessian)
    across = None if normals is None else np.einsum("zij,zj->zi", inverse, normals)
    return np.einsum("zij,zj->zi", inverse, gradient), across


def guaranteed_fraction(length: Floats) -> Floats:
    """The fraction of a step under which every logistic loss descends: 1 for R ≤ 1, else log(1+R)/R (theory, 6)."""
    return np.where(length > 1.0, np.log1p(length) / np.maximum(length, 1.0), 1.0)


def onto(theta: Floats, normals: Floats, epsilon: float | Floats) -> Floats:
    """The nearest points of the hyperplanes yᵀθ = −epsilon."""
    excess = np.einsum("zi,zi->z", np.broadcast_to(theta, normals.shape), normals) + epsilon
    return np.asarray(theta - normals * (excess / np.einsum("zi,zi->z", normals, normals))[:, None])


def minimise_batch(
    rows: Floats,
    objective: Objective,
    start: Floats,
    *,
    unfinished: Callable[[BatchStep], Booleans],
    iterations: int,
    normals: Floats | None = None,
    epsilon: float | Floats | None = None,
    solve: Callable[[Floats, Floats, Floats | None], tuple[Floats, Floats | None]] = solve_by_inverse,
    fraction: Callable[[Floats], Floats] = guaranteed_fraction,
    last_step: bool = True,
) -> Floats:
    """Minimise every function of a batch from its own start; the points after at most `iterations` steps.

    With `normals` y a step keeps yᵀθ; with `epsilon` as well, each point is put back onto yᵀθ = −epsilon. `rows` are
    the vectors x whose logits measure the length of a step. A problem rests from when `unfinished` says no on, after
    that step or, without `last_step`, before it. An iteration costs a call of `objective` and O(active·(rows·d + d³)).
    """
    theta = start.copy()
    active = np.arange(len(theta))
    for _ in range(iterations):
        here = theta[active]
        normal = None if normals is None else normals[active]
        gradient, hessian = objective(here, active)
        ahead, across = solve(hessian, gradient, normal)
        step = -ahead
        if normal is not None and across is not None:
            # The Lagrange condition H·step = −g + ν·y with yᵀ·step = 0.
            slip = np.einsum("zi,zi->z", normal, step) / np.einsum("zi,zi->z", normal, across)
            step = step - slip[:, None] * across
            if epsilon is None:  # what rounding left along y would add up over the steps
                step -= normal * (np.einsum("zi,zi->z", normal, step) / np.einsum("zi,zi->z", normal, normal))[:, None]
        # The third derivative of a logistic loss is at most R times the second (docs/theory.md, Lemma 1).
        length = np.max(np.abs(step @ rows.T), axis=1)
        squared = -np.einsum("zi,zi->z", step, gradient)
        moved = here + fraction(length)[:, None] * step
        if normal is not None and epsilon is not None:
            moved = onto(moved, normal, epsilon if np.ndim(epsilon) == 0 else np.asarray(epsilon)[active])
        left = unfinished(BatchStep(active, here, gradient, length, squared))
        theta[active] = moved if last_step else np.where(left[:, None], moved, here)
        active = active[left]
        if not len(active):
            break
    return theta


def minimise_losses(
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
    """Minimise every loss Σ n·m(xᵀθ) − k·xᵀθ + ridge/2·‖θ‖² from its own start, keeping normalᵀθ where given.

    `pulls` and `wins` have a row of counts for each loss, `ridge` a number. Ends when all decrements are at most
    `tolerance`: the loss is then about tolerance²/2 above its least value.
    """
    identity = np.eye(start.shape[1])

    def objective(theta: Floats, active: Places) -> tuple[Floats, Floats]:
        logits = theta @ vectors.rows.T
        # g = Σ (n·μ − k)·x and H = Σ n·s·xxᵀ, for all active losses in two matrix products.
        gradient = (pulls[active] * probability_of_yes(logits) - wins[active]) @ vectors.rows
        hessian = vectors.information(pulls[active] * variance(logits))
        if ridge is not None:
            gradient = gradient + ridge[active, None] * theta
            hessian = hessian + ridge[active, None, None] * identity
        return gradient, hessian

    def unfinished(step: BatchStep) -> Booleans:
        # Where the least point is at infinity the numbers may overflow: such a problem rests where it is.
        return np.asarray((step.squared > tolerance**2) & np.isfinite(step.squared))

    return minimise_batch(vectors.rows, objective, start, unfinished=unfinished, iterations=iterations, normals=normals)


def roots_from_above(
    excess: Callable[[Floats], tuple[Floats, Floats]], start: Floats, *, iterations: int = 30
) -> Floats:
    """Roots of increasing convex functions on w ≥ 0, each approached from its own point beyond it.

    The batched form of `newton.root_from_above`: `excess(w)` returns values and slopes, every iterate is an upper
    bound, and what starts at infinity stays there.
    """
    high = start
    # No stopping rule: the root is reached to rounding in a few steps, and a test would cost as much as a step.
    for _ in range(iterations):
        finite = np.where(np.isfinite(high), high, 1.0)
        value, slope = excess(finite)
        better = finite - value / np.where(slope > 0, slope, np.inf)
        high = np.where(np.isfinite(high), np.minimum(high, np.maximum(better, 0.0)), np.inf)
    return high
