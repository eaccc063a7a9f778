"""Which items are excluded by an estimate with widths, and how far the leader may be from the best."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick.identify.certified import Estimate

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEADERS = 32
"""Items of highest score tried first: they exclude nearly everything, and what is left is compared with all."""

BLOCK = 512


def surviving(points: Floats, alive: Integers, estimate: Estimate) -> Integers:
    """Of the items still alive those that no other beats: ⟨z' − z, θ̂⟩ ≤ width(z' − z) for every z' alive.

    O(n·LEADERS·d) for n items alive, and O(n·d) for each that the leaders do not exclude.
    """
    score, white = _seen_by(points[alive], estimate)
    order = np.argsort(-score, kind="stable")
    left = np.ones(len(alive), dtype=np.bool_)
    left &= ~_beaten(score, white, order[:LEADERS], np.arange(len(alive)))
    rest = np.flatnonzero(left)
    left[rest] = ~_beaten(score, white, order, rest)
    return alive[left]


def shortfall(points: Floats, alive: Integers, estimate: Estimate) -> tuple[int, float]:
    """The item whose gap to the best alive is bounded best, and that bound: max over z' of ⟨z' − z, θ̂⟩ + width."""
    score, white = _seen_by(points[alive], estimate)
    candidates = np.argsort(-score, kind="stable")[:LEADERS]
    bounds = [float(np.max(score - score[one] + np.linalg.norm(white - white[one], axis=1))) for one in candidates]
    chosen = int(np.argmin(bounds))
    return int(alive[candidates[chosen]]), max(bounds[chosen], 0.0)


@dataclass(frozen=True)
class GapIntervals:
    """Bounds of (z_best − z)ᵀθ* for all items z."""

    low: Floats
    high: Floats


def gap_intervals(points: Floats, best: int, others: Integers, estimate: Estimate) -> GapIntervals:
    """Intervals for the gap of each other item to `best`; infinite where the difference was not asked about."""
    away = points[best] - points[others]
    centre = away @ estimate.theta
    width = np.where(
        estimate.span.contains(away),
        np.linalg.norm(estimate.white(away), axis=1),
        np.inf,
    )
    return GapIntervals(centre - width, centre + width)


def _seen_by(points: Floats, estimate: Estimate) -> tuple[Floats, Floats]:
    """Scores, and points whose distances are widths. What the stage did not ask about is infinitely far away."""
    score = points @ estimate.theta
    away = points - points[np.argmax(score)]
    white = estimate.white(away)
    outside = away - estimate.span.embed(estimate.span.coordinates(away))
    size = 1e-7 * float(np.linalg.norm(away, axis=1).max(initial=0.0))
    apart = np.where(np.abs(outside) > size, outside, 0.0)
    if apart.any():
        white = np.column_stack([white, apart * (1e150 / float(np.abs(apart).max()))])
    return score, white


def _beaten(score: Floats, white: Floats, by: Integers, which: Integers) -> NDArray[np.bool_]:
    """For each of `which`, whether some item of `by` has a score larger by more than their distance."""
    result = np.zeros(len(which), dtype=np.bool_)
    squares = np.einsum("ij,ij->i", white, white)
    for start in range(0, len(which), BLOCK):
        here = which[start : start + BLOCK]
        ahead = score[by][None, :] - score[here][:, None]
        products = white[here] @ white[by].T
        apart = squares[here][:, None] + squares[by][None, :] - 2 * products
        # Rounding of the products, at most (d+3)·2⁻⁵³ of the squares, is covered upwards: no item falls to it.
        apart = np.maximum(apart, 0.0) + (white.shape[1] + 8) * 2.0**-52 * (
            squares[here][:, None] + squares[by][None, :]
        )
        result[start : start + BLOCK] = np.any((ahead > 0) & (ahead**2 > apart), axis=1)
    return result
