"""Which items are excluded by an estimate with widths, and how far the leader may be from the best."""

from collections.abc import Iterable

import numpy as np

from surepick._arrays import Booleans, Floats, Integers
from surepick.glm import Tally, fit
from surepick.identify.staged.base import Filed, Stages, Standing
from surepick.identify.staged.stage_bounds import Estimate

LEADERS = 32
"""Items of highest score tried first: they exclude nearly everything, and what is left is compared with all."""

BLOCK = 512

FAR = 1e150
"""Stands for an infinite width: its square is still a number."""


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
    """The item whose gap to the best alive is bounded best, and that bound: max over z' of ⟨z' − z, θ̂⟩ + width.

    Infinite where the stage did not ask about some difference. O(LEADERS·n·d) for n items alive.
    """
    score, white = _seen_by(points[alive], estimate)
    candidates = np.argsort(-score, kind="stable")[:LEADERS]
    bounds = [float(np.max(score - score[one] + np.linalg.norm(white - white[one], axis=1))) for one in candidates]
    chosen = int(np.argmin(bounds))
    bound = bounds[chosen] if bounds[chosen] < 1e-50 * FAR else np.inf
    return int(alive[candidates[chosen]]), max(bound, 0.0)


def exclude(state: Stages, estimate: Estimate | None) -> Standing:
    """Of the items alive when the last stage was planned, those that its estimate leaves; all, if it has none."""
    alive = np.array(state.last.plan.memo["alive"], dtype=np.int64)
    points = state.problem.points
    if estimate is None:
        return Standing(alive, int(alive[np.argmax(points[alive] @ pooled(state)[0])]))
    left = surviving(points, alive, estimate)
    return Standing(left, *shortfall(points, left, estimate))


def pooled(state: Stages) -> tuple[Floats, Floats]:
    """Estimate and information of all answers so far, with a little ridge: for guesses and designs, never a width."""
    pulls, wins = state.counts()
    rows, asked, rank = state.problem.rows, np.flatnonzero(pulls), state.problem.span.rank
    if asked.size == 0:
        return np.zeros(rank), 0.01 * np.eye(rank)
    found = fit(Tally(rows[asked], pulls[asked], wins[asked]), ridge=0.01)
    return found.theta, found.information + 0.01 * np.eye(rank)


def gaps_stage_by_stage(
    state: Stages, best: int, estimates: Iterable[tuple[Filed, Estimate | None]]
) -> tuple[Floats, Floats]:
    """Intervals of every item's gap to the best, by the last stage in which it was alive."""
    points = state.problem.points
    low, high = gap_intervals(points[best] - points, None)
    for filed, estimate in estimates:
        if estimate is not None:
            others = np.array(filed.plan.memo["alive"], dtype=np.int64)
            low[others], high[others] = gap_intervals(points[best] - points[others], estimate)
    return low, high


def gap_intervals(away: Floats, estimate: Estimate | None) -> tuple[Floats, Floats]:
    """Intervals of the gap yᵀθ* for each difference y of two items; infinite where it was not asked about."""
    if estimate is None:
        return np.full(len(away), -np.inf), np.full(len(away), np.inf)
    centre = away @ estimate.theta
    width = np.where(estimate.span.contains(away), np.linalg.norm(estimate.white(away), axis=1), np.inf)
    return centre - width, centre + width


def _seen_by(points: Floats, estimate: Estimate) -> tuple[Floats, Floats]:
    """Scores, and points whose distances are widths. What the stage did not ask about is infinitely far away."""
    score = points @ estimate.theta
    away = points - points[np.argmax(score)]
    white = estimate.white(away)
    outside = away - estimate.span.embed(estimate.span.coordinates(away))
    size = 1e-7 * float(np.linalg.norm(away, axis=1).max(initial=0.0))
    apart = np.where(np.abs(outside) > size, outside, 0.0)
    if apart.any():
        white = np.column_stack([white, apart * (FAR / float(np.abs(apart).max()))])
    return score, white


def _beaten(score: Floats, white: Floats, by: Integers, which: Integers) -> Booleans:
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
