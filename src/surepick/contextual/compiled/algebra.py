"""Small vectors and matrices as scalar loops: products, Cholesky factors, rank-one updates, norms of arms."""

import math
from collections.abc import Callable
from typing import TypeVar, cast

import numba
import numpy as np

from surepick._arrays import Floats

Function = TypeVar("Function", bound=Callable[..., object])


def jit(function: Function) -> Function:
    """Compile on the first call and keep the machine code beside the source file."""
    return cast("Function", numba.njit(cache=True, error_model="numpy")(function))


@jit
def dot(a: Floats, b: Floats) -> float:
    """aᵀb."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@jit
def times(matrix: Floats, vector: Floats) -> Floats:
    """Mv of a square matrix."""
    result = np.zeros(len(vector))
    for i in range(len(vector)):
        total = 0.0
        for j in range(len(vector)):
            total += matrix[i, j] * vector[j]
        result[i] = total
    return result


@jit
def cholesky(matrix: Floats, ridge: float, lower: Floats) -> bool:
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


@jit
def solve(lower: Floats, right: Floats) -> Floats:
    """(LLᵀ)⁻¹b for a lower factor L."""
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


@jit
def inverse(matrix: Floats) -> Floats:
    """See `plain.inverse`."""
    d = len(matrix)
    lower = np.zeros((d, d))
    result = np.full((d, d), np.nan)
    if cholesky(matrix, 0.0, lower):
        for j in range(d):
            unit = np.zeros(d)
            unit[j] = 1.0
            result[:, j] = solve(lower, unit)
    return result


@jit
def add_outer(inverse: Floats, vector: Floats, weight: float) -> float:
    """See `plain.add_outer`."""
    d = len(vector)
    across = times(inverse, vector)
    squared = dot(vector, across)
    scale = weight / (1.0 + weight * squared)
    for i in range(d):
        for j in range(d):
            inverse[i, j] -= across[i] * across[j] * scale
    return squared


@jit
def add_information(information: Floats, inverse: Floats, vector: Floats, weight: float) -> float:
    """See `plain.add_information`."""
    d = len(vector)
    for i in range(d):
        for j in range(d):
            information[i, j] += weight * vector[i] * vector[j]
    return math.log1p(weight * add_outer(inverse, vector, weight))


@jit
def squared_norm(vector: Floats, inverse: Floats) -> float:
    """xᵀM⁻¹x, not below zero."""
    d = len(vector)
    total = 0.0
    for i in range(d):
        inner = 0.0
        for j in range(d):
            inner += inverse[i, j] * vector[j]
        total += vector[i] * inner
    return total if total > 0.0 else 0.0


@jit
def squared_norms(rows: Floats, inverse: Floats) -> Floats:
    """See `plain.squared_norms`."""
    result = np.empty(len(rows))
    for i in range(len(rows)):
        result[i] = squared_norm(rows[i], inverse)
    return result


@jit
def far_logit(vector: Floats, theta: Floats, inverse: Floats, radius: float) -> float:
    """See `plain.far_logit`."""
    return abs(dot(vector, theta)) + radius * math.sqrt(squared_norm(vector, inverse))


@jit
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


@jit
def optimistic(arms: Floats, theta: Floats, inverse: Floats, radius: float) -> int:
    """See `plain.optimistic`."""
    best, highest = 0, -math.inf
    for a in range(len(arms)):
        width = math.sqrt(squared_norm(arms[a], inverse))
        index = width if math.isinf(radius) else dot(arms[a], theta) + radius * width
        if index > highest:
            best, highest = a, index
    return best
