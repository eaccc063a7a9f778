"""The inner loops of `plain`, compiled by numba: same names, same arguments, same meaning (see there).

Written as scalar loops because the matrices are small (d of a few dozen at most): a call costs about a microsecond
where NumPy needs twenty. Machine code is cached beside this file, so that only the first run of all compiles.
"""

import math
from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., object])

NAME = "numba"


def _jit(function: Function) -> Function:
    return cast("Function", numba.njit(cache=True, error_model="numpy")(function))


@_jit
def _softplus(v: float) -> float:
    return max(v, 0.0) + math.log1p(math.exp(-abs(v)))


@_jit
def _yes(v: float) -> float:
    small = math.exp(-abs(v))
    return (1.0 if v >= 0 else small) / (1.0 + small)


@_jit
def _variance(v: float) -> float:
    small = math.exp(-abs(v))
    return small / ((1.0 + small) * (1.0 + small))


@_jit
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@_jit
def _times(matrix: Floats, vector: Floats) -> Floats:
    result = np.zeros(len(vector))
    for i in range(len(vector)):
        total = 0.0
        for j in range(len(vector)):
            total += matrix[i, j] * vector[j]
        result[i] = total
    return result


@_jit
def _cholesky(matrix: Floats, ridge: float, lower: Floats) -> bool:
    """Lower factor of the matrix plus ridge·I, in place of `lower`; False where it is numerically singular."""
    d = len(matrix)
    for i in range(d):
        for j in range(i + 1):
            total = matrix[i, j] + (ridge if i == j else 0.0)
            whole = total
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i == j:
                if not total > 1e-14 * whole or not total > 0.0:
                    return False
                lower[i, i] = math.sqrt(total)
            else:
                lower[i, j] = total / lower[j, j]
    return True


@_jit
def _solve(lower: Floats, right: Floats) -> Floats:
    d = len(right)
    result = right.copy()
    for i in range(d):
        for k in range(i):
            result[i] -= lower[i, k] * result[k]
        result[i] /= lower[i, i]
    for i in range(d - 1, -1, -1):
        for k in range(i + 1, d):
            result[i] -= lower[k, i] * result[k]
        result[i] /= lower[i, i]
    return result


