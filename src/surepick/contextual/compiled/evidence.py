"""What likelihood-ratio sets are made of: quadratics below the loss, experts' predictions, restarts."""

import math

import numpy as np

from surepick._arrays import Floats
from surepick.contextual.compiled.algebra import add_outer, dot, jit, squared_norm, times
from surepick.contextual.compiled.fit import online_step, softplus, variance, yes


@jit
def curvature_of(v: float, reach: float) -> float:
    """One entry of `curvatures`."""
    v = abs(v)
    if reach < 1e-2:
        return variance(v) * (1 - reach / 3)
    exact = 2 * (softplus(v + reach) - softplus(v) - yes(v) * reach) / reach**2
    return max(exact - 1e-15 * (1 + v + reach) / reach**2, 0.0)


@jit
def curvatures(logits: Floats, reaches: Floats) -> Floats:
    """See `plain.curvatures`."""
    result = np.empty(len(logits))
    for i in range(len(logits)):
        result[i] = curvature_of(logits[i], reaches[i])
    return result


@jit
def reaches_of(rows: Floats, anchor: Floats, centre: Floats, inverse: Floats, radius: float) -> Floats:
    """See `plain.reaches_of`."""
    result = np.empty(len(rows))
    shift = centre - anchor
    for i in range(len(rows)):
        result[i] = abs(dot(rows[i], shift)) + radius * math.sqrt(squared_norm(rows[i], inverse))
    return result


@jit
def minorant_matrix(rows: Floats, weights: Floats, anchor: Floats, reaches: Floats) -> Floats:
    """See `plain.minorant_matrix`."""
    n, d = rows.shape
    result = np.zeros((d, d))
    for i in range(n):
        if weights[i] == 0.0:
            continue
        weight = weights[i] * curvature_of(dot(rows[i], anchor), reaches[i])
        for j in range(d):
            scaled = weight * rows[i, j]
            for k in range(j + 1):
                result[j, k] += scaled * rows[i, k]
    for j in range(d):
        for k in range(j):
            result[k, j] = result[j, k]
    return result


@jit
def forecast(experts: Floats, inverses: Floats, scores: Floats, vector: Floats, answer: float) -> None:
    """See `plain.forecast`."""
    for e in range(len(experts)):
        scores[e] -= softplus((1.0 - 2.0 * answer) * dot(experts[e], vector))
        online_step(experts[e], inverses[e], vector, answer)


@jit
def add_minorant(
    anchor: Floats, gradient: Floats, inverse: Floats, centre: Floats, radius: float, vector: Floats, answer: float
) -> float:
    """See `plain.add_minorant`."""
    v = dot(vector, anchor)
    reach = abs(dot(vector, centre) - v) + radius * math.sqrt(squared_norm(vector, inverse))
    curvature = 0.0 if math.isinf(reach) else curvature_of(v, reach)
    gradient += vector * (yes(v) - answer)
    add_outer(inverse, vector, curvature)
    centre[:] = anchor - times(inverse, gradient)
    return softplus((1.0 - 2.0 * answer) * v)


@jit
def lowered(centre: Floats, inverse: Floats, radius: float, cap: float, vector: Floats, answer: float) -> float:
    """See `plain.lowered`."""
    v = dot(vector, centre)
    reach = min(cap, radius * math.sqrt(squared_norm(vector, inverse)))
    curvature = curvature_of(v, reach)
    slope = yes(v) - answer
    squared = add_outer(inverse, vector, curvature)
    centre -= times(inverse, vector) * slope
    return softplus((1.0 - 2.0 * answer) * v) - slope**2 * squared / (1 + curvature * squared) / 2


@jit
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


@jit
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
        step = (level - math.log(total) - top) / max(dot(shares, growth), 1e-3)
        rise = max(rise + min(step, 50.0), 0.0)
        if abs(step) < 1e-2 or (rise == 0.0 and step < 0.0):
            break
    return shares


@jit
def tangent_offset(scores: Floats, restarts: Floats) -> float:
    """See `plain.tangent_offset`."""
    evidence = expert_evidence(scores, restarts)
    total = 0.0
    for j in range(len(restarts)):
        share = restarts[j, 2]
        if share > 0:
            total += share * (evidence[j] - math.log(share))
    return total
