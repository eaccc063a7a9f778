"""Newton's method with a step rule under which every step of a logistic loss provably descends.

One solver for all fits and infima of the project: plain, with a ridge, on a hyperplane.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surepick._arrays import Floats
from surepick.glm.link import Derivatives
from surepick.linalg import Factor, factor

STALLED = 1e-6
"""A decrement below this which no longer shrinks is at the floor of floating point: good enough, and reported."""


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
    """√(gᵀM⁻¹g) with M the Hessian: the distance to the optimum in standard deviations."""
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
    is at most R times the second. So t = 1 descends for R ≤ 1 and t = log(1+R)/R is the best guaranteed fraction
    beyond; there the full step is taken if it descends by as much as that fraction would for sure, λ²((1+R)·log(1+R) −
    R)/R². For other convex functions a rise of the value halves the step.
    """
    progress = _look(start, function(start), normal, 0, np.inf, tolerance)
    while not progress.done and progress.iterations < max_iterations:
        if give_up is not None and give_up(progress):
            break
        length = movement(progress.step)
        value, slack = progress.at.value, 1e-13 * (1.0 + abs(progress.at.value))
        fraction = 1.0
        point = progress.point + progress.step
        at = function(point)
        if length > 1.0 and not at.value <= value - _promised(progress.decrement, length):
            fraction = max(1.0, math.log1p(length)) / length
            point = progress.point + fraction * progress.step
            at = function(point)
        while not at.value <= value + slack and fraction > 1e-8:
            fraction /= 2
            point = progress.point + fraction * progress.step
            at = function(point)
        if not at.value <= value + slack:
            break
        previous = progress
        progress = _look(point, at, normal, previous.iterations + 1, fraction * length, tolerance)
        if previous.decrement <= STALLED and progress.decrement >= previous.decrement / 2:
            best = min(previous, progress, key=lambda each: each.decrement)
            return Progress(**{**vars(best), "iterations": progress.iterations, "done": best.factor is not None})
    return progress


def _promised(decrement: float, length: float) -> float:
    """By how much the best guaranteed fraction of a step descends at least."""
    return (decrement / length) ** 2 * ((1.0 + length) * math.log1p(length) - length)


def _look(
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
    return Factor(np.sqrt(diagonal), np.eye(len(matrix)))
