"""Optimism over a set {θ : F(θ) ≤ ceiling}, F a penalised logistic loss: which arm's score can be largest?"""

import math

import numpy as np
from numpy.typing import NDArray

from surepick.contextual import numerics
from surepick.contextual.estimate import Estimate
from surepick.contextual.ratio_set import outer_radius

Floats = NDArray[np.float64]


def most_promising(now: Estimate, arms: Floats, ridge: float, room: float, cap: float) -> int:
    """The arm with the largest max{xᵀθ : F(θ) ≤ min F + room}, scores capped at cap·‖x‖.

    Exact support values (`support`) are computed only for arms that a self-concordant ellipsoid does not rule out, from
    the most to the least promising; O(t d²) for each of these few.
    """
    kernels, history = numerics.kernels, now.history
    squared = kernels.squared_norms(arms, now.inverse)
    if len(history) == 0:
        return int(np.argmax(squared))
    caps = cap * np.sqrt(np.einsum("ij,ij->i", arms, arms))
    reach = math.sqrt(float(kernels.squared_norms(history.rows, now.inverse).max()))
    radius = outer_radius(reach, 0.0, room)
    upper = np.minimum(arms @ now.theta + radius * np.sqrt(squared), caps)
    best, highest = 0, -math.inf
    floor = float(kernels.row_losses(history.rows, history.answers, now.theta).sum()) + ridge / 2 * float(
        now.theta @ now.theta
    )
    for arm in np.argsort(-upper, kind="stable"):
        if upper[arm] <= highest:
            break
        corner = arms[arm] * (cap * cap / max(float(caps[arm]), 1e-300))
        at_corner = float(kernels.row_losses(history.rows, history.answers, corner).sum()) + ridge / 2 * cap * cap
        value = float(caps[arm])
        if at_corner > floor + room:  # otherwise the set reaches the cap
            exact = kernels.support(
                history.rows, history.answers, ridge, now.theta, arms[arm], now.inverse, floor + room
            )
            value = min(float(exact), value)
        if value > highest:
            best, highest = int(arm), value
    return best
