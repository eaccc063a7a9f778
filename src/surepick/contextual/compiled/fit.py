"""The logistic loss: its derivatives, Newton's method, online steps, and the largest score in a sublevel set."""

import math

import numpy as np

from surepick._arrays import Floats
from surepick.contextual.compiled.algebra import add_outer, cholesky, dot, jit, solve, times


@jit
def softplus(v: float) -> float:
    """m(v)."""
    return max(v, 0.0) + math.log1p(math.exp(-abs(v)))


@jit
def yes(v: float) -> float:
    """μ(v)."""
    small = math.exp(-abs(v))
    return (1.0 if v >= 0 else small) / (1.0 + small)


@jit
def variance(v: float) -> float:
    """s(v)."""
    small = math.exp(-abs(v))
    return small / ((1.0 + small) * (1.0 + small))


@jit
def row_losses(rows: Floats, answers: Floats, theta: Floats) -> Floats:
    """See `plain.row_losses`."""
    result = np.empty(len(rows))
    for i in range(len(rows)):
        result[i] = softplus((1.0 - 2.0 * answers[i]) * dot(rows[i], theta))
    return result


@jit
def derivatives(
    rows: Floats, answers: Floats, weights: Floats, theta: Floats, gradient: Floats, hessian: Floats
) -> float:
    """The loss; its gradient and Hessian in place. Rows of weight zero cost nothing."""
    n, d = rows.shape
    gradient[:] = 0.0
    hessian[:, :] = 0.0
    value = 0.0
    for i in range(n):
        weight = weights[i]
        if weight == 0.0:
            continue
        v = 0.0
        for j in range(d):
            v += rows[i, j] * theta[j]
        small = math.exp(-abs(v))
        larger = 1.0 / (1.0 + small)
        value += weight * (math.log1p(small) + max(v, 0.0) - answers[i] * v)
        slope = weight * ((larger if v >= 0 else small * larger) - answers[i])
        curve = weight * small * larger * larger
        for j in range(d):
            gradient[j] += slope * rows[i, j]
            scaled = curve * rows[i, j]
            for k in range(j + 1):
                hessian[j, k] += scaled * rows[i, k]
    for j in range(d):
        for k in range(j):
            hessian[k, j] = hessian[j, k]
    return value


@jit
def movement(rows: Floats, step: Floats) -> float:
    """Largest |xᵀstep|."""
    largest = 0.0
    for i in range(len(rows)):
        largest = max(largest, abs(dot(rows[i], step)))
    return largest


@jit
def newton(
    rows: Floats, answers: Floats, weights: Floats, start: Floats, ridge: float, tolerance: float, iterations: int
) -> tuple[Floats, float, Floats, Floats, float]:
    """See `plain.newton`."""
    d = len(start)
    theta, gradient, hessian, lower = start.copy(), np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    value = derivatives(rows, answers, weights, theta, gradient, hessian)
    decrement = math.inf
    for iteration in range(iterations + 1):
        if not cholesky(hessian, ridge, lower):
            return theta, value, gradient, hessian, math.inf
        penalised = gradient + ridge * theta
        step = solve(lower, penalised)
        decrement = math.sqrt(max(0.0, dot(step, penalised)))
        if decrement <= tolerance or iteration == iterations:
            break
        moved = movement(rows, step)
        theta -= step * (1.0 if moved <= 1.0 else max(1.0, math.log1p(moved)) / moved)
        value = derivatives(rows, answers, weights, theta, gradient, hessian)
    return theta, value, gradient, hessian, decrement


@jit
def online_step(theta: Floats, inverse: Floats, vector: Floats, answer: float) -> None:
    """See `plain.online_step`."""
    v = dot(vector, theta)
    add_outer(inverse, vector, variance(v))
    theta += times(inverse, vector) * (answer - yes(v))


@jit
def support(
    rows: Floats, answers: Floats, ridge: float, start: Floats, direction: Floats, inverse: Floats, ceiling: float
) -> float:
    """See `plain.support`."""
    d = len(start)
    weights = np.ones(len(rows))
    gradient, hessian, lower = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    across = times(inverse, direction)
    squared = dot(direction, across)
    floor = derivatives(rows, answers, weights, start, gradient, hessian) + ridge / 2 * dot(start, start)
    room = ceiling - floor
    if squared <= 0.0 or room <= 0.0:
        return dot(direction, start)
    eta = math.sqrt(2.0 * room / squared)
    bound = math.inf
    theta = start + eta * across * min(1.0, 1.0 / max(eta * movement(rows, across), 1e-300))
    for _ in range(8):
        decrement, value = 0.0, 0.0
        for _ in range(30):
            value = derivatives(rows, answers, weights, theta, gradient, hessian)
            gradient += ridge * theta - eta * direction
            if not cholesky(hessian, ridge, lower):
                return bound
            step = solve(lower, gradient)
            decrement = math.sqrt(max(0.0, dot(step, gradient)))
            if decrement <= 0.1:
                break
            moved = movement(rows, step)
            theta -= step * (1.0 if moved <= 1.0 else max(1.0, math.log1p(moved)) / moved)
        value += ridge / 2 * dot(theta, theta)
        bound = min(bound, (ceiling - value + eta * dot(direction, theta) + decrement * decrement) / eta)
        if abs(value - ceiling) <= 0.1 * room:
            break
        eta *= math.sqrt(room / max(value - floor, 0.01 * room))
    return bound
