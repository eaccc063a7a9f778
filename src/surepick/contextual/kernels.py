"""The inner loops of the contextual policies, compiled where numba is installed (`surepick.glm.kernels`).

Conventions: rows are the vectors that were chosen, answers 0.0 or 1.0, weights how much an answer counts; v = xᵀθ,
μ(v) = 1/(1+e⁻ᵛ), s = μ(1−μ), m(v) = log(1+eᵛ); `inverse` is M⁻¹ of a positive definite matrix, ‖x‖² in it xᵀM⁻¹x.
Arrays named "in place" are changed, everything else is left alone. Lemmas and propositions are those of
docs/contextual.md.
"""

import math

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats
from surepick.glm.kernels import Numbers, kernel, probability_of_yes, softplus, variance


@kernel
def add_outer(inverse: Floats, vector: Floats, weight: float) -> float:
    """Turn M⁻¹ into (M + weight·xxᵀ)⁻¹ in place (Sherman and Morrison); O(d²). Returns xᵀM⁻¹x of before."""
    across = inverse @ vector
    squared = float(vector @ across)
    inverse -= across.reshape(-1, 1) * (across * (weight / (1.0 + weight * squared)))
    return squared


@kernel
def add_information(information: Floats, inverse: Floats, vector: Floats, weight: float) -> float:
    """Add weight·xxᵀ to a matrix and its inverse, both in place; O(d²). Returns the gain in log-determinant."""
    information += vector.reshape(-1, 1) * (weight * vector)
    return math.log1p(weight * add_outer(inverse, vector, weight))


@kernel
def norm(vector: Floats, inverse: Floats) -> float:
    """‖x‖ in the inverse; rounding below zero counts as zero."""
    return math.sqrt(max(0.0, float(vector @ (inverse @ vector))))


@kernel
def squared_norms(rows: Floats, inverse: Floats) -> Floats:
    """‖x‖² in the inverse for every row; O(n d²)."""
    squared: Floats = ((rows @ inverse) * rows).sum(axis=1)
    return np.maximum(squared, 0.0)


@kernel
def far_logit(vector: Floats, theta: Floats, inverse: Floats, radius: float) -> float:
    """|xᵀθ| + radius·‖x‖ in the inverse: the largest size of a score over an ellipsoid around θ."""
    return abs(float(vector @ theta)) + radius * norm(vector, inverse)


@kernel
def largest_entry(matrix: Floats) -> float:
    """The largest absolute value; NaN if there is a NaN."""
    return float(np.abs(matrix).max())


@kernel
def optimistic(arms: Floats, theta: Floats, inverse: Floats, radius: float) -> int:
    """The first arm of largest xᵀθ + radius·‖x‖ in the inverse; of largest norm if the radius is infinite."""
    widths = np.sqrt(squared_norms(arms, inverse))
    return int(np.argmax(widths if math.isinf(radius) else arms @ theta + radius * widths))


@kernel
def row_losses(rows: Floats, answers: Floats, theta: Floats) -> Floats:
    """m(v) − y·v for every row."""
    losses: Floats = softplus((1.0 - 2.0 * answers) * (rows @ theta))
    return losses


@kernel
def curvature(v: Numbers, reach: Numbers) -> Numbers:
    """The largest c with m(v+z) ≥ m(v) + μ(v)z + cz²/2 for all |z| ≤ D = reach (Lemma A); numbers or arrays.

    Twice the mean of s along the way from v, heavier at v; it is least at the end farther from zero, so
    c = 2(m(|v|+D) − m(|v|) − μ(|v|)D)/D². Where that cancels, the smaller s(v)(1 − D/3) ≤ 2s(v)(e^{−D}+D−1)/D².
    """
    far = np.maximum(reach, 1e-2)
    size = np.abs(v)
    exact = 2 * (softplus(size + far) - softplus(size) - probability_of_yes(size) * far) / far**2
    # rounding, of the order of 1e-16·v/D², must not make the bound too large
    safe = np.maximum(exact - 1e-15 * (1 + size + far) / far**2, 0.0)
    is_near = reach < 1e-2  # as a factor of 0 or 1: np.where would turn a number into an array
    return is_near * (variance(size) * (1 - np.minimum(reach, 1.0) / 3)) + (1 - is_near) * safe


