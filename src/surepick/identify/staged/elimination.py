"""Which items are excluded by an estimate with widths, how far the leader may be from the best, and all gaps to it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surepick._arrays import Booleans, Floats, Integers
from surepick.identify.staged.base import Elimination, Stages
from surepick.identify.staged.stage_bounds import StageEstimate

LEADERS = 32
"""Items of highest score tried first: they exclude nearly everything, and what is left is compared with all."""

BLOCK = 512
"""Items compared at once, so that a table of all pairs of 50,000 items is never in memory."""

FAR = 1e150
"""Stands for an infinite width: its square is still a number."""


def exclude(state: Stages, alive: Integers, estimate: StageEstimate | None) -> Elimination:
    """Of the items alive when the last stage was planned, those that its estimate leaves; all, if it has none.

    Step 4 of docs/identify.md. On the event of the stage's bounds (Theorem 1 there) the best item is not excluded.
    """
    points = state.problem.points
    if estimate is None:
        theta, _ = state.guess
        return Elimination(alive, int(alive[np.argmax(points[alive] @ theta)]), among=alive)
    left = surviving(points, alive, estimate)
    leader, bound = shortfall(points, left, estimate)
    return Elimination(left, leader, bound, among=alive, estimate=estimate)


def surviving(points: Floats, alive: Integers, estimate: StageEstimate) -> Integers:
    """Of the items still alive those that no other beats: ⟨z' − z, θ̂⟩ ≤ width(z' − z) for every z' alive.

    O(n·LEADERS·d) for n items alive, and O(n·d) for each that the leaders do not exclude.
    """
    score, white = _whitened(points[alive], estimate)
    order = np.argsort(-score, kind="stable")
    left = np.ones(len(alive), dtype=np.bool_)
    left &= ~_beaten(score, white, order[:LEADERS], np.arange(len(alive)))
    # Excluded items may still exclude others: the rule is over all of Z_k, so its result depends on no order.
    rest = np.flatnonzero(left)
    left[rest] = ~_beaten(score, white, order, rest)
    return alive[left]


def shortfall(points: Floats, alive: Integers, estimate: StageEstimate) -> tuple[int, float]:
    """The item whose gap to the best alive is bounded best, and that bound: max over z' of ⟨z' − z, θ̂⟩ + width.

    Infinite where the stage did not ask about some difference. O(LEADERS·n·d) for n items alive.
    """
    score, white = _whitened(points[alive], estimate)
    candidates = np.argsort(-score, kind="stable")[:LEADERS]
    bounds = [float(np.max(score - score[one] + np.linalg.norm(white - white[one], axis=1))) for one in candidates]
    chosen = int(np.argmin(bounds))
    bound = bounds[chosen] if bounds[chosen] < 1e-50 * FAR else np.inf
    return int(alive[candidates[chosen]]), max(bound, 0.0)


def with_gaps(state: Stages, last: Elimination, earlier: Sequence[Elimination] = ()) -> Elimination:
    """The elimination with an interval of every item's gap to its leader, by the last stage that the item was in.

    An item that was excluded in round k is not in later designs, so its interval stays that of round k. An estimate
    from pooled answers (`among` is None) is about all items.
    """
    points, best = state.problem.points, state.problem.points[last.leader]
    low, high = np.full(len(points), -np.inf), np.full(len(points), np.inf)
    for said in (*earlier, last):
        if said.estimate is not None and said.among is None:
            low, high = _intervals(best - points, said.estimate)
        elif said.estimate is not None:
            low[said.among], high[said.among] = _intervals(best - points[said.among], said.estimate)
    return replace(last, gaps=(low, high))


def _intervals(y: Floats, estimate: StageEstimate) -> tuple[Floats, Floats]:
    """Intervals of yᵀθ* for each difference y of two items; infinite where the stage did not ask about it."""
    centre = y @ estimate.theta
    width = np.where(estimate.span.contains(y), np.linalg.norm(estimate.white(y), axis=1), np.inf)
    return centre - width, centre + width


def _whitened(points: Floats, estimate: StageEstimate) -> tuple[Floats, Floats]:
    """Scores, and points whose distances are widths. What the stage did not ask about is infinitely far away."""
    score = points @ estimate.theta
    # Only differences matter. Taken from the leader they are small where it matters, so little is lost to cancellation.
    y = points - points[np.argmax(score)]
    white = estimate.white(y)
    outside = y - estimate.span.embed(estimate.span.coordinates(y))
    size = 1e-7 * float(np.linalg.norm(y, axis=1).max(initial=0.0))
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
        # Strictly ahead: with ≥, as the paper prints its rule, every item would exclude itself (0 ≥ 0).
        result[start : start + BLOCK] = np.any((ahead > 0) & (ahead**2 > apart), axis=1)
    return result
