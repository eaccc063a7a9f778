"""The inner loops of the contextual policies in NumPy: the reference, and what runs where numba is not installed.

`compiled` holds the same functions for numba; both are tested to lead to the same choices. Conventions: rows are the
vectors that were chosen, answers 0.0 or 1.0, weights how much an answer counts; v = xᵀθ, μ(v) = 1/(1+e⁻ᵛ),
s = μ(1−μ), m(v) = log(1+eᵛ). Arrays named "in place" are changed, everything else is left alone.
"""

import math

import numpy as np
from numpy.typing import NDArray

from surepick._arrays import Floats
from surepick.glm.loss import derivatives, probability_of_yes, softplus, variance
from surepick.linalg import factor

NAME = "numpy"


def newton(
    rows: Floats, answers: Floats, weights: Floats, start: Floats, ridge: float, tolerance: float, iterations: int
) -> tuple[Floats, float, Floats, Floats, float]:
    """Minimise Σ w·(m(v) − y·v) + (ridge/2)‖θ‖² from `start`, by steps that provably descend.

    Returns θ and, there, the loss, its gradient and its Hessian (all without the ridge), and the Newton decrement of
    the penalised loss: how far θ is from the minimum, in standard deviations. O(n d²) an iteration.
    """
    theta = start.copy()
    wins = weights * answers
    at = derivatives(rows, weights, wins, theta)
    for iteration in range(iterations + 1):
        penalised = at.gradient + ridge * theta
        step = _solved(at.hessian + ridge * np.eye(len(theta)), penalised)
        if step is None:
            return theta, at.value, at.gradient, at.hessian, math.inf
        decrement = math.sqrt(max(0.0, float(step @ penalised)))
        if decrement <= tolerance or iteration == iterations:
            break
        moved = float(np.max(np.abs(rows @ step), initial=0.0))
        theta = theta - step * (1.0 if moved <= 1.0 else max(1.0, math.log1p(moved)) / moved)
        at = derivatives(rows, weights, wins, theta)
    return theta, at.value, at.gradient, at.hessian, decrement


def _solved(matrix: Floats, right: Floats) -> Floats | None:
    shape = factor(matrix)
    return None if shape is None else shape.solve(right)


def inverse(matrix: Floats) -> Floats:
    """M⁻¹ of a symmetric positive definite matrix; NaN throughout where it is numerically singular."""
    shape = factor(matrix)
    return np.full_like(matrix, np.nan) if shape is None else shape.solve(np.eye(len(matrix)))


def add_outer(inverse: Floats, vector: Floats, weight: float) -> float:
    """Turn M⁻¹ into (M + weight·xxᵀ)⁻¹ in place (Sherman and Morrison); O(d²). Returns xᵀM⁻¹x of before."""
    across = inverse @ vector
    squared = float(vector @ across)
    inverse -= np.outer(across, across) * (weight / (1.0 + weight * squared))
    return squared


def add_information(information: Floats, inverse: Floats, vector: Floats, weight: float) -> float:
    """Add weight·xxᵀ to a matrix and its inverse, both in place; O(d²). Returns the gain in log-determinant."""
    information += weight * np.outer(vector, vector)
    return math.log1p(weight * add_outer(inverse, vector, weight))


def far_logit(vector: Floats, theta: Floats, inverse: Floats, radius: float) -> float:
    """|xᵀθ| + radius·‖x‖ in the inverse: the largest size of a score over an ellipsoid."""
    return abs(float(vector @ theta)) + radius * math.sqrt(max(0.0, float(vector @ inverse @ vector)))


def largest_entry(matrix: Floats) -> float:
    """Of all entries, in absolute value; NaN if there is one."""
    return float(np.abs(matrix).max())


def squared_norms(rows: Floats, inverse: Floats) -> Floats:
    """xᵀM⁻¹x for every row; O(n d²)."""
    return np.asarray(np.maximum(np.einsum("ij,ij->i", rows @ inverse, rows), 0.0))


def optimistic(arms: Floats, theta: Floats, inverse: Floats, radius: float) -> int:
    """The first arm of largest xᵀθ + radius·‖x‖ in the inverse matrix; of largest norm if the radius is infinite."""
    widths = np.sqrt(squared_norms(arms, inverse))
    return int(np.argmax(widths if math.isinf(radius) else arms @ theta + radius * widths))


def row_losses(rows: Floats, answers: Floats, theta: Floats) -> Floats:
    """m(v) − y·v for every row."""
    return softplus((1.0 - 2.0 * answers) * (rows @ theta))