@kernel
def reaches_of(rows: Floats, anchor: Floats, centre: Floats, inverse: Floats, radius: float) -> Floats:
    """|xᵀ(centre − anchor)| + radius·‖x‖ in the inverse, for every row: how far xᵀθ can be from xᵀanchor."""
    reaches: Floats = np.abs(rows @ (centre - anchor)) + radius * np.sqrt(squared_norms(rows, inverse))
    return reaches


@kernel
def minorant_matrix(rows: Floats, weights: Floats, anchor: Floats, reaches: Floats) -> Floats:
    """M = Σ w·c·xxᵀ of Proposition B, c the `curvature` at the anchor; O(n d²)."""
    scaled: Floats = rows * (weights * curvature(rows @ anchor, reaches)).reshape(-1, 1)
    return scaled.T @ rows


@kernel
def online_step(theta: Floats, inverse: Floats, vector: Floats, answer: float) -> None:
    """One online Newton step of θ and its inverse information, in place; O(d²)."""
    v = vector @ theta
    add_outer(inverse, vector, variance(v))
    theta += (inverse @ vector) * (answer - probability_of_yes(v))


@kernel
def forecast(experts: Floats, inverses: Floats, scores: Floats, vector: Floats, answer: float) -> None:
    """Score the experts' predictions of one answer, then let each take an online Newton step; all in place.

    `scores` gain the log-probability that each expert gave to the answer before it learnt it. O(experts·d²).
    """
    scores -= softplus((1.0 - 2.0 * answer) * (experts @ vector))
    for e in range(len(experts)):
        online_step(experts[e], inverses[e], vector, answer)


@kernel
def add_minorant(
    anchor: Floats, gradient: Floats, inverse: Floats, centre: Floats, radius: float, vector: Floats, answer: float
) -> float:
    """Add to a quadratic around `anchor` the lower bound of one answer's loss by Lemma A; O(d²).

    It holds on the ellipsoid ‖θ − centre‖ ≤ radius in M, the curvature of the quadratic, whose inverse is given. In
    place: `gradient` at the anchor and `inverse` gain the bound, `centre` becomes the minimiser of the quadratic.
    Returns the loss at the anchor.
    """
    v = vector @ anchor
    reach = abs(float(vector @ (centre - anchor))) + radius * norm(vector, inverse)
    gradient += vector * (probability_of_yes(v) - answer)
    add_outer(inverse, vector, 0.0 if math.isinf(reach) else curvature(v, reach))
    centre[:] = anchor - inverse @ gradient
    return float(softplus((1.0 - 2.0 * answer) * v))


@kernel
def add_minorant_at_centre(
    centre: Floats, inverse: Floats, radius: float, cap: float, vector: Floats, answer: float
) -> float:
    """The same with the anchor at the centre, the quadratic's minimiser, of the moment; O(d²).

    The bound holds where |xᵀ(θ − centre)| ≤ min(cap, radius·‖x‖ in the inverse). In place: `centre` and `inverse`.
    Returns by how much the minimum of the quadratic rises.
    """
    v = vector @ centre
    c = curvature(v, min(cap, radius * norm(vector, inverse)))
    slope = probability_of_yes(v) - answer
    squared = add_outer(inverse, vector, c)
    centre -= (inverse @ vector) * slope
    # min over z = xᵀ(θ − centre) of slope·z + c·z²/2 + z²/(2·squared)
    return float(softplus((1.0 - 2.0 * answer) * v) - slope**2 * squared / (1 + c * squared) / 2)


