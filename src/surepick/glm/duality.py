"""What a point found by Newton's method proves: certified gaps to the infimum, and how far a sublevel set reaches.

Two inequalities carry everything. Fenchel's, m(v) ≥ q·v + entropy(q) for every q in (0, 1), turns probabilities that
balance the counts into a lower bound of a loss (docs/theory.md, Proposition 5). And s(v+w) ≥ s(v)·e^{−|w|} bounds a
loss from below away from a point, by ω(w) = e⁻ʷ + w − 1 in place of w²/2 (Lemma 1 and Proposition 6).
"""

import math

import numpy as np
from scipy.special import xlog1py

from surepick._arrays import Booleans, Floats
from surepick.glm.batched_newton import roots_from_above, scaled_inverses
from surepick.glm.fit import CountProblem
from surepick.glm.loss import Vectors, derivatives, probability_of_yes
from surepick.glm.newton import root_from_above
from surepick.linalg import factor, span_of


def bennett(u: Floats) -> Floats:
    """(1+u)·log(1+u) − u for u ≥ −1, by its series where the closed form cancels."""
    inside = np.maximum(u, -1.0)
    with np.errstate(divide="ignore"):
        closed = xlog1py(1.0 + inside, inside) - inside
    small = np.clip(inside, -1e-3, 1e-3)
    series = small**2 * (1 / 2 - small * (1 / 6 - small * (1 / 12 - small * (1 / 20 - small / 30))))
    return np.where(np.abs(inside) < 1e-3, series, closed)


def duality_gap(problem: CountProblem, theta: Floats, *, normal: Floats | None = None) -> float:
    """At most how many nats the loss at θ lies above its infimum (over normalᵀθ' = normalᵀθ, if given).

    For any probabilities q with Σ(n·q − k)·x = ν·normal, Fenchel's inequality n·m(v) ≥ n(q·v + entropy(q))
    bounds the infimum from below, and the loss exceeds that bound by Σ n·KL(q ‖ μ(xᵀθ)). A Newton step in the
    dual makes q = μ − s·xᵀu feasible; it proves a bound even where the infimum is not attained. Infinite where
    no such q is found in [0, 1]. O(p d²).
    """
    rows, pulls = problem.rows, problem.pulls
    at = derivatives(rows, pulls, problem.wins, theta)
    hessian = at.hessian
    if normal is not None:  # curvature across the hyperplane changes no step along it, but may be all there is
        unit = normal / float(np.linalg.norm(normal))
        hessian = hessian + float(np.trace(hessian)) * np.outer(unit, unit)
    shape = factor(hessian)
    if shape is None:
        return _gap_beside_certain_rows(problem, theta, normal)
    step = shape.solve(at.gradient)
    if normal is not None:
        across = shape.solve(normal)
        step = step - across * (float(normal @ step) / float(normal @ across))
    logits, change = rows @ theta, rows @ step
    yes, no = probability_of_yes(logits), probability_of_yes(-logits)
    # q = μ(1 + lower) and 1 − q = (1−μ)(1 + upper); the linear terms of the divergence cancel.
    lower, upper = -no * change, yes * change
    if np.any((np.minimum(lower, upper) < -1.0 - 1e-12) & (pulls > 0)):
        return _gap_beside_certain_rows(problem, theta, normal)
    return float(pulls @ (yes * bennett(lower) + no * bennett(upper)))


def _gap_beside_certain_rows(problem: CountProblem, theta: Floats, normal: Floats | None) -> float:
    """The duality gap where rows all but certain of their answers leave the Hessian singular, or nearly so.

    For them q = k/n is feasible by itself at a cost of n·log(1/μ); the others are a problem in their own span.
    A normal outside of that span constrains nothing of them.
    """
    rows, pulls, wins = problem.rows, problem.pulls, problem.wins
    logits = rows @ theta
    right = np.where(wins >= pulls, logits, np.where(wins <= 0, -logits, 0.0))
    cost = pulls * np.log1p(np.exp(-np.abs(logits)))
    # Any set of rows would give a valid bound; those that cost a thousandth of a nat lose next to nothing.
    certain = (pulls <= 0) | ((right > 0) & (cost < 1e-3))
    if not certain.any():
        return np.inf
    total = float(cost[certain].sum())
    if certain.all():
        return total
    rest = rows[~certain]
    span = span_of(rest)
    if span.rank == 0:
        return np.inf
    inside = None if normal is None or not span.contains(normal[None, :])[0] else span.coordinates(normal)
    others = CountProblem(span.coordinates(rest), pulls[~certain], wins[~certain])
    return total + duality_gap(others, span.coordinates(theta), normal=inside)


