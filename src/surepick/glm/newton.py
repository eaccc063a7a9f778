"""Newton's method for one function: a minimiser whose steps on a logistic loss provably descend, and a root finder.

All fits and infima of single losses use `minimise`: plain, with a ridge, on a hyperplane, on the mixture of losses that
is the log-evidence. Many small problems at once go through `batched_newton`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats
from surepick.glm.loss import Derivatives
from surepick.linalg import Factor, factor

STALLED = 1e-6
"""A decrement below this which no longer shrinks is at the floor of floating point: good enough, and reported."""


def root_from_above(
    excess: Callable[[float], tuple[float, float]], start: float, *, tolerance: float, iterations: int = 60
) -> float:
    """The root of an increasing convex function, approached from a point beyond it; every iterate is an upper bound.

    `excess(x)` returns value and slope at x. The tangent of a convex function lies below it, so its zero is never
    below the root: wherever the iteration ends, the result may be used as a bound. It ends when a step gains less than
    `tolerance` times x.
    """
    x = start
    for _ in range(iterations):
        value, slope = excess(x)
        change = value / slope
        # Rounding can make the last changes negative; the iterate before them is still beyond the root.
        if not change > tolerance * x:
            break
        x -= change
    return x


@dataclass(frozen=True)
class Progress:
    """Where Newton's method stands after an iteration."""

    point: Floats
    at: Derivatives
    factor: Factor | None
    """Factor of the Hessian, None where it is numerically singular."""
    step: Floats
    """The full Newton step from here, along the hyperplane if there is one."""
    decrement: float
    """λ = √(gᵀM⁻¹g) with M the Hessian: the distance to the optimum in standard deviations."""
    multiplier: float
    """ν of the equality constraint: the gradient at the optimum is ν times its normal."""
    iterations: int
    moved: float
    """Largest change of a logit in the last step."""
    done: bool


def minimise(
    function: Callable[[Floats], Derivatives],
    start: Floats,
    *,
    movement: Callable[[Floats], float],
    normal: Floats | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
    give_up: Callable[[Progress], bool] | None = None,
) -> Progress:
    """Minimise a smooth convex function from `start`, moving only along normalᵀ·step = 0 if a normal is given.

    `movement(step)` is R = max |xᵀstep| over the rows. For a logistic loss (with or without ridge) a step of
    fraction t changes it by at most −tλ² + λ²(e^{tR} − 1 − tR)/R², λ the decrement, because its third derivative
    is at most R times the second (docs/theory.md, Lemma 1 and section 6). So t = 1 descends for R ≤ 1 and t =
    log(1+R)/R is the best guaranteed fraction beyond; there the full step is taken if it descends by as much as that
    fraction would for sure, λ²((1+R)·log(1+R) − R)/R². For other convex functions a rise of the value halves the step.

    Ends when the decrement is at most `tolerance`, after `max_iterations`, or when `give_up` says so. An iteration
    costs one to three calls of `function` and O(d³).
    """
    progress = _progress_at(start, function(start), normal, 0, np.inf, tolerance)
    while not progress.done and progress.iterations < max_iterations:
        if give_up is not None and give_up(progress):
            break
        length = movement(progress.step)
        # Values of large sums carry rounding; a rise within it is no rise.
        value, slack = progress.at.value, 1e-13 * (1.0 + abs(progress.at.value))
        fraction = 1.0
        point = progress.point + progress.step
        at = function(point)
        # The guaranteed fraction is short when R is large, so the full step gets the first chance.
        if length > 1.0 and not at.value <= value - _promised(progress.decrement, length):
            fraction = max(1.0, math.log1p(length)) / length
            point = progress.point + fraction * progress.step
            at = function(point)
        # Never needed for a logistic loss but for rounding; a mixture of losses has no such guarantee.
        while not at.value <= value + slack and fraction > 1e-8:
            fraction /= 2
            point = progress.point + fraction * progress.step
            at = function(point)
        if not at.value <= value + slack:
            break
        previous = progress
        progress = _progress_at(point, at, normal, previous.iterations + 1, fraction * length, tolerance)
        if previous.decrement <= STALLED and progress.decrement >= previous.decrement / 2:
            best = min(previous, progress, key=lambda found: found.decrement)
            return Progress(**{**vars(best), "iterations": progress.iterations, "done": best.factor is not None})
    return progress


def _promised(decrement: float, length: float) -> float:
    """By how much the best guaranteed fraction of a step descends at least: λ²((1+R)·log(1+R) − R)/R²."""
    return (decrement / length) ** 2 * ((1.0 + length) * math.log1p(length) - length)


def _progress_at(
    point: Floats,
    at: Derivatives,
    normal: Floats | None,
    iterations: int,
    moved: float,
    tolerance: float,
) -> Progress:
    """The Newton step and the decrement at a point."""
    exact = factor(at.hessian)
    usable = exact or _nearby_factor(at.hessian)
    step = -usable.solve(at.gradient)
    multiplier = 0.0
    if normal is not None:
        # H·step = −g + ν·normal with normalᵀ·step = 0 gives ν and the step; the last line removes what rounding left.
        across = usable.solve(normal)
        multiplier = -float(normal @ step) / float(normal @ across)
        step = step + multiplier * across
        step -= normal * float(normal @ step) / float(normal @ normal)
    # On the hyperplane the decrement is that of the projected gradient, g − ν·normal.
    squared = -float(step @ (at.gradient if normal is None else at.gradient - multiplier * normal))
    decrement = float(np.sqrt(max(squared, 0.0)))
    done = exact is not None and decrement <= tolerance
    return Progress(point, at, exact, step, decrement, multiplier, iterations, moved, done)


def _nearby_factor(matrix: Floats) -> Factor:
    """Factor of the matrix with just enough added to its diagonal: still a direction of descent."""
    largest = float(np.max(np.diag(matrix)))
    diagonal = np.maximum(np.diag(matrix), 1e-20 * largest) if largest > 1e-200 else np.ones(len(matrix))
    for jitter in (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2):
        result = factor(matrix + np.diag(jitter * diagonal))
        if result is not None:
            return result
    # Nothing but the diagonal is left to trust: its own Newton step still descends.
    return Factor(np.sqrt(diagonal), np.eye(len(matrix)))
