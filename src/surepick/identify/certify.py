"""Proven lower bounds of the evidence against "this rival is at least as good", over all θ of which that is true.

Plug-in: an infimum of a convex function over a half-space, certified by Fenchel's inequality. Directional: the log of a
product of tilts is not convex, but becomes so by adding λ(G − r), which is negative on the localiser {G ≤ r}
(docs/anytime.md, section 3). Every bound is a number proven from the point found, however it was found.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surepick.identify.directional import NEGATIVE, POSITIVE
from surepick.identify.many import certified_infima, inverses, inverses_from_above, minimise_many
from surepick.identify.plug_in import Evidence, Minorant
from surepick.identify.tilt import SLOPE_REMAINDER, TERMS, VALUE_REMAINDER, rise
from surepick.logistic import probability_of_yes, variance

Floats = NDArray[np.float64]

SECOND_ORDER = 0.6
"""(eʸ − 1 − y)/y² for y up to the largest tilt, rounded up."""


@dataclass(frozen=True, eq=False)
class Passed:
    """The plug-in bound for each rival, and what it was found with."""

    bounds: Floats
    """inf of log E over the half-space is at least this; −inf where nothing could be proved."""
    points: Floats
    below: Minorant
    shares: Floats
    multipliers: Floats

    def rows_of(self, which: NDArray[np.intp]) -> "Passed":
        """For some of the rivals."""
        return Passed(
            self.bounds[which],
            self.points[which],
            self.below.rows_of(which),
            self.shares[which],
            self.multipliers[which],
        )


def plug_in_bounds(evidence: Evidence, normals: Floats, epsilon: float, start: Floats) -> Passed:
    """Lower bounds of log E over {θ: yᵀθ ≤ −epsilon} for every normal y; a few batched Newton iterations."""
    theta = _onto(start, normals, epsilon)
    shares = softmax(evidence.terms(theta), axis=1)
    for iterations in (4, 12):
        below = evidence.mixed(shares)
        theta = minimise_many(evidence.vectors, below.pulls, below.wins, theta, normals=normals, iterations=iterations)
        theta = _onto(theta, normals, epsilon)
        if iterations == 4:
            shares = (shares + softmax(evidence.terms(theta), axis=1)) / 2
    gap, multiplier = certified_infima(evidence.vectors, below.pulls, below.wins, theta, normals)
    return Passed(below.values(theta) - gap, theta, below, shares, multiplier)


def _onto(theta: Floats, normals: Floats, epsilon: float) -> Floats:
    """The nearest points of the hyperplanes yᵀθ = −epsilon."""
    excess = np.einsum("zi,zi->z", np.broadcast_to(theta, normals.shape), normals) + epsilon
    return np.asarray(theta - normals * (excess / np.einsum("zi,zi->z", normals, normals))[:, None])


def boxes(below: Minorant, theta: Floats, normals: Floats, multipliers: Floats, room: Floats) -> Floats:
    """h with |xᵀ(θ' − θ)| ≤ h for all asked x and all θ' of the half-space yᵀθ' ≤ yᵀθ with below(θ') ≤ below(θ) + room.

    With w = xᵀ(θ' − θ) the loss rises by at least gᵀu + Σ n·s·ω(|w|), ω(w) = e⁻ʷ + w − 1 ≥ w²/(2+w), and the part of g
    along −y only helps. First all x alike, then each with the bound on its own |w| found before; infinite if k·λ ≥ 1.
    """
    vectors = below.vectors
    logits = theta @ vectors.rows.T
    spread = below.pulls * variance(logits)
    gradient = (below.pulls * probability_of_yes(logits) - below.wins) @ vectors.rows + multipliers[:, None] * normals
    inverse, sound = inverses_from_above(vectors.information(spread))
    squared = np.maximum(vectors.squared_norms(inverse), 0.0)
    k = np.sqrt(np.max(np.where(below.pulls > 0, squared, 0.0), axis=1))
    tilt = k * np.sqrt(np.maximum(np.einsum("zi,zij,zj->z", gradient, inverse, gradient), 0.0))
    reach = _reach(tilt, k**2 * room)
    half = np.where(sound[:, None], np.sqrt(squared) * (reach / k)[:, None], np.inf)
    for _ in range(4):
        inverse, sound = inverses_from_above(
            vectors.information(spread * np.where(np.isfinite(half), 2 / (2 + half), 0.0))
        )
        slope = np.sqrt(np.maximum(np.einsum("zi,zij,zj->z", gradient, inverse, gradient), 0.0))
        radius = slope + np.sqrt(slope**2 + 2 * room)
        squared = np.maximum(vectors.squared_norms(inverse), 0.0)
        half = np.where(sound[:, None], np.minimum(half, np.sqrt(squared) * radius[:, None]), half)
    return np.asarray(half)


def _reach(tilt: Floats, target: Floats) -> Floats:
    """A w beyond the root of e⁻ʷ + w − 1 − tilt·w = target, closely; infinite where tilt ≥ 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(tilt < 1, (target + 1) / (1 - tilt), np.inf)  # e⁻ʷ ≥ 0
    for _ in range(30):  # Newton on a convex increasing function from beyond its root stays beyond
        finite = np.where(np.isfinite(high), high, 1.0)
        value = np.exp(-finite) + finite - 1 - tilt * finite - target
        slope = 1 - tilt - np.exp(-finite)
        better = finite - value / np.where(slope > 0, slope, np.inf)
        high = np.where(np.isfinite(high), np.minimum(high, np.maximum(better, 0.0)), np.inf)
    return high * (1 + 1e-9)


@dataclass(frozen=True, eq=False)
class Tilted:
    """The directional bound for each rival, and what it was found with."""

    bounds: Floats
    points: Floats
    """Where the convex function is least."""
    penalties: Floats
    """λ."""
    centres: Floats
    """Where the boxes are centred."""
    shares: Floats
    """p of the restarts in G."""

    def or_better(self, other: "Tilted") -> "Tilted":
        """For each rival the better of two."""
        better = other.bounds > self.bounds
        pick = better[:, None]
        return Tilted(
            np.where(better, other.bounds, self.bounds),
            np.where(pick, other.points, self.points),
            np.where(better, other.penalties, self.penalties),
            np.where(pick, other.centres, self.centres),
            np.where(pick, other.shares, self.shares),
        )


HEATS = (1.0, 4.0, 16.0)
"""Shares of the restarts tried: proportional to their evidence to the power 1/heat. Older restarts cost room, but count
more answers, so that a smaller λ makes the sum convex."""

MARGIN = 1.2
"""λ in units of the least that makes the sum convex: at 1 some vector would have no curvature left."""


def directional_bounds(
    evidence: Evidence,
    passed: Passed,
    linear: Floats,
    sums: Floats,
    normals: Floats,
    epsilon: float,
    threshold: float,
) -> Tilted:
    """Lower bounds of log Eᶻ over {θ: log E(θ) < threshold, yᵀθ ≤ −epsilon} for rivals not passed by the plug-in.

    With the curvature of every term at least −P·s(v) on the boxes and λ ≥ max P/n, log Eᶻ + λ(G − threshold) is convex
    there; Newton's method finds its least point, and with r the decrement in Σ (λn − P)·s·xxᵀ and k the largest norm
    of an x in its inverse, the minimum lies at most [kr + (1 − kr)·log(1 − kr)]/k² below.
    """
    best = Tilted(np.full(len(normals), -np.inf), passed.points, np.zeros(len(normals)), passed.points, passed.shares)
    for heat in HEATS:
        if heat > 1.0:
            passed = _heated(evidence, passed, normals, epsilon, heat)
        below = passed.below
        room = np.maximum(threshold - below.values(passed.points), 1e-6)
        half = boxes(below, passed.points, normals, passed.multipliers, room)
        logits = passed.points @ below.vectors.rows.T
        upward, downward = np.tanh((half - logits) / 2), np.tanh((half + logits) / 2)
        loss = _curvature(sums[POSITIVE : POSITIVE + 2], upward) + _curvature(sums[NEGATIVE : NEGATIVE + 2], downward)
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.max(np.where(loss > 0, loss / below.pulls, 0.0), axis=1)
        penalty = least * MARGIN + 1e-3
        best = best.or_better(_one_penalty(passed, linear, sums, normals, epsilon, threshold, penalty, loss, half))
    return best


def _heated(evidence: Evidence, passed: Passed, normals: Floats, epsilon: float, heat: float) -> Passed:
    """The same with shares of the restarts that are more alike."""
    shares = softmax(evidence.terms(passed.points) / heat, axis=1)
    below = evidence.mixed(shares)
    theta = minimise_many(evidence.vectors, below.pulls, below.wins, passed.points, normals=normals)
    theta = _onto(theta, normals, epsilon)
    _, multipliers = certified_infima(evidence.vectors, below.pulls, below.wins, theta, normals)
    return Passed(passed.bounds, theta, below, shares, multipliers)


def _curvature(sums: Floats, steepest: Floats) -> Floats:
    """P with −Σ n·[s(v+c) − s(v)] ≥ −P·s(v): Σ n(e^{|c|t} − 1) by its first two orders, t = max ± tanh(v/2)."""
    second = np.where(steepest > 0, SECOND_ORDER, 0.5)
    return np.asarray(sums[0] * steepest + second * sums[1] * steepest**2)


def _one_penalty(
    passed: Passed,
    linear: Floats,
    sums: Floats,
    normals: Floats,
    epsilon: float,
    threshold: float,
    penalty: Floats,
    loss: Floats,
    half: Floats,
) -> Tilted:
    below, vectors = passed.below, passed.below.vectors
    usable = np.isfinite(penalty)
    finite = np.where(usable, penalty, 1.0)[:, None]  # where it is not, nothing is claimed below
    weighted, ones = finite * below.pulls, finite * below.wins
    theta = passed.points
    for _ in range(8):
        yes = probability_of_yes(theta @ vectors.rows.T)
        gradient = (weighted * yes - ones - rise(sums, yes, 1)) @ vectors.rows
        hessian = vectors.information(np.maximum(weighted * yes * (1 - yes) - rise(sums, yes, 2), 0.0))
        inverse = inverses(hessian)
        across = np.einsum("zij,zj->zi", inverse, normals)
        step = -np.einsum("zij,zj->zi", inverse, gradient)
        slip = np.einsum("zi,zi->z", normals, step) / np.einsum("zi,zi->z", normals, across)
        step -= slip[:, None] * across
        length = np.max(np.abs(step @ vectors.rows.T), axis=1)
        theta = _onto(theta + step * np.where(length > 1, 1 / np.maximum(length, 1), 1.0)[:, None], normals, epsilon)
        if np.max(length) < 1e-9:
            break
    logits = theta @ vectors.rows.T
    yes, spread = probability_of_yes(logits), variance(logits)
    gradient = (weighted * yes - ones - rise(sums, yes, 1)) @ vectors.rows
    sure = weighted - loss
    inverse, sound = inverses_from_above(vectors.information(np.maximum(sure, 0.0) * spread))
    across = np.einsum("zij,zj->zi", inverse, normals)
    multiplier = np.maximum(-np.einsum("zi,zi->z", across, gradient) / np.einsum("zi,zi->z", across, normals), 0.0)
    total = gradient + multiplier[:, None] * normals
    squared = np.maximum(vectors.squared_norms(inverse), 0.0)
    k = np.sqrt(np.max(np.where(below.pulls > 0, squared, 0.0), axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = np.where(sums[TERMS] > 0, (SLOPE_REMAINDER * sums[TERMS]) ** 2 * spread / sure, 0.0)
    decrement = np.sqrt(np.maximum(np.einsum("zi,zij,zj->z", total, inverse, total), 0.0)) + np.sqrt(
        np.sum(np.maximum(cut, 0.0), axis=1)
    )
    product = k * decrement
    with np.errstate(divide="ignore", invalid="ignore"):
        below_found = (product + (1 - product) * np.log1p(-np.minimum(product, 0.9))) / k**2
        error = np.where(sound & (product < 0.9), below_found, np.inf)
    inside = np.all(np.abs(logits - passed.points @ vectors.rows.T) <= half, axis=1)
    convex = np.all(sure >= 0, axis=1) & np.all((sure > 0) | (sums[TERMS] == 0), axis=1)
    value = linear - np.sum(rise(sums, yes, 0), axis=1) + penalty * (below.values(theta) - threshold)
    remainder = VALUE_REMAINDER * np.sum(sums[TERMS], axis=1)
    bounds = np.where(inside & convex & usable & np.isfinite(error), value - error - remainder, -np.inf)
    return Tilted(bounds, theta, penalty, passed.points, passed.shares)


@dataclass(frozen=True, eq=False)
class Localiser:
    """‖θ − centre‖_M ≤ radius for all θ with log E(θ) < threshold; an infinite radius where that is not proved."""

    centre: Floats
    inverse: Floats
    radius: float
    shares: Floats

    def misses(self, normals: Floats, epsilon: float) -> NDArray[np.bool_]:
        """Whether no such θ has yᵀθ ≤ −epsilon: far rivals are excluded at O(d²) each."""
        if not math.isfinite(self.radius):
            return np.zeros(len(normals), dtype=np.bool_)
        reach = self.radius * np.sqrt(np.maximum(np.einsum("zi,ij,zj->z", normals, self.inverse, normals), 0.0))
        return np.asarray(normals @ self.centre + epsilon > reach * (1 + 1e-9))


def localiser(evidence: Evidence, threshold: float) -> Localiser:
    """An ellipsoid around all θ that the plug-in process does not refute."""
    theta, below, shares = evidence.least
    nowhere = Localiser(theta[0], np.eye(theta.shape[1]), math.inf, shares[0])
    room = threshold - below.values(theta)
    if room[0] <= 0:
        return nowhere
    half = boxes(below, theta, np.zeros_like(theta), np.zeros(1), room)
    if not np.all(np.isfinite(half)):
        return nowhere
    logits = theta @ below.vectors.rows.T
    inverse, sound = inverses_from_above(below.vectors.information(below.pulls * variance(logits) * 2 / (2 + half)))
    if not sound[0]:
        return nowhere
    gradient = (below.pulls * probability_of_yes(logits) - below.wins) @ below.vectors.rows
    slope = math.sqrt(max(float(gradient[0] @ inverse[0] @ gradient[0]), 0.0))
    return Localiser(theta[0], inverse[0], slope + math.sqrt(slope**2 + 2 * float(room[0])), shares[0])