@kernel
def expert_evidence(scores: Floats, restarts: Floats) -> Floats:
    """log w_j + N_j for every restart j, N_j the log of the experts' mean probability of the answers since then.

    A row of `restarts`: answers before it, log w_j, share p_j, then the experts' scores at that moment.
    """
    total = scores[0] - restarts[:, 3]
    for e in range(1, len(scores)):
        total = np.logaddexp(total, scores[e] - restarts[:, 3 + e])
    evidence: Floats = restarts[:, 1] + total - math.log(len(scores))
    return evidence


@kernel
def border_shares(terms: Floats, growth: Floats, level: float) -> Floats:
    """Softmax of terms + growth·r, r ≥ 0 the rise at which log Σ exp(terms + growth·r) reaches the level, or zero.

    By tangents of a convex function of r, to about 0.01: any shares are valid where this is used.
    """
    rise = 0.0
    shares = np.empty(len(terms))
    for _ in range(30):
        logs = terms + growth * rise
        top = logs.max()
        shares = np.exp(logs - top)
        total = shares.sum()
        shares = shares / total
        step = (level - math.log(total) - top) / max(shares @ growth, 1e-3)
        rise = max(rise + min(step, 50.0), 0.0)
        if abs(step) < 1e-2 or (rise == 0.0 and step < 0.0):
            break
    return shares


@kernel
def tangent_offset(scores: Floats, restarts: Floats) -> float:
    """o = Σ_j p_j(log w_j + N_j − log p_j) of Proposition B; restarts of share zero count nothing."""
    live = restarts[:, 2] > 0.0
    shares = restarts[:, 2][live]
    return float(shares @ (expert_evidence(scores, restarts)[live] - np.log(shares)))


@kernel
def route(
    arms: Floats, thetas: Floats, inverses: Floats, multipliers: Floats, last_width: float
) -> tuple[int, int, bool]:
    """Pass the arms through the levels of a Sup algorithm: (chosen arm, its level from 0, whether it is stored).

    At level s the width of an arm is multiplier·‖x‖ in the inverse, infinite with the multiplier. (a) An arm wider
    than 2^{−(s+1)} is chosen, the widest, and stored; (b) if all are within `last_width`, the arm of highest mean is
    chosen and not stored; (c) otherwise arms within 2·2^{−(s+1)} of the highest mean go on to the next level.
    """
    alive = np.arange(len(arms))  # indices of the arms that are left
    left = arms
    level = 0
    while True:
        squared = squared_norms(left, inverses[level])
        widest = np.argmax(squared)
        width = math.sqrt(squared[widest]) * multipliers[level]
        if not width <= 0.5 ** (level + 1):  # true for NaN as well: zero times an infinite multiplier
            return alive[widest], level, True
        means = left @ thetas[level]
        highest = np.argmax(means)
        if width <= last_width or level == len(thetas) - 1:
            return alive[highest], level, False
        on = means >= means[highest] - 2 * 0.5 ** (level + 1)
        alive, left = alive[on], left[on]
        level += 1


@kernel
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
    """Take many steps of a Sup algorithm, until a level has grown by `limit` and is due for a refresh.

    Every step is routed; what is stored adds its variance bound s(far_logit) to its level. In place: `information`,
    `current` and `growth` of the levels, and per step the arm `chosen` and its bucket (level from 1, or −1 if it is not
    stored). Returns the number of steps taken.
    """
    for t in range(len(arms)):
        index, level, stored = route(arms[t], thetas, inverses, multipliers, last_width)
        chosen[t], buckets[t] = index, level + 1 if stored else -1
        if stored:
            vector = arms[t, index]
            # s falls with |v|, so at the far end of the ellipsoid it is a lower bound of the answer's variance.
            weight = variance(far_logit(vector, centre, phi_inverse, radius))
            growth[level] += add_information(information[level], current[level], vector, weight)
            if growth[level] >= limit:
                return t + 1
    return len(arms)