def curvatures(logits: Floats, reaches: Floats) -> Floats:
    """The largest c with m(v+z) ≥ m(v) + μ(v)z + cz²/2 for all |z| ≤ D, for pairs of v (logits) and D (reaches).

    Twice the mean of s along the way from v, heavier at v; it is least at the end farther from zero, so
    c = 2(m(|v|+D) − m(|v|) − μ(|v|)D)/D². Where that cancels, the smaller s(v)(1 − D/3) ≤ 2s(v)(e^{−D}+D−1)/D².
    """
    far = np.maximum(reaches, 1e-2)
    v = np.abs(logits)
    exact = 2 * (softplus(v + far) - softplus(v) - probability_of_yes(v) * far) / far**2
    # rounding, of the order of 1e-16·v/D², must not make the bound too large
    safe = np.maximum(exact - 1e-15 * (1 + v + far) / far**2, 0.0)
    return np.where(reaches < 1e-2, variance(v) * (1 - np.minimum(reaches, 1.0) / 3), safe)


def reaches_of(rows: Floats, anchor: Floats, centre: Floats, inverse: Floats, radius: float) -> Floats:
    """|xᵀ(centre − anchor)| + radius·‖x‖ in the inverse, for every row: how far xᵀθ can be from xᵀanchor."""
    return np.abs(rows @ (centre - anchor)) + radius * np.sqrt(squared_norms(rows, inverse))


def minorant_matrix(rows: Floats, weights: Floats, anchor: Floats, reaches: Floats) -> Floats:
    """Σ w·c·xxᵀ with c of `curvatures` at the anchor: the curvature of a lower bound of the weighted loss; O(n d²)."""
    return np.asarray((rows * (weights * curvatures(rows @ anchor, reaches))[:, None]).T @ rows)


def online_step(theta: Floats, inverse: Floats, vector: Floats, answer: float) -> None:
    """One online Newton step of θ and its inverse information, in place; O(d²)."""
    v = vector @ theta
    add_outer(inverse, vector, float(variance(v)))
    theta += inverse @ vector * (answer - float(probability_of_yes(v)))


def forecast(experts: Floats, inverses: Floats, scores: Floats, vector: Floats, answer: float) -> None:
    """Score the experts' predictions of one answer, then let each make an online Newton step; all in place.

    `scores` gain the log-probability that each expert gave to the answer before it learnt it. O(experts·d²).
    """
    scores -= softplus((1.0 - 2.0 * answer) * (experts @ vector))
    for e in range(len(experts)):
        online_step(experts[e], inverses[e], vector, answer)


def add_minorant(
    anchor: Floats, gradient: Floats, inverse: Floats, centre: Floats, radius: float, vector: Floats, answer: float
) -> float:
    """Add to a quadratic around `anchor` a lower bound of one answer's loss that holds on an ellipsoid; O(d²).

    The ellipsoid is ‖θ − centre‖ ≤ radius in the inverse of `inverse`, the curvature of the quadratic. In place:
    `gradient` at the anchor and `inverse` gain the bound, `centre` becomes the minimiser of the quadratic. Returns the
    loss at the anchor.
    """
    v = float(vector @ anchor)
    reach = abs(float(vector @ (centre - anchor))) + radius * math.sqrt(max(0.0, float(vector @ inverse @ vector)))
    curvature = 0.0 if math.isinf(reach) else float(curvatures(np.array(v), np.array(reach)))
    gradient += vector * (float(probability_of_yes(np.array(v))) - answer)
    add_outer(inverse, vector, curvature)
    centre[:] = anchor - inverse @ gradient
    return float(softplus(np.array((1.0 - 2.0 * answer) * v)))


def lowered(centre: Floats, inverse: Floats, radius: float, cap: float, vector: Floats, answer: float) -> float:
    """Add to a quadratic with this centre (its minimiser) a lower bound of one answer's loss around it; O(d²).

    The bound holds where |xᵀ(θ − centre)| ≤ min(cap, radius·‖x‖ in the inverse). In place: `centre` and `inverse`.
    Returns by how much the minimum of the quadratic rises.
    """
    v = float(vector @ centre)
    reach = min(cap, radius * math.sqrt(max(0.0, float(vector @ inverse @ vector))))
    curvature = float(curvatures(np.array(v), np.array(reach)))
    slope = float(probability_of_yes(np.array(v))) - answer
    squared = add_outer(inverse, vector, curvature)
    centre -= inverse @ vector * slope
    # min over z = xᵀ(θ − centre) of slope·z + curvature·z²/2 + z²/(2·squared)
    return float(softplus(np.array((1.0 - 2.0 * answer) * v))) - slope**2 * squared / (1 + curvature * squared) / 2


def expert_evidence(scores: Floats, restarts: Floats) -> Floats:
    """log w_j + N_j for every restart j, N_j the log of the experts' mean probability of the answers since then.

    A row of `restarts`: answers before it, log w_j, share p_j, then the experts' scores at that moment.
    """
    since = scores - restarts[:, 3:]
    top = since.max(axis=1)
    return np.asarray(restarts[:, 1] + top + np.log(np.exp(since - top[:, None]).mean(axis=1)))