@_jit
def _derivatives(
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


@_jit
def _movement(rows: Floats, step: Floats) -> float:
    """Largest |xᵀstep|."""
    largest = 0.0
    for i in range(len(rows)):
        largest = max(largest, abs(_dot(rows[i], step)))
    return largest


@_jit
def newton(
    rows: Floats, answers: Floats, weights: Floats, start: Floats, ridge: float, tolerance: float, iterations: int
) -> tuple[Floats, float, Floats, Floats, float]:
    """See `plain.newton`."""
    d = len(start)
    theta, gradient, hessian, lower = start.copy(), np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    value = _derivatives(rows, answers, weights, theta, gradient, hessian)
    decrement = math.inf
    for iteration in range(iterations + 1):
        if not _cholesky(hessian, ridge, lower):
            return theta, value, gradient, hessian, math.inf
        penalised = gradient + ridge * theta
        step = _solve(lower, penalised)
        decrement = math.sqrt(max(0.0, _dot(step, penalised)))
        if decrement <= tolerance or iteration == iterations:
            break
        moved = _movement(rows, step)
        theta -= step * (1.0 if moved <= 1.0 else max(1.0, math.log1p(moved)) / moved)
        value = _derivatives(rows, answers, weights, theta, gradient, hessian)
    return theta, value, gradient, hessian, decrement


@_jit
def inverse(matrix: Floats) -> Floats:
    """See `plain.inverse`."""
    d = len(matrix)
    lower = np.zeros((d, d))
    result = np.full((d, d), np.nan)
    if _cholesky(matrix, 0.0, lower):
        for j in range(d):
            unit = np.zeros(d)
            unit[j] = 1.0
            result[:, j] = _solve(lower, unit)
    return result


@_jit
def add_outer(inverse: Floats, vector: Floats, weight: float) -> float:
    """See `plain.add_outer`."""
    d = len(vector)
    across = _times(inverse, vector)
    squared = _dot(vector, across)
    scale = weight / (1.0 + weight * squared)
    for i in range(d):
        for j in range(d):
            inverse[i, j] -= across[i] * across[j] * scale
    return squared


@_jit
def _squared_norm(vector: Floats, inverse: Floats) -> float:
    d = len(vector)
    total = 0.0
    for i in range(d):
        inner = 0.0
        for j in range(d):
            inner += inverse[i, j] * vector[j]
        total += vector[i] * inner
    return total if total > 0.0 else 0.0


@_jit
def add_information(information: Floats, inverse: Floats, vector: Floats, weight: float) -> float:
    """See `plain.add_information`."""
    d = len(vector)
    for i in range(d):
        for j in range(d):
            information[i, j] += weight * vector[i] * vector[j]
    return math.log1p(weight * add_outer(inverse, vector, weight))


@_jit
def far_logit(vector: Floats, theta: Floats, inverse: Floats, radius: float) -> float:
    """See `plain.far_logit`."""
    return abs(_dot(vector, theta)) + radius * math.sqrt(_squared_norm(vector, inverse))


@_jit
def largest_entry(matrix: Floats) -> float:
    """See `plain.largest_entry`."""
    largest = 0.0
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            size = abs(matrix[i, j])
            if not size <= largest:
                if math.isnan(size):
                    return math.nan
                largest = size
    return largest


@_jit
def squared_norms(rows: Floats, inverse: Floats) -> Floats:
    """See `plain.squared_norms`."""
    result = np.empty(len(rows))
    for i in range(len(rows)):
        result[i] = _squared_norm(rows[i], inverse)
    return result


@_jit
def optimistic(arms: Floats, theta: Floats, inverse: Floats, radius: float) -> int:
    """See `plain.optimistic`."""
    best, highest = 0, -math.inf
    for a in range(len(arms)):
        width = math.sqrt(_squared_norm(arms[a], inverse))
        index = width if math.isinf(radius) else _dot(arms[a], theta) + radius * width
        if index > highest:
            best, highest = a, index
    return best


@_jit
def row_losses(rows: Floats, answers: Floats, theta: Floats) -> Floats:
    """See `plain.row_losses`."""
    result = np.empty(len(rows))
    for i in range(len(rows)):
        result[i] = _softplus((1.0 - 2.0 * answers[i]) * _dot(rows[i], theta))
    return result


@_jit
def _curvature(v: float, reach: float) -> float:
    v = abs(v)
    if reach < 1e-2:
        return _variance(v) * (1 - reach / 3)
    exact = 2 * (_softplus(v + reach) - _softplus(v) - _yes(v) * reach) / reach**2
    return max(exact - 1e-15 * (1 + v + reach) / reach**2, 0.0)


@_jit
def curvatures(logits: Floats, reaches: Floats) -> Floats:
    """See `plain.curvatures`."""
    result = np.empty(len(logits))
    for i in range(len(logits)):
        result[i] = _curvature(logits[i], reaches[i])
    return result


@_jit
def reaches_of(rows: Floats, anchor: Floats, centre: Floats, inverse: Floats, radius: float) -> Floats:
    """See `plain.reaches_of`."""
    result = np.empty(len(rows))
    shift = centre - anchor
    for i in range(len(rows)):
        result[i] = abs(_dot(rows[i], shift)) + radius * math.sqrt(_squared_norm(rows[i], inverse))
    return result


@_jit
def minorant_matrix(rows: Floats, weights: Floats, anchor: Floats, reaches: Floats) -> Floats:
    """See `plain.minorant_matrix`."""
    n, d = rows.shape
    result = np.zeros((d, d))
    for i in range(n):
        if weights[i] == 0.0:
            continue
        weight = weights[i] * _curvature(_dot(rows[i], anchor), reaches[i])
        for j in range(d):
            scaled = weight * rows[i, j]
            for k in range(j + 1):
                result[j, k] += scaled * rows[i, k]
    for j in range(d):
        for k in range(j):
            result[k, j] = result[j, k]
    return result


@_jit
def online_step(theta: Floats, inverse: Floats, vector: Floats, answer: float) -> float:
    """See `plain.online_step`."""
    v = _dot(vector, theta)
    weight = _variance(v)
    squared = add_outer(inverse, vector, weight)
    theta += _times(inverse, vector) * (answer - _yes(v))
    return math.log1p(weight * squared)


@_jit
def forecast(experts: Floats, inverses: Floats, scores: Floats, vector: Floats, answer: float) -> None:
    """See `plain.forecast`."""
    for e in range(len(experts)):
        scores[e] -= _softplus((1.0 - 2.0 * answer) * _dot(experts[e], vector))
        online_step(experts[e], inverses[e], vector, answer)


@_jit
def add_minorant(
    anchor: Floats, gradient: Floats, inverse: Floats, centre: Floats, radius: float, vector: Floats, answer: float
) -> float:
    """See `plain.add_minorant`."""
    v = _dot(vector, anchor)
    reach = abs(_dot(vector, centre) - v) + radius * math.sqrt(_squared_norm(vector, inverse))
    curvature = 0.0 if math.isinf(reach) else _curvature(v, reach)
    gradient += vector * (_yes(v) - answer)
    add_outer(inverse, vector, curvature)
    centre[:] = anchor - _times(inverse, gradient)
    return _softplus((1.0 - 2.0 * answer) * v)


@_jit
def lowered(centre: Floats, inverse: Floats, radius: float, cap: float, vector: Floats, answer: float) -> float:
    """See `plain.lowered`."""
    v = _dot(vector, centre)
    reach = min(cap, radius * math.sqrt(_squared_norm(vector, inverse)))
    curvature = _curvature(v, reach)
    slope = _yes(v) - answer
    squared = add_outer(inverse, vector, curvature)
    centre -= _times(inverse, vector) * slope
    return _softplus((1.0 - 2.0 * answer) * v) - slope**2 * squared / (1 + curvature * squared) / 2


@_jit
def expert_evidence(scores: Floats, restarts: Floats) -> Floats:
    """See `plain.expert_evidence`."""
    result = np.empty(len(restarts))
    for j in range(len(restarts)):
        top = -math.inf
        for e in range(len(scores)):
            top = max(top, scores[e] - restarts[j, 3 + e])
        total = 0.0
        for e in range(len(scores)):
            total += math.exp(scores[e] - restarts[j, 3 + e] - top)
        result[j] = restarts[j, 1] + top + math.log(total / len(scores))
    return result


@_jit
def border_shares(terms: Floats, growth: Floats, level: float) -> Floats:
    """See `plain.border_shares`."""
    rise = 0.0
    shares = np.empty(len(terms))
    for _ in range(30):
        top = -math.inf
        for j in range(len(terms)):
            top = max(top, terms[j] + growth[j] * rise)
        total = 0.0
        for j in range(len(terms)):
            shares[j] = math.exp(terms[j] + growth[j] * rise - top)
            total += shares[j]
        shares /= total
        step = (level - math.log(total) - top) / max(_dot(shares, growth), 1e-3)
        rise = max(rise + min(step, 50.0), 0.0)
        if abs(step) < 1e-2 or (rise == 0.0 and step < 0.0):
            break
    return shares


@_jit
def tangent_offset(scores: Floats, restarts: Floats) -> float:
    """See `plain.tangent_offset`."""
    evidence = expert_evidence(scores, restarts)
    total = 0.0
    for j in range(len(restarts)):
        share = restarts[j, 2]
        if share > 0:
            total += share * (evidence[j] - math.log(share))
    return total


@_jit
def route(
    arms: Floats, thetas: Floats, inverses: Floats, multipliers: Floats, last_width: float
) -> tuple[int, int, bool]:
    """See `plain.route`."""
    alive = np.arange(len(arms))
    left = len(arms)
    means = np.empty(left)
    level = 0
    while True:
        widest, widest_norm = 0, -1.0
        for i in range(left):
            norm = _squared_norm(arms[alive[i]], inverses[level])
            if norm > widest_norm:
                widest, widest_norm = i, norm
        width = math.sqrt(widest_norm) * multipliers[level]
        if not width <= 0.5 ** (level + 1):
            return alive[widest], level, True
        highest = 0
        for i in range(left):
            means[i] = _dot(arms[alive[i]], thetas[level])
            if means[i] > means[highest]:
                highest = i
        if width <= last_width or level == len(thetas) - 1:
            return alive[highest], level, False
        threshold = means[highest] - 2 * 0.5 ** (level + 1)
        kept = 0
        for i in range(left):
            if means[i] >= threshold:
                alive[kept] = alive[i]
                kept += 1
        left = kept
        level += 1


@_jit
def support(
    rows: Floats, answers: Floats, ridge: float, start: Floats, direction: Floats, inverse: Floats, ceiling: float
) -> float:
    """See `plain.support`."""
    d = len(start)
    weights = np.ones(len(rows))
    gradient, hessian, lower = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))
    across = _times(inverse, direction)
    squared = _dot(direction, across)
    floor = _derivatives(rows, answers, weights, start, gradient, hessian) + ridge / 2 * _dot(start, start)
    room = ceiling - floor
    if squared <= 0.0 or room <= 0.0:
        return _dot(direction, start)
    eta = math.sqrt(2.0 * room / squared)
    bound = math.inf
    theta = start + eta * across * min(1.0, 1.0 / max(eta * _movement(rows, across), 1e-300))
    for _ in range(8):
        decrement, value = 0.0, 0.0
        for _ in range(30):
            value = _derivatives(rows, answers, weights, theta, gradient, hessian)
            gradient += ridge * theta - eta * direction
            if not _cholesky(hessian, ridge, lower):
                return bound
            step = _solve(lower, gradient)
            decrement = math.sqrt(max(0.0, _dot(step, gradient)))
            if decrement <= 1e-2:
                break
            moved = _movement(rows, step)
            theta -= step * (1.0 if moved <= 1.0 else max(1.0, math.log1p(moved)) / moved)
        value += ridge / 2 * _dot(theta, theta)
        bound = min(bound, (ceiling - value + eta * _dot(direction, theta) + decrement * decrement) / eta)
        if abs(value - ceiling) <= 0.02 * room:
            break
        eta *= math.sqrt(room / max(value - floor, 0.01 * room))
    return bound