def inverses_from_above(matrices: Floats) -> tuple[Floats, Booleans]:
    """Upper bounds of the inverses, good for proofs, and whether each matrix is far enough from singular for one.

    The h = 1e-13 that `scaled_inverses` adds to a matrix of least eigenvalue l shrinks its inverse by at most h/l, and
    1/l is at most the trace of the inverse: up to 1e7 the loss is below 2e-6, which is put back. Beyond, nothing is
    claimed, and the identity stands in.
    """
    inverse, trace = scaled_inverses(matrices)
    sound = trace <= 1e7
    # Of a singular matrix it would be astronomical, and overflow in whatever is done with it before it is thrown away.
    return np.where(sound[:, None, None], inverse * (1 + 2e-6), np.eye(inverse.shape[-1])), sound


def certified_infima(
    vectors: Vectors, pulls: Floats, wins: Floats, theta: Floats, normals: Floats
) -> tuple[Floats, Floats]:
    """How many nats each loss at θ is at most above its infimum over normalᵀθ' ≤ normalᵀθ, and the multiplier ν ≥ 0.

    Proposition 5 of docs/theory.md with q = μ − s·xᵀu, u = H⁻¹(gradient + ν·normal): infinite where some q leaves
    (0, 1). The linear system is solved to rounding; a q* that balances exactly is then within s·‖x‖·‖what is left‖ (in
    H⁻¹), and what its entropy may lack is added (docs/anytime.md, section 3, "Balance"). A singular H gives an infinite
    gap. O(losses·(vectors·d² + d³)).
    """
    logits = theta @ vectors.rows.T
    yes, no = probability_of_yes(logits), probability_of_yes(-logits)
    misses = (pulls - wins) * yes
    gradient = (misses - wins * no) @ vectors.rows
    hessian = vectors.information(pulls * yes * no)
    inverse, trace = scaled_inverses(hessian)
    sound = trace <= 1e10  # within a factor of 1.01: only sizes of errors depend on it
    across = np.einsum("zij,zj->zi", inverse, normals)
    towards = np.einsum("zij,zj->zi", inverse, gradient)
    # ν ≥ 0 is what makes the bound hold on the whole half-space, not only on its border.
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
        # At the border of (0, 1) rounding decides; vectors that belong there are left out instead (`plug_in_bounds`).
        border = np.minimum(1 + lower, 1 + upper) < 1e-2
        outside = np.any((~(2 * apart < np.minimum(ones, zeros)) | border) & (pulls > 0), axis=1)
        lost = np.sum(np.where(pulls > 0, pulls * apart * (np.abs(np.log(ones) - np.log(zeros)) + 1), 0.0), axis=1)
    return np.where(outside | ~sound | ~np.isfinite(gap + lost), np.inf, gap + lost), multiplier


def outer_radius(reach: float, decrement: float, room: float) -> float:
    """The largest r with −λr + ω(kr)/k² ≤ room, from above: how far a sublevel set extends from a point.

    k = `reach` is the largest norm of a row in the inverse Hessian at the point, λ = `decrement`, and ω(w) = e⁻ʷ + w −
    1. By Proposition 6 of docs/theory.md a loss that has risen by at most `room` at θ + u has ‖u‖ ≤ r in the Hessian.
    Infinite where kλ ≥ 1: then nothing keeps the loss from falling for ever.
    """
    slope = 1.0 - reach * decrement
    if slope <= 0.0:
        return math.inf
    if reach < 1e-6:  # the quadratic limit, a little enlarged to cover the remainder kr³/6
        return (decrement + math.sqrt(decrement * decrement + 2.0 * room)) * (1.0 + 1e-4)
    target = reach * reach * room

    def excess(w: float) -> tuple[float, float]:
        return math.exp(-w) + slope * w - 1.0 - target, slope - math.exp(-w)

    # Without e⁻ʷ ≥ 0 the equation is linear, and its root lies beyond.
    return root_from_above(excess, (1.0 + target) / slope, tolerance=1e-9) / reach


def omega_roots(tilt: Floats, target: Floats) -> Floats:
    """For each pair a w ≥ 0 just beyond the root of ω(w) − tilt·w = target; infinite where tilt ≥ 1.

    The equation of `outer_radius` for many rivals at once: w = kr, tilt = kλ, target = k²·room.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.where(tilt < 1, (target + 1) / (1 - tilt), np.inf)  # e⁻ʷ ≥ 0

    def excess(w: Floats) -> tuple[Floats, Floats]:
        return np.exp(-w) + w - 1 - tilt * w - target, 1 - tilt - np.exp(-w)

    return roots_from_above(excess, start) * (1 + 1e-9)