def border_shares(terms: Floats, growth: Floats, level: float) -> Floats:
    """Softmax of terms + growth·r, r the rise at which log Σ exp(terms + growth·r) is the level, or zero.

    Newton's method on a convex function, about to 0.01; any shares are valid where this is used.
    """
    rise = 0.0
    for _ in range(30):
        logs = terms + growth * rise
        top = logs.max()
        shares = np.exp(logs - top)
        total = shares.sum()
        shares /= total
        step = (level - math.log(total) - top) / max(float(shares @ growth), 1e-3)
        rise = max(rise + min(step, 50.0), 0.0)
        if abs(step) < 1e-2 or (rise == 0.0 and step < 0.0):
            break
    return np.asarray(shares)


def tangent_offset(scores: Floats, restarts: Floats) -> float:
    """Σ_j p_j(log w_j + N_j − log p_j)."""
    live = restarts[:, 2] > 0
    shares = restarts[live, 2]
    return float(shares @ (expert_evidence(scores, restarts[live]) - np.log(shares)))


def route(
    arms: Floats, thetas: Floats, inverses: Floats, multipliers: Floats, last_width: float
) -> tuple[int, int, bool]:
    """Pass the arms through the levels of a Sup algorithm: (chosen arm, its level from 0, whether it is stored).

    At level s the width of an arm is multiplier·‖x‖ in the inverse, infinite with the multiplier. (a) An arm wider
    than 2^{−(s+1)} is chosen, the widest, and stored; (b) if all are within `last_width`, the arm of highest mean is
    chosen and not stored; (c) otherwise arms within 2·2^{−(s+1)} of the highest mean go on to the next level.
    """
    alive = np.arange(len(arms))
    level = 0
    while True:
        norms = np.sqrt(squared_norms(arms[alive], inverses[level]))
        widest = int(np.argmax(norms))
        if not norms[widest] * multipliers[level] <= 0.5 ** (level + 1):
            return int(alive[widest]), level, True
        means = arms[alive] @ thetas[level]
        highest = int(np.argmax(means))
        if norms[widest] * multipliers[level] <= last_width or level == len(thetas) - 1:
            return int(alive[highest]), level, False
        alive = alive[means >= means[highest] - 2 * 0.5 ** (level + 1)]
        level += 1


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
        index, level, kept = route(arms[t], thetas, inverses, multipliers, last_width)
        chosen[t], buckets[t] = index, level + 1 if kept else -1
        if kept:
            vector = arms[t, index]
            weight = float(variance(np.array(far_logit(vector, centre, phi_inverse, radius))))
            growth[level] += add_information(information[level], current[level], vector, weight)
            if growth[level] >= limit:
                return t + 1
    return len(arms)


def support(
    rows: Floats, answers: Floats, ridge: float, start: Floats, direction: Floats, inverse: Floats, ceiling: float
) -> float:
    """An upper bound of directionᵀθ over {F(θ) ≤ ceiling}, F the loss plus (ridge/2)‖θ‖², tight to about 1%.

    By duality every η > 0 gives the bound (ceiling − min{F − η·directionᵀθ})/η, least where F at that minimiser
    equals the ceiling, and flat around; η is led there by F − F(start) ≈ η²·‖direction‖²/2. `start` minimises F,
    `inverse` is its inverse Hessian there. O(n d²) an iteration.
    """
    weights = np.ones(len(rows))
    identity = ridge * np.eye(len(start))
    across = inverse @ direction
    squared = float(direction @ across)
    floor = derivatives(rows, weights, answers, start).value + ridge / 2 * float(start @ start)
    room = ceiling - floor
    if squared <= 0.0 or room <= 0.0:
        return float(direction @ start)
    eta = math.sqrt(2.0 * room / squared)
    bound = math.inf
    theta = start + eta * across * min(1.0, 1.0 / max(eta * float(np.max(np.abs(rows @ across))), 1e-300))
    for _ in range(8):
        for _ in range(30):
            at = derivatives(rows, weights, answers, theta)
            gradient = at.gradient + ridge * theta - eta * direction
            step = _solved(at.hessian + identity, gradient)
            if step is None:
                return bound
            decrement = math.sqrt(max(0.0, float(step @ gradient)))
            if decrement <= 0.1:
                break
            moved = float(np.max(np.abs(rows @ step), initial=0.0))
            theta = theta - step * (1.0 if moved <= 1.0 else max(1.0, math.log1p(moved)) / moved)
        value = at.value + ridge / 2 * float(theta @ theta)
        # decrement² covers what the minimum may lie below the value found
        bound = min(bound, (ceiling - value + eta * float(direction @ theta) + decrement * decrement) / eta)
        if abs(value - ceiling) <= 0.1 * room:
            break
        eta *= math.sqrt(room / max(value - floor, 0.01 * room))
    return bound
