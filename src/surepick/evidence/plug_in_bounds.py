"""Proven lower bounds of the evidence against "this rival is at least as good", over all θ of which that is true.

Here the plug-in evidence: the infimum of a convex function over a half-space, certified by Fenchel's inequality, and
where it is small, which is the localiser of the directional evidence (docs/anytime.md, section 3). Every bound is a
number proven from the point found, however it was found.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surepick._arrays import Booleans, Floats
from surepick.evidence.likelihood_ratio import Evidence, Minorant
from surepick.glm import probability_of_yes, softplus, variance
from surepick.glm.batched_newton import minimise_losses, onto
from surepick.glm.duality import certified_infima, inverses_from_above, omega_roots
from surepick.glm.loss import Vectors, losses
from surepick.linalg import span_of

CERTAIN = 1e-4
"""Nats below which the answers to a question are all as expected, and a proof can do without them."""

SMALL = 1e-3
"""Share that all restarts divide alike."""


@dataclass(frozen=True, eq=False)
class Passed:
    """The plug-in bound for each rival, and what it was found with."""

    bounds: Floats
    """inf of log E over the half-space is at least this; −inf where nothing could be proved."""
    points: Floats
    below: Minorant
    shares: Floats
    multipliers: Floats
    partial: tuple[tuple[Floats, NDArray[np.int64]] | None, ...]
    """Where a bound looks at some measurements only, its own point and those (see `_without_certainties`)."""

    def rows_of(self, which: NDArray[np.intp]) -> "Passed":
        """For some of the rivals."""
        return Passed(
            self.bounds[which],
            self.points[which],
            self.below.rows_of(which),
            self.shares[which],
            self.multipliers[which],
            tuple(self.partial[number] for number in which),
        )


def plug_in_bounds(evidence: Evidence, normals: Floats, epsilon: float, start: Floats) -> Passed:
    """Lower bounds of log E over {θ: yᵀθ ≤ −epsilon} for every normal y (docs/anytime.md, section 3, "Plug-in").

    `start` has a point for each normal. At most 16 batched Newton iterations of O(rivals·(vectors·d² + d³)).
    """
    theta = onto(start, normals, epsilon)
    shares = _shares(evidence, theta)
    for iterations in (4, 12):
        below = evidence.mixed(shares)
        # To half a millionth of a nat: where the least point is at infinity, farther out rounding would drown the rest.
        theta = minimise_losses(
            evidence.vectors,
            below.pulls,
            below.wins,
            theta,
            normals=normals,
            tolerance=1e-3,
            iterations=iterations,
        )
        theta = onto(theta, normals, epsilon)
        # Shares at the start may be far from those at the least point; one correction is nearly all there is to gain.
        if iterations == 4:
            shares = (shares + _shares(evidence, theta)) / 2
    gap, multiplier = certified_infima(evidence.vectors, below.pulls, below.wins, theta, normals)
    bounds = below.values(theta) - gap
    # An infinite gap: some q left (0, 1), mostly because answers to some questions all agree.
    partial: list[tuple[Floats, NDArray[np.int64]] | None] = [None] * len(normals)
    for number in np.flatnonzero(~np.isfinite(bounds)):
        found = _without_certainties(below.rows_of(np.array([number])), theta[number], normals[number], epsilon)
        if found is not None:
            bounds[number], point, kept = found
            partial[number] = point, evidence.where[kept]
    return Passed(bounds, theta, below, shares, multiplier, tuple(partial))


def _without_certainties(
    below: Minorant, theta: Floats, normal: Floats, epsilon: float
) -> tuple[float, Floats, NDArray[np.intp]] | None:
    """A bound where the least point is at infinity, with its point and the vectors it looks at; None if there is none.

    Where all answers to some questions agree, θ may go to infinity at no cost, and no dual point is inside (0, 1)ⁿ. But
    no loss is negative, so any part of the vectors bounds the whole from below: those that cost nothing are left out.
    """
    rows, pulls, wins = below.vectors.rows, below.pulls[0], below.wins[0]
    kept, point = np.flatnonzero(pulls > 0), theta
    for _ in range(3):
        logits = rows[kept] @ point
        # Leaving out is valid at any cost, and loses at most what the vectors left out cost at the least point.
        costs = wins[kept] * softplus(-logits) + (pulls - wins)[kept] * softplus(logits)
        kept = kept[costs > CERTAIN]
        if not len(kept):
            return None
        span = span_of(rows[kept])
        if not span.contains(normal[None, :])[0]:
            return None
        part = Vectors(np.ascontiguousarray(span.coordinates(rows[kept])))
        y, counts = span.coordinates(normal)[None, :], (pulls[None, kept], wins[None, kept])
        start = onto(span.coordinates(point)[None, :], y, epsilon)
        here = onto(minimise_losses(part, *counts, start, normals=y, tolerance=1e-3, iterations=16), y, epsilon)
        gap, _ = certified_infima(part, *counts, here, y)
        point = span.embed(here[0])
        if np.isfinite(gap[0]):
            return float(below.constant[0] + losses(part, *counts, here)[0] - gap[0]), point, kept
    return None


def _shares(evidence: Evidence, theta: Floats) -> Floats:
    """Shares of the restarts by their evidence, none of them zero: the newest may not have seen all directions."""
    terms = evidence.terms(theta)
    return np.asarray((1 - SMALL) * softmax(terms, axis=1) + SMALL / terms.shape[1])


@dataclass(frozen=True, eq=False)
class Region:
    """Around all θ' of a half-space yᵀθ' ≤ yᵀθ where a minorant has risen by at most `room` from θ."""

    half: Floats
    """|xᵀ(θ' − θ)| is at most this for every asked x; infinite where that is not proved."""
    depth: Floats
    """yᵀ(θ − θ') is at most this."""
    inverse: Floats
    """‖θ' − θ‖ in the matrix this is the inverse of is at most `radius`."""
    radius: Floats


def region(below: Minorant, theta: Floats, normals: Floats, multipliers: Floats, room: Floats) -> Region:
    """Where else than at θ the minorant may be no more than `room` higher, within the half-space.

    With w = xᵀ(θ' − θ) the loss rises by at least gᵀu + Σ n·s·ω(|w|), ω(w) = e⁻ʷ + w − 1, and the part of g along
    −y only helps. First all x alike, then each with the bound on its own |w| found before; infinite if k·λ ≥ 1.
    (docs/anytime.md, section 3, "Boxes".) Six Hessians and inverses for each rival.
    """
    vectors = below.vectors
    logits = theta @ vectors.rows.T
    spread = below.pulls * variance(logits)
    gradient = (below.pulls * probability_of_yes(logits) - below.wins) @ vectors.rows + multipliers[:, None] * normals
    inverse, sound = inverses_from_above(vectors.information(spread))
    squared = np.maximum(vectors.squared_norms(inverse), 0.0)
    # Σ n·s·ω(|w|) ≥ ω(k‖u‖)/k² (docs/theory.md, Lemma 1): one equation for ‖u‖, hence for every |w| ≤ ‖x‖·‖u‖.
    k = np.sqrt(np.max(np.where(below.pulls > 0, squared, 0.0), axis=1))
    tilt = k * np.sqrt(np.maximum(np.einsum("zi,zij,zj->z", gradient, inverse, gradient), 0.0))
    reach = omega_roots(tilt, k**2 * room)
    half = np.where(sound[:, None], np.sqrt(squared) * (reach / k)[:, None], np.inf)
    # Within |w| ≤ h the rise is at least ½a·w²; the smaller h, the larger a: five rounds, each valid by the one before.
    for _ in range(5):
        bent = np.where(
            np.isfinite(half), below.pulls * _steepness(logits, np.where(np.isfinite(half), half, 1.0)), 0.0
        )
        inverse, sound = inverses_from_above(vectors.information(bent))
        slope = np.sqrt(np.maximum(np.einsum("zi,zij,zj->z", gradient, inverse, gradient), 0.0))
        radius = np.where(sound, slope + np.sqrt(slope**2 + 2 * room), np.inf)
        squared = np.maximum(vectors.squared_norms(inverse), 0.0)
        half = np.where(sound[:, None], np.minimum(half, np.sqrt(squared) * radius[:, None]), half)
    # ν·depth + depth²/(2‖y‖²) ≤ room + slope·radius
    along = np.einsum("zi,zij,zj->z", normals, inverse, normals)
    with np.errstate(over="ignore", invalid="ignore"):  # where the information is singular
        back = multipliers * along
        depth = np.where(sound, np.sqrt(back**2 + 2 * along * (room + slope * radius)) - back, np.inf)
    return Region(np.asarray(half), np.asarray(depth), inverse, np.asarray(radius))


def _steepness(logits: Floats, half: Floats) -> Floats:
    """The largest a with m(v+w) − m(v) − μ(v)·w ≥ ½a·w² for |w| ≤ h: that of w = h away from zero (s falls fastest)."""
    far = np.abs(logits)
    wide = np.maximum(half, 1e-3)  # narrower boxes only have a larger one
    rise = softplus(far + wide) - softplus(far) - probability_of_yes(far) * wide
    # The difference cancels; what rounding may have added is taken off.
    return np.asarray(2 * np.maximum(rise - 1e-15 * (far + wide), 0.0) / wide**2)


@dataclass(frozen=True, eq=False)
class Localiser:
    """‖θ − centre‖_M ≤ radius for all θ with log E(θ) < threshold; an infinite radius where that is not proved."""

    centre: Floats
    inverse: Floats
    radius: float
    shares: Floats

    def misses(self, normals: Floats, epsilon: float) -> Booleans:
        """Whether no such θ has yᵀθ ≤ −epsilon: far rivals are excluded at O(d²) each."""
        if not math.isfinite(self.radius):
            return np.zeros(len(normals), dtype=np.bool_)
        reach = self.radius * np.sqrt(np.maximum(np.einsum("zi,ij,zj->z", normals, self.inverse, normals), 0.0))
        return np.asarray(normals @ self.centre + epsilon > reach * (1 + 1e-9))


def localiser(evidence: Evidence, threshold: float) -> Localiser:
    """An ellipsoid around all θ that the plug-in process does not refute."""
    theta, below, shares = _least_minorant(evidence)
    nowhere = Localiser(theta[0], np.eye(theta.shape[1]), math.inf, shares[0])
    room = threshold - below.values(theta)
    if room[0] <= 0:
        return nowhere
    around = region(below, theta, np.zeros_like(theta), np.zeros(1), room)
    if not math.isfinite(around.radius[0]):
        return nowhere
    return Localiser(theta[0], around.inverse[0], float(around.radius[0]), shares[0])


def _least_minorant(evidence: Evidence) -> tuple[Floats, Minorant, Floats]:
    """About where log E is least, the minorant whose least point it is to a millionth of a nat, and its shares."""
    theta = np.zeros((1, evidence.vectors.rows.shape[1]))
    shares = softmax(evidence.terms(theta), axis=1)
    for tolerance in (0.1, 0.1, 1e-3):
        below = evidence.mixed(shares)
        theta = minimise_losses(evidence.vectors, below.pulls, below.wins, theta, tolerance=tolerance, iterations=20)
        # Halfway to the shares at the new point: going all the way may swing between two restarts.
        used, shares = shares, (shares + softmax(evidence.terms(theta), axis=1)) / 2
    return theta, below, used
