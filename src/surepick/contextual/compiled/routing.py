"""A Sup algorithm's way through its levels, for one step and for many."""

import math

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats
from surepick.contextual.compiled.algebra import add_information, dot, far_logit, jit, squared_norm
from surepick.contextual.compiled.fit import variance


@jit
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
            norm = squared_norm(arms[alive[i]], inverses[level])
            if norm > widest_norm:
                widest, widest_norm = i, norm
        width = math.sqrt(widest_norm) * multipliers[level]
        if not width <= 0.5 ** (level + 1):
            return alive[widest], level, True
        highest = 0
        for i in range(left):
            means[i] = dot(arms[alive[i]], thetas[level])
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


@jit
def advance(
    arms: Floats,
    thetas: Floats,
    inverses: Floats,
    multipliers: Floats,
    last_width: float,
    centre: Floats,
    phi_inverse: Floats,
    radius: float,
    information: Floats,
    current: Floats,
    growth: Floats,
    limit: float,
    chosen: NDArray[np.int64],
    buckets: NDArray[np.int64],
) -> int:
    """See `plain.advance`."""
    for t in range(len(arms)):
        index, level, kept = route(arms[t], thetas, inverses, multipliers, last_width)
        chosen[t], buckets[t] = index, level + 1 if kept else -1
        if kept:
            vector = arms[t, index]
            weight = variance(far_logit(vector, centre, phi_inverse, radius))
            growth[level] += add_information(information[level], current[level], vector, weight)
            if growth[level] >= limit:
                return t + 1
    return len(arms)
